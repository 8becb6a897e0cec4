"""What runs say of a head's pattern class, of its counterpart in another checkpoint, and of frame links."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ... import config, patterns, scoring
from ...attention import Head
from ...scoring import link_tests
from ...scoring.few_inputs import mean_interval
from ..frames.frame_partials import contrasts_of, unpacked
from ..prediction_changes import share_interval
from .predicates import Hypothesis, counterpart_of
from .readings import NO_CONTROL, Evidence, Reading, effect_estimate, number_of

NORMAL = 1.959964  # of a 95 % interval


def class_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Share of a head's maps that the bundled classifier calls so; explained: freed of its confusions."""
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
    """A share with Wilson's 95 % interval, and p of a binomial test that it is at most `least`.

    Args:
        measure: what the share is of, in words.
        hits: whether each map counts. *Shape:* (map,), bool.
        least: what the share must be beyond, 0 to 1.

    Returns:
        The reading; without any map its value is None and its p is 1.
    """
    if not len(hits):
        return Reading(measure, None, None, None, 0, 1.0, least, least)
    p = float(scipy.stats.binom.sf(hits.sum() - 1, len(hits), least))
    return Reading(measure, *share_interval(hits), len(hits), p, least, least)


def _corrected(counts: np.ndarray, wanted: int, class_set: str, least: float) -> Reading | str:
    held_out, names = _confusions(class_set)
    share = patterns.class_shares.corrected_shares(counts, held_out, names)[wanted]
    if np.isnan(share.low):
        return (
            "the classifier errs otherwise on these maps than on its labelled ones (misfit of the counts, p "
            f"{share.misfit:.2g}), so the share cannot be freed of its confusions"
        )
    error = (share.high - share.low) / (2 * NORMAL)
    p = float(scipy.stats.norm.sf((share.share - least) / error)) if error > 0 else float(share.share <= least)
    return Reading(
        "share freed of the classifier's confusions", share.share, share.low, share.high, len(counts), p, least, least
    )


@lru_cache(maxsize=2)
def _confusions(class_set: str) -> tuple[np.ndarray, list[str]]:
    """What the bundled classifier confused on held-out maps [input, true, predicted], and its classes."""
    about = json.loads((config.ANNOTATIONS / class_set / "classifier.json").read_text(encoding="utf-8"))
    return np.array(about["scores"]["confusions"], dtype=int), list(about["classes"])


def counterpart_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Similarity to the other head, beside random weights; explained: beyond the next most similar head."""
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
    error = widths[its] / NORMAL
    far = (
        float(scipy.stats.norm.sf((similarity[its] - least) / error)) if error > 0 else float(similarity[its] <= least)
    )
    p = max(number_of(p) or 0.0, far)  # more similar than random weights are, and than the least
    effect = Reading("similarity of rows", float(similarity[its]), low, high, sums.n, p, least, chance)

    def beyond(measure: str, number: int) -> Reading:
        gap, low, high = (float(end) for end in sums.margins(own, its)[:, number - (number > its)])  # paired by input
        if not high > low:
            return Reading(measure, gap, low, high, sums.n, float(gap <= 0), baseline=float(similarity[number]))
        freedom = int((whole.inputs > 0).sum()) - 1
        p = float(scipy.stats.t.sf(2 * gap / (high - low) * scipy.stats.t.isf(0.025, freedom), freedom))
        return Reading(measure, gap, low, high, sums.n, p, baseline=float(similarity[number]))

    control = hypothesis.parameter("control")
    specific: Reading | str = NO_CONTROL
    if control:
        named = Head.parse(control).within(others // whole.others, whole.others)
        specific = beyond(f"similarity less that to {control}", named.layer * whole.others + named.head)
    halves = tuple(
        Reading("similarity less that to the next head, in a half", gap := _gap(sums.half(number)[own], its), gap, gap,
                sums.halves()[number])
        for number in (0, 1)
    )  # fmt: skip
    return Evidence(effect, beyond("similarity less that to the next head", runner), specific, halves)


def _gap(similarity: np.ndarray, its: int) -> float:
    return float(similarity[its] - np.delete(similarity, its).max())


def frame_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Largest weight of a frame link, beside the same distance elsewhere; explained: beyond all four nulls."""
    if not partial.draws:
        nothing = "no link can be seen by a query of this checkpoint"
        return Evidence(nothing, nothing, nothing, nothing)
    first = partial.draws[0]
    head.within(first.layers, first.heads)
    cell = head.layer * first.heads + head.head
    scores = np.array([scored.scores for scored in partial.sentences])[:, [cell]]
    distance, exchange, query, share = (
        np.sum([unpacked(getattr(part, name), part.draws)[:, [cell]] for part in partial.draws], axis=0)
        for name in ("distance", "exchange", "query", "share")
    )
    seen = [
        np.sum([getattr(part, f"{name}_observed")[[cell]] for part in partial.draws], axis=0)
        for name in ("query", "share")
    ]
    contrasts = contrasts_of(partial.draws)
    test = link_tests.verdict(
        scores,
        distance,
        exchange,
        link_tests.Null(seen[0], query),
        link_tests.Null(seen[1], share),
        None if contrasts is None else contrasts[:, [cell]],
    )
    whole = (float(test.score[0]), float(test.low[0]), float(test.high[0]), test.n)
    places, every = test.p_distance[0], max(test.p_distance[0], test.p_exchange[0], test.p_query[0], test.p_share[0])
    chance, exchanged = float(test.distance[0]), float(max(test.distance[0], test.exchange[0]))
    measure = "largest weight of a frame link"
    beyond = effect_estimate(scores[:, 0] - chance - hypothesis.least).result()
    far = number_of(beyond.p_above()[0, 0, 0])
    both = None if far is None or number_of(places) is None else max(float(places), far)
    least = chance + hypothesis.least
    effect = Reading(f"{measure}, beside its distance elsewhere", *whole, both, least, chance)
    explained = Reading(f"{measure}, beside four nulls", *whole, number_of(every), exchanged, exchanged)
    halves = tuple(_half_of_sentences(measure, scores[parity::2, 0], least, chance) for parity in (0, 1))
    return Evidence(effect, explained, NO_CONTROL, halves)


def _half_of_sentences(measure: str, scores: np.ndarray, least: float, chance: float) -> Reading:
    low, high = mean_interval(scores[:, None])
    return Reading(f"{measure}, beside its distance elsewhere", float(scores.mean()), number_of(low[0]),
                   number_of(high[0]), len(scores), None, least, chance)  # fmt: skip


READERS: Mapping[str, Callable[[Hypothesis, Any, Head], Evidence]] = MappingProxyType(
    {
        "class": class_evidence,
        "counterpart": counterpart_evidence,
        "frame-link": frame_evidence,
    }
)
