"""Rollout against a sum over all paths, flow against the smallest of all cuts."""

from itertools import product

import numpy as np
import pytest

from core.errors import InputError
from core.scoring.rollout import flow, rollout
from tests.scoring.maps import random_maps


def mixed(maps: np.ndarray) -> np.ndarray:
    layers, heads, length, _ = maps.shape
    edges = np.zeros((layers, length, length))
    for layer, i, j in product(range(layers), range(length), range(length)):
        edges[layer, i, j] = 0.5 * sum(maps[layer, h, i, j] for h in range(heads)) / heads + 0.5 * (i == j)
    return edges


def smallest_cut(edges: np.ndarray, output: int, source: int) -> float:
    """Over every set of nodes with the output and without the input: the capacity that leaves it, at its smallest."""
    layers, length, _ = edges.shape
    nodes = [(level, token) for level in range(layers + 1) for token in range(length)]
    start, end = (layers, output), (0, source)
    others = [node for node in nodes if node not in (start, end)]
    cuts = []
    for chosen in product([False, True], repeat=len(others)):
        inside = {start} | {node for node, taken in zip(others, chosen, strict=True) if taken}
        leaving = [
            edges[level - 1, i, j]
            for level, i in inside
            if level
            for j in range(length)
            if (level - 1, j) not in inside
        ]
        cuts.append(sum(leaving))
    return min(cuts)


@pytest.mark.parametrize("causal", [False, True])
def test_rollout_is_the_sum_over_all_paths_and_its_rows_sum_to_one(causal):
    maps = random_maps(3, 2, 4, 4, causal=causal).numpy()
    before, edges, rolled = maps.copy(), mixed(maps), rollout(maps)
    np.testing.assert_allclose(rolled.sum(-1), 1, atol=1e-12)
    for i, j in product(range(4), repeat=2):
        paths = sum(edges[2, i, a] * edges[1, a, b] * edges[0, b, j] for a in range(4) for b in range(4))
        assert rolled[2, i, j] == pytest.approx(paths)
    np.testing.assert_allclose(rolled[0], edges[0], atol=1e-12)
    np.testing.assert_array_equal(maps, before)


def test_rows_of_float32_maps_sum_to_one_after_many_layers():
    rolled = rollout(random_maps(24, 4, 9, 9).float().numpy())
    np.testing.assert_allclose(rolled.sum(-1), 1, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_flow_is_the_smallest_cut(causal):
    maps = random_maps(2, 2, 3, 3, causal=causal, seed=1).numpy()
    edges = mixed(maps)
    for output in range(3):
        expected = [smallest_cut(edges, output, source) for source in range(3)]
        np.testing.assert_allclose(flow(maps, output), expected, atol=5e-6)


def test_flow_of_the_first_layer_is_its_edges():
    maps = random_maps(2, 2, 4, 4).numpy()
    np.testing.assert_allclose(flow(maps, 2, layer=0), mixed(maps)[0, 2], atol=1e-6)


def test_a_decoders_output_gets_nothing_from_later_tokens():
    maps = random_maps(3, 2, 5, 5, causal=True).numpy()
    assert not flow(maps, 2)[3:].any()
    assert not rollout(maps)[:, 2, 3:].any()


def test_tokens_and_layers_that_are_not_there_are_refused():
    maps = random_maps(2, 2, 3, 3).numpy()
    with pytest.raises(InputError, match=r"token from 0 to 2; got layer 1 and token 3"):
        flow(maps, 3)
    with pytest.raises(InputError, match=r"layer from 0 to 1.*got layer 2"):
        flow(maps, 0, layer=2)
    with pytest.raises(InputError, match="square maps"):
        rollout(np.ones((1, 1, 2, 3)))
