"""`python -m core study race CHECKPOINT --task T`, and `--race` of `study disable`: verdicts from few rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from core.commands.study_commands import Ran, command, short_in
from core.errors import InputError
from core.store.rows import Row
from core.studies.ablation import race as racing
from core.studies.ablation.race_table import verdict_sentence
from core.studies.ablation.races import RaceOptions
from core.studies.ablation.records import RaceSummary, RaceVerdict
from core.studies.contract import Flag
from core.studies.metric_columns import RANKING

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


def raced(options: Any, own: Racing) -> tuple[racing.RaceStudy, RaceOptions] | None:
    """The race that stands in for a sweep of these options, where one is asked for. Raises InputError."""
    if not own.race:
        if own.margin is not None:
            raise InputError("--margin is an option of a race; a sweep was asked for: add --race.")
        return None
    shared = ("checkpoint", "task", "data", "split", "limit", "dtype", "seed", "what", "operator", "heads",
              "reference", "draws", "mean_by")  # fmt: skip
    shared_options = {name: getattr(options, name) for name in shared}
    return racing.STUDY, racing.STUDY.read(shared_options | {"margin": own.margin})


@short_in("table", "latex")
def show_race(ran: Ran) -> None:
    """The verdicts, most effect first, and how the race went; everything as JSON or CSV."""
    verdicts = sorted(RaceVerdict.among(ran.rows), key=lambda verdict: -abs(verdict.effect or 0.0))
    metrics = [name for name in RANKING if any(verdict.metrics.of(name) for verdict in verdicts)]
    ran.show([_short(verdict, metrics) for verdict in verdicts])
    ran.say(verdict_sentence(RaceSummary.of(ran.rows[0])))


def _short(verdict: RaceVerdict, metrics: Sequence[str]) -> Row:
    """What a table has of a verdict; of survivors also the metrics."""
    shown = {name: getattr(verdict, name) for name in SHOWN}
    for name in metrics:
        measured = verdict.metrics.of(name)
        change = measured.change if measured else None
        shown |= {f"{name}_change": change and change.value, f"{name}_low": change and change.low}
        shown |= {f"{name}_high": change and change.high}
    return shown


race = command(racing.STUDY, show=show_race)
