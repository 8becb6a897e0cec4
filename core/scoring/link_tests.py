"""Is a head's score on links more than its habits explain? Permutation nulls, intervals, correction over heads.

Habits look like knowledge, so each has a null. *Distance*: each input's links are moved to another place of the same
input, at the same signed distances and piece counts; a head that attends some steps away scores as high there.
*Exchange*: links change places between inputs of equal length; a head that attends to a fixed position (the first
word) scores as high there. *Query*: the link's query is another word of the text, its key stays; a head that attends
to a kind of word whatever the query (pronouns, content words) scores as high there. *Share*: the same without what
rows give to special tokens. (core.scoring.links takes distance out of these two.)
Both also ask that the links' contrast is above 0 (core.scoring.link_contrasts). What a near key gets in a decoder
depends on how many others its query sees, so that a steep head of one distance seems to look more from later words; in
an encoder a head of one kind of word has distances of its own, as kinds follow each other in sentences.

A head *survives* when it beats all four, after Benjamini-Hochberg over all heads. The weaker "beats the place nulls"
is distance and exchange alone: it looks at the linked places, but perhaps any word there would be looked at. The true
place is one of the places in every null, so the tests keep their level, and an input without another place adds
nothing. Fewer than few_inputs.FEWEST inputs are not tested: p and q are NaN then, and no head survives.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from .few_inputs import FEWEST, mean_interval, p_above, spread_of

RESAMPLES = 9999  # p of .01 is known to .001: few heads near the threshold move with the seed
LEVEL = 0.05
_CHUNK = 512  # draws at a time, so that they stay in the processor's cache
_EQUAL = 1e-6  # sums of the same float32 weights in another order differ by less


def draws_needed(heads: int) -> int:
    """Draws, RESAMPLES at least, with which one head among `heads` can pass the correction at LEVEL.

    p can be as small as 1 / (draws + 1).
    """
    return max(RESAMPLES, 2 * int(np.ceil(heads / LEVEL)) - 1)


def place_draws(
    places: Sequence[Float[np.ndarray, "_ cell"]], draws: int, *, seed: int = 0
) -> Float[np.ndarray, "draw cell"]:
    """Sums over inputs of the score at one place drawn at random.

    Args:
        places: of each input the score at each of its places, the true one first.

    Returns:
        In the unit of the scores.
    """
    rng, total = np.random.default_rng(seed), np.zeros((draws, places[0].shape[-1]))
    for start in range(0, draws, _CHUNK):
        part = total[start : start + _CHUNK]
        for scores in places:
            part += scores[rng.integers(len(scores), size=len(part))]
    return total


def exchange_draws(
    groups: Sequence[Float[np.ndarray, "_ _ cell"]], draws: int, *, seed: int = 0
) -> Float[np.ndarray, "draw cell"]:
    """Sums over inputs of the score with another input's links, permuted within each group.

    Args:
        groups: of each group at [i, j] the score of input i with the links of input j; the diagonal is the truth.

    Returns:
        In the unit of the scores.
    """
    rng, total = np.random.default_rng(seed), np.zeros((draws, groups[0].shape[-1]))
    for start in range(0, draws, _CHUNK):
        part = total[start : start + _CHUNK]
        for scores in groups:
            size = len(scores)
            orders = rng.permuted(np.tile(np.arange(size), (len(part), 1)), axis=1)
            for number in range(size):
                part += scores[number, orders[:, number]]
    return total


def p_values(observed: Float[np.ndarray, " cell"], draws: Float[np.ndarray, "draw cell"]) -> Float[np.ndarray, " cell"]:
    """One-sided p = (1 + draws at least as large) / (1 + draws).

    Returns:
        *Range:* 1 / (draws + 1) to 1.
    """
    return (1 + (draws >= observed - _EQUAL * np.maximum(1, np.abs(observed))).sum(0)) / (1 + len(draws))


def corrected(p: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " cell"]:
    """Benjamini-Hochberg adjusted p over all heads.

    Args:
        p: of each head, NaN where it was not tested. *Range:* 0 to 1.

    Returns:
        *Range:* p to 1; NaN for all heads where any has none.
    """
    if np.isnan(p).any():
        return np.full_like(p, np.nan)
    from scipy.stats import false_discovery_control  # 0.5 s of start-up

    return false_discovery_control(p)


@dataclass(frozen=True)
class Null:
    """What one null compares.

    Attributes:
        draws: sums under the null, in the same unit.
    """

    observed: Float[np.ndarray, " cell"]
    draws: Float[np.ndarray, "draw cell"]

    @property
    def p(self) -> Float[np.ndarray, " cell"]:
        return p_values(self.observed, self.draws)


@dataclass(frozen=True)
class LinkTest:
    """What is concluded of every head (cells in the caller's order).

    Attributes:
        score: mean over inputs of a weight. *Range:* 0 to 1.
        low, high: its 95 % interval.
        distance: mean over inputs of the place null, links at other places of the same input. *Range:* 0 to 1.
        exchange: mean over inputs of the place null, links of other inputs. *Range:* 0 to 1.
        excess: how much more the linked query looks there than the text's other queries do, in even shares (in a
            decoder, log odds), distance taken out.
        contrast: mean log weight of the links with query, key and distance taken out; NaN where none was measured.
        p_distance, p_exchange: of the place nulls; NaN for fewer than FEWEST inputs.
        p_query, p_share: of the nulls of other queries; no smaller than p_contrast; NaN likewise.
        p_contrast: that the contrast is not above 0; 1 where too few inputs have one, NaN where none was measured.
        q_places: the larger p of the place nulls after Benjamini-Hochberg; `beats_places` says whether it is <= LEVEL.
            NaN likewise.
        q: the same over all four nulls; `survives` says whether it is <= LEVEL. NaN likewise.
    """

    n: int
    score: Float[np.ndarray, " cell"]
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]
    distance: Float[np.ndarray, " cell"]
    exchange: Float[np.ndarray, " cell"]
    excess: Float[np.ndarray, " cell"]
    contrast: Float[np.ndarray, " cell"]
    p_distance: Float[np.ndarray, " cell"]
    p_exchange: Float[np.ndarray, " cell"]
    p_query: Float[np.ndarray, " cell"]
    p_share: Float[np.ndarray, " cell"]
    p_contrast: Float[np.ndarray, " cell"]
    q_places: Float[np.ndarray, " cell"]
    q: Float[np.ndarray, " cell"]

    @property
    def beats_places(self) -> Bool[np.ndarray, " cell"]:
        return self.q_places <= LEVEL

    @property
    def survives(self) -> Bool[np.ndarray, " cell"]:
        return self.q <= LEVEL


def verdict(
    scores: Float[np.ndarray, "input cell"],
    distance: Float[np.ndarray, "draw cell"],
    exchange: Float[np.ndarray, "draw cell"],
    query: Null,
    share: Null,
    contrasts: Float[np.ndarray, "input cell"] | None = None,
) -> LinkTest:
    """Compare the sum over inputs with sums drawn under the nulls (of the same inputs).

    Args:
        distance: sums drawn with links at other places of their inputs.
        share: the same on shares of what goes to ordinary tokens.
        contrasts: of each input's links, NaN where it has none; None where none were measured.
    """
    n, observed = len(scores), scores.sum(0, dtype=np.float64)
    tested = np.ones_like(observed) if n >= FEWEST else np.full_like(observed, np.nan)
    p_distance, p_exchange = p_values(observed, distance) * tested, p_values(observed, exchange) * tested
    contrast, p_contrast = _contrast(scores if contrasts is None else contrasts, is_backward=contrasts is not None)
    p_query, p_share = (np.fmax(null.p, p_contrast) * tested for null in (query, share))
    places = np.maximum(p_distance, p_exchange)
    low, high = (np.minimum(end, 1.0) for end in mean_interval(scores))  # of weights, which are never below 0
    return LinkTest(
        n=n,
        score=observed / n,
        low=low,
        high=high,
        distance=distance.mean(0) / n,
        exchange=exchange.mean(0) / n,
        excess=(query.observed - query.draws.mean(0)) / n,
        contrast=contrast,
        p_distance=p_distance,
        p_exchange=p_exchange,
        p_query=p_query,
        p_share=p_share,
        p_contrast=p_contrast,
        q_places=corrected(places),
        q=corrected(np.maximum.reduce([places, p_query, p_share])),
    )


def _contrast(
    contrasts: Float[np.ndarray, "input cell"], *, is_backward: bool
) -> tuple[Float[np.ndarray, " cell"], Float[np.ndarray, " cell"]]:
    """Mean and p (1 where too few inputs have a contrast); NaN where it is not asked for."""
    if not is_backward:
        return np.full(contrasts.shape[-1], np.nan), np.full(contrasts.shape[-1], np.nan)
    used = np.isfinite(contrasts)
    values = np.where(used, contrasts, 0.0)
    mean = values.sum(0) / np.maximum(used.sum(0), 1)
    p = p_above(mean, spread_of(values, used, mean))
    return mean, np.where(np.isfinite(p), p, 1.0)
