"""One forward pass over sentences, pairs or task rows that feeds any number of measurements.

A study of what heads attend to is a `Measure`: it takes prepared inputs, observes the maps as they are computed, and
gives what it saw as text that fits in JSON, so that pieces of the work can be merged anywhere. Several measures share
one pass. Inputs are read in chunks, so memory does not grow with the rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from core.errors import InputError
from core.studies.study import Options, Row, Unit

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from core.capture.running import Observer
    from core.models.checkpoint import Checkpoint
    from core.models.encoding import Encoding
    from core.tasks.language import TaggedSentence

PASTED = "text"  # the "task" of sentences a person typed
ROWS_A_UNIT = 256
ROWS_A_CHUNK = 1024  # prepared together: more inputs of one length a batch, and memory that does not grow
DEFAULTS: Options = {
    "checkpoint": "atlas-encoder",
    "compare": None,  # a second checkpoint: its rows, and first less second
    "tasks": ["sst2"],
    "split": "dev",
    "folder": None,
    "limit": 500,  # rows of each task; None: all
    "texts": [],  # sentences, or [sentence, second sentence], instead of task rows
    "pipeline": None,
    "seed": 0,
    "dtype": "float32",
}


@dataclass(frozen=True)
class Source:
    """An input before it meets a checkpoint. number: its place among all inputs of its task."""

    number: int
    row_id: str
    text: str
    pair: str | None


@dataclass(frozen=True)
class Prepared:
    """An input of one checkpoint, with its tags (one entry a sentence)."""

    number: int
    encoding: "Encoding"
    tagged: tuple["TaggedSentence", ...]


@runtime_checkable
class Measure(Protocol):
    """One kind of measurement on one checkpoint."""

    def take(self, inputs: Sequence[Prepared]) -> "list[Observer]":
        """Get ready for a pass over these inputs; returns what observes it."""

    def merge(self, other: Any) -> None:
        """Add what another of the same kind saw of other inputs."""

    def packed(self) -> Row:
        """What was seen, fit for JSON."""


def sources(options: Options, task: str) -> list[Source]:
    """The inputs of one task, or the pasted ones, in order."""
    from core.tasks.glue import read_rows

    if task == PASTED:
        pairs = [(one, None) if isinstance(one, str) else (one[0], one[1] or None) for one in options["texts"]]
        return [Source(k, f"text-{k}", text, pair) for k, (text, pair) in enumerate(pairs)]
    rows = read_rows(task, options["split"], folder=options["folder"], limit=options["limit"], seed=options["seed"])
    return [Source(k, row.id, row.text, row.pair) for k, row in enumerate(rows)]


def pair_of(line: str) -> str | list[str]:
    """A typed line as an entry of `texts`: a sentence, or the two of "first | second"."""
    first, _, second = line.partition(" | ")
    return [first.strip(), second.strip()] if second.strip() else first.strip()


def units(options: Options) -> list[Unit]:
    """Chunks of rows of every checkpoint and task."""
    if options["limit"] is not None and options["limit"] < 1:
        raise InputError(f"At least one row must be looked at; a limit of {options['limit']} was given: raise it.")
    found = []
    for checkpoint in checkpoints(options):
        for task in tasks(options):
            rows = sources(options, task)
            for start in range(0, len(rows), ROWS_A_UNIT):
                some = rows[start : start + ROWS_A_UNIT]
                arguments = {"checkpoint": checkpoint, "task": task, "start": start, "stop": start + len(some)}
                size = sum(len(one.text) + len(one.pair or "") for one in some) // 4
                found.append(Unit(f"{checkpoint}|{task}|{start}", arguments, size=max(1, size)))
    return found


def checkpoints(options: Options) -> list[str]:
    """The checkpoint, and the one it is compared with."""
    return list(dict.fromkeys(name for name in (options["checkpoint"], options["compare"]) if name))


def tasks(options: Options) -> list[str]:
    """Keys of the tasks, or PASTED."""
    from core.tasks.glue import task_of

    if options["texts"]:
        return [PASTED]
    if not options["tasks"]:
        raise InputError("At least one task or text must be given; there is none: choose a task.")
    return list(dict.fromkeys(task_of(task).key for task in options["tasks"]))


@lru_cache(maxsize=2)
def opened(name: str, dtype: str) -> "Checkpoint":
    """A checkpoint that this worker keeps for its next unit."""
    from core.models.opening import open_checkpoint

    return open_checkpoint(name, dtype=dtype)


@lru_cache(maxsize=1)
def language(name: str | None) -> Any:
    """A language pipeline that this worker keeps for its next unit."""
    from core.measuring.tagging import open_pipeline

    return open_pipeline(name)


def prepare(checkpoint: "Checkpoint", pipeline: Any, inputs: Sequence[Source]) -> list[Prepared]:
    """Encode and tag inputs; each text is tagged once, in batches. pipeline None: no tags."""
    from core.measuring.tagging import tag

    encodings = [checkpoint.encode(one.text, one.pair) for one in inputs]
    if pipeline is None:
        return [Prepared(one.number, encoding, ()) for one, encoding in zip(inputs, encodings, strict=True)]
    texts = [text for one in inputs for text in (one.text, one.pair) if text is not None]
    tagged = iter(tag(texts, pipeline))
    return [
        Prepared(one.number, encoding, tuple(next(tagged) for text in (one.text, one.pair) if text is not None))
        for one, encoding in zip(inputs, encodings, strict=True)
    ]


def observe(checkpoint: "Checkpoint", pipeline: Any, inputs: Sequence[Source], measures: Iterable[Measure]) -> None:
    """One forward pass over all inputs, chunk by chunk, that feeds all measures."""
    from core.capture.running import run

    kept = list(measures)
    for start in range(0, len(inputs), ROWS_A_CHUNK):
        prepared = prepare(checkpoint, pipeline, inputs[start : start + ROWS_A_CHUNK])
        observers = [observer for one in kept for observer in one.take(prepared)]
        run(checkpoint, [one.encoding for one in prepared], observers)


def run_unit(options: Options, unit: Unit, make: Any, *, tagged: bool = True) -> list[Row]:
    """One unit: its measure's packed row, and where it comes from. make: (checkpoint, options) -> Measure."""
    wanted = unit.arguments
    checkpoint = opened(wanted["checkpoint"], options["dtype"])
    inputs = sources(options, wanted["task"])[wanted["start"] : wanted["stop"]]
    measure = make(checkpoint, options)
    observe(checkpoint, language(options["pipeline"]) if tagged else None, inputs, [measure])
    facts = {"checkpoint": wanted["checkpoint"], "task": wanted["task"], "causal": checkpoint.causal}
    row = facts | {"start": wanted["start"], "inputs": len(inputs), "packed": measure.packed()}
    return [row, provenance(checkpoint, [one.row_id for one in inputs])]


def measure_now(study: str, checkpoint: "Checkpoint", pipeline: Any, options: Options) -> list[Row]:
    """The rows of a study on the pasted texts of its options, at once, with what is already open.

    study: the name of a module beside this one that has `make` and STUDY. Raises InputError.
    """
    from importlib import import_module

    module = import_module(f"core.studies.{study}")
    measure, inputs = module.make(checkpoint, options), sources(options, PASTED)
    if hasattr(measure, "take"):
        observe(checkpoint, pipeline, inputs, [measure])
    else:
        measure.measure(checkpoint, prepare(checkpoint, None, inputs))
    row = {"checkpoint": options["checkpoint"], "task": PASTED, "start": 0, "packed": measure.packed()}
    return module.STUDY.summarize(options, [row])


def provenance(checkpoint: "Checkpoint", row_ids: list[str]) -> Row:
    """The row that says where a unit's rows come from."""
    return {
        "provenance": {
            "weights_hash": checkpoint.weights_hash,
            "row_ids": row_ids,
            "device": str(checkpoint.device),
            "dtype": checkpoint.dtype,
        }
    }


def merged(rows: Sequence[Row], unpack: Any) -> "dict[tuple[str, str], Any]":
    """Measures by (checkpoint, task), their pieces merged in the order of the inputs. unpack: packed -> Measure."""
    found: dict[tuple[str, str], Any] = {}
    for row in sorted(rows, key=lambda one: (one["checkpoint"], one["task"], one["start"])):
        key = (row["checkpoint"], row["task"])
        if key in found:
            found[key].merge(unpack(row["packed"]))
        else:
            found[key] = unpack(row["packed"])
    return found


def q_values(p: "Float[np.ndarray, 'layer head']") -> "Float[np.ndarray, 'layer head']":
    """Benjamini-Hochberg over the heads that have a p; NaN where there is none."""
    import numpy as np
    from statsmodels.stats.multitest import multipletests

    found, known = np.full_like(p, np.nan), ~np.isnan(p)
    if known.any():
        found[known] = multipletests(p[known], method="fdr_bh")[1]
    return found
