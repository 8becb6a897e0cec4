"""Terminal commands generated from study declarations: options with defaults and help, and output formats."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from .. import capture, models
from ..attention import parse_heads
from ..errors import InputError
from ..jobs.executors import JobPlacement
from ..report.headlines import has_headline, headline
from ..scoring.definitions import DEFINITIONS
from ..store import runs
from ..store.rows import Row
from ..studies.ablation import disable, prune, sequential_test
from ..studies.ablation.records import PruneStep, RankCorrelation, shared_effects
from ..studies.ablation.sequential_test import SequentialTestOptions
from ..studies.attention import features
from ..studies.contract import Declared, Flag, Study, as_json, declared, read_options
from ..studies.frames import frame_heads, index_frames
from ..studies.frames.records import IndexedSlice
from ..studies.lookup import find_study
from .output import (
    Cluster,
    Csv,
    Form,
    Json,
    Latex,
    Workers,
    database,
    form_of,
    place,
    ran,
    show_rows,
    tell,
)

FORMS: dict[str, Any] = {"as_json": Json, "csv": Csv, "latex": Latex}
PLACES: dict[str, Any] = {"cluster": Cluster, "workers": Workers}
DEFAULTS: dict[str, Any] = dict.fromkeys(FORMS, False) | dict.fromkeys(PLACES)


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
        """Print the result rows, in the study's short form if it has one for this format; sentences are printed only
        below tables."""
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
    """An empty record of options, for commands without options of their own."""


@dataclass(frozen=True)
class Own:
    """What a command has in addition to the study that it runs.

    Attributes:
        options: record of options that only the command has.
        ready: called with the study's options and the command's own before the run; returns `Ran.ready`. May raise
            AtlasError.
        instead: called with the same arguments; returns another study and its options to run instead, or None.
    """

    options: type = NoOptions
    ready: Callable[[Any, Any], Any] = lambda options, own_options: None
    instead: Callable[[Any, Any], tuple[Study[Any, Any], Any] | None] = lambda options, own_options: None
    show: Callable[[Ran], None] = Ran.show


def command(study: Study[Any, Any], own: Own | None = None) -> Callable[..., None]:
    """Return the function of a typer command for a study, with its parameters and help.

    Below a table, the command prints the summary of the run.
    """
    own = own or Own()
    options, extra = declared(study.options), declared(own.options)

    def run(**typed: Any) -> None:
        form = _form(typed)
        chosen = study.read(_given(options, typed))
        own_chosen: Any = read_options(own.options, study.name, _given(extra, typed))
        made_ready = own.ready(chosen, own_chosen)
        substitute = own.instead(chosen, own_chosen)
        doing, chosen_options = substitute or (study, chosen)
        provenance, rows = ran(
            doing.name, as_json(chosen_options), title=doing.title(chosen_options), where=_where(typed)
        )
        shown = Ran(doing.name, chosen_options, own_chosen, made_ready, provenance, rows, form)
        (Ran.show if substitute else own.show)(shown)
        if form == "table" and has_headline(doing.name):
            tell(headline(doing.name, rows).sentence)

    run.__name__, run.__doc__ = study.name.replace("-", "_"), study.help
    return _told(run, (*options.values(), *extra.values()), FORMS | PLACES)


def of_record(kind: type, *, beside: Mapping[str, Any] = FORMS) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that turns a function with one record of options into a command.

    beside: options of output format and placement. With placement, the function is called as do(options, form, where),
    otherwise as do(options, form).
    """
    options = declared(kind)

    def decorate(do: Callable[..., None]) -> Callable[..., None]:
        def run(**typed: Any) -> None:
            places = [_where(typed)] if beside.keys() >= PLACES.keys() else []
            form = _form(typed)
            do(read_options(kind, do.__name__, _given(options, typed)), form, *places)

        run.__name__, run.__doc__ = do.__name__, do.__doc__
        return _told(run, tuple(options.values()), beside)

    return decorate


def with_form(do: Callable[..., None]) -> Callable[..., None]:
    """Turn a function with a `form` parameter and optionally `where` into a command; its other parameters
    are typer's."""
    parameters = dict(inspect.signature(do).parameters)
    beside = PLACES | FORMS if parameters.pop("where", None) else FORMS
    del parameters["form"]

    @functools.wraps(do)
    def run(**typed: Any) -> None:
        own_values = {"form": _form(typed)} | ({"where": _where(typed)} if beside is not FORMS else {})
        do(**{name: typed[name] for name in parameters}, **own_values)

    return _signed(run, [*parameters.values(), *_beside(beside)])


def _told(run: Callable[..., None], options: Sequence[Declared], beside: Mapping[str, Any]) -> Callable[..., None]:
    """Return the function with the parameters that typer reads, required ones first."""
    return _signed(run, [*(_parameter(option) for option in options if option.flag), *_beside(beside)])


def _signed(run: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _form(typed: Mapping[str, Any]) -> Form:
    return form_of(*(bool(typed.get(name)) for name in FORMS))


def _where(typed: Mapping[str, Any]) -> JobPlacement:
    return place(*(typed.get(name) for name in PLACES))


def _given(options: dict[str, Declared], typed: dict[str, Any]) -> Row:
    """Return the options given on the command line; others have their defaults."""
    values = {name: typed.get(name) for name, option in options.items() if option.flag}
    return {name: value for name, value in values.items() if value is not None and value != []}


def _parameter(option: Declared) -> inspect.Parameter:
    flag, hint = option.flag, _typed(option)
    assert flag is not None  # noqa: S101 - asked for by the caller
    bounds = {name: bound for name, bound in (("min", flag.least), ("max", flag.most)) if bound is not None}
    names = flag.name.split() if flag.name else [] if flag.argument else [f"--{option.name.replace('_', '-')}"]
    told: Any = typer.Argument if flag.argument else typer.Option
    must = option.required or flag.required or (flag.argument and option.default is not None)
    default = inspect.Parameter.empty if must else _shown_default(option, hint)
    annotation = Annotated[hint, told(*names, help=flag.help, **bounds)]  # type: ignore[valid-type]  # made from a declaration
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _beside(hints: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Return the parameters of output format and placement."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=DEFAULTS[name], annotation=hint) for name, hint in hints.items()]


def _typed(option: Declared) -> Any:
    """Return the type that typer reads: lists for tuples."""
    flag = option.flag
    if flag is not None and flag.typed is not None:
        return flag.typed if option.required else flag.typed | None
    hint = option.hint
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    arms = [arm for arm in get_args(hint) if arm is not type(None)]
    if get_origin(hint) in (Union, types.UnionType) and len(arms) == 1:
        return arms[0] | None
    if get_origin(hint) is tuple:
        return list[arms[0]]  # type: ignore[valid-type]
    return hint


def _shown_default(option: Declared, hint: Any) -> Any:
    """Return the default shown in help; None if it cannot be shown."""
    if option.flag is not None and option.flag.typed is not None:
        return None
    if option.default is MISSING:
        return inspect.Parameter.empty
    return list(option.default) if isinstance(option.default, tuple) else option.default


# ---------------------------------------------------------------- options that only a command has


@dataclass(frozen=True)
class Only:
    """Options that the features command has in addition to those of the study."""

    definition: Annotated[
        tuple[str, ...],
        Flag(f"how attention to a feature is summarised: {', '.join(DEFINITIONS)} (default: all of them)"),
    ] = ()


def _check_definitions(_: Any, own_options: Only) -> None:
    for name in own_options.definition:
        if name not in DEFINITIONS:
            raise InputError(
                f'A definition must be one of {", ".join(DEFINITIONS)}; got "{name[:60]}". Choose one of them.'
            )


def _show_definitions(ran: Ran) -> None:
    only = ran.own.definition
    replace(ran, rows=[row for row in ran.rows if not only or row.get("statistic") in only]).show()


# ---------------------------------------------------------------- disable: sequential test, or comparison with a run


@dataclass(frozen=True)
class Beside:
    """Options that the ablation command has in addition to those of the study."""

    race: Annotated[
        bool,
        Flag(
            (
                "run a sequential test: it decides which heads change the loss, using only as many examples as each "
                "head needs"
            ),
            name="--race",
        ),
    ] = False
    margin: Annotated[
        float | None,
        Flag(
            "with --race: smallest mean change of the loss that matters (default: 5 % of the loss of the best "
            "constant prediction)"
        ),
    ] = None
    beside: Annotated[
        str | None,
        Flag("ID of an earlier ablation run; prints the rank correlation between its effects and the new ones"),
    ] = None


def _raced(
    options: Any, own_options: Beside
) -> tuple[sequential_test.SequentialTestStudy, SequentialTestOptions] | None:
    """Return the sequential test that replaces a full ablation, if requested. Raises InputError."""
    if not own_options.race:
        if own_options.margin is not None:
            raise InputError("--margin requires a sequential test. Add --race.")
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
    raise InputError(f"--beside must be the run of an earlier ablation; got {run!r}. Choose one of: {stored_names}.")


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
    """Options that the pruning command has in addition to those of the study."""

    save: Annotated[
        str | None, Flag("folder in which to save a checkpoint without a fraction of its heads (see --share)")
    ] = None
    share: Annotated[float, Flag("fraction of heads that --save removes, from 0 to 1", least=0.0)] = 0.5


def _check_share(_: Any, own_options: Saving) -> None:
    if not 0 <= own_options.share <= 1:
        raise InputError(f"--share must be from 0 to 1; got {own_options.share:g}. Change it.")


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
