"""Contrasts of features: equal to a loop, 0 for heads of one place or (for roles) kind, above 0 for the feature."""

import numpy as np
import pytest
import torch

from core.scoring.features import WAYS, Kinds, Marked, RhombusCells, contrasts_of, rhombi_of_inputs
from core.scoring.link_contrasts import cells_of, weights_at

LENGTH = 14
ORDINARY = range(1, LENGTH - 1)
KIND = np.array([-1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, -1])
TOKENS = np.zeros((2, LENGTH), dtype=bool)
TOKENS[0, [3, 6]] = True  # a kind of word, or any
TOKENS[1, [4, 9]] = True  # a role, of words of kind 0
ROLES = np.array([False, True])


def rhombi(tokens, ordinary, kinds, *, classifying, causal, seed):
    return rhombi_of_inputs([Marked(tokens, ordinary, kinds, classifying, tuple(seed))], causal=causal)[0]


def contrasts(weights, drawn):
    cells = RhombusCells.of(drawn)
    return contrasts_of(weights_at(cells_of(weights), cells.batch, cells.queries, cells.keys), cells)


def _drawn(*, causal=False, classifying=0, tokens=TOKENS, roles=ROLES):
    return rhombi(tokens, ORDINARY, Kinds(KIND, roles), classifying=classifying, causal=causal, seed=[3])


def _softmax(scores):
    return torch.softmax(torch.as_tensor(scores, dtype=torch.float64), -1)[None, None]


@pytest.mark.parametrize("causal", [False, True])
def test_cells_are_what_they_are_said_to_be(causal):
    drawn = _drawn(causal=causal, classifying=LENGTH - 1 if causal else 0)
    assert drawn.fits[0].any(axis=1).all()
    for way, feature, draw in np.argwhere(drawn.fits):
        (q, moved), (k, o, k2, o2) = drawn.queries[way, feature, draw].tolist(), drawn.keys[way, feature, draw].tolist()
        assert TOKENS[feature, k]
        assert not TOKENS[feature, [o, k2, o2]].any()
        assert moved - q == k2 - k == o2 - o != 0
        assert {k, o, k2, o2, moved} <= set(ORDINARY)
        assert q == (LENGTH - 1 if causal else 0) if WAYS[way] == "the classifying token" else q in ORDINARY
        assert max(k, o) <= q or not causal
        if ROLES[feature]:
            assert KIND[k] == KIND[o]
            assert KIND[k2] == KIND[o2]


WORDS = np.array([-1, 0, 1, 2, 3, 2, 4, 5, 6, 4, 2, 7, 8, -1])  # one noun comes again twice, another once


def test_a_head_of_the_same_word_has_nothing_where_words_are_told_and_something_where_they_are_not():
    alike = (WORDS[:, None] == WORDS) & (WORDS >= 0)
    weights = _softmax(3.0 * alike)
    found = {}
    for told in (None, WORDS):
        drawn = [
            rhombi(TOKENS, ORDINARY, Kinds(KIND, ROLES, told), classifying=0, causal=False, seed=[seed])
            for seed in range(40)
        ]
        found[told is None] = np.stack([contrasts(weights, [one])[0, 0, :, 0] for one in drawn])
    assert np.abs(found[True][np.isfinite(found[True])]).max() > 0.1
    assert np.isfinite(found[False][:, 0]).mean() > 0.9
    assert not np.nan_to_num(found[False]).any()


def test_no_query_is_the_word_of_its_keys():
    drawn = rhombi(TOKENS, ORDINARY, Kinds(KIND, ROLES, WORDS), classifying=0, causal=False, seed=[3])
    for way, feature, draw in np.argwhere(drawn.fits):
        queries, keys = drawn.queries[way, feature, draw], drawn.keys[way, feature, draw]
        for query, pair in zip(queries, (keys[:2], keys[2:]), strict=True):
            assert WORDS[query] < 0 or WORDS[query] not in WORDS[pair]


def test_equal_to_a_loop():
    weights, drawn = torch.rand(1, 2, LENGTH, LENGTH, dtype=torch.float64), _drawn()
    found = contrasts(weights, [drawn])
    for head in range(2):
        ln = weights[0, head].log().numpy()
        for way in range(2):
            for feature in range(2):
                values = []
                for draw in np.flatnonzero(drawn.fits[way, feature]):
                    (q, m), (k, o, k2, o2) = drawn.queries[way, feature, draw], drawn.keys[way, feature, draw]
                    values.append(ln[q, k] - ln[q, o] - ln[m, k2] + ln[m, o2])
                expected = pytest.approx(np.mean(values), abs=1e-6, nan_ok=True)  # cells are read in float32
                assert found[0, way, feature, head] == expected


def test_a_head_of_one_distance_has_exactly_nothing():
    offsets = np.arange(LENGTH) - np.arange(LENGTH)[:, None]
    found = contrasts(_softmax(2 * np.random.default_rng(0).normal(size=2 * LENGTH)[offsets + LENGTH]), [_drawn()])
    assert not found[0, 0].any()


def test_a_head_of_one_kind_of_word_looks_at_that_kind_and_at_no_role():
    tokens = np.stack([KIND == 0, TOKENS[1]])
    found = contrasts(_softmax(np.tile(np.where(KIND == 0, 2.0, 0.0), (LENGTH, 1))), [_drawn(tokens=tokens)])
    assert found[0, 0, 0, 0] > 0.5
    assert found[0, 0, 1, 0] == 0


def test_a_head_that_looks_at_the_role_has_what_was_planted():
    found = contrasts(_softmax(np.tile(np.where(TOKENS[1], 1.5, 0.0), (LENGTH, 1))), [_drawn()])
    assert found[0, 0, 1, 0] == pytest.approx(1.5)


def test_nothing_to_compare_is_nothing():
    """No token has the feature, or every one, or the input has two tokens."""
    for row in (np.zeros(LENGTH, dtype=bool), np.ones(LENGTH, dtype=bool)):
        drawn = _drawn(tokens=row[None], roles=np.array([False]))
        assert np.isnan(contrasts(torch.full((1, 1, LENGTH, LENGTH), 0.1), [drawn])).all()
    kinds = Kinds(np.array([-1, -1]), np.array([False]))
    none = rhombi(np.zeros((1, 2), dtype=bool), (), kinds, classifying=0, causal=False, seed=[0])
    assert np.isnan(contrasts(torch.full((1, 1, 2, 2), 0.5), [none])).all()


def test_draws_are_those_of_an_input_alone():
    """Whatever inputs are drawn together; roles and words too."""
    inputs = [
        Marked(TOKENS, ORDINARY, Kinds(KIND, ROLES, WORDS), 0, (3,)),
        Marked(np.zeros_like(TOKENS), ORDINARY, Kinds(KIND, ROLES), 0, (4,)),
        Marked(TOKENS[::-1], range(1, 9), Kinds(KIND, ROLES[::-1]), 0, (5,)),
    ]
    for own, found in zip(inputs, rhombi_of_inputs(inputs, causal=False), strict=True):
        tokens, ordinary, kinds, classifying, seed = own
        alone = rhombi(tokens, ordinary, kinds, classifying=classifying, causal=False, seed=seed)
        for name in ("queries", "keys", "fits"):
            assert np.array_equal(getattr(found, name), getattr(alone, name))
        assert found.fits.any() == tokens.any()
