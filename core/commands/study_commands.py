"""The commands of studies, generated from their declarations, and what some commands add to their study."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import typer

from .. import capture, models
from ..attention import parse_heads
from ..errors import InputError, check_choice
from ..report.headlines import has_headline, headline
from ..scoring.definitions import DEFINITIONS
from ..store import runs
from ..store.rows import Row
from ..studies.ablation import disable, prune, sequential_test
from ..studies.ablation.records import PruneStep, RankCorrelation, shared_effects
from ..studies.ablation.sequential_test import SequentialTestOptions
from ..studies.attention import features
from ..studies.contract import Flag, Study, as_json, declared, read_options
from ..studies.frames import frame_heads, index_frames
from ..studies.frames.records import IndexedSlice
from ..studies.lookup import find_study, study_modules
from ..study_names import CURRENT_NAMES
from .output import Form, database, ran, show_rows, tell
from .parameters import FORMS, PLACES, form_typed, given, placement_typed, signed_by
from .patterns import shares


@dataclass(frozen=True)
class Ran:
    """A study that was run from a terminal, with its options and results.

    Attributes:
        ready: what `Own.ready` returned before the study ran.
        known: provenance and options of the run.
    """

    study: str
    options: Any
    own: Any
    ready: Any
    known: Row
    rows: list[Row]
    form: Form

    def show(self) -> None:
        study = find_study(self.study)
        for part in study.shown(self.rows) if self.form in study.short_in else [self.rows]:
            if not isinstance(part, str):
                show_rows(self.study, self.known, part, self.form)
            elif self.form == "table" and part:
                tell(part)
        for warning in study.warnings(self.rows):
            tell(warning, err=True)


@dataclass(frozen=True)
class NoOptions:
    """An empty set of options, for commands that add no options to those of their study."""


@dataclass(frozen=True)
class Own:
    """What a terminal command adds to its study: more options, checks before the run, and its own output.

    Attributes:
        options: class of further options of the command.
        ready: called with the options of the study and of the command before the run; returns `Ran.ready`. May raise
            AtlasError.
        instead: called with the same arguments; returns another study and its options to run instead, or None.
    """

    options: type = NoOptions
    ready: Callable[[Any, Any], Any] = lambda options, own_options: None
    instead: Callable[[Any, Any], tuple[Study[Any, Any], Any] | None] = lambda options, own_options: None
    show: Callable[[Ran], None] = Ran.show


def command(study: Study[Any, Any], own: Own | None = None) -> Callable[..., None]:
    """Create a typer command for a study, with parameters and help."""
    own = own or Own()
    options, extra = declared(study.options), declared(own.options)

    def run(**typed: Any) -> None:
        form = form_typed(typed)
        chosen = study.read(given(options, typed))
        own_chosen: Any = read_options(own.options, study.name, given(extra, typed))
        made_ready = own.ready(chosen, own_chosen)
        substitute = own.instead(chosen, own_chosen)
        doing, chosen_options = substitute or (study, chosen)
        provenance, rows = ran(
            doing.name, as_json(chosen_options), title=doing.title(chosen_options), where=placement_typed(typed)
        )
        shown = Ran(doing.name, chosen_options, own_chosen, made_ready, provenance, rows, form)
        (Ran.show if substitute else own.show)(shown)
        if form == "table" and has_headline(doing.name):
            tell(headline(doing.name, rows).sentence)

    run.__name__, run.__doc__ = study.name.replace("-", "_"), study.help
    return signed_by(run, (*options.values(), *extra.values()), FORMS | PLACES)


# ---------------------------------------------------------------- options that only a command has


@dataclass(frozen=True)
class Only:
    """Options that the command `features` has in addition to the options of the study."""

    definition: Annotated[
        tuple[str, ...],
        Flag(
            f"how attention to a token type is summarised: {', '.join(DEFINITIONS)} (default: all of these summaries)"
        ),
    ] = ()


def _check_definitions(_: Any, own_options: Only) -> None:
    check_choice("A definition", own_options.definition, DEFINITIONS)


def _show_definitions(ran: Ran) -> None:
    only = ran.own.definition
    replace(ran, rows=[row for row in ran.rows if not only or row.get("statistic") in only]).show()


# ---------------------------------------------------------------- disable: sequential test, or comparison with a run


@dataclass(frozen=True)
class Beside:
    """Command-line options of the ablation command that are not options of the ablation study."""

    race: Annotated[
        bool,
        Flag(
            (
                "run a sequential test: for each head, use only as many examples as are needed to decide whether the "
                "head changes the loss"
            ),
            name="--race",
        ),
    ] = False
    margin: Annotated[
        float | None,
        Flag(
            "with --race: smallest mean change in loss that counts as an effect (default: 5 % of the loss "
            "of the best constant prediction)"
        ),
    ] = None
    beside: Annotated[
        str | None,
        Flag("ID of an earlier ablation run; prints the rank correlation between the earlier and the new effects"),
    ] = None


def _raced(
    options: Any, own_options: Beside
) -> tuple[sequential_test.SequentialTestStudy, SequentialTestOptions] | None:
    """Return the sequential test that replaces a full ablation, if requested. Raises InputError."""
    if not own_options.race:
        if own_options.margin is not None:
            raise InputError(
                "The option --margin applies only to a sequential test; got --margin without --race. Add --race to run "
                "such a test."
            )
        return None
    shared = ("checkpoint", "task", "data", "split", "limit", "dtype", "seed", "what", "operator", "heads",
              "reference", "draws", "mean_by")  # fmt: skip
    shared_options = {name: getattr(options, name) for name in shared}
    return sequential_test.STUDY, sequential_test.STUDY.read(shared_options | {"margin": own_options.margin})


def _earlier_sweep(_: Any, own_options: Beside) -> list[Row] | None:
    """Return the rows of the given earlier ablation. Raises InputError if it is not stored."""
    run = own_options.beside
    if not run:
        return None
    with database() as db:
        stored_sweeps = runs.runs(db, disable.STUDY.name)  # includes imported runs
        if run in set(stored_sweeps.run):
            return runs.run_rows(db, run)
    stored_names = "; ".join(f"{row.run} ({row.title})" for row in stored_sweeps.head(5).itertuples()) or "none"
    raise InputError(
        f"--beside must be the ID of an earlier ablation run; got {run!r}. Choose one of these IDs: {stored_names}."
    )


def _show_beside(ran: Ran) -> None:
    """Print the rows and the rank correlation of the two ablations."""
    if ran.ready is None:
        ran.show()
        return
    pairs, agreement = shared_effects(ran.rows, ran.ready)
    most_harmful = sorted(pairs, key=lambda variant: max(variant.this or 0.0, variant.other or 0.0))[:3]
    correlation = RankCorrelation(
        name="most harmful in both: " + ", ".join(variant.name for variant in most_harmful),
        spearman=agreement.spearman,
        kendall=agreement.kendall,
        p=agreement.p,
        n=agreement.n,
    )
    replace(ran, rows=[*ran.rows, correlation.as_row()]).show()


# ---------------------------------------------------------------- prune: saving the pruned checkpoint


@dataclass(frozen=True)
class Saving:
    """Command-line options of the pruning command that are not options of the pruning study."""

    save: Annotated[
        str | None,
        Flag("folder in which to save a pruned checkpoint; --share sets the fraction of heads that are removed"),
    ] = None
    share: Annotated[
        float, Flag("fraction of heads (0 to 1) to remove from the checkpoint that --save writes", least=0.0)
    ] = 0.5


def _check_share(_: Any, own_options: Saving) -> None:
    if not 0 <= own_options.share <= 1:
        raise InputError(
            f"--share must be a fraction from 0 to 1; got {own_options.share:g}. Choose a value in this range."
        )


def _show_and_save(ran: Ran) -> None:
    ran.show()
    if ran.own.save:
        steps = PruneStep.among(ran.rows)
        of_first = [step for step in steps if step.order == steps[0].order]
        nearest = min(of_first, key=lambda step: (abs(step.share - ran.own.share), step.share))
        opened = models.opening.open_checkpoint(ran.options.checkpoint, head="classifier")
        saved = capture.pruning.save_pruned(opened, parse_heads(nearest.heads), ran.own.save)
        tell(f"Saved {saved} after removing {nearest.removed} heads, in the order of {nearest.order}.", err=True)


# ---------------------------------------------------------------- frames


def _show_without_row_ids(ran: Ran) -> None:
    replace(ran, known={name: value for name, value in ran.known.items() if name != "row_ids"}).show()


def _needs_the_database(_: Any, own_options: NoOptions) -> None:
    """Raise LockedError if another process holds the database: an index is stored, not printed."""
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

app = typer.Typer(help="Run a study and print its results as a table.", no_args_is_help=True)
app.command("shares")(shares)
for experiment in map(find_study, sorted(study_modules())):
    if experiment.typed_after:
        run = command(experiment, OWN.get(experiment.name))
        app.command()(run)  # named after its function, with dashes
        for former in (former for former, name in CURRENT_NAMES.items() if name == experiment.name):
            app.command(former, hidden=True)(run)


finetune = command(find_study("finetune"))
