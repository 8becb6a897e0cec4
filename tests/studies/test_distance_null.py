"""What heads do over a distance at large: means of pairs, against a loop over them."""

import numpy as np
import pytest

from core.attention import AttentionMaps
from core.studies.frames.distance_null import FURTHEST, of_maps


def captured(length, seed, *, causal=False):
    weights = np.random.default_rng(seed).random((2, 3, length, length)).astype(np.float32)
    weights = np.tril(weights) if causal else weights
    weights /= weights.sum(-1, keepdims=True)
    maps = AttentionMaps(weights, tokens=tuple("abcdefgh"[:length]), segments=(0,) * length, causal=causal)
    return maps, range(1, length)


@pytest.mark.parametrize("causal", [False, True])
def test_the_mean_at_each_distance(causal):
    some = [captured(5, 1, causal=causal), captured(7, 2, causal=causal)]
    null = of_maps(some)
    for distance in (-3, -1, 0, 1):
        seen = [
            maps.weights[1, 2, q, q + distance]
            for maps, places in some
            for q in places
            if q + distance in places and not (causal and distance > 0)
        ]
        mean, pairs = null.at([(10, 10 + distance)])
        assert pairs == len(seen)
        if seen:
            assert mean[1, 2] == pytest.approx(np.mean(seen))


def test_a_link_of_several_pieces_has_the_mean_of_its_distances():
    null = of_maps([captured(6, 3)])
    mean, pairs = null.at([(3, 1), (3, 2)])
    np.testing.assert_allclose(mean, (null.at([(3, 1)])[0] + null.at([(3, 2)])[0]) / 2)
    assert pairs == 3  # of five text pieces, those two apart


def test_a_distance_that_no_sentence_has_gives_nothing():
    null = of_maps([captured(6, 3)])
    for far in (20, FURTHEST + 1):
        mean, pairs = null.at([(0, far)])
        assert np.isnan(mean).all()
        assert pairs == 0
