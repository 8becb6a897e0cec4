"""Statistics of a decoder's maps against slow loops written from their names."""

import numpy as np
import pytest

from core.patterns.causal_shapes import NAMES, causal_shapes
from core.patterns.shapes import OF_ALL, shapes

LENGTH = 12


def causal_maps(count, length=LENGTH, seed=0):
    rng = np.random.default_rng(seed)
    drawn = np.tril(rng.dirichlet(np.full(length, 0.4), (count, length)) + 1e-3)
    return drawn / drawn.sum(2, keepdims=True)


def named(weights):
    return [dict(zip(NAMES, row, strict=True)) for row in causal_shapes(weights)]


@pytest.fixture(scope="module")
def one():
    (weights,) = causal_maps(1)
    (found,) = named(weights[None])
    return weights, found


def cut_by_loops(weights):
    """Where later rows look back least, beside even rows; and the mean weight that they give to earlier keys."""
    apart = {}
    for cut in range(3, LENGTH - 2):
        back = np.mean([weights[query, :cut].sum() for query in range(cut, LENGTH)])
        apart[cut] = (np.mean([cut / (query + 1) for query in range(cut, LENGTH)]) - back, back)
    return max(apart, key=lambda cut: apart[cut][0]), apart


def test_the_second_sentence_begins_where_rows_look_back_least(one):
    weights, found = one
    cut, apart = cut_by_loops(weights)
    assert found["causal: second sentence begins"] == pytest.approx(cut / LENGTH)
    assert found["causal: sentences apart"] == pytest.approx(apart[cut][0])
    assert found["causal: looks back to the first"] == pytest.approx(apart[cut][1])
    assert found["causal: looks back, least"] == pytest.approx(min(back for _, back in apart.values()))


def followed(weights, cut, mark):
    first = max(np.mean([weights[query, key] >= mark for query in range(1, cut)]) for key in range(cut))
    second = max(np.mean([weights[query, key] >= mark for query in range(cut, LENGTH)]) for key in range(cut, LENGTH))
    return first, second


@pytest.mark.parametrize("mark", [0.05, 0.1, 0.2, 0.4])
def test_columns_of_each_sentence_by_loops(one, mark):
    weights, found = one
    cut, apart = cut_by_loops(weights)
    first, second = followed(weights, cut, mark)
    assert found[f"causal: column above {mark}, first sentence"] == pytest.approx(first)
    assert found[f"causal: column above {mark}, second sentence"] == pytest.approx(second)
    assert found[f"causal: column above {mark}, weaker sentence"] == pytest.approx(min(first, second))
    weaker = [min(followed(weights, other, mark)) for other in apart]
    assert found[f"causal: column above {mark}, weaker at any cut"] == pytest.approx(max(weaker))
    assert found[f"causal: column above {mark}, weaker, mean cut"] == pytest.approx(np.mean(weaker))


def test_strongest_columns_and_steps_back_by_loops(one):
    weights, found = one
    cut, _ = cut_by_loops(weights)
    places = [(query, key) for query in range(1, LENGTH) for key in range(1, LENGTH)]
    within = [np.mean([weights[query, key] for query in range(cut, LENGTH)]) for key in range(LENGTH)]
    assert found["causal: column in the second"] == pytest.approx(max(within[cut:]))
    assert found["causal: column from second to first"] == pytest.approx(max(within[:cut]))
    assert found["causal: first key in the second"] == pytest.approx(within[0])
    assert found["causal: first key"] == pytest.approx(np.mean(weights[1:, 0]))
    mass = sum(weights[place] for place in places)
    steps = sum(weights[query, key] * min(max(query - key, 0), 10) for query, key in places)
    assert found["causal: steps back"] == pytest.approx(steps / mass)
    spots = [(query, key) for query, key in places if weights[query, key] >= 0.2]
    assert found["causal: spots a row above 0.2"] == pytest.approx(len(spots) / LENGTH)
    assert found["causal: spots within 2 above 0.2"] == pytest.approx(np.mean([q - k <= 2 for q, k in spots]))
    begun = [(q, k) for q, k in spots if (q - 1, k) not in spots]
    assert found["causal: spots in one go above 0.2"] == pytest.approx(len(spots) / len(begun))


def test_what_looks_ahead_has_none_and_maps_keep_their_order():
    square = np.full((1, LENGTH, LENGTH), 1 / LENGTH)
    causal = causal_maps(2)
    together = causal_shapes(np.concatenate([causal[:1], square, causal[1:]]))
    assert not together[1].any()
    assert np.allclose(together[[0, 2]], causal_shapes(causal))
    assert np.array_equal(shapes([causal[0].astype(np.float32)])[:, OF_ALL:] != 0, together[:1] != 0)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 40])
def test_every_statistic_is_finite_at_every_length(length):
    assert np.isfinite(causal_shapes(causal_maps(3, length))).all()
    assert np.isfinite(causal_shapes(np.eye(length)[None])).all()
