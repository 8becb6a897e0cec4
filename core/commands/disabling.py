"""`python -m core study disable|importance|prune CHECKPOINT --task T`: does a head matter?"""

from dataclasses import dataclass
from typing import Annotated, Any

from core import capture, models
from core.attention import parse_heads
from core.commands.output import database, tell
from core.commands.racing import Racing, raced, show_race
from core.commands.study_commands import Ran, command, short_in
from core.errors import InputError
from core.store import runs
from core.store.rows import Row
from core.studies.ablation import crossed as crossing
from core.studies.ablation import crossed_prune as cross_pruning
from core.studies.ablation import disable as sweeps
from core.studies.ablation import held as holding
from core.studies.ablation import importance as weighing
from core.studies.ablation import prune as pruning
from core.studies.ablation import seeds as seeding
from core.studies.ablation.pruning_records import PruneStep, RankCorrelation
from core.studies.ablation.records import SplitHalf, SweptVariant, Untouched
from core.studies.ablation.shared_effects import shared_effects
from core.studies.contract import Flag
from core.studies.estimate import Estimate
from core.studies.headline import SURE
from core.studies.metric_columns import Metrics


@dataclass(frozen=True)
class Beside(Racing):
    """What only the command of sweeps takes."""

    beside: Annotated[str | None, Flag("an earlier sweep's run, for the correlation of the two")] = None


def _show_sweep(ran: Ran) -> None:
    earlier_rows = ran.ready
    shown_rows = ran.rows if earlier_rows is None else [*ran.rows, correlation(ran.rows, earlier_rows)]
    if ran.form in ("json", "csv"):
        ran.show(shown_rows)
        return
    ran.show(_table(ran.rows))
    ran.say(said_of(ran.rows))
    if earlier_rows is not None:
        ran.say(
            "Beside the other sweep: Spearman {spearman}, n = {n} ({name}).".format(
                **correlation(ran.rows, earlier_rows)
            )
        )


def earlier_sweep(run: str) -> list[Row]:
    """The rows of a stored sweep. Raises InputError where it is none, naming those there are."""
    with database() as db:
        stored_sweeps = runs.runs(db, sweeps.STUDY.name)  # imported ones too: whoever names one chooses it
        if run in set(stored_sweeps.run):
            return runs.run_rows(db, run)
    stored_names = "; ".join(f"{row.run} ({row.title})" for row in stored_sweeps.head(5).itertuples()) or "none"
    raise InputError(f"--beside takes the run of an earlier sweep; {run!r} is none. Stored: {stored_names}.")


def correlation(rows: list[Row], other: list[Row]) -> Row:
    """One row: how the ranks of two sweeps' changes agree."""
    pairs, agreement = shared_effects(rows, other)
    most_harmful = sorted(pairs, key=lambda variant: max(variant.this or 0.0, variant.other or 0.0))[:3]
    name = "most harm in both: " + ", ".join(variant.name for variant in most_harmful)
    return RankCorrelation(
        name=name, spearman=agreement.spearman, kendall=agreement.kendall, p=agreement.p, n=agreement.n
    ).as_row()


def _table(rows: list[Row]) -> list[Row]:
    """What a table shows of a sweep: the untouched model, with nothing where only a variant has something."""
    variants = list(map(_short, SweptVariant.among(rows)))
    blank = dict.fromkeys(variants[0] if variants else ())
    untouched = [blank | {"name": model.name} | _scores(model.metrics) for model in Untouched.among(rows)]
    return [*untouched, *variants]


def _scores(metrics: Metrics) -> Row:
    return {metric.name: metric.value for metric in metrics.every}


def _short(variant: SweptVariant) -> Row:
    metric, nothing = variant.metrics.first, Estimate(float("nan"))
    shown: Row = {"name": variant.name, **_scores(variant.metrics)}
    shown |= {f"{metric.name}_change": metric.change and metric.change.value, "p corrected": variant.p}  # the claim
    alone = metric.change or nothing
    shown |= {"alone_low": alone.low, "alone_high": alone.high}  # no claim of one of many
    shown |= {"flipped": variant.flipped, "mcnemar": variant.mcnemar}
    if variant.what == "duplicates":
        beyond_apart = metric.beyond_apart or nothing
        shown |= {"heads": variant.heads or None, "distance": variant.distance}
        shown |= {
            f"{metric.name}_apart": metric.apart and metric.apart.value,
            f"{metric.name}_control": metric.control and metric.control.value,
            f"{metric.name}_beyond_apart": metric.beyond_apart and metric.beyond_apart.value,
            f"{metric.name}_beyond_apart_low": beyond_apart.low,
            f"{metric.name}_beyond_apart_high": beyond_apart.high,
        }
    return shown


def said_of(rows: list[Row]) -> str:
    """What holds after the correction, and what the best one does on rows that did not choose it."""
    variants = SweptVariant.among(rows)
    significant = [variant.name for variant in variants if variant.p < SURE]
    sentence = f"Beyond luck (p < {SURE}, corrected over all): {', '.join(significant) or 'none'}."
    for untouched in Untouched.among(rows):
        if untouched.effect_within is not None:
            sentence += (
                f" {untouched.in_float32} of {len(variants)}, every claim among them, are computed again in float32; "
                f"the others' effects are within {100 * untouched.effect_within:.2f} points of it."
            )
    for half in SplitHalf.among(rows):
        if half.chosen is None or half.held_out is None:
            continue
        sentence += (
            f" Best of one half of the rows: {100 * half.chosen:+.1f} there, {100 * half.held_out:+.1f} on the "
            f"other half (most often {half.name}, in {half.same:.0%} of the splits)."
        )
    return sentence


@short_in("table", "latex")
def _show_crossed(ran: Ran) -> None:
    agree = [variant.folds_agree for variant in SweptVariant.among(ran.rows)]
    table = _table(ran.rows)
    ran.show([row | {"parts agree": count} for row, count in zip(table, [None, *agree], strict=True)])
    ran.say(said_of(ran.rows))


def save_from(rows: list[Row], checkpoint: str, folder: str, share: float) -> str:
    """Save the checkpoint without that share of its heads, in the first order of the rows; says what was done."""
    steps = PruneStep.among(rows)
    of_first = [step for step in steps if step.order == steps[0].order]
    nearest = min(of_first, key=lambda step: (abs(step.share - share), step.share))
    opened = models.opening.open_checkpoint(checkpoint, head="classifier")
    saved = capture.pruning.save_pruned(opened, parse_heads(nearest.heads), folder)
    return f"Saved {saved} without {nearest.removed} heads, in the order of {nearest.order}."


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
        tell(save_from(ran.rows, ran.options.checkpoint, ran.own.save, ran.own.share), err=True)


disable = command(
    sweeps.STUDY,
    show=_show_sweep,
    own=Beside,
    ready=lambda _, own_options: own_options.beside and earlier_sweep(own_options.beside),
    instead=raced,
    show_instead=show_race,
)
importance = command(weighing.STUDY)
held = command(holding.STUDY)
seeds = command(seeding.STUDY)
crossed = command(crossing.STUDY, show=_show_crossed)
crossed_prune = command(cross_pruning.STUDY)
prune = command(pruning.STUDY, show=_show_curve, own=Saving, ready=_check_share)
