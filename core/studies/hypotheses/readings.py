"""Measured values for one head from the results of studies, for the criteria of hypotheses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ... import patterns, scoring, studies
from ...attention import Head
from ...capture.components import edge_name
from ...errors import AtlasError, InputError
from ...interval import Interval, finite
from ...scoring.definitions import QUANTITIES
from ...scoring.effects import FLOOR
from ...scoring.few_inputs import FEWEST, mean_interval
from ...scoring.intervals import Means, Ratios, StatisticEstimate
from ...scoring.roles import ROLES, TIMES
from ...tasks.features import feature_of
from ...tasks.relations import relation_of
from ..frames.frame_heads import verdict_of
from ..outcomes import share_interval
from .predicates import DIRECTIONS, Hypothesis, counterpart_of


@dataclass(frozen=True)
class Reading:
    """A value measured for one head to test a hypothesis, with its confidence interval and the number of inputs.

    Attributes:
        p: one-sided p-value of the null hypothesis that the value is at most `least`; None without a test.
        baseline: what was subtracted from the value, or is compared with it.
    """

    measure: str
    interval: Interval
    p: float | None = None
    least: float = 0.0
    baseline: float | None = None

    @property
    def is_beyond(self) -> bool:
        """Return True if the lower bound of the confidence interval is above `least`."""
        return self.interval.low is not None and self.interval.low > self.least


@dataclass(frozen=True)
class Evidence:
    """The evidence from one run for a hypothesis: effect, effect beyond other explanations, and specificity.

    A text instead of a value states why it is missing. `causal` is set only if the run intervenes in the model.
    """

    effect: Reading | str
    explained: Reading | str
    specific: Reading | str
    halves: tuple[Reading, ...] | str
    causal: Reading | str | None = None


def reading(measure: str, estimate: StatisticEstimate, head: Head, **others: Any) -> Reading | str:
    """Extract the value of one head, with its interval and p-value, from an estimate for all heads."""
    place = (head.layer, head.head, 0)
    n = int(estimate.n[0])
    if not n or not np.isfinite(estimate.value[place]):
        return "no input has such tokens"
    interval = Interval.of(estimate.value[place], estimate.low[place], estimate.high[place], n)
    return Reading(measure, interval, finite(estimate.p_above()[place]), **others)


def beyond(measure: str, means: Means, least: float, head: Head, **others: Any) -> Reading | str:
    """Compute the mean over inputs for one head, and test (one-sided) whether this mean exceeds `least`."""
    shifted = reading(measure, lowered(means, least).result(), head, **others)
    if isinstance(shifted, str):
        return shifted
    return replace(shifted, interval=shifted.interval.shifted(least), least=least)


def lowered(means: Means, least: float) -> Means:
    """Return a copy of accumulated means in which the value of every input is lowered by `least`."""
    shifted = means.columns(range(means.sums.shape[-1]))
    shifted.sums = means.sums - least * means.counts[:, :, None, :]
    return shifted


def halves_of(measure: str, means: Means, column: int, head: Head, least: float = 0.0) -> tuple[Reading, ...] | str:
    """Return the value of one head in each half of the inputs, or a text that explains why a half has no value."""
    both = tuple(beyond(measure, means.columns([column]).half(parity), least, head) for parity in (0, 1))
    numbers = tuple(half for half in both if isinstance(half, Reading))
    return numbers if len(numbers) == len(both) else "a half has no such inputs"


NO_CONTROL = "no control was named"
ONE = Head(0, 0)  # where `effect_estimate` keeps the one number that it has


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
    if isinstance(found, Reading) and not special:
        place, number = sums.features.index(feature), head.layer * sums.heads + head.head
        p = finite(scoring.features.p_of_word_types(sums.types, place, len(sums.features), number))
        found = replace(found, p=None if found.p is None or p is None else max(found.p, p))
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
    chance = finite(weight - excess.value[head.layer, head.head, 0])
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
            baseline=finite(weight - effect.value[head.layer, head.head, 0]),
        ),
        _above_times(means, column(offset, 0 if offset == "first" else 2), head),
        specific,
        halves_of(measure, means, column(offset, 1), head, hypothesis.least),
    )


def _budget(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    (sums,) = partial.pieces
    head.within(sums.layers, sums.heads)
    layout, means, category = scoring.budget, sums.means, hypothesis.parameter("category")
    number = layout.CATEGORIES.index(category)

    def share(name: str, part: slice = layout.SHARES) -> Means:
        return means.columns([part.start + layout.CATEGORIES.index(name)])

    expected = finite(share(category, layout.EXPECTED).result().value[head.layer, head.head, 0])
    if not expected:
        nothing = "no input has such a key"
        return Evidence(nothing, nothing, nothing, nothing)
    if number in layout.BEYOND:
        excess = means.columns([layout.BEYOND_DISTANCE.start + layout.BEYOND.index(number)])
        explained = reading("share less that of other words at the same distance", excess.result(), head)
    else:
        above_even = share(category).result(minus=share(category, layout.EXPECTED))
        explained = reading("share less that under uniform attention", above_even, head)
    specific: Reading | str = NO_CONTROL
    if control := hypothesis.parameter("control"):
        apart = share(category).result(minus=share(control))
        specific = reading(f"share less that of {control}", apart, head)
    measure, least = "share of its attention", hypothesis.least
    return Evidence(
        beyond(measure, share(category), least, head, baseline=expected),
        explained,
        specific,
        halves_of(measure, means, layout.SHARES.start + number, head, least),
    )


def _above_times(means: Means, weight: int, head: Head) -> Reading | str:
    """Return the weight minus TIMES the baseline. The first token (the sink) is excluded unless it is the target."""
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
    value, low, high = (array[head.head, place] for array in (ratios.value, ratios.low, ratios.high))
    interval = Interval.of(value, low, high, ratios.n)

    def share_beyond(measure: str, least: float) -> Reading:
        p = finite(ratios.p_above(least)[head.head, place])
        return Reading(measure, interval, p, least=least, baseline=least)

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
    """Accumulate one effect per example, such as a change in loss. The result has one layer with a single head."""
    means = Means(1, 1, 1)
    means.update(0, changes[:, None, None], np.ones((len(changes), 1)), range(len(changes)))
    return means


def needed_reading(partial: Any, operator: str, head: Head, margin: float) -> Reading | str:
    """Test whether ablating a head raises the loss by more than a margin, or return why the test is undefined."""
    head.within(partial.layers, partial.heads)
    changes = partial.changes[partial.operators.index(operator), head.layer * partial.heads + head.head]
    return _shifted(f"rise of the loss in nats, {operator}", changes - margin, margin)


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
        explained = reading("rise of the loss less that without another head of its layer", beside, ONE)
    means = effect_estimate(changes[number] - margin)
    return Evidence(
        effect,
        explained,
        "no other task was named",
        halves_of("rise of the loss beyond the margin", means, 0, ONE),
    )


# ---------------------------------------------------------------- evidence


def evidence_of(hypothesis: Hypothesis, partial: Any, head: Head, random: float = 0.0) -> Evidence:
    """Return the evidence for a hypothesis. Its effect must exceed `random`, the effect with random weights."""
    beyond = hypothesis.with_least(max(hypothesis.least, random))
    return READERS[hypothesis.predicate](beyond, partial, head)


def random_effect(hypothesis: Hypothesis, partials: Sequence[Any]) -> float:
    """Return the largest effect of k random-weight heads. A further one exceeds this with probability 1 / (k + 1)."""
    effects = [effect for partial in partials for effect in _effects(hypothesis, partial)]
    return max(effects, default=0.0)


def _effects(hypothesis: Hypothesis, partial: Any) -> Iterator[float]:
    for head in count():
        try:
            effect = evidence_of(hypothesis, partial, Head(hypothesis.layer, head)).effect
        except (AtlasError, ValueError):  # the layer has no such head
            return
        if isinstance(effect, Reading) and effect.interval.value is not None:
            is_whole = hypothesis.predicate == "frame-link"  # whose value has what is expected by chance in it
            yield effect.interval.value - (effect.baseline or 0.0 if is_whole else 0.0)


# ---------------------------------------------------------------- patching


def property_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Measure the share of the logit difference that patching a head recovers, and that of other heads in its layer."""
    head.within(partial.layers, partial.heads)
    made = partial.made.astype(bool) & (np.abs(partial.first - partial.second) >= FLOOR)
    turn, whole = np.sign(partial.first - partial.second), np.abs(partial.first - partial.second)
    brought = (partial.patched - partial.second) * turn
    moved = made & (partial.second <= 0)  # B's own answer is another one
    own_number, layer = head.layer * partial.heads + head.head, head.layer * partial.heads
    others = [k for k in range(layer, layer + partial.heads) if k != own_number]
    return _of_pairs("difference that comes back", brought[own_number], whole, brought[others], (moved, made & ~moved),
                     hypothesis.least)  # fmt: skip


def edge_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Measure how much of the logit difference an edge carries, compared with edges from other heads of the layer."""
    reader, kind = hypothesis.parameter("reader"), hypothesis.parameter("input")
    names = list(partial.names)
    own_index = names.index(edge_name(head, reader, kind))
    beside = [edge_name(Head(head.layer, k), reader, kind) for k in range(partial.heads) if k != head.head]
    turn, same = np.sign(partial.gap), partial.same.astype(bool)
    effects = partial.effects * turn
    return _of_pairs("difference that the edge carries", effects[own_index], np.abs(partial.gap),
                     effects[[names.index(name) for name in beside]], (~same, same),
                     hypothesis.least)  # fmt: skip


def _of_pairs(
    of: str,
    brought: np.ndarray,
    whole: np.ndarray,
    others: np.ndarray,
    sides: tuple[np.ndarray, np.ndarray],
    least: float,
) -> Evidence:
    """Return the evidence from input pairs after patching, as ratios of means over pairs with different answers."""
    moved, same = sides
    if moved.sum() < FEWEST:
        nothing = f"a share takes {FEWEST} pairs whose answers differ, and there are {int(moved.sum())}"
        return Evidence(nothing, nothing, nothing, nothing, nothing)
    unit = whole[moved].mean()
    beyond = (brought[moved] - least * whole[moved]) / unit
    effect = _shifted(f"share of the {of}", beyond, least)
    explained: Reading | str = "its layer has no other head"
    if len(others):
        beside = (brought[moved] - others[:, moved].mean(0)) / unit
        explained = reading("that less the mean of its layer's other heads", effect_estimate(beside).result(), ONE)
    halves = halves_of(f"share of the {of}, beyond {least:g}", effect_estimate(beyond), 0, ONE)
    return Evidence(effect, explained, _beyond_same(brought, whole, moved, same), halves, effect)


def _shifted(measure: str, beyond: np.ndarray, least: float) -> Reading | str:
    """Return a mean minus `least`, reported with `least` added."""
    shifted = reading(measure, effect_estimate(beyond).result(), ONE)
    if isinstance(shifted, str):
        return shifted
    return replace(shifted, interval=shifted.interval.shifted(least), least=least, baseline=least)


def _beyond_same(brought: np.ndarray, whole: np.ndarray, moved: np.ndarray, same: np.ndarray) -> Reading | str:
    """Return the share minus that on pairs of the same answer, with Welch's interval on the ratios."""
    if same.sum() < FEWEST:
        return f"{int(same.sum())} pairs have the same answer, and a comparison takes {FEWEST}"
    shares, errors = [], []
    for side in (moved, same):
        share = brought[side].sum() / whole[side].sum()
        influence = (brought[side] - share * whole[side]) / whole[side].mean()
        shares.append(share)
        errors.append(influence.var(ddof=1) / side.sum())
    apart, error, n = shares[0] - shares[1], float(np.sqrt(sum(errors))), int(min(moved.sum(), same.sum()))
    reach = float(scipy.stats.t.ppf(0.975, n - 1)) * error
    interval = Interval.of(apart, apart - reach, apart + reach, n)
    return Reading("share less that on pairs of the same answer", interval, baseline=float(shares[1]))


# ---------------------------------------------------------------- pattern classes, counterparts, frame links


NORMAL = 1.959964  # of a 95 % interval


def class_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Measure the fraction of a head's maps in a pattern class, both raw and corrected for classifier errors."""
    (piece,) = partial.pieces
    head.within(*piece.classes.shape[1:])
    numbers, names = piece.classes[:, head.layer, head.head], list(piece.names)
    wanted, least = names.index(hypothesis.parameter("class")), hypothesis.least
    hits = numbers == wanted
    specific: Reading | str = NO_CONTROL
    if hypothesis.parameter("control"):
        either = numbers[hits | (numbers == names.index(hypothesis.parameter("control")))] == wanted
        specific = share_reading("share of it among maps of it or the control", either, 0.5)
    halves = tuple(share_reading("share of the maps", hits[parity::2], least) for parity in (0, 1))
    corrected = _corrected(np.eye(len(names), dtype=int)[numbers], wanted, hypothesis.parameter("set"), least)
    return Evidence(share_reading("share of the maps", hits, least), corrected, specific, halves)


def share_reading(measure: str, hits: np.ndarray, least: float) -> Reading:
    """Compute the fraction of maps in `hits`, with a Wilson interval and a binomial test against `least`."""
    if not len(hits):
        return Reading(measure, Interval(None, n=0), 1.0, least, least)
    p = float(scipy.stats.binom.sf(hits.sum() - 1, len(hits), least))
    return Reading(measure, Interval(*share_interval(hits), n=len(hits)), p, least, least)


def _corrected(counts: np.ndarray, wanted: int, class_set: str, least: float) -> Reading | str:
    held_out, names = _confusions(class_set)
    share = patterns.class_shares.corrected_shares(counts, held_out, names)[wanted]
    if np.isnan(share.low):
        return (
            "the classifier errs otherwise on these maps than on its labelled ones (misfit of the counts, p "
            f"{share.misfit:.2g}), so the share cannot be freed of its confusions"
        )
    p = _p_above(share.share, least, (share.high - share.low) / 2)
    interval = Interval(share.share, share.low, share.high, n=len(counts))
    return Reading("share freed of the classifier's confusions", interval, p, least, least)


def _p_above(value: float, least: float, half: float) -> float:
    """Return the one-sided p that a normal estimate is at most `least`, from half the width of its 95 % interval."""
    return float(scipy.stats.norm.sf((value - least) / (half / NORMAL))) if half > 0 else float(value <= least)


@lru_cache(maxsize=2)
def _confusions(class_set: str) -> tuple[np.ndarray, list[str]]:
    """Return the confusions of the bundled classifier on held-out maps [input, true, predicted], and its classes."""
    about = patterns.classifier_registry.bundled_about(class_set)
    if about is None:
        raise InputError(
            f"A class set must have a bundled classifier; {class_set[:60]!r} has none. Choose another class set."
        )
    return np.array(about["scores"]["confusions"], dtype=int), list(about["classes"])


def counterpart_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Measure how similar a head is to its counterpart, compared with random weights and with other heads."""
    (whole,) = partial.compared
    sums = scoring.counterparts.SimilaritySums(whole.sums, whole.inputs)
    _, count, others = whole.sums.shape
    head.within(count // whole.heads, whole.heads)
    _, other = counterpart_of(hypothesis.parameter("of"))
    other.within(others // whole.others, whole.others)
    own, its = head.layer * whole.heads + head.head, other.layer * whole.others + other.head
    similarity, widths = sums.similarity()[own], sums.half_widths()[own]
    rest = np.delete(np.arange(len(similarity)), its)
    runner = int(rest[np.argmax(similarity[rest])])
    largest = np.concatenate([piece.largest for piece in partial.drawn])
    p = scoring.counterparts.beyond_chance(partial.drawn[0].similarity[:, its], largest)[own]
    chance = float(np.median(largest[:, own]))
    low, high = max(0.0, similarity[its] - widths[its]), min(1.0, similarity[its] + widths[its])
    least = max(chance, hypothesis.least)
    # more similar than random weights are, and than the least
    p = max(finite(p) or 0.0, _p_above(similarity[its], least, widths[its]))
    effect = Reading("similarity of rows", Interval(float(similarity[its]), low, high, n=sums.n), p, least, chance)

    def beyond(measure: str, number: int) -> Reading:
        gap, low, high = (float(end) for end in sums.margins(own, its)[:, number - (number > its)])  # paired by input
        interval = Interval(gap, low, high, n=sums.n)
        if not high > low:
            return Reading(measure, interval, float(gap <= 0), baseline=float(similarity[number]))
        freedom = int((whole.inputs > 0).sum()) - 1
        p = float(scipy.stats.t.sf(2 * gap / (high - low) * scipy.stats.t.isf(0.025, freedom), freedom))
        return Reading(measure, interval, p, baseline=float(similarity[number]))

    control = hypothesis.parameter("control")
    specific: Reading | str = NO_CONTROL
    if control:
        named = Head.parse(control).within(others // whole.others, whole.others)
        specific = beyond(f"similarity less that to {control}", named.layer * whole.others + named.head)
    halves = tuple(
        Reading("similarity less that to the next head, in a half",
                Interval(gap := _gap(sums.half(number)[own], its), gap, gap, n=sums.halves()[number]))
        for number in (0, 1)
    )  # fmt: skip
    return Evidence(effect, beyond("similarity less that to the next head", runner), specific, halves)


def _gap(similarity: np.ndarray, its: int) -> float:
    return float(similarity[its] - np.delete(similarity, its).max())


def frame_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Compare attention along frame links with attention at the same distance elsewhere, and with four null models."""
    if not partial.draws:
        nothing = "no link can be seen by a query of this checkpoint"
        return Evidence(nothing, nothing, nothing, nothing)
    first = partial.draws[0]
    head.within(first.layers, first.heads)
    cell = head.layer * first.heads + head.head
    scores = np.array([scored.scores[cell] for scored in partial.sentences])
    test = verdict_of(partial, [cell])
    whole = Interval.of(test.score[0], test.low[0], test.high[0], test.n)
    places, every = test.p_distance[0], max(test.p_distance[0], test.p_exchange[0], test.p_query[0], test.p_share[0])
    chance, exchanged = float(test.distance[0]), float(max(test.distance[0], test.exchange[0]))
    measure = "largest weight of a frame link"
    beyond = effect_estimate(scores - chance - hypothesis.least).result()
    far = finite(beyond.p_above()[0, 0, 0])
    both = None if far is None or finite(places) is None else max(float(places), far)
    least = chance + hypothesis.least
    effect = Reading(f"{measure}, beside its distance elsewhere", whole, both, least, chance)
    explained = Reading(f"{measure}, beside four nulls", whole, finite(every), exchanged, exchanged)
    halves = tuple(_half_of_sentences(measure, scores[parity::2], least, chance) for parity in (0, 1))
    return Evidence(effect, explained, NO_CONTROL, halves)


def _half_of_sentences(measure: str, scores: np.ndarray, least: float, chance: float) -> Reading:
    low, high = mean_interval(scores[:, None])
    interval = Interval.of(scores.mean(), low[0], high[0], len(scores))
    return Reading(f"{measure}, beside its distance elsewhere", interval, None, least, chance)


READERS: Mapping[str, Callable[[Hypothesis, Any, Head], Evidence]] = MappingProxyType({  # by predicate
    "looks-at": _feature, "offset": _offset, "budget": _budget, "relation": _relation, "same-word": _relation,
    "decided-by": _component, "needed-for": _needed, "property": property_evidence, "read-by": edge_evidence,
    "class": class_evidence, "counterpart": counterpart_evidence, "frame-link": frame_evidence,
})  # fmt: skip
