"""Selection over half-samples, areas of curves, and that a race of edges keeps its promise."""

import numpy as np
import pytest

from core.errors import InputError
from core.scoring.circuits import (
    circuit_sizes,
    curve_areas,
    false_bound,
    most_selected,
    selection_probabilities,
)
from core.scoring.racing import Rules, standings

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


def test_selection_counts_half_samples_by_hand():
    generator = np.random.default_rng(1)
    effects = generator.normal(0.0, 1.0, (30, 20))
    effects[0] += 3
    effects[1, 0] = np.nan  # raced out
    effects[2] = 0
    found = selection_probabilities(effects, 5, halves=40, seed=4)
    again, wanted = np.random.default_rng(4), np.zeros(30)
    for _ in range(40):
        half = again.permutation(20)[:10]
        means = [abs(row[half].mean()) if np.isfinite(row).all() else 0.0 for row in effects]
        for edge in sorted(range(30), key=lambda k: -means[k])[:5]:
            wanted[edge] += 1 / 40
    assert np.allclose(found, wanted)
    assert found[0] == 1
    assert found[1] == found[2] == 0
    assert not selection_probabilities(np.zeros((5, 8)), 3).any()
    with pytest.raises(InputError, match="at least four"):
        selection_probabilities(effects[:, :3], 5)


def test_noise_has_no_stable_set():
    """Edges that all carry the same: how often a half selects one is q / p, far from the threshold."""
    effects = np.random.default_rng(2).normal(0.0, 1.0, (2188, 100))
    count = most_selected(2188)
    assert count == 41
    assert count**2 / (0.8 * 2188) <= 1 < (count + 1) ** 2 / (0.8 * 2188)
    assert np.isclose(false_bound(2188), count**2 / (0.8 * 2188))
    assert (selection_probabilities(effects, count) >= 0.9).sum() <= 2
    with pytest.raises(InputError, match=r"above 0\.5"):
        most_selected(100, 0.5)


def test_areas_are_those_of_trapezoids():
    assert circuit_sizes(1000) == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    area, away = curve_areas([5, 10], [0.5, 1.0], 10)
    assert np.isclose(area, 0.5 * 0.5 * 0.5 + 0.5 * 0.75)
    assert np.isclose(away, 1 - area)
    area, away = curve_areas([5, 10], [2.0, 1.0], 10)  # an overshoot counts for the one and against the other
    assert np.isclose(area, 0.5 * 1.0 + 0.5 * 1.5)
    assert np.isclose(away, 0.5 * 1.0 + 0.5 * 0.5)
