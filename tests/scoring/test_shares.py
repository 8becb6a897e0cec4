"""Shares of words against a bootstrap written as a loop over resampled sentences."""

import numpy as np
import pytest
from scipy import stats

from core.scoring.intervals import RESAMPLES, share_difference, share_of

HITS, OTHER, TOTALS = [3, 0, 4, 2, 5, 1, 0, 2], [4, 1, 4, 2, 6, 0, 1, 2], [5, 2, 6, 4, 6, 3, 0, 2]


def by_loop(hits, totals, seed):
    generator, sentences = np.random.default_rng(seed), len(totals)
    drawn = []
    for counts in generator.multinomial(sentences, [1 / sentences] * sentences, RESAMPLES).tolist():
        below = sum(c * t for c, t in zip(counts, totals, strict=True))
        if below:
            drawn.append(sum(c * h for c, h in zip(counts, hits, strict=True)) / below)
    n = len(totals)  # Hesterberg 2015, section 4.2: Student's quantile and the spread's n / (n - 1)
    level = stats.norm.cdf(stats.t.ppf(0.025, n - 1) * np.sqrt(n / (n - 1)))
    return np.quantile(drawn, [level, 1 - level])


@pytest.mark.parametrize("seed", [0, 3])
def test_a_share_and_its_interval_are_those_of_the_loop(seed):
    share = share_of(HITS, TOTALS, seed=seed)
    assert (share.value, share.n) == (17 / 28, 28)
    np.testing.assert_allclose((share.low, share.high), by_loop(HITS, TOTALS, seed))
    assert share.fields() == {"value": share.value, "low": share.low, "high": share.high, "n": 28}
    more = share_difference(OTHER, HITS, TOTALS, seed=seed)
    assert more.value == pytest.approx(3 / 28)
    np.testing.assert_allclose((more.low, more.high), by_loop(np.subtract(OTHER, HITS).tolist(), TOTALS, seed))


def test_seeds_differ_and_0_is_the_one_that_is_not_named():
    assert share_of(HITS, TOTALS) == share_of(HITS, TOTALS, seed=0) != share_of(HITS, TOTALS, seed=1)
    assert share_difference(OTHER, HITS, TOTALS) == share_difference(OTHER, HITS, TOTALS, seed=0)


def test_what_was_not_counted_has_no_share_and_one_sentence_no_interval():
    nothing, single = share_of([0, 0], [0, 0]), share_of([1], [4])
    assert (nothing.value, nothing.low, nothing.high, nothing.n) == (None, None, None, 0)
    assert nothing.n == 0
    assert (single.value, single.n) == (0.25, 4)
    assert (single.low, single.high) == (None, None)
    sparse = share_of([1] + [0] * 19, [1] + [0] * 19)  # most resamples hold no word at all
    assert (sparse.value, sparse.low, sparse.high) == (1, 1, 1)
    words = share_of(np.array([True, False, True]), np.array([1, 1, 1], dtype=np.uint8))
    assert words.value == pytest.approx(2 / 3)
