"""What the studies of what heads attend to share: their options, units of rows, and one pass a unit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

import pydantic.dataclasses
from pydantic import BeforeValidator

from core import studies
from core.store.rows import Row
from core.studies.attention.inputs import PASTED, InputChunk, Text, chunks, pair_of, sources
from core.studies.attention.partials import InputOffset, Sums, added
from core.studies.contract import Done, Flag, P, Study, Unit
from core.studies.options import Checkpoint, Data, InputSplit, Limit, Seed
from core.studies.provenance import provenance

if TYPE_CHECKING:
    from core.scoring.intervals import StatisticEstimate
    from core.studies.attention.passes import Measure

Tasks = Annotated[
    tuple[str, ...], Flag("a GLUE task, a CSV of your own, or a .txt of any length; several times", name="--task")
]
A = TypeVar("A", bound="AttendingOptions")


def _pairs(given: Any) -> Any:
    return [pair_of(text) if isinstance(text, str) else text for text in given]


@pydantic.dataclasses.dataclass(frozen=True)
class AttendingOptions:
    """Which inputs a checkpoint looks at. compare: a second checkpoint, whose rows are given too."""

    checkpoint: Checkpoint = "atlas-encoder"
    compare: str | None = None
    tasks: Tasks = ("sst2",)
    split: InputSplit = "dev"
    data: Data = None
    limit: Limit = 500
    texts: Annotated[
        tuple[Text, ...],
        BeforeValidator(_pairs),
        Flag('a sentence or "first | second" instead of task rows; several times', name="--text", typed=list[str]),
    ] = ()
    pipeline: str | None = None
    seed: Seed = 0
    dtype: str = "float32"


class Attending(Study[A, P], Generic[A, P]):
    """A study whose units are chunks of rows, and whose partial results are sums over them in its one field."""

    arguments = InputChunk
    renamed: ClassVar[Mapping[str, str]] = {"folder": "data"}

    def measure(self, options: A, checkpoint: Any) -> "Measure":
        """The study's measurement on one checkpoint."""
        raise NotImplementedError

    def read(self, given: Mapping[str, Any]) -> A:
        """Typed texts take the place of tasks."""
        return super().read({**given, "tasks": []} if given.get("texts") else given)

    def units(self, options: A) -> list[Unit]:
        """Chunks of rows."""
        return [Unit(chunk.key, chunk, size) for chunk, size in chunks(options)]

    def run(self, options: A, unit: Unit) -> Done[P]:
        """The sums of one unit's inputs."""
        chunk: InputChunk = unit.arguments
        checkpoint = studies.worker_cache.checkpoint(chunk.checkpoint, dtype=options.dtype)
        inputs = sources(options, chunk.task)[chunk.start : chunk.stop]
        measure = self.measure(options, checkpoint)
        studies.attention.passes.observe(
            checkpoint, studies.attention.passes.pipeline_for(measure, options.pipeline), inputs, [measure]
        )
        self.after(options, measure, chunk.start)
        sums = measure.sums(InputOffset(chunk.checkpoint, chunk.task, chunk.start))
        return Done(self.partial((sums,)), provenance(checkpoint, [source.row_id for source in inputs]))

    def after(self, options: A, measure: Any, start: int) -> None:
        """What else is measured after the rows of a chunk, which begins at `start`. Nothing, unless a study says so."""

    def merge(self, options: A, partials: Sequence[P]) -> P:
        """The sums of each checkpoint and task."""
        (name,) = (field.name for field in fields(self.partial))
        return self.partial(tuple(added(piece for part in partials for piece in getattr(part, name))))

    def measured_now(self, options: A, checkpoint: Any, pipeline: Any) -> list[Row]:
        """Rows of the options' texts, at once, with what is already open. Raises InputError."""
        measure = self.measure(options, checkpoint)
        studies.attention.passes.observe(checkpoint, pipeline, sources(options, PASTED), [measure])
        self.after(options, measure, 0)
        return self.rows(options, self.partial((measure.sums(InputOffset(options.checkpoint, PASTED, 0)),)))


def facts(sums: Sums) -> Row:
    """The columns that say of what a row is."""
    return {"checkpoint": sums.at.checkpoint, "task": sums.at.task}


def ends(value: "StatisticEstimate", layer: int, head: int, *, most: float = math.inf) -> tuple[float, float, float]:
    """The value of one head, and the low and high end of its interval, which goes up to `most`: 1 of a share."""
    return (
        float(value.value[layer, head, 0]),
        float(value.low[layer, head, 0]),
        min(float(value.high[layer, head, 0]), most),  # NaN stays
    )


def contrast_columns(value: "StatisticEstimate | None", layer: int, head: int) -> Row:
    """The columns of a contrast, where there is one."""
    return (
        {}
        if value is None
        else dict(zip(("contrast", "contrast_low", "contrast_high"), ends(value, layer, head), strict=True))
    )


def estimate(value: "StatisticEstimate", layer: int, head: int, *, most: float = math.inf) -> Row:
    """The columns of a head score; its interval goes up to `most`: 1 of a share."""
    columns, low, high = ends(value, layer, head, most=most)
    return {"layer": layer, "head": head, "value": columns, "low": low, "high": high, "n": int(value.n[0])}
