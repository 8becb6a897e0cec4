"""What commands of `python -m core study` have beyond their studies: options of their own, checks, other rows."""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from .. import capture, models
from ..attention import parse_heads
from ..errors import InputError
from ..scoring.definitions import DEFINITIONS
from ..store import runs
from ..store.rows import Row
from ..studies.ablation import disable, prune, race
from ..studies.ablation.race import RaceOptions
from ..studies.ablation.records import PruneStep, RankCorrelation, shared_effects
from ..studies.attention import features
from ..studies.contract import Flag
from ..studies.frames import frame_heads, index_frames
from ..studies.frames.records import IndexedSlice
from .output import database, tell
from .study_commands import NoOptions, Own, Ran

# ---------------------------------------------------------------- features: some definitions only


@dataclass(frozen=True)
class Only:
    """What only the command of features takes."""

    definition: Annotated[
        tuple[str, ...], Flag(f"of attention to a feature: {', '.join(DEFINITIONS)}; default: all")
    ] = ()


def _check_definitions(_: Any, own_options: Only) -> None:
    for name in own_options.definition:
        if name not in DEFINITIONS:
            raise InputError(f'A definition is one of {", ".join(DEFINITIONS)}; "{name[:60]}" is not: choose one.')


def _show_definitions(ran: Ran) -> None:
    only = ran.own.definition
    replace(ran, rows=[row for row in ran.rows if not only or row.get("statistic") in only]).show()


# ---------------------------------------------------------------- disable: a race in its place, an earlier run beside


@dataclass(frozen=True)
class Beside:
    """What only the command of sweeps takes; `study race` takes more of a race."""

    race: Annotated[
        bool, Flag("verdicts on the loss from as few rows as each head takes, not a full sweep", name="--race")
    ] = False
    margin: Annotated[
        float | None, Flag("--race: of the mean change of the loss; default: 5% of the best constant's loss")
    ] = None
    beside: Annotated[str | None, Flag("an earlier sweep's run, for the correlation of the two")] = None


def _raced(options: Any, own_options: Beside) -> tuple[race.RaceStudy, RaceOptions] | None:
    """The race that stands in for a sweep of these options, where one is asked for. Raises InputError."""
    if not own_options.race:
        if own_options.margin is not None:
            raise InputError("--margin is an option of a race; a sweep was asked for: add --race.")
        return None
    shared = ("checkpoint", "task", "data", "split", "limit", "dtype", "seed", "what", "operator", "heads",
              "reference", "draws", "mean_by")  # fmt: skip
    shared_options = {name: getattr(options, name) for name in shared}
    return race.STUDY, race.STUDY.read(shared_options | {"margin": own_options.margin})


def _earlier_sweep(_: Any, own_options: Beside) -> list[Row] | None:
    """The rows of the stored sweep that is asked for. Raises InputError where it is none, naming those there are."""
    run = own_options.beside
    if not run:
        return None
    with database() as db:
        stored_sweeps = runs.runs(db, disable.STUDY.name)  # imported ones too: whoever names one chooses it
        if run in set(stored_sweeps.run):
            return runs.run_rows(db, run)
    stored_names = "; ".join(f"{row.run} ({row.title})" for row in stored_sweeps.head(5).itertuples()) or "none"
    raise InputError(f"--beside takes the run of an earlier sweep; {run!r} is none. Stored: {stored_names}.")


def _show_beside(ran: Ran) -> None:
    """With one more row: how the ranks of the two sweeps' changes agree."""
    if ran.ready is None:
        ran.show()
        return
    pairs, agreement = shared_effects(ran.rows, ran.ready)
    most_harmful = sorted(pairs, key=lambda variant: max(variant.this or 0.0, variant.other or 0.0))[:3]
    correlation = RankCorrelation(
        name="most harm in both: " + ", ".join(variant.name for variant in most_harmful),
        spearman=agreement.spearman,
        kendall=agreement.kendall,
        p=agreement.p,
        n=agreement.n,
    )
    replace(ran, rows=[*ran.rows, correlation.as_row()]).show()


# ---------------------------------------------------------------- prune: the checkpoint without some heads


@dataclass(frozen=True)
class Saving:
    """What only the command of pruning takes."""

    save: Annotated[str | None, Flag("folder for the checkpoint without --share of its heads")] = None
    share: Annotated[float, Flag("of the heads to remove when saving, 0 to 1", least=0.0)] = 0.5


def _check_share(_: Any, own_options: Saving) -> None:
    if not 0 <= own_options.share <= 1:
        raise InputError(f"--share is a part of the heads, from 0 to 1; {own_options.share:g} was given.")


def _show_and_save(ran: Ran) -> None:
    ran.show()
    if ran.own.save:
        steps = PruneStep.among(ran.rows)
        of_first = [step for step in steps if step.order == steps[0].order]
        nearest = min(of_first, key=lambda step: (abs(step.share - ran.own.share), step.share))
        opened = models.opening.open_checkpoint(ran.options.checkpoint, head="classifier")
        saved = capture.pruning.save_pruned(opened, parse_heads(nearest.heads), ran.own.save)
        tell(f"Saved {saved} without {nearest.removed} heads, in the order of {nearest.order}.", err=True)


# ---------------------------------------------------------------- frames: what JSON says of the run


def _show_without_row_ids(ran: Ran) -> None:
    replace(ran, known={name: value for name, value in ran.known.items() if name != "row_ids"}).show()


def _needs_the_database(_: Any, own_options: NoOptions) -> None:
    """An index is stored, not printed: LockedError where another process holds the database."""
    with database():
        pass


def _show_with_skipped(ran: Ran) -> None:
    skipped = [asdict(line) for indexed in IndexedSlice.among(ran.rows) for line in indexed.skipped_lines]
    replace(ran, known=ran.known | {"skipped": skipped}).show()


OWN = {
    features.STUDY.name: Own(Only, _check_definitions, show=_show_definitions),
    disable.STUDY.name: Own(Beside, _earlier_sweep, _raced, _show_beside),
    prune.STUDY.name: Own(Saving, _check_share, show=_show_and_save),
    frame_heads.STUDY.name: Own(show=_show_without_row_ids),
    index_frames.STUDY.name: Own(ready=_needs_the_database, show=_show_with_skipped),
}
