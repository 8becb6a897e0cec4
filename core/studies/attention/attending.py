"""What the studies of attention share: options, units of inputs, and one forward pass per unit."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ... import studies
from ...store.rows import Row
from ..contract import ChunkUnit, Done, Study, Unit, provenance
from ..records import Result
from .inputs import PASTED, AttendingOptions, SourceText, chunks, sources
from .partials import InputOffset, Pieces, Sums
from .records import S, outstanding

if TYPE_CHECKING:
    from ...scoring.intervals import StatisticEstimate
    from .measures import Measurement

A = TypeVar("A", bound=AttendingOptions)
T = TypeVar("T", bound=Sums)


class Attending(Study[A, Pieces[T]], Generic[A, T]):
    """Base class of studies that measure attention in forward passes and sum the measurements over inputs."""

    arguments = ChunkUnit
    looks_at_maps = True
    ranked_by: ClassVar[str] = "value"

    def measure(self, options: A, checkpoint: Any) -> "Measurement":
        """Create the object that accumulates measurements of attention in one checkpoint."""
        raise NotImplementedError

    def observe(self, measure: Any, checkpoint: Any, pipeline: Any, inputs: Sequence[SourceText]) -> None:
        """Run the model on some inputs, and accumulate the measurements in `measure`."""
        studies.attention.measures.observe(checkpoint, pipeline, inputs, [measure])

    def scores(self, options: A, sums: T) -> Sequence[Result]:
        """Compute scores from the sums for one checkpoint and task."""
        raise NotImplementedError

    def read(self, given: Mapping[str, Any]) -> A:
        """Validate the options. If they contain texts that the user typed, the tasks are ignored."""
        return super().read({**given, "tasks": []} if given.get("texts") else given)

    def units(self, options: A) -> list[Unit]:
        return [Unit(chunk.key, chunk, size) for chunk, size in chunks(options)]

    def run(self, options: A, unit: Unit) -> Done[Pieces[T]]:
        chunk: ChunkUnit = unit.arguments
        checkpoint = studies.worker_cache.get_checkpoint(chunk.checkpoint, dtype=options.dtype)
        inputs = sources(options, chunk.inputs)[chunk.start : chunk.stop]
        measure, at = self.measure(options, checkpoint), InputOffset(chunk.checkpoint, chunk.inputs, chunk.start)
        pipeline = studies.attention.measures.pipeline_for(measure, options.pipeline)
        self.observe(measure, checkpoint, pipeline, inputs)
        return Done(self._seen(options, measure, at), provenance(checkpoint, [source.row_id for source in inputs]))

    def _seen(self, options: A, measure: Any, at: InputOffset) -> Pieces[T]:
        self.after(options, measure, at.start)
        return Pieces((measure.sums(at),))

    def after(self, options: A, measure: Any, start: int) -> None:
        """Take further measurements after a chunk of inputs was measured. `start` is the index of the first input."""

    def results(self, options: A, merged: Pieces[T]) -> Sequence[Result]:
        return [score for sums in merged.pieces for score in self.scores(options, sums)]

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return outstanding(rows, self.ranked_by) if self.ranked_by else super().shown(rows)

    def measured_now(self, options: A, checkpoint: Any, open_pipeline: Callable[[str | None], Any]) -> list[Row]:
        """Measure texts that the user typed, with a loaded checkpoint. Raises InputError for invalid texts."""
        measure = self.measure(options, checkpoint)
        pipeline = open_pipeline(options.pipeline) if measure.tags else None
        self.observe(measure, checkpoint, pipeline, sources(options, PASTED))
        return self.rows(options, self._seen(options, measure, InputOffset(options.checkpoint, PASTED, 0)))


def score_of(kind: type[S], sums: Sums, statistic: str, feature: str | None = None, *, note: str = "") -> S:
    """Create a score that has no head and no value yet. If a value cannot be computed, `note` states the reason."""
    score = kind(checkpoint=sums.at.checkpoint, task=sums.at.task, statistic=statistic, feature=feature)
    return replace(score, n=0, note=note) if note else score


def at_head(score: S, value: "StatisticEstimate", layer: int, head: int, *, most: float = math.inf) -> S:
    """Fill in the value and confidence interval of one head in a copy of a score. The upper bound is at most `most`."""
    number, low, high = ends(value, layer, head, most=most)
    return replace(score, layer=layer, head=head, value=number, low=low, high=high, n=int(value.n[0]))


def of_heads(
    kind: type[S],
    sums: Sums,
    value: "StatisticEstimate",
    statistic: str,
    feature: str | None = None,
    *,
    otherwise: str,
) -> list[S]:
    """Return the scores of all heads. If nothing was measured, return a single score with the note `otherwise`."""
    if not value.n[0]:
        return [score_of(kind, sums, statistic, feature, note=otherwise)]
    about = score_of(kind, sums, statistic, feature)
    return [at_head(about, value, *head) for head in sums.names]


def beside_null(score: S, effect: "StatisticEstimate", layer: int, head: int) -> S:
    """Add the baseline, and the difference from this baseline, to a copy of the score of a head."""
    above, low, high = ends(effect, layer, head)
    baseline = None if score.value is None else score.value - above
    return replace(score, baseline=baseline, effect=above, effect_low=low, effect_high=high)


def contrasted(score: S, contrast: "StatisticEstimate | None", layer: int, head: int) -> S:
    """Add the contrast, if given, to a copy of a score. The contrast is the part of the log attention weight that
    position and other token properties do not explain."""
    if contrast is None:
        return score
    value, low, high = ends(contrast, layer, head)
    return replace(score, contrast=value, contrast_low=low, contrast_high=high)


def ends(value: "StatisticEstimate", layer: int, head: int, *, most: float = math.inf) -> tuple[float, float, float]:
    """Return the value of one head and both bounds of its confidence interval. The upper bound is at most `most`."""
    return (
        float(value.value[layer, head, 0]),
        float(value.low[layer, head, 0]),
        min(float(value.high[layer, head, 0]), most),  # NaN stays
    )
