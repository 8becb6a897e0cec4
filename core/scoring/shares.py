"""Fractions of right words with 95 % bootstrap intervals over sentences.

Percentiles are expanded for few sentences (Hesterberg 2015, "expanded percentiles").
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float

from ..interval import Interval

RESAMPLES = 2000


def share_of(hits: Sequence[int] | np.ndarray, totals: Sequence[int] | np.ndarray, *, seed: int = 0) -> Interval:
    """Return the accuracy over words, sum(hits) / sum(totals), with its 95 % bootstrap interval over sentences; n is
    the number of words.

    `hits` are right words of each sentence, and `totals` counted words. None if nothing is counted; no bounds for fewer
    than two sentences.
    """
    hits, totals = np.asarray(hits, dtype=float), np.asarray(totals, dtype=float)
    n, sentences = int(totals.sum()), len(totals)
    value = hits.sum() / n if n else math.nan
    if not n or sentences < 2:
        return Interval.of(value, math.nan, math.nan, n)
    counts = _draws(sentences, seed)
    below = counts @ totals
    drawn = np.divide(counts @ hits, below, out=np.full(len(below), np.nan), where=below > 0)
    farther = scipy.special.stdtrit(sentences - 1, 0.025) * np.sqrt(sentences / (sentences - 1))
    level = float(scipy.special.ndtr(farther))
    low, high = np.nanquantile(drawn, [level, 1 - level])
    return Interval.of(value, low, high, n)


def share_difference(
    first: Sequence[int] | np.ndarray,
    second: Sequence[int] | np.ndarray,
    totals: Sequence[int] | np.ndarray,
    *,
    seed: int = 0,
) -> Interval:
    """Return the difference between the accuracies of two predictions of the same words, paired by sentence.

    `first` and `second` are right words of each sentence, and `totals` counted words. None as for `share_of`.
    """
    return share_of(np.asarray(first, dtype=float) - np.asarray(second, dtype=float), totals, seed=seed)


@lru_cache(maxsize=4)
def _draws(sentences: int, seed: int) -> Float[np.ndarray, "draw sentence"]:
    """How often each sentence is drawn: the same for all fractions of the same sentences."""
    return (
        np.random.default_rng(seed).multinomial(sentences, np.full(sentences, 1 / sentences), RESAMPLES).astype(float)
    )
