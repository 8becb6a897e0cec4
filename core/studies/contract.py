"""The interface of a study: its options, units of work, partial results, provenance, result records and stored rows.

A study module exports `STUDY`, an instance of a subclass of `Study`. Its options are a frozen pydantic dataclass. Each
field has a type, a default and, if the command line can set it, a `Flag` with a help text. The command
(`core.commands.parameters`), the forms of pages and the identity of a job are derived from these fields.

`units` divides a job into units of work that can run anywhere and in any order; `more` returns the units of later
rounds. `run` computes one unit in a worker: it opens the checkpoint itself, does not access the store, and returns a
partial result, a frozen dataclass that `core.studies.transport` converts to JSON. `merge` combines the partial results
and `results` turns them into records. The runner stores the records as rows, and `keep` stores anything else.

The option `data` always names a source of examples, and `out` an output file or folder.
"""

import enum
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ..errors import InputError
from ..scoring.registry import HeadScore
from ..store.database import Database
from ..store.rows import Row, plain
from ..store.runs import Provenance
from ..study_names import current_name
from ..tuning.recipe import Seeds
from .headline import Fact, Headline, HeadScores
from .merging import merged
from .records import Result, records_among

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint

READ_FROM = ("data", "treebank", "train", "pairs_file", "sentences", "classifier", "snapshot")  # options with paths
WRITTEN_TO = ("out", "log")
WITHDRAWN = frozenset({"device"})  # options of earlier versions, in stored jobs and runs: ATLAS_DEVICE alone says it

O = TypeVar("O")  # noqa: E741 - the options' type
P = TypeVar("P")


@dataclass(frozen=True)
class Flag:
    """Describes how the command line sets one option of a study. Without a flag, an option can only be set in Python.

    Attributes:
        name: as typed, "--task", "--normalize/--raw" or "--out --folder"; "" for the name of the option.
        argument: whether the option is a positional argument.
        typed: the type that the command line reads, if it differs from the type of the option.
        required: whether the option must be given even if it has a default.
    """

    help: str
    name: str = ""
    argument: bool = False
    typed: Any = None
    least: int | float | None = None
    most: int | None = None
    required: bool = False


class Need(enum.Enum):
    """A requirement of a study on its checkpoint and examples, which is checked before the study starts."""

    CLASSIFIER = "a checkpoint with a classifier of the task"
    LABELS = "rows with labels"


@dataclass(frozen=True)
class Unit:
    """One unit of work of a job, computed by one worker. `size` is the amount of work, usually in tokens."""

    key: str
    arguments: Any = field(default_factory=dict)
    size: int = 1


@dataclass(frozen=True)
class Done(Generic[P]):
    """The partial result and provenance of a unit of work. Provenance fields that follow from the options are None."""

    partial: P
    provenance: Provenance = field(default_factory=Provenance)


@dataclass(frozen=True)
class Finished(Generic[O, P]):
    """A finished run, which is passed to `Study.keep`. A run imported from a file has rows but no partial results."""

    run: str
    title: str
    options: O
    rows: list[Row]
    partials: Callable[[], Iterator[P]] = lambda: iter(())


class Study(Generic[O, P]):
    """Base class of experiments. It defines the units of work, what a worker measures in a unit, and what is reported.

    The docstring of a subclass is the help of its command.

    Attributes:
        options, partial, arguments: types of the options, of partial results and of the arguments of units.
        kinds: classes of its result records, the most specific last.
        needs: requirements on the checkpoint and the examples.
        counts: what `Unit.size` counts.
        one_by_one: whether each example is run once per ablation target, as named by the option `what` or `sweep`.
        looks_at_maps: whether the study reads the attention weights of every layer.
        p_is_corrected: whether p is already corrected over all heads, so that the atlas uses it as q.
        called: title of its jobs, with options in braces.
        section: section of the page of a head that lists its head scores; "" without scores.
        said_at: position of its scores in lists.
        question: title of its result view.
        typed_after: words before its name on the command line, "study" or ""; None if it has no command of its own.
        short_in: output formats (table, json, csv, latex) that print `shown` instead of all rows.
    """

    name: ClassVar[str]
    options: ClassVar[type]
    partial: ClassVar[type]
    kinds: ClassVar[tuple[type[Result], ...]] = ()
    head_scores: ClassVar[tuple[HeadScore, ...]] = ()
    arguments: ClassVar[type] = dict
    needs: ClassVar[frozenset[Need]] = frozenset()
    counts: ClassVar[str] = "tokens"
    one_by_one: ClassVar[bool] = False
    looks_at_maps: ClassVar[bool] = False
    started_by: ClassVar[str] = "admin"
    p_is_corrected: ClassVar[bool] = False
    called: ClassVar[str] = ""
    section: ClassVar[str] = ""
    said_at: ClassVar[int] = 0
    gives: ClassVar[str] = ""
    question: ClassVar[str] = ""
    typed_after: ClassVar[str | None] = "study"
    short_in: ClassVar[tuple[str, ...]] = ("table",)

    def units(self, options: O) -> list[Unit]:
        """Divide a job into units of work. If options are invalid, raises an AtlasError before any unit runs."""
        raise NotImplementedError

    def run(self, options: O, unit: Unit) -> Done[P]:
        """Compute one unit of work in a worker process and return the partial result."""
        raise NotImplementedError

    def needs_of(self, options: Mapping[str, Any]) -> frozenset[Need]:
        """Return what a job requires of its checkpoint and examples: by default, the requirements in `needs`."""
        return self.needs

    def checkpoints(self, options: O) -> list[str]:
        """Return the checkpoints that the options name. A missing checkpoint is reported before the job starts."""
        named = [getattr(options, name, None) for name in ("checkpoint", "checkpoints", "before", "after", "compare")]
        folders = [folder for value in named for folder in (value if isinstance(value, tuple) else (value,))]
        return [folder for folder in folders if isinstance(folder, str) and folder]

    def paths(self, options: O) -> Iterator[tuple[str, bool]]:
        """Yield each path in the options, and whether the job writes to the path (True) or reads it (False)."""
        for name in (*READ_FROM, *WRITTEN_TO):
            path = getattr(options, name, None)
            if isinstance(path, str) and path:
                yield path, name in WRITTEN_TO

    def amount(self, options: O) -> int | None:
        """Estimate the work in a job, or return None if it is unknown. Forms call this method, so it must be fast."""
        return None

    def more(self, options: O, partials: Sequence[P]) -> list[Unit]:
        """Return the units of work of the next round, based on the results so far, or [] if the job is complete."""
        return []

    def merge(self, options: O, partials: Sequence[P]) -> P:
        """Merge the partial results of a job, given in the order of its units of work."""
        return merged(partials)

    def results(self, options: O, merged: P) -> Sequence[Result]:
        """Convert the merged result of a job to records, which are stored as one row each. Records with a statistic,
        layer, head and value are also stored as head scores."""
        raise NotImplementedError

    def rows(self, options: O, merged: P) -> list[Row]:
        return [result.as_row() for result in self.results(options, merged)]

    def records(self, rows: Iterable[Row]) -> Iterator[Result]:
        """Convert stored rows to records. Rows from earlier versions that lack a required column are skipped."""
        return records_among(self.kinds, rows)

    def headline(self, rows: Sequence[Row]) -> Headline | None:
        """Summarise a stored run that has rows, or return None if the study has no summary."""
        return None

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        """Return the tables and sentences that the terminal prints for a stored run, in the order of printing."""
        return [list(rows)]

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        """Return warnings, for example about weak results or about inputs that could not be used."""
        return []

    def facts(self, scores: HeadScores) -> list[Fact]:
        """Describe one attention head in sentences, based on the scores of that head."""
        return []

    def keep(self, db: Database, run: "Finished[O, P]") -> None:
        """Store additional data of a finished run, in the same database transaction as its result rows."""

    def title(self, options: O) -> str:
        """Return the default title of a job with these options."""
        told = {
            name: ", ".join(map(str, each)) if isinstance(each, tuple) else each for name, each in vars(options).items()
        }
        called = self.called or self.name + (" of {checkpoint}" if told.get("checkpoint") else "")
        return called.format_map(told)

    def typed(self, options: O) -> list[str]:
        """Return the command-line arguments that reproduce a run, or [] if `jobs start` reproduces it."""
        return []

    @property
    def in_rounds(self) -> bool:
        """Return True if the study may need more units of work after the first round."""
        return type(self).more is not Study.more

    @property
    def help(self) -> str:
        """Return the docstring of the study, which its command shows as help."""
        return inspect.getdoc(type(self)) or ""

    def read(self, given: Mapping[str, Any]) -> O:
        """Validate the options of a job and fill in defaults. Raises InputError for an invalid option."""
        return read_options(self.options, self.name, {k: v for k, v in given.items() if k not in WITHDRAWN})

    def summarize(self, options: O, partials: Sequence[P]) -> list[Row]:
        """Compute result rows from the partial results of some or all units of work."""
        return self.rows(options, self.merge(options, partials)) if partials else []


def read_options(kind: type[O], study: str, given: Mapping[str, Any]) -> O:
    """Validate the options of a study, and return an instance of `kind`. Raises InputError for an invalid option."""
    names = [option.name for option in fields(kind)]  # type: ignore[arg-type]
    if unknown := sorted(set(given) - set(names)):
        raise InputError(
            f"An option of the study {study} must be one of {', '.join(names)}; got {unknown[0]!r}. Correct the "
            "name of the option, or leave it out."
        )
    try:
        options = TypeAdapter(kind).validate_python(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else study
        shown = "nothing" if first["type"].startswith("missing") else repr(first["input"])[:60]
        raise InputError(
            f"The option {name} of the study {study} cannot be {shown}: {first['msg']}. Correct this option."
        ) from error
    except TypeError as error:  # raised by an option's conversion before the type check
        raise InputError(
            f"The options of the study {study} must have the declared types ({error}). Correct the options."
        ) from error
    for option in declared(kind).values():
        _check_bounds(option, getattr(options, option.name), study)
    return options


def _check_bounds(option: "Declared", value: Any, study: str) -> None:
    """Raise InputError if a number is outside the bounds of its flag, which only the command line checks itself."""
    flag = option.flag
    if flag is None or not isinstance(value, (int, float)):
        return
    bounds = [f"at least {flag.least}"] if flag.least is not None else []
    bounds += [f"at most {flag.most}"] if flag.most is not None else []
    if (flag.least is not None and not value >= flag.least) or (flag.most is not None and not value <= flag.most):
        raise InputError(
            f"The option {option.name} of the study {study} must be {' and '.join(bounds)}; got {value}. Change this "
            "value."
        )


def as_json(options: Any) -> Row:
    """Return the options of a study as a JSON-serialisable dictionary."""
    return plain({option.name: _as_mapping(getattr(options, option.name)) for option in fields(options)})


def _as_mapping(value: Any) -> Any:
    """Convert records within options, alone or in a tuple, to mappings field by field."""
    if isinstance(value, tuple):
        return tuple(_as_mapping(item) for item in value)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def identity(study: str, options: Any) -> str:
    """Return a SHA-256 hash of the name and options of a study. Equal options have equal hashes."""
    named = dict(options) if isinstance(options, Mapping) else as_json(options)
    text = json.dumps([current_name(study), plain(named)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- arguments of units of work


@dataclass(frozen=True)
class ExampleUnit:
    """A unit of work that processes some examples of a task.

    Attributes:
        positions: of the examples in the task.
        step: step of a study with several steps, such as "attribution".
        targets: numbers of the ablation targets, edges or fits; empty for all.
        groups: numbers of sets of heads.
        round: from 0.
        price: penalty for each open gate, in units of the loss.
    """

    positions: tuple[int, ...]
    step: str = ""
    targets: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    round: int = 0
    price: float = 0.0


@dataclass(frozen=True)
class ChunkUnit:
    """A unit of work for one checkpoint: the inputs `start` to `stop` of a task, a treebank split or another source."""

    checkpoint: str
    inputs: str
    start: int
    stop: int

    @property
    def key(self) -> str:
        return f"{self.checkpoint}|{self.inputs}|{self.start}"


@dataclass(frozen=True)
class NamedUnit:
    """A unit of work on one named item, such as an ablation method, a property or a snapshot.

    Attributes:
        source: weights that are measured.
        label: name in the results.
        number: position in the list of items, from 0.
        order, packed: for a unit of another study in a joint job, its position there and its arguments as JSON.
    """

    name: str
    source: str = ""
    label: str = ""
    number: int = 0
    order: int = 0
    packed: str = ""


@dataclass(frozen=True)
class TrainingUnit:
    """A unit of work that trains one model.

    Attributes:
        kind: of the fit, if a study has several.
        source: initial weights.
        seeds: for the weights of the output head, the sample of examples and the order of batches.
        fold: number of the fold that is left out, from 0.
        split: what the folds divide, or what is compared when weights are pruned.
        share: fraction of the training examples, or of the pruned weights, 0 to 1; None for all.
        frozen: number of frozen layers.
        kept: components that are not pruned.
        targets: numbers of the ablation targets that are recomputed in float32.
    """

    task: str = ""
    kind: str = ""
    source: str = "pretrained"
    seeds: Seeds = Seeds.all(0)  # noqa: RUF009 - frozen
    fold: int = 0
    split: str = ""
    share: float | None = None
    frozen: int = 0
    kept: tuple[str, ...] = ()
    targets: tuple[int, ...] = ()


# ---------------------------------------------------------------- provenance of results


def provenance(
    checkpoint: "Checkpoint", row_ids: Sequence[str], *, dtype: str | None = None, split: str | None = None
) -> Provenance:
    """Return the provenance of results, with the weights, the example IDs, the device and the number format.

    All other fields are None and are filled from the options of the run. `dtype` is required if it differs from that of
    the checkpoint, and `split` if the options have none.
    """
    return Provenance(
        weights_hash=checkpoint.weights_hash,
        row_ids=tuple(row_ids),
        device=str(checkpoint.device),
        dtype=dtype or checkpoint.dtype,
        split=split,
    )


def provenance_of_run(options: Mapping[str, Any], said: Mapping[str, Any]) -> Provenance:
    """Return the provenance of a run, combined from the options of the run and the provenance of its units of work."""
    named = {name: options.get(name) for name in ("checkpoint", "task", "split", "seed", "dtype", "operator")}
    for name in ("checkpoint", "task"):
        several = options.get(f"{name}s")
        if named[name] is None and isinstance(several, (list, tuple)):
            named[name] = ", ".join(map(str, several))
    return Provenance().with_changes({k: v for k, v in (named | dict(said)).items() if v is not None})


# ---------------------------------------------------------------- one declaration, seen from a page or a terminal


@dataclass(frozen=True)
class Declared:
    """One option of a study. If the option has no default, `default` is MISSING."""

    name: str
    hint: Any
    default: Any
    flag: Flag | None

    @property
    def required(self) -> bool:
        return self.default is MISSING

    @property
    def help(self) -> str:
        return self.flag.help if self.flag else ""


def declared(kind: type) -> dict[str, Declared]:
    """Return the options that an options class declares, as a dictionary in the order of declaration."""
    hints = get_type_hints(kind, include_extras=True)
    options = {}
    for option in fields(kind):
        default = option.default_factory() if option.default_factory is not MISSING else option.default
        marks = getattr(hints[option.name], "__metadata__", ())
        flag = next((mark for mark in marks if isinstance(mark, Flag)), None)
        options[option.name] = Declared(option.name, hints[option.name], default, flag)
    return options
