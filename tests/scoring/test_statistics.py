"""Head statistics against plain loops; planted heads; inputs without separators or of one token."""

import math

import numpy as np
import pytest
import torch

from core.scoring.definitions import STATISTICS
from core.scoring.heads import SpecialPositions, mean_distance
from core.scoring.statistics import HeadStatistics
from tests.scoring.maps import random_maps

NAMES = list(STATISTICS)


def _loop(name, a, place):
    length = len(a)
    rows = range(length)

    def spread(row):
        return -sum(p * math.log(p) for p in row if p > 0)

    if name == "entropy":
        return sum(spread(a[i]) for i in rows) / length
    if name == "normalised entropy":
        return sum(spread(a[i]) for i in rows) / length / math.log(length)
    if name == "classifying entropy":
        return spread(a[place.classifying])
    if name == "distance":
        return sum(a[i][j] * abs(i - j) for i in rows for j in rows) / length
    if name in ("first", "separator"):
        keys = (place.first,) if name == "first" else place.separators
        return sum(a[i][j] for i in rows for j in keys) / length if keys else math.nan
    offset = {"previous": -1, "current": 0, "next": 1}[name]
    mine = [a[i][i + offset] for i in rows if 0 <= i + offset < length]
    return sum(mine) / len(mine)


def test_every_statistic_equals_a_loop():
    maps = random_maps(2, 4, 3, 7, 7)
    places = [
        SpecialPositions(0, (6,), 0),
        SpecialPositions(0, (3, 6), 0),
        SpecialPositions(0, (), 6),
        SpecialPositions(0, (3, 6), 2),
    ]
    before, observer = maps.clone(), HeadStatistics(2, 3, causal=False)
    observer.take(places, range(4))
    for layer in range(2):
        observer.update(layer, maps[layer], [0, 1, 2, 3])
    torch.testing.assert_close(maps, before, rtol=0, atol=0)
    found = observer.means.result()
    for k, name in enumerate(NAMES):
        for layer in range(2):
            for head in range(3):
                each = [_loop(name, maps[layer, i, head].tolist(), places[i]) for i in range(4)]
                expected = np.nanmean(each)
                assert found.value[layer, head, k] == pytest.approx(expected, abs=1e-6), name
                assert found.n[k] == np.sum(~np.isnan(each))


def test_causal_models_have_no_next_token_and_rows_are_normalised_by_what_they_see():
    maps = torch.tril(torch.ones(5, 5, dtype=torch.float64))
    maps = (maps / maps.sum(-1, keepdim=True))[None, None]
    observer = HeadStatistics(1, 1, causal=True)
    observer.take([SpecialPositions(0, (), 4)], [0]).update(0, maps, [0])
    found = observer.means.result().value[0, 0]
    assert found[NAMES.index("normalised entropy")] == pytest.approx(1)
    assert np.isnan(found[NAMES.index("next")])
    assert np.isnan(found[NAMES.index("separator")])


def test_one_token_leaves_what_needs_two_undefined():
    observer = HeadStatistics(1, 1, causal=False)
    observer.take([SpecialPositions(0, (), 0)], [0]).update(0, torch.ones(1, 1, 1, 1, dtype=torch.float64), [0])
    found = dict(zip(NAMES, observer.means.result().value[0, 0], strict=True))
    assert found["current"] == 1
    assert found["distance"] == 0
    assert np.isnan(found["previous"])
    assert np.isnan(found["normalised entropy"])


def test_distance_of_planted_heads():
    previous = torch.diag(torch.ones(4, dtype=torch.float64), -1)
    previous[0, 0] = 1
    assert mean_distance(previous[None])[0] == pytest.approx(4 / 5)
    assert mean_distance(torch.eye(5, dtype=torch.float64)[None])[0] == 0


@pytest.mark.parametrize("causal", [False, True])
def test_batches_and_shards_do_not_matter(causal):
    """Inputs of equal length meet in a batch or not; separators at the same places or not."""
    maps = random_maps(1, 5, 2, 6, 6, causal=causal)[0]
    places = [SpecialPositions(0, keys, 5) for keys in ((5,), (2, 5), (5,), (), (5,))]
    whole = HeadStatistics(1, 2, causal=causal).take(places, range(5))
    whole.update(0, maps, [0, 1, 2, 3, 4])
    parts = [HeadStatistics(1, 2, causal=causal).take(places, range(5)) for _ in range(2)]
    parts[0].update(0, maps[[4, 0]], [4, 0])
    parts[1].update(0, maps[[3]], [3])
    parts[1].update(0, maps[[1, 2]], [1, 2])
    parts[0].means.merge(parts[1].means)
    one, two = whole.means.result(), parts[0].means.result()
    np.testing.assert_allclose(one.value, two.value, atol=1e-9)
    np.testing.assert_allclose(one.high, two.high, atol=1e-5)


def test_long_inputs_need_sums_of_their_maps_but_with_a_sink_whole_maps():
    observer = HeadStatistics(1, 2, causal=False).take(
        [SpecialPositions(0, (4,), 0), SpecialPositions(1, (2, 3), 1)], [0, 1]
    )
    first, second = observer.needs([1, 0], 5, 5)
    assert (first.entropy, first.distance, first.offsets) == (True, True, (-1, 0, 1))
    assert first.values.T.tolist() == [[0, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    assert second.values.T.tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert observer.needs([0], 5, 6) is None
