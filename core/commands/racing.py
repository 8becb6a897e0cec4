"""`python -m core study race CHECKPOINT --task T`, and `--race` of `study disable`: verdicts from few rows."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from core.commands.declared import Ran, command
from core.errors import InputError
from core.measuring.race_table import said_of
from core.studies import race as racing
from core.studies.contract import Flag

SHOWN = ("name", "verdict", "rows", "effect", "effect_low", "effect_high", "gradient_first")


@dataclass(frozen=True)
class Racing:
    """What the command of sweeps takes when heads are raced instead; `study race` takes more."""

    race: Annotated[
        bool, Flag("verdicts on the loss from as few rows as each head takes, not a full sweep", name="--race")
    ] = False
    margin: Annotated[
        float | None, Flag("--race: of the mean change of the loss; default: 5% of the best constant's loss")
    ] = None
    anytime: Annotated[
        bool, Flag("--race: verdicts by intervals that hold whenever somebody stops", name="--anytime")
    ] = False


def raced(options: Any, own: Racing) -> tuple[racing.RaceStudy, racing.Options] | None:
    """The race that stands in for a sweep of these options, where one is asked for. Raises InputError."""
    if not own.race:
        if own.margin is not None or own.anytime:
            raise InputError("--margin and --anytime are options of a race; a sweep was asked for: add --race.")
        return None
    shared = ("checkpoint", "task", "data", "split", "limit", "dtype", "device", "seed", "what", "operator", "heads",
              "reference", "draws", "mean_by")  # fmt: skip
    given = {name: getattr(options, name) for name in shared}
    return racing.STUDY, racing.STUDY.read(given | {"margin": own.margin, "anytime": own.anytime})


def show_race(ran: Ran) -> None:
    """The verdicts, most effect first, and how the race went; everything as JSON or CSV."""
    if ran.form in ("json", "csv"):
        ran.show()
        return
    body = [row for row in ran.rows if row["kind"] == "verdict"]
    body.sort(key=lambda row: -abs(row["effect"] or 0.0))
    metrics = [name for name in ("accuracy", "f1", "pearson") if any(f"{name}_change" in row for row in body)]
    columns = [*SHOWN, *(f"{name}_{end}" for name in metrics for end in ("change", "low", "high"))]
    ran.show([{name: row.get(name) for name in columns} for row in body])
    if ran.form == "table":
        typer.echo(said_of(ran.rows[0]))


race = command(racing.STUDY, show=show_race)
