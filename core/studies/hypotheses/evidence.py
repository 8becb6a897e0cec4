"""What a run says of a hypothesis, whatever its predicate is."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from ...attention import Head
from ...errors import AtlasError
from . import intervention_readings, readings, share_readings
from .predicates import Hypothesis
from .readings import Evidence, Reading

READERS = {**readings.READERS, **share_readings.READERS, **intervention_readings.READERS}  # by predicate


def evidence_of(hypothesis: Hypothesis, partial: Any, head: Head, random: float = 0.0) -> Evidence:
    """What a run's merged partial result says.

    Args:
        random: the effect that random weights have; an effect must be beyond it and beyond the hypothesis' least.
    """
    beyond = hypothesis.with_least(max(hypothesis.least, random))
    return READERS[hypothesis.predicate](beyond, partial, head)


def random_effect(hypothesis: Hypothesis, partials: Sequence[Any]) -> float:
    """The largest effect of all heads of the hypothesis' layer in runs of random weights; 0 without any.

    Heads of a layer with random weights are exchangeable, so an untrained head has a larger effect than all k of them
    with probability 1 / (k + 1).
    """
    effects = [effect for partial in partials for effect in _effects(hypothesis, partial)]
    return max(effects, default=0.0)


def _effects(hypothesis: Hypothesis, partial: Any) -> Iterator[float]:
    for head in count():
        try:
            effect = evidence_of(hypothesis, partial, Head(hypothesis.layer, head)).effect
        except (AtlasError, ValueError):  # the layer has no such head
            return
        if isinstance(effect, Reading) and effect.value is not None:
            is_whole = hypothesis.predicate == "frame-link"  # whose value has what is expected by chance in it
            yield effect.value - (effect.baseline or 0.0 if is_whole else 0.0)
