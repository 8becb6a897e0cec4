"""Scores along links against loop oracles on small maps."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.scoring.links import (
    DIRECTIONS,
    PairScores,
    Placement,
    exchange_groups,
    fixed_scores,
    habits,
    pairs_of,
    relation_score,
    shifted,
    without_key,
)

LINKS = (((1, 2), (5, 6)), ((7,), (5, 6)))


def maps(*shape: int, seed: int = 0, causal: bool = False) -> np.ndarray:
    raw = np.random.default_rng(seed).random(shape).astype("float32")
    raw = np.tril(raw) if causal else raw
    return raw / raw.sum(-1, keepdims=True)


def oracle(weights, links, direction, pairing, causal):
    """Loops over layers, heads, links and pieces."""
    found = np.full(weights.shape[:2], np.nan)
    for layer, head in np.ndindex(*weights.shape[:2]):
        values = []
        if pairing == "product":
            candidates = [(e, t) for es, ts in links for e in es for t in ts]
        else:
            es, ts = [e for es, _ in links for e in es], sorted({t for _, ts in links for t in ts})
            candidates = [(es[k], ts[k]) for k in range(min(len(es), len(ts)))]
        for e, t in candidates:
            q, k = {"element_to_target": (e, t), "target_to_element": (t, e)}.get(direction, (max(e, t), min(e, t)))
            if not causal or k <= q:
                values.append(weights[layer, head, q, k])
        if values:
            found[layer, head] = max(values)
    return found


@pytest.mark.parametrize(
    ("direction", "pairing", "causal"), itertools.product(DIRECTIONS, ["product", "zip"], [False, True])
)
def test_the_score_is_the_loop_over_pieces(direction, pairing, causal):
    weights = maps(2, 3, 9, 9, causal=causal)
    before = weights.copy()
    options = {"direction": direction, "pairing": pairing, "causal": causal}
    found = relation_score(weights, LINKS, **options)
    np.testing.assert_array_equal(found, oracle(weights, LINKS, direction, pairing, causal))
    np.testing.assert_array_equal(relation_score(torch.from_numpy(weights), LINKS, **options).numpy(), found)
    np.testing.assert_array_equal(weights, before)


def test_the_papers_zip_looks_at_one_pair_when_the_target_is_one_piece():
    assert pairs_of((((1, 2, 3), (6,)),), pairing="zip") == ((1, 6),)
    assert pairs_of((((1, 2, 3), (6,)),)) == ((1, 6), (2, 6), (3, 6))


def test_an_earlier_query_sees_no_later_key_in_a_causal_model():
    weights = maps(1, 2, 9, 9, causal=True)
    assert np.isnan(relation_score(weights, (((1,), (5,)),), causal=True)).all()
    assert (relation_score(weights, (((1,), (5,)),), direction="target_to_element", causal=True) > 0).all()
    assert np.isnan(relation_score(weights, ())).all()


def test_unknown_directions_are_refused():
    with pytest.raises(InputError, match="sideways"):
        pairs_of(LINKS, direction="sideways")


def test_without_the_sink_rows_sum_to_one_again():
    weights = maps(2, 2, 6, 6, causal=True)
    found = without_key(weights, 0)
    assert (found[..., 1:, 0] == 0).all()
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(found[..., 0, :], weights[..., 0, :])
    np.testing.assert_allclose(found[..., 3, 2], weights[..., 3, 2] / (1 - weights[..., 3, 0]), rtol=1e-5)
    np.testing.assert_allclose(without_key(torch.from_numpy(weights), 0).numpy(), found, rtol=1e-6)


def test_a_strong_sink_leaves_what_the_other_keys_have():
    """1 less the sink's weight is mostly rounding in float32: it was 2e-3 off."""
    weights = np.full((1, 4, 4), 1e-5, dtype=np.float32)
    weights[0, :, 1] = 3e-5
    weights[..., 0] = 1 - weights[..., 1:].sum(-1)
    found = without_key(weights, 0)
    np.testing.assert_allclose(found[0, :, 1:], np.tile([0.6, 0.2, 0.2], (4, 1)), rtol=1e-6)
    np.testing.assert_allclose(without_key(torch.from_numpy(weights), 0).numpy(), found, rtol=1e-6)


@given(st.integers(0, 3), st.integers(4, 7), st.integers(9, 14))
def test_moved_links_keep_distances_and_piece_counts_and_stay_inside(first, second, length):
    links = (((first + 1, first + 2), (second + 1,)),)
    found = shifted(links, range(1, length))
    assert found[0] == links
    assert len(set(found)) == len(found)
    for ((element, target),) in found:
        assert element[1] - element[0] == 1
        assert target[0] - element[0] == second - first
        assert min(element + target) >= 1
        assert max(element + target) < length
    used = max(second + 1, first + 2)
    assert len(found) == 1 + (min(first, second)) + max(0, length - 1 - used)


def test_links_do_not_move_over_positions_that_are_no_pieces_of_the_text():
    assert shifted((((1,), (3,)),), [1, 2, 3, 6]) == ((((1,), (3,)),),)
    assert shifted((), [1, 2]) == ((),)


def test_links_change_places_only_between_inputs_of_equal_length():
    lengths = [5] * 90 + [7] * 3 + [9]
    groups = exchange_groups(lengths, most=40)
    assert sorted(itertools.chain(*groups)) == list(range(94))
    assert all(len({lengths[k] for k in group}) == 1 and len(group) <= 40 for group in groups)
    assert exchange_groups(lengths, seed=1) != groups


@pytest.mark.parametrize("split", [1, 3])
def test_scores_of_batches_are_those_of_single_inputs(split):
    weights = [maps(2, 3, 8, 8, seed=k) for k in range(4)]
    groups = {k: {"own": pairs_of(LINKS), "other": ((0, k + 1),), "none": ()} for k in range(4)}
    placements = [Placement(k, name, pairs) for k, one in groups.items() for name, pairs in one.items()]
    placements += [Placement(k, "mean", ((0, 1), (2, 3)), average=True) for k in range(4)]
    observers = [
        PairScores([p for p in placements if p.input in part], layers=2, heads=3)
        for part in (range(split), range(split, 4))
    ]
    for observer, part in zip(observers, (list(range(split)), list(range(split, 4))), strict=True):
        for layer in range(2):
            batch = [weights[k][layer] for k in (*part, 0)]
            observer.update(layer, torch.from_numpy(np.stack(batch)), [*part, 9])  # of input 9 nothing is asked
    found = observers[0].result() | observers[1].result()
    for k in range(4):
        np.testing.assert_array_equal(found[k, "own"], relation_score(weights[k], LINKS))
        np.testing.assert_array_equal(found[k, "other"], weights[k][:, :, 0, k + 1])
        np.testing.assert_allclose(found[k, "mean"], (weights[k][:, :, 0, 1] + weights[k][:, :, 2, 3]) / 2, rtol=1e-6)
        assert np.isnan(found[k, "none"]).all()


def test_fixed_heads_score_what_their_maps_would():
    length = 9
    options = {"direction": "target_to_element", "pairing": "product", "causal": False}
    fixed = {
        "previous": np.eye(length, k=-1),
        "next": np.eye(length, k=1),
        "first": np.eye(length)[[0] * length],
        "uniform": np.full((length, length), 1 / length),
    }
    for links in (LINKS, (((4,), (5,)),), (((0,), (5,)),)):
        found = fixed_scores(links, length, **options)
        for name, weights in fixed.items():
            assert found[name] == pytest.approx(relation_score(weights[None, None], links, **options)[0, 0])


def test_where_no_pair_can_be_seen_no_head_has_a_score():
    found = fixed_scores((((2,), (5,)),), 9, direction="element_to_target", pairing="product", causal=True)
    assert list(found) == ["previous", "next", "first", "uniform"]
    assert np.isnan(list(found.values())).all()


def test_habits_are_read_from_the_same_queries():
    found = habits([(2, 5), (2, 6), (8, 5)], 9, causal=False)
    assert found == {"previous": ((2, 1), (8, 7)), "next": ((2, 3),), "first": ((2, 0), (8, 0))}
    assert habits([(2, 1)], 9, causal=True)["next"] == ()
