"""Groups of heads against average linkage written as loops; controls have as many heads of each layer, and others."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.attention import Head, all_heads
from core.errors import InputError
from core.scoring.distances import Group, groups_of, matched


def symmetric(seed, heads):
    found = np.triu(np.random.default_rng(seed).random((heads, heads)), 1)
    return found + found.T


def by_loops(distances, within):
    """Join the two clusters with the least mean distance between their heads, until it exceeds the limit."""
    heads = len(distances)
    limit = within * np.mean([distances[a, b] for a, b in itertools.combinations(range(heads), 2)])
    clusters = [[k] for k in range(heads)]
    while len(clusters) > 1:
        means = {
            (a, b): np.mean([distances[x, y] for x in clusters[a] for y in clusters[b]])
            for a, b in itertools.combinations(range(len(clusters)), 2)
        }
        (a, b), least = min(means.items(), key=lambda item: item[1])
        if least > limit:
            break
        clusters[a] += clusters.pop(b)
    return {tuple(sorted(some)) for some in clusters if len(some) > 1}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.2, 0.5, 0.9]))
def test_clusters_are_those_of_average_linkage(seed, within):
    distances = symmetric(seed, 9)
    found = groups_of(distances, all_heads(3, 3), within=within)
    assert {tuple(head.layer * 3 + head.head for head in group.heads) for group in found} == by_loops(distances, within)
    assert [group.distance for group in found] == sorted(group.distance for group in found)


def test_a_group_knows_its_middle_and_its_mean_distance():
    distances = np.full((6, 6), 1.0)
    np.fill_diagonal(distances, 0)
    for a, b, d in ((0, 1, 0.1), (1, 5, 0.1), (0, 5, 0.16)):
        distances[a, b] = distances[b, a] = d
    (group,) = groups_of(distances, all_heads(2, 3), within=0.5)
    assert group.heads == (Head(0, 0), Head(0, 1), Head(1, 2))
    assert group.middle == Head(0, 1)
    assert group.distance == pytest.approx(0.12)


def test_heads_that_are_all_alike_are_no_groups_and_a_share_is_a_share():
    assert groups_of(np.zeros((4, 4)), all_heads(2, 2), within=0.5) == []
    for wrong in (0.0, 1.0, -1.0, 2.0):
        with pytest.raises(InputError, match="must be above 0 and below 1"):
            groups_of(symmetric(0, 4), all_heads(2, 2), within=wrong)


def test_controls_have_as_many_heads_of_each_layer_and_none_of_the_group():
    group = Group((Head(0, 0), Head(0, 1), Head(2, 3)), Head(0, 0), 0.1)
    draws = matched(group, all_heads(3, 6), draws=20, seed=1)
    assert draws == matched(group, all_heads(3, 6), draws=20, seed=1)
    assert len({tuple(some) for some in draws}) > 10
    for some in draws:
        assert [head.layer for head in some] == [0, 0, 2]
        assert not set(some) & set(group.heads)


def test_controls_come_from_other_layers_where_their_own_has_too_few_heads_left():
    group = Group(tuple(Head(0, head) for head in range(3)), Head(0, 0), 0.1)
    for some in matched(group, all_heads(2, 4), draws=10, seed=0):
        assert len(set(some)) == 3
        assert Head(0, 3) in some
        assert not set(some) & set(group.heads)
    whole = Group(tuple(Head(layer, head) for layer in range(2) for head in range(2)), Head(0, 0), 0.1)
    assert matched(whole, all_heads(2, 2), draws=1, seed=0) == []
