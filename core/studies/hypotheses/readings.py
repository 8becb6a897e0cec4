"""What the runs say of one head, as numbers that criteria are decided on. Every statistic is the study's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ... import studies
from ...attention import Head
from ...scoring.definitions import QUANTITIES
from ...scoring.intervals import Means, StatisticEstimate
from ...scoring.ratio_moments import Ratios
from ...scoring.roles import ROLES, TIMES
from ...tasks.features import feature_of
from ...tasks.relations import relation_of
from .predicates import DIRECTIONS, Hypothesis


@dataclass(frozen=True)
class Reading:
    """A number of one head.

    Attributes:
        value, low, high: with its 95 % interval; None where it is undefined.
        p: one-sided, that it is not beyond `least`; None where there is no test.
        least: what it must be beyond.
        baseline: what was taken off, or what it is beside, for the reader.
    """

    measure: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None = None
    least: float = 0.0
    baseline: float | None = None

    @property
    def is_beyond(self) -> bool:
        """Whether its whole interval lies beyond `least`."""
        return self.low is not None and self.low > self.least


@dataclass(frozen=True)
class Evidence:
    """What one run says of a hypothesis; a text says why there is no number.

    Attributes:
        causal: where the run itself intervenes; else None.
    """

    effect: Reading | str
    explained: Reading | str
    specific: Reading | str
    halves: tuple[Reading, ...] | str
    causal: Reading | str | None = None


def reading(measure: str, estimate: StatisticEstimate, head: Head, **others: Any) -> Reading | str:
    """One head's number of an estimate [layer, head, 1]."""
    place = (head.layer, head.head, 0)
    n = int(estimate.n[0])
    if not n or not np.isfinite(estimate.value[place]):
        return "no input has such tokens"
    value, low, high, p = (
        number_of(array[place]) for array in (estimate.value, estimate.low, estimate.high, estimate.p_above())
    )
    return Reading(measure, value, low, high, n, p, **others)


def beyond(measure: str, means: Means, least: float, head: Head, **others: Any) -> Reading | str:
    """One head's mean [layer, head, 1], tested against `least` in place of 0."""
    shifted = reading(measure, above(means, least).result(), head, **others)
    if isinstance(shifted, str):
        return shifted
    ends: dict[str, Any] = {name: _plus(getattr(shifted, name), least) for name in ("value", "low", "high")}
    return replace(shifted, **ends, least=least)


def above(means: Means, least: float) -> Means:
    """What each input has beyond `least`, as an accumulator."""
    shifted = means.columns(range(means.sums.shape[-1]))
    shifted.sums = means.sums - least * means.counts[:, :, None, :]
    return shifted


def number_of(value: float) -> float | None:
    """The value; None where it is not finite."""
    return float(value) if np.isfinite(value) else None


def halves_of(measure: str, means: Means, column: int, head: Head, least: float = 0.0) -> tuple[Reading, ...] | str:
    """The number in either half of the inputs."""
    both = tuple(beyond(measure, means.columns([column]).half(parity), least, head) for parity in (0, 1))
    numbers = tuple(half for half in both if isinstance(half, Reading))
    return numbers if len(numbers) == len(both) else "a half has no such inputs"


NO_CONTROL = "no control was named"


def _feature(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    (sums,) = partial.pieces
    head.within(sums.layers, sums.heads)
    observer = studies.attention.measures.features_again(sums)
    way = "max-visible" if sums.causal else "max"
    feature, control, means = hypothesis.parameter("feature"), hypothesis.parameter("control"), observer.means
    value, effect = observer.result()[way, feature]
    chance = float(value.value[head.layer, head.head, 0] - effect.value[head.layer, head.head, 0])
    column = observer.effect_column(way, feature)
    measure, least = "weight less that of random tokens", hypothesis.least
    found = beyond(measure, means.columns([column]), least, head, baseline=chance)
    special = feature_of(feature).special
    explained: Reading | str = "a place of the input has no tokens like it at its distance"
    if not special:
        explained = reading("log weight, distance and kind of word taken out", observer.contrast(way, feature), head)
    specific: Reading | str = NO_CONTROL
    if control:
        both_words = not special and not feature_of(control).special
        places = observer.contrast_column if both_words else observer.effect_column
        mine, other = (means.columns([places(way, name)]) for name in (feature, control))
        specific = reading(f"that less the same of {control}", mine.result(minus=other), head)
    return Evidence(found, explained, specific, halves_of(measure, means, column, head, least))


def _relation(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    (sums,) = partial.pieces
    head.within(sums.layers, sums.heads)
    observer = studies.attention.measures.relations_again(sums, [relation_of(name) for name in sums.relations])
    means, direction = observer.means, hypothesis.parameter("direction")

    def column(relation: str, quantity: str) -> int:
        pair = sums.relations.index(relation) * len(DIRECTIONS) + DIRECTIONS.index(direction)
        return pair * len(QUANTITIES) + QUANTITIES.index(quantity)

    def own(relation: str, quantity: str) -> Means:
        return means.columns([column(relation, quantity)])

    relation, control = hypothesis.relation, hypothesis.parameter("control")
    measure = "weight less that on other words at the same distance"
    weight = own(relation, "weight").result().value[head.layer, head.head, 0]
    excess = own(relation, "excess").result()
    chance = number_of(weight - excess.value[head.layer, head.head, 0])
    specific: Reading | str = NO_CONTROL
    if control:
        apart = own(relation, "contrast").result(minus=own(control, "contrast"))
        specific = reading(f"log weight less the same along {control}", apart, head)
    return Evidence(
        beyond(measure, own(relation, "excess"), hypothesis.least, head, baseline=chance),
        reading("log weight, query, key and distance taken out", own(relation, "contrast").result(), head),
        specific,
        halves_of(measure, means, column(relation, "excess"), head, hypothesis.least),
    )


def _offset(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    (sums,) = partial.pieces
    head.within(sums.layers, sums.heads)
    means, names = sums.means, list(ROLES)
    offset, control = hypothesis.parameter("offset"), hypothesis.parameter("control")

    def column(role: str, which: int) -> int:
        return 4 * names.index(role) + which  # type: ignore[arg-type]  # checked when it was registered

    effect = means.columns([column(offset, 1)]).result()
    weight = means.columns([column(offset, 0)]).result().value[head.layer, head.head, 0]
    measure = "weight less that of a head that spreads evenly"
    specific: Reading | str = NO_CONTROL
    if control:
        mine, other = (means.columns([column(role, 0)]) for role in (offset, control))
        specific = reading(f"weight less that on the {control} token", mine.result(minus=other), head)
    return Evidence(
        beyond(
            measure,
            means.columns([column(offset, 1)]),
            hypothesis.least,
            head,
            baseline=number_of(weight - effect.value[head.layer, head.head, 0]),
        ),
        _above_times(means, column(offset, 0 if offset == "first" else 2), head),
        specific,
        halves_of(measure, means, column(offset, 1), head, hypothesis.least),
    )


def _above_times(means: Means, weight: int, head: Head) -> Reading | str:
    """Weight less TIMES the baseline; the first token, the sink, taken out unless it is what is looked at."""
    both = means.columns([weight, weight + 1])
    above = both.columns([0])
    above.sums = (1 - TIMES) * both.sums[..., :1] + TIMES * both.sums[..., 1:]
    return reading(f"weight less {TIMES:g} times an even spread's, without the sink", above.result(), head)


def _component(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    (sums,) = partial.pieces
    component, control = hypothesis.parameter("component"), hypothesis.parameter("control")
    layers = {part.layer: part for part in sums.layers if part.model == "trained" and part.weighting == "even"}
    random = {part.layer: part for part in sums.layers if part.model == "random" and part.weighting == "even"}
    some = next(iter(layers.values())).moments.ratios()
    head.within(len(layers), some.value.shape[0])
    mine, its = layers[head.layer], random[head.layer]

    def share(name: str, source: Any) -> tuple[Ratios, int] | None:
        place = next((k for k, named in enumerate(source.names) if named[:2] == ("sort", name)), None)
        return None if place is None else (source.moments.ratios(), place)

    found = share(component, mine)
    if found is None:
        nothing = f"scores of this checkpoint have no part of {component}"
        return Evidence(nothing, nothing, nothing, nothing)
    ratios, place = found
    value, low, high = (number_of(array[head.head, place]) for array in (ratios.value, ratios.low, ratios.high))

    def share_beyond(measure: str, least: float) -> Reading:
        p = number_of(ratios.p_above(least)[head.head, place])
        return Reading(measure, value, low, high, ratios.n, p, least=least, baseline=least)

    null = share(component, its)
    null_share = 0.0 if null is None else float(np.nanmean(null[0].value[:, null[1]]))
    specific: Reading | str = NO_CONTROL
    other = share(control, mine) if control else None
    if other is not None:
        specific = share_beyond(f"share beyond that of {control}", float(other[0].value[head.head, other[1]]))
    return Evidence(
        share_beyond("share of the scores' variance over keys", max(hypothesis.least, null_share)),
        share_beyond("the same, beyond random weights", null_share),
        specific,
        "shares are kept as sums over all inputs, which have no halves",
    )


def effect_estimate(changes: np.ndarray) -> Means:
    """Changes of the loss of one head by row as an accumulator, so that they have the interval and p of all means.

    Args:
        changes: loss without the head less loss with it. *Shape:* (row,).
    """
    means = Means(1, 1, 1)
    means.update(0, changes[:, None, None], np.ones((len(changes), 1)), range(len(changes)))
    return means


def needed_reading(partial: Any, operator: str, head: Head, margin: float) -> Reading | str:
    """How far the loss rises under an operator on a head, beside a margin.

    Args:
        partial: merged, of the study `operators`.
        head: zero-based.
        margin: of the loss, in nats.

    Returns:
        The reading, or why there is none.
    """
    head.within(partial.layers, partial.heads)
    changes = partial.changes[partial.operators.index(operator), head.layer * partial.heads + head.head]
    whole = reading("rise of the loss in nats", effect_estimate(changes - margin).result(), Head(0, 0))
    if isinstance(whole, str):
        return whole
    back = {name: _plus(getattr(whole, name), margin) for name in ("value", "low", "high")}
    return Reading(f"rise of the loss in nats, {operator}", **back, n=whole.n, p=whole.p, least=margin, baseline=margin)


def _plus(value: float | None, margin: float) -> float | None:
    return None if value is None else value + margin


def _needed(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    margin = hypothesis.least
    effect = needed_reading(partial, "zero", head, margin)
    number = head.layer * partial.heads + head.head
    layer = np.arange(head.layer * partial.heads, (head.layer + 1) * partial.heads)
    changes = partial.changes[partial.operators.index("zero")]
    others = changes[layer[layer != number]]
    explained: Reading | str = "its layer has no other head"
    if len(others):
        beside = effect_estimate(changes[number] - others.mean(0)).result()
        explained = reading("rise of the loss less that without another head of its layer", beside, Head(0, 0))
    means = effect_estimate(changes[number] - margin)
    return Evidence(
        effect,
        explained,
        "no other task was named",
        halves_of("rise of the loss beyond the margin", means, 0, Head(0, 0)),
    )


READERS: Mapping[str, Callable[[Hypothesis, Any, Head], Evidence]] = MappingProxyType({  # by predicate
    "looks-at": _feature, "offset": _offset, "relation": _relation, "same-word": _relation, "decided-by": _component,
    "needed-for": _needed,
})  # fmt: skip
