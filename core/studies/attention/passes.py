"""One forward pass over inputs for any number of measurements.

A `Measure` receives encoded inputs, observes maps as they are computed, and returns sums that can be added over units.
Inputs are processed in chunks, so memory does not grow with their number.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from ...capture.running import Observer, run
from ...models.checkpoint import Checkpoint
from ...models.encoding import Encoding
from ...tasks.language import TaggedSentence
from ...tasks.own import windows
from .. import worker_cache
from ..tagging import tag
from .inputs import SourceText
from .partials import InputOffset, Sums

WINDOWS = 100_003  # of a stretch of running text at most; odd, so that windows spread over the groups of `Means`
ROWS_A_CHUNK = 1024  # inputs prepared together, so that batches are full and memory is bounded


@dataclass(frozen=True)
class Prepared:
    """An encoded input together with the tagged words of its sentences."""

    number: int
    encoding: Encoding
    tagged: tuple[TaggedSentence, ...]

    @cached_property
    def pieces(self) -> list[list[tuple[int, ...]]]:
        """Return the token positions of every tagged word in each sentence."""
        return [self.encoding.pieces_of(tagged.spans, sentence) for sentence, tagged in enumerate(self.tagged)]


class Measurement(Protocol):
    """Accumulates one kind of measurement on one checkpoint. `tags` states whether it needs part-of-speech tags."""

    tags: bool

    def sums(self, at: InputOffset) -> Sums:
        """Return the sums over all inputs so far. `at` names their checkpoint, their task and the index of the first
        input."""


@runtime_checkable
class Measure(Measurement, Protocol):
    """A measurement of attention that can be taken in the same forward pass as other measurements."""

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        """Prepare the measurement of a batch of inputs, and return the observers that record its forward pass."""


def in_windows(checkpoint: Checkpoint, inputs: Sequence[SourceText]) -> list[SourceText]:
    """Split running text into windows that fit the maximum length of the checkpoint. Other inputs are unchanged."""

    def fits(text: str) -> int:
        encoding = checkpoint.encode(text)
        return max(span[1] for span in encoding.offsets if span is not None) if encoding.cut else len(text)

    return [
        SourceText(WINDOWS * source.number + k, f"{source.row_id}-{k}", part, None) if source.windows else source
        for source in inputs
        for k, part in enumerate(
            windows(source.text, checkpoint.max_length, fits) if source.windows else (source.text,)
        )
    ]


def prepare(checkpoint: Checkpoint, pipeline: Any, inputs: Sequence[SourceText]) -> list[Prepared]:
    """Encode some inputs and tag their words in batches. Without a pipeline, the inputs have no tags."""
    encodings = [checkpoint.encode(source.text, source.pair) for source in inputs]
    both = zip(inputs, encodings, strict=True)
    if pipeline is None:
        return [Prepared(source.number, encoding, ()) for source, encoding in both]
    texts = [text for source in inputs for text in (source.text, source.pair) if text is not None]
    tagged = iter(tag(texts, pipeline))
    return [
        Prepared(
            source.number, encoding, tuple(next(tagged) for text in (source.text, source.pair) if text is not None)
        )
        for source, encoding in both
    ]


def observe(checkpoint: Checkpoint, pipeline: Any, inputs: Sequence[SourceText], measures: Iterable[Measure]) -> None:
    """Run the model once on all inputs, in chunks, and update several measurements."""
    kept, inputs = list(measures), in_windows(checkpoint, inputs)
    for start in range(0, len(inputs), ROWS_A_CHUNK):
        with _uncollected():
            prepared = prepare(checkpoint, pipeline, inputs[start : start + ROWS_A_CHUNK])
            observers = [observer for measure in kept for observer in measure.take(prepared)]
            run(checkpoint, [ready.encoding for ready in prepared], observers)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Turn off cyclic garbage collection, which takes 0.3 s per thousand inputs and frees nothing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def pipeline_for(measure: Measurement, name: str | None) -> Any:
    """Return the cached language pipeline that a measurement requires, or None if the measurement needs no tags."""
    return worker_cache.pipeline(name) if measure.tags else None
