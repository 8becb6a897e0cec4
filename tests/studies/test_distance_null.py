"""What heads do along links of one shape at large: against a loop over all places, block by block."""

import numpy as np
import pytest

from core.attention import AttentionMaps
from core.scoring.links import pairs_of, relation_score, without_key
from core.studies.frames.frame_lookup import DistanceNull

HOW = {"direction": "element_to_target", "pairing": "product", "causal": False}
BLOCK = (((2, 3, 4), (6,)),)  # an element of three pieces and a target of one


def captured(length, seed, *, causal=False):
    weights = np.random.default_rng(seed).random((2, 3, length, length)).astype(np.float32)
    weights = np.tril(weights) if causal else weights
    weights /= weights.sum(-1, keepdims=True)
    maps = AttentionMaps(weights, tokens=tuple("abcdefghijkl"[:length]), segments=(0,) * length, causal=causal)
    return maps, range(1, length)


def of_maps(sentences):
    return DistanceNull(tuple((maps.weights, tuple(places)) for maps, places in sentences))


@pytest.mark.parametrize("sinkless", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_mean_over_all_places(causal, sinkless):
    some = [captured(8, 1, causal=causal), captured(11, 2, causal=causal), captured(4, 3, causal=causal)]
    how = HOW | {"causal": causal, "direction": "target_to_element" if causal else "element_to_target"}
    scores = []
    for maps, places in some:
        weights = without_key(maps.weights, 0) if sinkless else maps.weights
        for step in range(-11, 12):
            moved = ((tuple(k + step for k in BLOCK[0][0]), (6 + step,)),)
            if all(k in places for link in moved for side in link for k in side):
                scores.append(relation_score(weights, moved, **how))
    mean, count = of_maps(some).at(BLOCK, how, without_first=sinkless)
    assert count == len(scores) > 5
    np.testing.assert_allclose(mean, np.mean(scores, axis=0), rtol=1e-5)


def test_the_largest_of_three_pieces_is_not_set_beside_a_mean_of_one():
    """In maps of noise a link of three pieces by one has no more than the null; the mean over pairs was .1 below."""
    some = [captured(12, seed) for seed in range(40)]
    own = np.mean([relation_score(maps.weights, BLOCK, **HOW) for maps, _ in some], axis=0)
    assert np.abs(own - of_maps(some).at(BLOCK, HOW)[0]).max() < 0.02


def test_a_head_of_the_first_key_has_nothing_left_without_it():
    """All of a row but rounding is on the first key, alike in every place: nothing stands out."""
    maps, places = captured(9, 4)
    weights = np.full_like(maps.weights, 1e-4)
    weights[..., 0] = 1 - 8e-4
    null = of_maps([(AttentionMaps(weights, tokens=maps.tokens, segments=maps.segments, causal=False), places)])
    own = relation_score(without_key(weights, 0), BLOCK, **HOW)
    np.testing.assert_allclose(own - null.at(BLOCK, HOW, without_first=True)[0], 0, atol=1e-5)


def test_a_link_that_fits_nowhere_gives_nothing():
    null = of_maps([captured(6, 3)])
    mean, count = null.at((((1,), (30,)),), HOW)
    assert np.isnan(mean).all()
    assert count == 0
    assert null.at((((5,), (1,)),), HOW | {"causal": True, "direction": "target_to_element"})[1] == 0  # never seen


def test_zip_looks_at_fewer_pairs():
    some = [captured(12, seed) for seed in range(3)]
    assert (of_maps(some).at(BLOCK, HOW)[0] >= of_maps(some).at(BLOCK, HOW | {"pairing": "zip"})[0]).all()
    assert len(pairs_of(BLOCK, pairing="zip")) == 1
