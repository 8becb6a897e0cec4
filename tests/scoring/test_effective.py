"""Effective attention: the same output, nothing in the null space, rows of causal models stay in their past."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space

from core.scoring import effective
from core.scoring.effective import correlation, effective_attention, mass_by_type
from tests.scoring.maps import random_maps


def _case(length, dim, causal=False, seed=0):
    maps = random_maps(length, length, causal=causal, seed=seed).numpy()
    return maps, np.random.default_rng(seed + 1).normal(size=(length, dim))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "dim"), [(5, 8), (20, 8), (9, 9), (1, 4)])
def test_the_output_is_the_same(length, dim, causal):
    maps, values = _case(length, dim, causal)
    before = maps.copy(), values.copy()
    left = effective_attention(maps, values, causal=causal)
    np.testing.assert_allclose(left @ values, maps @ values, atol=1e-10)
    np.testing.assert_array_equal(maps, before[0])
    np.testing.assert_array_equal(values, before[1])


def test_each_row_loses_its_part_in_the_left_null_space():
    """The definition, written with scipy's null space, row by row."""
    for causal in (False, True):
        maps, values = _case(14, 5, causal)
        left = effective_attention(maps, values, causal=causal)
        for query in range(14):
            seen = query + 1 if causal else 14
            basis = null_space(values[:seen].T)
            row = maps[query, :seen]
            np.testing.assert_allclose(left[query, :seen], row - basis @ (basis.T @ row), atol=1e-9)
            assert not left[query, seen:].any()


def test_few_tokens_lose_nothing():
    maps, values = _case(8, 8)
    np.testing.assert_allclose(effective_attention(maps, values), maps, atol=1e-9)


def test_equal_values_lose_the_difference_of_their_weights():
    """Two tokens with one value are interchangeable: only their mean weight has an effect, also in causal maps."""
    maps, values = _case(4, 6)
    values[2] = values[1]
    left = effective_attention(maps, values)
    np.testing.assert_allclose(left[:, 1], (maps[:, 1] + maps[:, 2]) / 2, atol=1e-9)
    causal, _ = _case(4, 6, causal=True)
    left = effective_attention(causal, values, causal=True)
    np.testing.assert_allclose(left[3, 2], (causal[3, 1] + causal[3, 2]) / 2, atol=1e-9)
    np.testing.assert_allclose(left @ values, causal @ values, atol=1e-9)


def test_long_inputs_correlate_as_the_literature_says():
    """Random maps of 128 tokens and 64 dimensions: r about 0.6, rows sum to less than 1, some weights negative."""
    maps, values = random_maps(128, 128).numpy(), np.random.default_rng(0).normal(size=(128, 64))
    left = effective_attention(maps, values)
    assert 0.4 < correlation(maps, left) < 0.85
    assert left.sum(1).mean() < 0.9
    assert left.min() < 0


@given(st.integers(1, 12), st.integers(1, 6), st.booleans(), st.integers(0, 50))
def test_projecting_twice_changes_nothing_more(length, dim, causal, seed):
    maps, values = _case(length, dim, causal, seed)
    once = effective_attention(maps, values, causal=causal)
    np.testing.assert_allclose(effective_attention(once, values, causal=causal), once, atol=1e-8)


def test_correlation_is_pearsons_of_the_weights_that_are_seen():
    raw, left = random_maps(4, 4).numpy(), random_maps(4, 4, seed=1).numpy()
    assert correlation(raw, left) == pytest.approx(np.corrcoef(raw.ravel(), left.ravel())[0, 1])
    assert np.isnan(correlation(np.ones((1, 1)), np.ones((1, 1))))


def test_mass_by_type_equals_a_loop():
    maps = random_maps(5, 5).numpy()
    found = mass_by_type(maps, {"separators": (2, 4), "none": (), "rest": (0, 1, 3)})
    assert found["separators"] == pytest.approx(sum(maps[i, j] for i in range(5) for j in (2, 4)) / 5)
    assert found["separators"] + found["rest"] == pytest.approx(1)
    assert np.isnan(found["none"])


@pytest.mark.parametrize("length", [9, 20])
def test_long_causal_rows_are_projected_together_and_exactly(length):
    """All rows past the dimension by one solution of their normal equations: as lstsq does it row by row."""
    maps, values = _case(length, 8, causal=True)
    queries = np.arange(8, length)
    projected, exact = effective._projected(maps[8:], values, queries)
    assert exact.tolist() == [True] * len(queries)
    for row, query in zip(projected, queries, strict=True):
        coefficients = np.linalg.lstsq(values[: query + 1], maps[query, : query + 1], rcond=None)[0]
        np.testing.assert_allclose(row[: query + 1], values[: query + 1] @ coefficients, atol=1e-9)
        assert not row[query + 1 :].any()
    np.testing.assert_array_equal(effective_attention(maps, values, causal=True)[:8], maps[:8])
    assert not effective_attention(maps[:3, :3], np.zeros((3, 8)), causal=True).any()


def test_rows_that_the_joint_solution_misses_are_said():
    maps, values = _case(12, 4, causal=True)
    values[:, 3] = values[:, 2]  # no inverse, or a useless one
    _, exact = effective._projected(maps[4:], values, np.arange(4, 12))
    assert not exact.any()
    assert len(exact) == 8
    left = effective_attention(maps, values, causal=True)
    np.testing.assert_allclose(left @ values, maps @ values, atol=1e-10)


def test_a_causal_correlation_looks_at_seen_keys_only():
    maps, values = _case(9, 3, causal=True)
    left = effective_attention(maps, values, causal=True)
    pairs = [(maps[i, j], left[i, j]) for i in range(9) for j in range(i + 1)]
    assert correlation(maps, left, causal=True) == pytest.approx(np.corrcoef(np.array(pairs).T)[0, 1])
    assert correlation(maps, left) != pytest.approx(correlation(maps, left, causal=True))
