"""Contrasts of links: equal to a loop, 0 for heads of one habit, above 0 for heads that follow the link."""

import numpy as np
import pytest
import torch

from core.scoring.link_contrasts import (
    DRAWS,
    TRIED,
    Hexagons,
    LinkEnds,
    MeanContrasts,
    Pieces,
    contrasts,
    hexagons,
    hexagons_of_inputs,
)

WORDS = [(0,), (1, 2), (3,), (4,), (5, 6, 7), (8,), (9,), (10,), (11,)]
SENTENCE = [-1, 0, 0, 0, 0, 0, 0, 0, -1]
LENGTH = 12
LINKS = [((5, 6, 7), (3,)), ((8,), (1, 2))]  # words 4 to 2, and 5 to 1


def _linked():
    linked = np.zeros((len(LINKS), len(WORDS), len(WORDS)), dtype=bool)
    linked[:, 4, 2] = linked[:, 5, 1] = True
    return linked


def _drawn(*, causal=False, seed=0):
    return hexagons(Pieces.of(WORDS, SENTENCE, LENGTH), LINKS, _linked(), causal=causal, seed=[seed])


def _softmax(scores):
    return torch.softmax(torch.as_tensor(scores, dtype=torch.float64), -1)[None, None]


@pytest.mark.parametrize("causal", [False, True])
def test_every_query_key_and_distance_comes_once_with_either_sign(causal):
    drawn, owner = _drawn(causal=causal), {k: word for word, some in enumerate(WORDS) for k in some}
    assert drawn.fits.sum() >= DRAWS
    for link, draw in np.argwhere(drawn.fits):
        (a, q1, q2), (b, k1, k2) = drawn.queries[link, draw].tolist(), drawn.keys[link, draw].tolist()
        plus, minus = [(a, b), (q1, k1), (q2, k2)], [(a, k1), (q1, k2), (q2, b)]
        for of in (lambda cell: cell[0], lambda cell: cell[1], lambda cell: cell[1] - cell[0]):
            assert sorted(map(of, plus)) == sorted(map(of, minus))
        assert (owner[a], owner[b]) == ((4, 2), (5, 1))[link]
        assert len({a, q1, q2}) == len({b, k1, k2}) == 3
        for query, key in (*plus, *minus):
            assert SENTENCE[owner[query]] == SENTENCE[owner[key]] == 0
            assert owner[query] != owner[key]
            assert key < query or not causal
            assert (query, key) == (a, b) or (owner[query], owner[key]) not in ((4, 2), (5, 1))


def test_equal_to_a_loop():
    weights, drawn = torch.rand(1, 2, LENGTH, LENGTH, dtype=torch.float64), _drawn()
    found = contrasts(weights, np.array([0, 0]), drawn)
    for link in range(2):
        for head in range(2):
            values = []
            for draw in np.flatnonzero(drawn.fits[link]):
                (a, q1, q2), (b, k1, k2) = drawn.queries[link, draw], drawn.keys[link, draw]
                ln = np.log(weights[0, head].numpy())
                values.append(ln[a, b] + ln[q1, k1] + ln[q2, k2] - ln[a, k1] - ln[q1, k2] - ln[q2, b])
            assert found[link, head] == pytest.approx(np.mean(values), abs=1e-6)  # weights are read as float32


@pytest.mark.parametrize("habit", ["uniform", "distance", "kind of word", "query", "all of them"])
def test_heads_of_one_habit_have_exactly_nothing(habit):
    chance = np.random.default_rng(1)
    parts = {
        "uniform": np.zeros((LENGTH, LENGTH)),
        "distance": chance.normal(size=2 * LENGTH)[np.arange(LENGTH) - np.arange(LENGTH)[:, None] + LENGTH],
        "kind of word": np.tile(chance.normal(size=LENGTH), (LENGTH, 1)),
        "query": np.tile(chance.normal(size=(LENGTH, 1)), (1, LENGTH)),
    }
    scores = sum(parts.values()) if habit == "all of them" else parts[habit]
    for steepness in (2, 15):  # of 15, most weights are below a millionth
        assert not contrasts(_softmax(steepness * scores), np.array([0, 0]), _drawn()).any()


def test_a_draw_with_a_weight_of_nothing_is_left_out():
    """A window has weights of exactly 0, which have no logarithm."""
    weights, drawn = torch.rand(1, 1, LENGTH, LENGTH, dtype=torch.float64) + 0.1, _drawn()
    cells, ln = drawn.cells, np.log(weights[0, 0].numpy())
    gone = (cells.queries[0, 4], cells.keys[0, 4])
    left = [
        ln[queries, keys] @ np.repeat([1.0, -1.0], 3)
        for link, queries, keys in zip(cells.link, cells.queries, cells.keys, strict=True)
        if link == cells.link[0] and gone not in set(zip(queries, keys, strict=True))
    ]
    weights[0, 0][gone] = 0
    found = contrasts(weights, np.array([0, 0]), drawn)[cells.link[0], 0]
    assert left
    assert found == pytest.approx(np.mean(left), abs=1e-6)


def test_a_head_that_follows_the_link_has_what_was_planted():
    scores = np.zeros((LENGTH, LENGTH))
    scores[np.ix_(LINKS[0][0], LINKS[0][1])] = 1.5
    found = contrasts(_softmax(scores), np.array([0, 0]), _drawn())
    np.testing.assert_allclose(found[:, 0], [1.5, 0.0], atol=1e-9)


def test_two_words_leave_nothing_to_compare():
    """An input of two tokens, or of two words, has no draw that fits, and so no contrast."""
    pieces = Pieces.of([(0,), (1,)], [0, 0], 2)
    drawn = hexagons(pieces, [((0,), (1,))], np.zeros((1, 2, 2), dtype=bool), causal=False, seed=[0])
    assert not drawn.fits.any()
    assert not contrasts(torch.full((1, 1, 2, 2), 0.5), np.array([0]), drawn).any()


def test_no_links():
    none = hexagons(Pieces.of([(0,)], [0], 1), [], np.zeros((0, 1, 1), dtype=bool), causal=False, seed=[0])
    assert isinstance(none, Hexagons)
    assert none.fits.shape == (0, DRAWS)


def test_an_entry_has_the_mean_of_its_links_in_whatever_batch():
    taken = _linked().any(0)
    entries = [LinkEnds(number, Pieces.of(WORDS, SENTENCE, LENGTH), tuple(LINKS), taken) for number in (3, 5)]
    entries += [LinkEnds(5, Pieces.of(WORDS[:2], SENTENCE[:2], LENGTH), (((1,), (0,)),), np.zeros((2, 2), dtype=bool))]
    maps = torch.rand(2, 2, LENGTH, LENGTH, dtype=torch.float64).softmax(-1)
    observer = MeanContrasts(entries, layers=2, heads=2, causal=False, seed=7)
    for layer in range(2):
        observer.update(layer, maps, [5, 3])
    found = observer.result().reshape(3, 2, 2)
    for entry, (number, row) in enumerate(((3, 1), (5, 0))):
        drawn = hexagons(entries[entry].pieces, LINKS, np.stack([taken, taken]), causal=False, seed=[7, number])
        expected = contrasts(maps[row : row + 1], np.array([0, 0]), drawn)[drawn.fits.any(1)].mean(0)
        np.testing.assert_allclose(found[entry], [expected, expected], atol=1e-12)
    assert np.isnan(found[2]).all()


def test_draws_are_those_of_an_input_alone_and_of_numpy():
    """Whatever inputs are drawn together; and in the order in which numpy would choose one link after another."""
    pieces = [Pieces.of(WORDS, SENTENCE, LENGTH), Pieces.of(WORDS, [-1, 0, 0, 0, 0, 1, 1, 1, -1], LENGTH)]
    links, linked = [LINKS, LINKS[1:]], np.zeros((3, len(WORDS), len(WORDS)), dtype=bool)

    def never(link, query, key):
        return linked[link, query, key]

    found = hexagons_of_inputs(pieces, links, never, causal=False, seeds=[[4], [9]])
    alone = [
        hexagons(*parts, linked, causal=False, seed=[seed]) for *parts, seed in zip(pieces, links, (4, 9), strict=True)
    ]
    for name in ("queries", "keys", "fits"):
        assert np.array_equal(getattr(found, name), np.concatenate([getattr(one, name) for one in alone]))
    rng, ordinary = np.random.default_rng([4]), [k for k, word in enumerate(pieces[0].word) if 0 < word < 8]
    ends = [[rng.choice(side, TRIED) for side in link] for link in LINKS]
    others = [rng.choice(ordinary, len(LINKS) * TRIED).reshape(len(LINKS), TRIED) for _ in range(2)]
    for link, (start, key) in enumerate(ends):
        drawn = [(int(a), int(q1), int(q2)) for a, q1, q2 in zip(start, others[0][link], others[1][link], strict=True)]
        chosen = [tuple(queries) for queries in found.queries[link][found.fits[link]].tolist()]
        places = [drawn.index(one) for one in chosen]
        assert places == sorted(places)  # the first ones that fit
        assert found.keys[link][found.fits[link]][:, 0].tolist() == key[places].tolist()


def test_links_of_two_sentences_of_one_input_are_each_compared_within_their_own():
    pieces = Pieces.of([(k,) for k in range(12)], [0] * 6 + [1] * 6, 12)
    links = [((1,), (4,)), ((9,), (7,))]
    drawn = hexagons(pieces, links, np.zeros((2, 12, 12), dtype=bool), causal=False, seed=[2])
    for link, fits in enumerate(drawn.fits):
        queries, keys = drawn.queries[link][fits], drawn.keys[link][fits]
        assert len(np.unique(queries)) > 3
        assert (pieces.sentence[[*queries, *keys]] == link).all()
