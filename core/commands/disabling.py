"""`python -m core study disable|importance|prune CHECKPOINT --task T`: does a head matter?"""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from core import capture, models
from core.attention import parse_heads
from core.commands.declared import Ran, command
from core.commands.output import database
from core.commands.racing import Racing, raced, show_race
from core.errors import InputError
from core.store import runs
from core.store.rows import Row
from core.studies import disable as sweeps
from core.studies import held as holding
from core.studies import importance as weighing
from core.studies import prune as pruning
from core.studies.contract import Flag


@dataclass(frozen=True)
class Beside(Racing):
    """What only the command of sweeps takes."""

    beside: Annotated[str | None, Flag("an earlier sweep's run, for the correlation of the two")] = None


def _earlier(_: Any, own: Beside) -> list[Row] | None:
    return earlier_sweep(own.beside) if own.beside else None


def _show_sweep(ran: Ran) -> None:
    other = ran.ready
    every = ran.rows if other is None else [*ran.rows, correlation(ran.rows, other)]
    if ran.form in ("json", "csv"):
        ran.show(every)
        return
    ran.show([_short(row) for row in ran.rows if row["kind"] != "split half"])
    if ran.form == "table":
        typer.echo(said_of(ran.rows))
        if other is not None:
            agreement = correlation(ran.rows, other)
            typer.echo("Beside the other sweep: Spearman {spearman}, n = {n} ({name}).".format(**agreement))


def earlier_sweep(run: str) -> list[Row]:
    """The rows of a stored sweep. Raises InputError where it is none, naming those there are."""
    with database(beside=False) as db:
        known = runs.runs(db, "disable")
        if run in set(known["run"]):
            return runs.run_rows(db, run)
    there = "; ".join(f"{row.run} ({row.title})" for row in known.head(5).itertuples()) or "none"
    raise InputError(f"--beside takes the run of an earlier sweep; {run!r} is none. Stored: {there}.")


def correlation(rows: list[Row], other: list[Row]) -> Row:
    """One row: how the ranks of two sweeps' changes agree."""
    pairs, agreement = sweeps.shared(rows, other)
    both = sorted(pairs, key=lambda row: max(row["this"] or 0.0, row["other"] or 0.0))[:3]
    name = "most harm in both: " + ", ".join(row["name"] for row in both)
    fields = {one: getattr(agreement, one) for one in ("spearman", "kendall", "p", "n")}
    return {"kind": "correlation", "name": name, **fields}


def _short(row: Row) -> Row:
    metrics = [name for name in ("accuracy", "f1", "pearson") if name in row]
    found: Row = {"name": row["name"], **{name: row[name] for name in metrics}}
    found |= {f"{metrics[0]}_change": row.get(f"{metrics[0]}_change"), "p corrected": row.get("p")}  # the claim
    found |= {f"alone_{end}": row.get(f"{metrics[0]}_{end}") for end in ("low", "high")}  # no claim of one of many
    found |= {"flipped": row.get("flipped"), "mcnemar": row.get("mcnemar")}
    if row["what"] == "duplicates":
        ends = ("apart", "control", "beyond_apart", "beyond_apart_low", "beyond_apart_high")
        found |= {"heads": row.get("heads"), "distance": row.get("distance")}
        found |= {f"{metrics[0]}_{end}": row.get(f"{metrics[0]}_{end}") for end in ends}
    return found


def said_of(rows: list[Row]) -> str:
    """What holds after the correction, and what the best one does on rows that did not choose it."""
    variants = [row for row in rows if row["kind"] == "variant"]
    kept = [row["name"] for row in variants if row["p"] < 0.05]
    sentence = (
        f"{len(kept)} of {len(variants)} change the outcome beyond luck (p < 0.05, corrected over all): "
        f"{', '.join(kept) or 'none'}."
    )
    if rows and rows[0].get("effect_within") is not None:
        sentence += (
            f" {rows[0]['in_float32']} of {len(variants)}, every claim among them, are computed again in float32; the "
            f"others' effects are within {100 * rows[0]['effect_within']:.2f} points of it."
        )
    for row in rows:
        if row["kind"] == "split half":
            sentence += (
                f" Best of one half of the rows: {100 * row['chosen']:+.1f} there, {100 * row['held_out']:+.1f} on the "
                f"other half (most often {row['name']}, in {row['same']:.0%} of the splits)."
            )
    return sentence


def save_from(rows: list[Row], checkpoint: str, folder: str, share: float) -> str:
    """Save the checkpoint without that share of its heads, in the first order of the rows; says what was done."""
    steps = [row for row in rows if row["kind"] == "step" and row["order"] == rows[0]["order"]]
    nearest = min(steps, key=lambda row: (abs(row["share"] - share), row["share"]))
    found = capture.pruning.save_pruned(
        models.opening.open_checkpoint(checkpoint, head="classifier"), parse_heads(nearest["heads"]), folder
    )
    return f"Saved {found} without {nearest['removed']} heads, in the order of {nearest['order']}."


@dataclass(frozen=True)
class Saving:
    """What only the command of pruning takes."""

    save: Annotated[str | None, Flag("folder for the checkpoint without --share of its heads")] = None
    share: Annotated[float, Flag("of the heads to remove when saving, 0 to 1", least=0.0)] = 0.5


def _check_share(options: Any, saving: Saving) -> None:
    if not 0 <= saving.share <= 1:
        raise InputError(f"--share is a part of the heads, from 0 to 1; {saving.share:g} was given.")


def _show_curve(ran: Ran) -> None:
    ran.show()
    if ran.own.save:
        typer.echo(save_from(ran.rows, ran.options.checkpoint, ran.own.save, ran.own.share), err=True)


disable = command(
    sweeps.STUDY,
    show=_show_sweep,
    own=Beside,
    ready=lambda _, own: own.beside and earlier_sweep(own.beside),
    instead=raced,
    show_instead=show_race,
)
importance = command(weighing.STUDY)
held = command(holding.STUDY)
prune = command(pruning.STUDY, show=_show_curve, own=Saving, ready=_check_share)
