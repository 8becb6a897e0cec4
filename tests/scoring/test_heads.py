"""Every score against a loop over the definition, in numpy and torch, and on heads planted by hand."""

import math

import numpy as np
import pytest
import torch

from core.scoring.heads import mean_distance, mean_of_rows, normalised_mean, row_entropies, to_keys, to_offset
from core.scoring.registry import HEAD_SCORES, head_scores


def random_maps(length: int, *, causal: bool = False, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).random((2, 3, length, length)) ** 3
    if causal:
        raw *= np.tri(length)
    return raw / raw.sum(-1, keepdims=True)


def entropy(weights, *, causal=False, normalised=True):
    return (normalised_mean if normalised else mean_of_rows)(row_entropies(weights), causal=causal)


def loop(weights: np.ndarray, of_map) -> np.ndarray:
    layers, heads = weights.shape[:2]
    return np.array([[of_map(weights[a, b].tolist()) for b in range(heads)] for a in range(layers)])


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
def test_mass_on_an_offset_is_the_mean_over_the_queries_that_have_it(offset):
    maps = random_maps(5)
    expected = loop(maps, lambda a: mean([a[i][i + offset] for i in range(5) if 0 <= i + offset < 5]))
    np.testing.assert_allclose(to_offset(maps, offset), expected, atol=1e-9)


def test_a_decoders_first_query_is_no_choice_and_is_left_out():
    maps = random_maps(5, causal=True)
    expected = loop(maps, lambda a: mean([a[i][i] for i in range(1, 5)]))
    np.testing.assert_allclose(to_offset(maps, 0, causal=True), expected, atol=1e-9)
    np.testing.assert_allclose(to_offset(maps, -1, causal=True), to_offset(maps, -1), atol=1e-12)
    alone = np.ones((1, 1, 1, 1))
    assert np.isnan(to_offset(alone, 0, causal=True))
    assert np.isnan(entropy(alone, causal=True, normalised=False))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", [[0], [2, 4], [4]])
def test_mass_on_keys_counts_only_queries_that_can_choose(causal, keys):
    maps = random_maps(5, causal=causal)
    queries = [i for i in range(5) if not causal or (i >= min(keys) and i > 0)]
    expected = loop(maps, lambda a: mean([sum(a[i][j] for j in keys) for i in queries]))
    np.testing.assert_allclose(to_keys(maps, keys, causal=causal), expected, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_entropy_follows_its_definition(causal, normalised):
    maps = random_maps(4, causal=causal)

    def of_map(a):
        rows = []
        for i, row in enumerate(a):
            seen = i + 1 if causal else len(row)
            nats = -sum(p * math.log(p) for p in row if p > 0)
            if seen > 1:  # a decoder's first query has one weight, which is 1
                rows.append(nats / math.log(seen) if normalised else nats)
        return mean(rows)

    np.testing.assert_allclose(entropy(maps, causal=causal, normalised=normalised), loop(maps, of_map), atol=1e-9)


def test_even_attention_has_entropy_one_and_a_single_target_zero():
    even, single = np.full((1, 1, 4, 4), 0.25), np.eye(4)[None, None]
    assert entropy(even).item() == pytest.approx(1)
    assert entropy(single).item() == pytest.approx(0)
    causal = (np.tri(4) / np.arange(1, 5)[:, None])[None, None]
    assert entropy(causal, causal=True).item() == pytest.approx(1)


def test_planted_heads_are_named_by_their_score():
    length = 6
    previous, following = np.roll(np.eye(length), -1, axis=1), np.roll(np.eye(length), 1, axis=1)
    first, separator = np.zeros((length, length)), np.zeros((length, length))
    first[:, 0] = separator[:, 5] = 1
    maps = np.stack([previous, following, first, separator, np.full((length, length), 1 / length)])[None]
    scores = head_scores(maps, first=0, separators=[5], causal=False)
    for head, name in enumerate(["previous", "next", "first", "separator", "normalised entropy"]):
        assert int(np.argmax(scores[name][0])) == head, name


@pytest.mark.parametrize("causal", [False, True])
def test_torch_and_numpy_agree_and_the_input_is_not_written_to(causal):
    maps = random_maps(7, causal=causal)
    before = maps.copy()
    ours = head_scores(maps, first=0, separators=[6], causal=causal)
    theirs = head_scores(torch.from_numpy(maps), first=0, separators=[6], causal=causal)
    assert set(ours) == set(HEAD_SCORES)
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name].numpy(), atol=1e-9)
    np.testing.assert_array_equal(maps, before)


def test_what_cannot_be_measured_is_nan_and_not_zero():
    alone = head_scores(np.ones((1, 1, 1, 1)), first=0, separators=[], causal=False)
    assert all(math.isnan(alone[name].item()) for name in ("previous", "next", "separator", "normalised entropy"))
    decoder = head_scores(random_maps(4, causal=True), first=0, separators=[], causal=True)
    assert np.isnan(decoder["next"]).all()
    assert np.isnan(decoder["separator"]).all()


@pytest.mark.parametrize("length", [0, 1])
def test_what_is_undefined_is_nan_for_every_head(length):
    weights = np.ones((2, 3, length, length))
    for value in (to_offset(weights, 1), to_keys(weights, []), normalised_mean(np.zeros((2, 3, length)), causal=False)):
        assert value.shape == (2, 3)
        assert np.isnan(value).all()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_mean_distance_of_a_long_map_keeps_its_digits(kind):
    """One sum over a million float32 weights lost the fourth digit."""
    chance = np.random.default_rng(0)
    maps = chance.random((2, 1, 1024, 1024), dtype=np.float32)
    maps /= maps.sum(-1, keepdims=True)
    away = np.abs(np.arange(1024)[:, None] - np.arange(1024))
    wanted = (maps.astype(np.float64) * away).sum((-2, -1)) / 1024
    found = mean_distance(maps if kind == "numpy" else torch.from_numpy(maps))
    assert np.allclose(np.asarray(found), wanted, rtol=1e-6)


def test_maps_whose_heads_lie_side_by_side_in_memory_have_the_same_distance():
    maps = torch.from_numpy(np.stack([random_maps(5, seed=seed)[0] for seed in range(3)]))
    beside = maps.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert beside.stride(1) == 1
    torch.testing.assert_close(mean_distance(beside), mean_distance(maps))
    torch.testing.assert_close(mean_distance(beside, causal=True), mean_distance(maps, causal=True))
