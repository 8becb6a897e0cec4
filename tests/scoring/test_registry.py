"""The scores that maps alone give lie in the range that their records state."""

import numpy as np
import pytest

from core.attention import AttentionMaps
from core.scoring.heads import MapBatch, SpecialPositions
from core.scoring.registry import HEAD_SCORES, MAP_SCORES, map_scores


@pytest.mark.parametrize("causal", [False, True])
def test_scores_of_random_maps_lie_in_their_range(causal):
    rng = np.random.default_rng(0)
    for sharpness in (0.1, 3.0, 30.0):
        maps = np.exp(sharpness * rng.normal(size=(3, 4, 9, 9))) * (np.tri(9) if causal else 1)
        maps /= maps.sum(-1, keepdims=True)
        batch = MapBatch(maps, [SpecialPositions(0, (4, 8), 0)] * 3, causal)
        for score in MAP_SCORES:
            if score.of is None or (causal and not score.causal):
                continue
            values = np.asarray(score.of(batch))
            assert values.shape[-1] == 4, score.name
            assert (values >= score.low - 1e-9).all(), score.name
            assert score.high is None or (values <= score.high + 1e-9).all(), score.name


def test_scores_of_cross_attention_are_those_of_its_rows_and_have_no_neighbours():
    weights = np.random.default_rng(0).dirichlet(np.ones(7), (2, 3, 5)).astype(np.float32)
    maps = AttentionMaps(weights, tuple("abcde"), (0,) * 5, key_tokens=tuple("tuvwxyz"), part="cross")
    found = map_scores(maps, first=0, separators=[6])
    assert set(found) == set(HEAD_SCORES)
    assert np.isnan(found["previous"]).all()
    assert np.isnan(found["next"]).all()
    entropies = -(weights * np.log(weights)).sum(-1)
    assert np.allclose(found["normalised entropy"], entropies.mean(-1) / np.log(7), atol=1e-5)
    assert np.allclose(found["separator"], weights[..., 6].mean(-1), atol=1e-5)
