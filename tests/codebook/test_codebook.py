"""The codebook's measurements, against loops over rows, and when they dispute a class."""

import numpy as np
import pytest

from core.codebook.measures import FAINT, MARK, STRONG, measured, sentences
from core.codebook.registry import dispute, explained


def with_column(length, key, weight, rows):
    """A map with `weight` on a key in the first `rows` rows, even elsewhere."""
    weights = np.full((length, length), 1 / length)
    weights[:rows] = (1 - weight) / (length - 1)
    weights[:rows, key] = weight
    return weights


def with_line(length, weight, rows=None):
    """A map with `weight` on the token itself, in the first `rows` rows or all."""
    weights = np.full((length, length), (1 - weight) / (length - 1))
    np.fill_diagonal(weights, weight)
    weights[rows:] = 1 / length if rows is not None else weights[rows:]
    return weights


def both(length):
    """Half of a column and half of a line."""
    return (with_column(length, 3, 0.9, length) + with_line(length, 0.9)) / 2


@pytest.mark.parametrize("seed", range(4))
def test_shares_of_rows_are_what_a_loop_counts(seed):
    weights = np.random.default_rng(seed).dirichlet(np.full(17, 0.1), size=17)
    before = weights.copy()
    found = measured(weights)
    key, offset = found.column.key, found.line.offset
    assert found.column.faint_rows == sum(row[key] >= FAINT for row in weights) / 17
    assert found.column.strong_rows == sum(row[key] >= STRONG for row in weights) / 17
    marks = [weights[q, q + offset] >= MARK for q in range(17) if 0 <= q + offset < 17]
    assert found.line.rows == pytest.approx(sum(marks) / len(marks))
    both = max(sum(row[key] >= FAINT or row[other] >= FAINT for row in weights) / 17 for other in range(17))
    assert found.two_columns == pytest.approx(both)
    assert found.largest == weights.max()
    assert (weights == before).all()


@pytest.mark.parametrize(
    ("weights", "name", "said"),
    [
        (with_column(12, 3, 0.2, 9), "heterogeneous", "75%"),
        (with_column(12, 3, 0.2, 7), "heterogeneous", None),
        (with_column(20, 3, 0.2, 9), "vertical", "only 45%"),
        (with_column(20, 3, 0.2, 11), "vertical", None),
        (with_line(12, 0.6), "vertical", "only 17%"),
        (both(12), "vertical", "a diagonal line has"),
        (both(12), "vertical+diagonal", None),
        (with_line(12, 0.6), "vertical+diagonal", "in only 8% of the rows"),
        (with_line(12, 0.6), "diagonal", None),
        (with_line(12, 0.6, 7), "diagonal", "one third of the diagonal line has no cell"),
        (both(12), "diagonal", "100%"),
        (np.full((16, 16), 1 / 16), "vertical", "no weight reaches 0.1"),
        (np.full((16, 16), 1 / 16), "heterogeneous", None),
    ],
)
def test_an_encoders_map_is_disputed_with_a_reason(weights, name, said):
    why = dispute("bert", name, measured(weights), sentences=2)
    assert (why is None) if said is None else said in why


def test_squares_of_a_single_sentence_are_disputed_and_other_class_sets_are_not_judged():
    found = measured(with_column(12, 3, 0.5, 12))
    assert "single sentence" in dispute("bert", "block", found, sentences=1)
    assert dispute("bert", "block", found, sentences=2) is None
    assert dispute("mine", "stripes", found, sentences=1) is None


def causal_map(length, column_rows, cut):
    """A causal map; in each sentence the first key is followed through a share of its rows."""
    weights = np.tril(np.full((length, length), 1e-3))
    for start, stop in ((0, cut), (cut, length)):
        weights[start : start + round(column_rows * (stop - start)), start] = 1.0
        weights[start + round(column_rows * (stop - start)) : stop, :] += np.tril(np.ones((length, length)))[
            start + round(column_rows * (stop - start)) : stop
        ]
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("share", "block", "overall"), [(0.9, None, "each sentence has a column"), (0.2, "no column", None)]
)
def test_a_decoders_block_needs_a_column_in_each_sentence(share, block, overall):
    found = measured(causal_map(30, share, 15), separators=[14, 29], causal=True)
    why = dispute("gpt2", "block", found, sentences=2)
    assert (why is None) if block is None else block in why
    why = dispute("gpt2", "overall", found, sentences=2)
    assert (why is None) if overall is None else overall in why


def test_an_input_has_two_sentences_where_a_separator_stands_inside():
    assert (sentences([11], 12), sentences([5, 11], 12), sentences([], 12)) == (1, 2, 1)


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_the_smallest_maps_are_measured_without_an_error(length, causal):
    weights = np.tril(np.ones((length, length)))
    found = measured(weights / weights.sum(1, keepdims=True), separators=[length - 1], causal=causal)
    assert 0 <= found.line.rows <= 1
    assert np.isfinite([found.largest, found.column.weight, found.two_columns]).all()


def test_the_measurements_stand_beside_their_thresholds():
    tokens = [f"t{k}" for k in range(12)]
    said = explained("bert", measured(with_column(12, 3, 0.5, 6)), tokens)
    assert "strongest column t3 (4): mean 0.29, 0.15 or more in 50% of the rows (Vertical from 67%)" in said
    assert "0.3 or more in 50% (next to a line from 33%)" in said
    decoder = explained("gpt2", measured(causal_map(30, 0.9, 15), separators=[14, 29], causal=True), [])
    assert "of a sentence's rows (Block from 50% in each)" in decoder
    assert explained("mine", measured(with_column(12, 3, 0.5, 6)), tokens) == ""
