"""Repeated patterns against loops, and heads that are planted to be another one's copy or to be themselves."""

import numpy as np
import pytest
import torch
from scipy import stats

from core.scoring.distances import SMOOTHING
from core.scoring.mean_patterns import SIZE, resized
from core.scoring.repetition import OwnAndOthers, Repeated, repeated


def apart(first, other):
    """Jensen-Shannon divergence of rows in nats, mean over rows, by its definition."""
    first, other = ((1 - SMOOTHING) * rows + SMOOTHING / SIZE for rows in (first, other))
    middle = (first + other) / 2
    return np.mean(
        [(stats.entropy(a, m) + stats.entropy(b, m)) / 2 for a, b, m in zip(first, other, middle, strict=True)]
    )


def drawn(inputs, seed=0):
    """Two layers of two heads. The first three have one new pattern of each input, the fourth the same one on all."""
    chance, steady = np.random.default_rng(seed), np.random.default_rng(99).dirichlet(np.full(SIZE, 0.1), size=SIZE)
    for _ in range(inputs):
        shared = chance.dirichlet(np.full(SIZE, 0.1), size=SIZE)
        noise = chance.dirichlet(np.ones(SIZE), size=(4, SIZE))
        yield 0.9 * np.stack([shared, shared, shared, steady]) + 0.1 * noise


def seen(inputs, sizes=None):
    """The observer after these inputs, in batches of these sizes."""
    observer, every, start = OwnAndOthers(2, 2), list(inputs), 0
    for size in sizes or [len(every)]:
        batch = torch.from_numpy(np.stack(every[start : start + size]))
        observer.take(size)
        for layer in (0, 1):
            observer.update(layer, batch[:, 2 * layer : 2 * layer + 2], list(range(size)))
        start += size
    return observer


@pytest.mark.thorough
def test_sums_are_those_of_a_loop_over_pairs_of_inputs():
    inputs = list(drawn(6))
    by_hand = np.zeros((2, 2, 4, 4))
    for pair in range(3):
        first, other = (resized(one) for one in inputs[2 * pair : 2 * pair + 2])
        for head in range(4):
            own = apart(first[head], other[head])
            for beside in range(4):
                between = (apart(first[head], first[beside]) + apart(other[head], other[beside])) / 2
                by_hand[pair % 2, :, head, beside] += (own - between, (own - between) ** 2)
    observer = seen(inputs)
    np.testing.assert_allclose(observer.sums, by_hand, atol=1e-9)
    assert observer.pairs.tolist() == [2, 1]


def test_pairs_are_the_same_in_whatever_batches_they_come_and_one_left_over_is_none():
    inputs = list(drawn(9))
    whole, parts = seen(inputs), seen(inputs, [3, 1, 5])
    np.testing.assert_allclose(whole.sums, parts.sums, atol=1e-12)
    assert whole.pairs.tolist() == parts.pairs.tolist() == [2, 2]


def test_copies_are_nearer_to_each_other_and_a_head_of_one_pattern_is_nearest_to_itself():
    observer = seen(drawn(40))
    found = repeated(observer.sums, observer.pairs.tolist())
    assert (found.low[:3] > 0).all()
    assert found.high[3] < 0
    assert set(found.other[:3].tolist()) <= {0, 1, 2}
    assert found.share() == (0.75, 0.75, 0.75)
    assert found.pairs == 20


def test_being_the_nearest_of_many_by_luck_counts_for_nothing():
    """Heads that are all alike and as far from themselves: the interval leaves 0 out in no more than it may."""
    chance, heads, wrong = np.random.default_rng(0), 20, 0
    for _ in range(60):
        nearer = chance.normal(0, 0.1, size=(40, heads, heads))
        halves = [nearer[k::2] for k in (0, 1)]
        sums = np.array([[half.sum(0), (half**2).sum(0)] for half in halves])
        found = repeated(sums, [20, 20])
        wrong += int((found.low > 0).sum())
    assert stats.binomtest(wrong, 60 * heads, 0.025).pvalue > 0.001


@pytest.mark.parametrize("pairs", [[0, 0], [2, 1], [1, 1]])
def test_too_few_pairs_say_nothing(pairs):
    assert repeated(np.zeros((2, 2, 3, 3)), pairs) is None
    assert repeated(np.zeros((2, 2, 1, 1)), [9, 9]) is None


def test_shares_count_heads_that_are_nearer_surely_perhaps_and_by_what_was_measured():
    half = np.array([0.1, 0.5, 0.5, 0.1])
    value = np.array([1.0, 0.2, -0.2, -1.0])  # one surely, two perhaps, one surely not
    found = Repeated(value, value - half, value + half, np.zeros(4, dtype=int), 9)
    assert found.share() == (0.5, 0.25, 0.75)
    nothing = np.zeros(3)  # neither nearer nor farther
    assert Repeated(nothing, nothing, nothing, np.zeros(3, dtype=int), 9).share() == (0, 0, 0)


def test_three_layers_of_which_two_attend_are_compared_after_the_last_of_them():
    """As if the layers with attention were the first two; with three of them, after the third."""
    every = list(drawn(4))
    whole = seen(every)
    hybrid = OwnAndOthers(3, 2, (0, 2)).take(4)
    batch = torch.from_numpy(np.stack(every))
    for number, layer in enumerate((0, 2)):
        hybrid.update(layer, batch[:, 2 * number : 2 * number + 2], list(range(4)))
    np.testing.assert_allclose(hybrid.sums, whole.sums)
    deep = OwnAndOthers(3, 2).take(4)
    for layer, heads in ((0, slice(0, 2)), (1, slice(2, 4)), (2, slice(0, 2))):
        assert deep.pairs.sum() == 0
        deep.update(layer, batch[:, heads], list(range(4)))
    assert deep.pairs.tolist() == [1, 1]
    np.testing.assert_allclose(deep.sums[..., :4, :4], whole.sums)
    np.testing.assert_allclose(deep.sums[..., 4:, 2:4], whole.sums[..., :2, 2:4])  # the third layer is as the first
