"""Selection over half-samples, areas of curves, and that a race of edges keeps its promise."""

import numpy as np
import pytest
from scipy import stats

from core.errors import InputError
from core.scoring.circuits import (
    circuit_sizes,
    curve_areas,
    half_level,
    selection_probabilities,
)
from core.scoring.sequential_test import Rules, standings

MARGIN, EDGES, PAIRS, DRAWS = 1.0, 300, 100, 200


def at_the_margin(kind, generator):
    """Effects of edges whose clipped mean is the margin or, of random answers, 0."""
    shape = (EDGES, PAIRS)
    if kind == "dense":
        return generator.uniform(0.0, 2.0, shape)
    if kind == "sparse":
        return np.where(generator.random(shape) < 0.5, 2.0, 0.0)
    if kind == "skewed":  # nearly always beyond, now and then far against
        share = 0.02
        return np.where(generator.random(shape) < share, -2.0, (1 + 2 * share) / (1 - share))
    return generator.choice([-1.0, 1.0], shape) * generator.exponential(0.4, shape).clip(max=2.0)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["dense", "sparse", "skewed", "random answers"])
def test_of_200_draws_at_most_17_have_a_false_edge(kind):
    rules = Rules(MARGIN, 2.0, PAIRS, EDGES, 0.05, 32)
    false = 0
    for draw in range(DRAWS):
        exact = at_the_margin(kind, np.random.default_rng(draw))
        verdicts = set(standings(exact, rules).verdicts)
        false += "matters" in verdicts if kind == "random answers" else bool(verdicts - {"open"})
    assert false <= 17


def test_clear_edges_are_decided():
    generator, rules = np.random.default_rng(0), Rules(MARGIN, 2.0, PAIRS, EDGES, 0.05, 32)
    exact = generator.normal(0.0, 0.05, (EDGES, PAIRS))
    exact[:10] = generator.normal(3.0, 0.5, (10, PAIRS)).clip(max=2.0)
    verdicts = standings(exact, rules).verdicts
    assert verdicts[:10] == ["matters"] * 10
    assert verdicts[10:] == ["does not matter"] * (EDGES - 10)


@pytest.mark.thorough
def test_selection_counts_halves_whose_t_test_finds_a_mean():
    """Halves drawn again, tested by SciPy one at a time."""
    generator = np.random.default_rng(1)
    effects = generator.normal(0.0, 1.0, (30, 21)) * 10.0 ** np.arange(-15, 15)[:, None]
    effects[0] += 1e-15
    effects[1, 0] = np.nan  # raced out
    effects[2], effects[3] = 0, 0.1
    found = selection_probabilities(effects, 0.1, splits=20, seed=4)
    again, wanted = np.random.default_rng(4), np.zeros(30)
    for _ in range(20):
        order = again.permutation(21)
        for half in (order[:10], order[10:20]):
            wanted += [np.ptp(row[half]) > 0 and stats.ttest_1samp(row[half], 0).pvalue < 0.1 for row in effects]
    wanted[[1, 3]] = 0, 40
    assert np.allclose(found, wanted / 40)
    assert found[0] > 0.4
    assert found[3] == 1  # the same on every pair
    assert found[1] == found[2] == 0
    assert not selection_probabilities(np.zeros((5, 8)), 0.1).any()
    with pytest.raises(InputError, match="at least four"):
        selection_probabilities(effects[:, :3], 0.1)


def test_the_level_of_a_half_allows_for_one_edge_without_an_effect():
    """p edges are each stable with a chance of at most level^2 / (2 x .9 - 1)."""
    assert 2188 * half_level(2188) ** 2 / 0.8 == pytest.approx(1)
    assert half_level(10, 1.0) == pytest.approx(np.sqrt(1 / 10))
    with pytest.raises(InputError, match=r"above 0\.5"):
        half_level(100, 0.5)


def test_noise_has_no_stable_set():
    """Nor has noise whose spread differs a thousandfold between edges, of which the widest were stable before."""
    generator = np.random.default_rng(2)
    noise = generator.normal(0.0, 1.0, (2188, 100)) * 10 ** generator.uniform(-3, 0, (2188, 1))
    assert (selection_probabilities(noise, half_level(2188)) >= 0.9).sum() <= 2


def test_areas_are_those_of_trapezoids():
    assert circuit_sizes(1000) == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    area, away = curve_areas([5, 10], [0.5, 1.0], 10)
    assert np.isclose(area, 0.5 * 0.5 * 0.5 + 0.5 * 0.75)
    assert np.isclose(away, 1 - area)
    area, away = curve_areas([5, 10], [2.0, 1.0], 10)  # an overshoot counts for the one and against the other
    assert np.isclose(area, 0.5 * 1.0 + 0.5 * 1.5)
    assert np.isclose(away, 0.5 * 1.0 + 0.5 * 0.5)


def by_mib(sizes, values, edges):
    """CPR and CMD of MIB (arXiv 2504.13151, section 3) by another way: the mean height over a fine grid of shares of
    the edges, where both curves are straight between the sizes that were measured."""
    grid = (np.arange(400_000) + 0.5) / 400_000
    shares, heights = [0.0, *(size / edges for size in sizes)], [0.0, *values]
    away = [abs(1 - height) for height in heights]
    cpr = cmd = 0.0
    for left, right, low, high, near, far in zip(
        shares, shares[1:], heights, heights[1:], away, away[1:], strict=False
    ):
        inside = (grid >= left) & (grid < right)
        part = (grid[inside] - left) / (right - left)
        cpr += float((low + part * (high - low)).sum()) / 400_000
        cmd += float((near + part * (far - near)).sum()) / 400_000
    return cpr, cmd


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_areas_by_a_second_implementation(seed):
    generator = np.random.default_rng(seed)
    edges = int(generator.integers(50, 3000))
    sizes = circuit_sizes(edges)
    values = [*generator.normal(0.6, 0.6, len(sizes) - 1), 1.0]  # also below 0 and above 1
    assert curve_areas(sizes, values, edges) == pytest.approx(by_mib(sizes, values, edges), abs=2e-5)
