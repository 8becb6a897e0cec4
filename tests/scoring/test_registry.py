"""The scores that maps alone give lie in the range that their records state."""

import numpy as np
import pytest

from core.scoring.heads import MapBatch, SpecialPositions
from core.scoring.registry import MAP_SCORES


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
