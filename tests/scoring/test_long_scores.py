"""Scores of long inputs from sums over rows, and of uniform attention, against loops over whole maps."""

import numpy as np
import pytest

from core.map_sums import MapSums, keys_as_values
from core.scoring.heads import SpecialPositions, special_keys
from core.scoring.registry import long_even_scores, long_scores

AT = SpecialPositions(1, (3, 6), 0)
NOTHING = np.zeros((0,))
KINDS = [  # causal, window of the second layer, sink
    (False, None, False),
    (False, 3, False),
    (False, 4, True),
    (True, None, False),
    (True, None, True),
    (True, 3, False),
    (True, 2, True),
]


def seen(length, window, causal):
    """Whether a query [row] sees a key [column]."""
    gap = np.arange(length)[:, None] - np.arange(length)
    side = length if window is None else (window - 1 if causal else window // 2)
    return (gap >= 0) & (gap <= side) if causal else np.abs(gap) <= side


def sums_of(maps, at):
    """The sums of one layer's maps [head, query, key] that scores are read from."""
    heads, length, _ = maps.shape
    offsets = np.full((heads, 3, length), np.nan)
    for number, offset in enumerate((-1, 0, 1)):
        for query in range(max(0, -offset), min(length, length - offset)):
            offsets[:, number, query] = maps[:, query, query + offset]
    entropies = -(maps * np.log(np.maximum(maps, 1e-30))).sum(-1)
    values = maps @ keys_as_values(special_keys(at), length)
    return MapSums(entropies, NOTHING, NOTHING, offsets, values, NOTHING, NOTHING)


def by_hand(weights, keys, at, causal):
    """Scores of one map; keys: how many each query sees."""
    length = len(weights)
    several = [q for q in range(length) if keys[q] > 1]
    entropies = [-sum(w * np.log(w) for w in weights[q] if w > 0) / np.log(keys[q]) for q in several]
    after = [q for q in range(length) if q > 0 or not causal]  # the first query of a decoder sees itself alone
    separated = [q for q in after if q >= min(at.separators) or not causal] if at.separators else []
    found = {
        "normalised entropy": entropies,
        "previous": [weights[q, q - 1] for q in range(1, length)],
        "next": [] if causal else [weights[q, q + 1] for q in range(length - 1)],
        "first": [weights[q, at.first] for q in after if q >= at.first or not causal],
        "separator": [sum(weights[q, k] for k in at.separators) for q in separated],
    }
    return {name: np.mean(values) if values else np.nan for name, values in found.items()}


@pytest.mark.parametrize(("causal", "window", "sink"), KINDS)
def test_scores_of_sums_are_those_of_whole_maps(causal, window, sink):
    windows = (None, window) if window else ()
    allowed = np.stack([seen(9, None, causal), seen(9, window, causal)])[:, None]
    raw = np.random.default_rng(0).random((2, 3, 9, 9)) * allowed
    maps = raw / (raw.sum(-1, keepdims=True) + 0.1 * sink)
    found = long_scores([sums_of(layer, AT) for layer in maps], AT, windows, causal=causal, sink=sink)
    for layer, head in np.ndindex(2, 3):
        keys = allowed[layer, 0].sum(-1) + sink
        for name, value in by_hand(maps[layer, head], keys, AT, causal).items():
            assert found[name][layer, head] == pytest.approx(value, nan_ok=True), name


@pytest.mark.parametrize(("causal", "window", "sink"), KINDS)
@pytest.mark.parametrize("at", [AT, SpecialPositions(0, (), 0), SpecialPositions(8, (8,), 0)])
def test_scores_of_uniform_attention_are_those_of_its_maps(causal, window, sink, at):
    windows = (None, window) if window else ()
    found = long_even_scores(9, at, windows, causal=causal, sink=sink)
    for layer, own in enumerate(windows or (None,)):
        allowed = seen(9, own, causal)
        keys = allowed.sum(-1) + sink
        expected = by_hand(allowed / keys[:, None], keys, at, causal) | {"normalised entropy": 1.0}
        assert {name: values[layer] for name, values in found.items()} == pytest.approx(expected, nan_ok=True)
        assert {len(values) for values in found.values()} == {len(windows) or 1}


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_of_one_key_has_no_neighbours_and_one_token_has_none_to_see(causal):
    narrow = long_even_scores(9, AT, (1,), causal=causal)
    assert narrow["previous"] == 0
    assert np.isnan(narrow["next"]) if causal else narrow["next"] == 0
    alone = long_even_scores(1, SpecialPositions(0, (0,), 0), (), causal=causal)
    assert np.isnan([alone["previous"], alone["next"]]).all()
    assert np.isnan(alone["first"]) if causal else alone["first"] == 1
