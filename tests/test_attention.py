"""Heads and attention maps: names, ranges, and maps that are checked once."""

import numpy as np
import pytest

from core.attention import AttentionMaps, Head, parse_heads
from core.errors import InputError


def maps(weights):
    length = weights.shape[-1]
    return AttentionMaps(weights, tuple("abcdefgh"[:length]), (0,) * length)


def test_heads_are_named_from_1_and_counted_from_0():
    assert str(Head(6, 5)) == "L7H6"
    assert Head.parse("l7 h6") == Head(6, 5)
    assert parse_heads("L1H2, L12H10") == [Head(0, 1), Head(11, 9)]
    assert parse_heads(" ") == []


@pytest.mark.parametrize("name", ["", "7-6", "L0H1", "L1H0", "L1", "H1L1", "L-1H1", "<b>", "L1H2H3"])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match="such as L7H6"):
        Head.parse(name)


def test_a_head_outside_the_model():
    with pytest.raises(InputError, match="must be from L1H1 to L6H6; got L7H1"):
        Head(6, 0).within(6, 6)


def test_maps_are_accepted_when_rows_sum_to_1():
    found = maps(np.full((2, 3, 4, 4), 0.25, dtype=np.float32))
    assert (found.layers, found.heads, len(found)) == (2, 3, 4)
    assert found.of(Head(1, 2)).shape == (4, 4)


def test_rows_that_do_not_sum_to_1_are_named():
    weights = np.full((2, 2, 4, 4), 0.25, dtype=np.float32)
    weights[1, 0, 2] = [0.25, 0.25, 0.25, 0.22]
    with pytest.raises(InputError, match=r"row of query 3 in L2H1 sums to 0\.970"):
        maps(weights)


def test_nan_never_passes():
    weights = np.full((1, 1, 2, 2), 0.5, dtype=np.float32)
    weights[0, 0, 1, 1] = np.nan
    with pytest.raises(InputError, match="query 2 in L1H1"):
        maps(weights)


def test_shapes_and_tokens_must_agree():
    with pytest.raises(InputError, match="as many queries as keys"):
        maps(np.ones((1, 1, 2, 3), dtype=np.float32) / 3)
    with pytest.raises(InputError, match="Give one token and segment per query"):
        AttentionMaps(np.ones((1, 1, 1, 1), dtype=np.float32), ("a", "b"), (0, 0))


def test_a_head_is_a_pair_that_indexes_and_heads_of_two_sets_differ():
    import copy
    import pickle

    scores = np.arange(6).reshape(2, 3)
    cross = Head(1, 2, "cross")
    assert scores[cross] == scores[Head(1, 2)] == 5
    assert tuple(cross) == (1, 2) == Head(1, 2)
    assert cross != Head(1, 2)
    assert len({cross, Head(1, 2), Head(1, 2, "encoder"), Head(1, 2, "cross")}) == 3
    assert sorted([cross, Head(0, 5, "encoder"), Head(0, 1)])[0] == Head(0, 1)
    assert max(Head(0, 5), Head(1, 0)) == Head(1, 0)
    assert pickle.loads(pickle.dumps(cross)) == copy.deepcopy(cross) == cross  # noqa: S301 - our own


def test_what_a_query_sees_is_its_window_and_a_sink():
    weights = np.zeros((2, 1, 4, 5), dtype=np.float32)
    weights[..., -1] = 1
    maps = AttentionMaps(weights, tuple("abcd"), (0,) * 4, True, (*"abcd", "sink"), windows=(2, None))
    assert maps.visible(0).astype(int).tolist() == [[1, 0, 0, 0, 1], [1, 1, 0, 0, 1], [0, 1, 1, 0, 1], [0, 0, 1, 1, 1]]
    assert maps.visible(1)[:, :4].astype(int).tolist() == np.tril(np.ones((4, 4), int)).tolist()
    assert "in layers 1 at most 2: there “uniform” is over those, and a sink" in maps.sees
