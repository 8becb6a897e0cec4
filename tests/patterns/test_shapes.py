"""Length-free statistics against slow loops written from their names."""

import numpy as np
import pytest

from core.codebook.measures import measured
from core.patterns.shapes import NAMES, SENTENCE_NAMES, _quantile, sentence_shapes, shapes, statistics, two_blocks


def random_maps(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(length, 0.4), length).astype(np.float32) for length in lengths]


def named(maps):
    return [dict(zip(NAMES, row, strict=True)) for row in shapes(maps)]


def test_names_are_one_a_statistic_and_differ():
    assert len(set(NAMES)) == len(NAMES) == shapes(random_maps([7])).shape[1]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 40])
def test_every_statistic_is_finite_at_every_length(length):
    uniform = np.full((length, length), 1 / length, dtype=np.float32)
    assert np.isfinite(statistics([uniform, np.eye(length, dtype=np.float32)])).all()


def test_maps_of_all_lengths_keep_their_order_and_are_not_written_to():
    maps = random_maps([9, 20, 9, 13])
    before = [one.copy() for one in maps]
    together = statistics(maps)
    assert np.allclose(together, np.concatenate([statistics([one]) for one in maps]))
    assert all((one == kept).all() for one, kept in zip(maps, before, strict=True))


def test_columns_and_lines_by_loops():
    (one,) = random_maps([11])
    (found,) = named([one])
    columns = [sum(one[query, key] for query in range(11)) / 11 for key in range(11)]
    assert found["first column"] == pytest.approx(columns[0])
    assert found["second column"] == pytest.approx(sorted(columns)[-2])
    dark = [sum(one[query, key] > 0.2 for query in range(11)) / 11 for key in range(11)]
    assert found["rows above 0.2 in column 1"] == pytest.approx(max(dark))
    line = [one[query, query - 1] for query in range(1, 11)]
    assert found["line at -1"] == pytest.approx(np.mean(line))
    means = {k: np.mean([one[q, q + k] for q in range(11) if 0 <= q + k < 11]) for k in (-2, -1, 0, 1, 2)}
    assert found["line"] == pytest.approx(max(means.values()))
    near = [sum(one[q, k] for k in range(11) if abs(q - k) <= 2) for q in range(11)]
    assert found["rows with .3 within 2"] == pytest.approx(np.mean([mass > 0.3 for mass in near]))
    rows = [one[q] @ one[q + 1] / np.linalg.norm(one[q]) / np.linalg.norm(one[q + 1]) for q in range(10)]
    assert found["next rows alike"] == pytest.approx(np.mean(rows), abs=1e-5)
    keys = np.bincount(one.argmax(1), minlength=11)
    assert found["rows that share a largest key"] == pytest.approx(keys.max() / 11)


def test_the_codebooks_statistics_are_its_measurements_of_each_map():
    maps = random_maps([5, 11, 11, 24], seed=4)
    for one, found in zip(maps, named(maps), strict=True):
        of_one = measured(one)
        assert found["codebook: rows with .15 in it"] == pytest.approx(of_one.column.faint_rows)
        assert found["codebook: rows with .3 in it"] == pytest.approx(of_one.column.strong_rows)
        assert found["codebook: rows with .15 in one of two columns"] == pytest.approx(of_one.two_columns)
        assert found["codebook: clean columns"] == of_one.clean
        assert found["codebook: line"] == pytest.approx(of_one.line.weight)
        assert found["codebook: line's marked rows"] == pytest.approx(of_one.line.rows)
        assert found["codebook: line's weakest third"] == pytest.approx(of_one.line.weakest_third)


def test_two_blocks_by_every_cut():
    (one,) = random_maps([12])
    found = []
    for cut in range(3, 10):
        inside = sum(one[q, k] for q in range(12) for k in range(12) if (q < cut) == (k < cut)) / 12
        found.append(inside - (cut**2 + (12 - cut) ** 2) / 144)
    assert two_blocks(one[None].astype(float))[0] == pytest.approx(max(found), abs=1e-5)


def test_quantiles_are_numpys():
    values = np.sort(np.random.default_rng(0).random((3, 8, 2)), axis=1)
    for share in (0.0, 0.25, 0.5, 0.9, 1.0):
        assert np.allclose(_quantile(values, share), np.quantile(values, share, axis=1))


def test_a_line_and_a_column_say_the_same_at_every_length():
    def both(length):
        column = np.zeros((length, length), dtype=np.float32)
        column[:, 0] = 1
        return named([np.eye(length, dtype=np.float32), column])

    short, long = both(12), both(50)
    for name in ("line", "line above .4", "line, weakest third", "largest at +0", "next rows alike, shifted"):
        assert short[0][name] == pytest.approx(long[0][name]) == pytest.approx(1, abs=1e-6)
        assert long[1][name] < 0.2 or name == "next rows alike, shifted"
    for name in ("first column", "rows above 0.5 in column 1", "next rows alike"):
        assert short[1][name] == pytest.approx(long[1][name]) == pytest.approx(1, abs=1e-6)


def test_a_line_beside_a_strong_column_shows_in_what_is_left():
    length = 24
    weights = 0.25 * np.eye(length, k=-1)
    weights[:, 0] += 1 - weights.sum(1)
    (found,) = named([weights.astype(np.float32)])
    assert found["line"] == pytest.approx(0.28, abs=0.05)
    assert found["left: line"] > 0.7
    assert found["left: next rows alike, shifted"] > 0.8


def test_darkness_and_evenness_by_loops():
    (weights,) = random_maps([11], seed=3)
    (measured,) = named([weights])
    places = [(query, key) for query in range(11) for key in range(11)]
    assert measured["dark places a row"] == pytest.approx(sum(weights[place] > 0.1 for place in places) / 11)
    assert measured["very dark places a row"] == pytest.approx(sum(weights[place] > 0.3 for place in places) / 11)
    uniform = sum((float(weights[place]) - 1 / 11) ** 2 for place in places) / 11
    columns = sum((float(weights[place]) - float(weights[:, place[1]].mean())) ** 2 for place in places) / 11
    assert measured["spread from uniform"] == pytest.approx(uniform, rel=1e-4)
    assert measured["rows' spread"] == pytest.approx(columns, rel=1e-4)
    assert measured["rows' spread to that from uniform"] == pytest.approx(columns / (uniform + 1e-3), rel=1e-4)
    inner = weights.astype(np.float64).copy()
    inner[:, [0, -1]] = 0
    inner /= inner.sum(1, keepdims=True) + 0.05
    assert measured["left: two blocks"] == pytest.approx(two_blocks(inner[None])[0], rel=1e-5)


def test_statistics_of_sentences_by_loops():
    maps = random_maps([5, 9, 9, 16], seed=5)
    for weights, found in zip(maps, sentence_shapes(maps), strict=True):
        length = len(weights)
        gains = {
            cut: sum(weights[q, k] for q in range(length) for k in range(length) if (q < cut) == (k < cut))
            - (cut**2 + (length - cut) ** 2) / length
            for cut in range(3, length - 2)
        }
        cut = max(gains, key=gains.__getitem__, default=length)
        both = []
        for of in [range(cut), range(cut, length)] if gains else [range(length)] * 2:
            rows = weights[list(of)].astype(np.float64)
            own, often = rows[:, list(of)], (rows >= 0.15).mean(0)
            column = rows[:, (often + rows.mean(0)).argmax()]
            both.append([
                *np.sort(often)[:-3:-1], (column >= 0.3).mean(), *np.sort(rows.mean(0))[:-3:-1],
                column.min(), np.quantile(column, 0.25), own.sum(1).mean(),
                -(rows * np.log(np.clip(rows, 1e-12, None))).sum(1).mean() / np.log(length),
                max((np.diagonal(own, offset) >= 0.1).mean() for offset in (-1, 0, 1)), (own > 0.1).sum(1).mean(),
            ])  # fmt: skip
        np.testing.assert_allclose(found, np.concatenate([np.min(both, axis=0), np.max(both, axis=0)]), atol=1e-6)


def test_the_border_of_two_sentences_is_found():
    weights = np.kron(np.eye(2), np.full((6, 6), 1 / 6)).astype(np.float32)
    found = dict(zip(SENTENCE_NAMES, sentence_shapes([weights])[0], strict=True))
    assert found["least of the sentences: mass within the sentence"] == pytest.approx(1, abs=1e-6)
