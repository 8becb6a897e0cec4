"""Tests of whether the score of a head on links exceeds what its general behaviour predicts.

There are four null models. *Distance*: the links of each input are moved within the input, with the same signed
distances and token counts; heads that attend at fixed distances score equally high there. *Exchange*: links are
exchanged between inputs of equal length; heads that attend to fixed positions score equally high there. *Query*: the
query is another word of the text; heads that attend to a kind of word from any query score equally high there. *Share*:
the same without the weight on special tokens. (core.scoring.links removes distance from these two.) The last two also
require a positive contrast (core.scoring.link_contrasts), because nearness to the key affects weights in decoders, and
kinds of words have typical distances in encoders.

A head *survives* if it exceeds all four null models after Benjamini-Hochberg correction over all heads. "Beats the
place nulls" is weaker: distance and exchange only. The true position is one of the positions in every null model, so
tests hold their level, and inputs without another position add nothing. With fewer than few_inputs.FEWEST inputs, p and
q are NaN and no head survives.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from .corrections import ALPHA, q_values
from .few_inputs import FEWEST, mean_interval, p_above, spread_of

RESAMPLES = 9999  # p of .01 is known to .001: few heads near the threshold move with the seed
_CHUNK = 512  # draws at a time, so that they stay in the processor's cache
_EQUAL = 1e-6  # sums of the same float32 weights in another order differ by less


def draws_needed(heads: int) -> int:
    """Return how many random draws are needed so that a score can be significant at ALPHA after correction over `heads`
    heads. The smallest possible p value is 1 / (draws + 1)."""
    return max(RESAMPLES, 2 * int(np.ceil(heads / ALPHA)) - 1)


def place_draws(
    places: Sequence[Float[np.ndarray, "_ cell"]], draws: int, *, seed: int = 0
) -> Float[np.ndarray, "draw cell"]:
    """Return sums of a score over inputs, after moving the links of every input to a random allowed position. There is
    one sum per random draw.

    `places` has, for each input, the score at each possible position, the true one first.
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
    """Return sums of a score over inputs, after randomly permuting links among the inputs in each group.

    `groups` has, for each group at [i, j], the score of input i with the links of input j.
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
    """Return the one-sided p value of each observed sum. It is (1 + number of draws that are at least as large) / (1 +
    number of draws)."""
    return (1 + (draws >= observed - _EQUAL * np.maximum(1, np.abs(observed))).sum(0)) / (1 + len(draws))


def corrected(p: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " cell"]:
    """Return Benjamini-Hochberg adjusted p values over all heads; NaN for all heads if any p value is NaN."""
    return np.full_like(p, np.nan) if np.isnan(p).any() else q_values(p)


@dataclass(frozen=True)
class Null:
    """The sum of a score over inputs, as observed and as drawn at random under a null hypothesis."""

    observed: Float[np.ndarray, " cell"]
    draws: Float[np.ndarray, "draw cell"]

    @property
    def p(self) -> Float[np.ndarray, " cell"]:
        return p_values(self.observed, self.draws)


@dataclass(frozen=True)
class LinkTest:
    """The results, for every head, of testing the attention along links against four null models.

    Attributes:
        score, low, high: mean over inputs of a weight, with its 95 % interval.
        distance: mean of the score with links at other positions of the same input.
        exchange: mean of the score with links of other inputs.
        excess: how much more the linked query attends to the key than the other queries of the text, without the effect
            of distance, in multiples of uniform attention (in decoders, log odds).
        contrast: mean log weight without effects of query, key and distance; NaN if not measured.
        p_distance, p_exchange: NaN for fewer than FEWEST inputs.
        p_query, p_share: at least p_contrast; NaN likewise.
        p_contrast: for a contrast of at most 0; 1 if too few inputs have one, NaN if not measured.
        q_places: the larger of p_distance and p_exchange after Benjamini-Hochberg; `beats_places` if at most ALPHA.
        q: the same over all four null models; `survives` if at most ALPHA.
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
        return self.q_places <= ALPHA

    @property
    def survives(self) -> Bool[np.ndarray, " cell"]:
        return self.q <= ALPHA


def verdict(
    scores: Float[np.ndarray, "input cell"],
    distance: Float[np.ndarray, "draw cell"],
    exchange: Float[np.ndarray, "draw cell"],
    query: Null,
    share: Null,
    contrasts: Float[np.ndarray, "input cell"] | None = None,
) -> LinkTest:
    """Test whether the sum of a score over inputs is higher than expected under each of four null models.

    Args:
        distance: sums with links at other positions of their inputs.
        query, share: sums of the residuals of `QueryResiduals`, of weights and of shares among ordinary tokens.
        contrasts: of the links of each input, NaN without any; None if not measured.
    """
    n, observed = len(scores), scores.sum(0, dtype=np.float64)
    tested = np.ones_like(observed) if n >= FEWEST else np.full_like(observed, np.nan)
    p_distance, p_exchange = p_values(observed, distance) * tested, p_values(observed, exchange) * tested
    contrast = p_contrast = np.full(observed.shape, np.nan)
    if contrasts is not None:
        used = np.isfinite(contrasts)
        values = np.where(used, contrasts, 0.0)
        contrast = values.sum(0) / np.maximum(used.sum(0), 1)
        p = p_above(contrast, spread_of(values, used, contrast))
        p_contrast = np.where(np.isfinite(p), p, 1.0)
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
