"""Latin squares of seeds: against statsmodels' analysis of variance, and on planted effects and nulls."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from core.errors import InputError
from core.studies.ablation.seeds import STUDY, by_chance, overlap, sources, square, top_heads

SIMULATED = 2000


@pytest.mark.parametrize("side", [3, 4, 5])
def test_each_pair_of_levels_of_two_seeds_meets_once(side):
    cells = square(side)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert len({(cell[one], cell[other]) for cell in cells}) == side * side == len(cells)


def test_a_square_of_two_is_refused():
    """Whether a table of seeds is asked for, or a study with this option."""
    message = r"at least 3 values per random seed, so that a residual can be estimated; got 2\. Use more values\.$"
    with pytest.raises(InputError, match=message):
        square(2)
    with pytest.raises(InputError, match="side of the study seeds must be at least 3 and at most 10; got 2"):
        STUDY.units(STUDY.read({"checkpoint": "atlas-encoder", "task": "sst2", "side": 2}))


@pytest.mark.parametrize("side", [3, 4])
def test_shares_and_p_are_those_of_an_analysis_of_variance(side):
    levels = np.array(square(side))
    scores = np.random.default_rng(side).normal(0.8, 0.02, side * side) + 0.03 * levels[:, 1]
    table = pd.DataFrame(levels, columns=["head", "rows", "order"]).assign(score=scores)
    anova = anova_lm(ols("score ~ C(head) + C(rows) + C(order)", table).fit())
    parts = sources(scores, side)
    assert [part.share for part in parts] == pytest.approx((anova.sum_sq / anova.sum_sq.sum()).tolist())
    assert [part.p for part in parts[:3]] == pytest.approx(anova["PR(>F)"].tolist()[:3])
    assert parts[3].deviation == pytest.approx(anova.mean_sq["Residual"] ** 0.5)
    assert parts[3].p is None
    excess = (anova.mean_sq["C(rows)"] - anova.mean_sq["Residual"]) / side
    assert parts[1].deviation == pytest.approx(excess**0.5)
    assert parts[1].variance == pytest.approx(excess / (excess + anova.mean_sq["Residual"]))
    assert sum(part.by_chance for part in parts) == pytest.approx(1)


def test_one_seed_alone_has_the_whole_spread():
    parts = sources(np.array([0.1, 0.5, 0.9])[np.array(square(3))[:, 2]], 3)
    assert [part.share for part in parts] == pytest.approx([0, 0, 1, 0], abs=1e-9)
    assert parts[2].p < 1e-6
    assert parts[2].variance == pytest.approx(1)
    assert 0.99 < parts[2].low < parts[2].high <= 1


def test_an_interplay_of_two_seeds_that_follows_the_third_is_counted_as_the_third_and_another_as_the_rest():
    """What docs/explanation/fine-tuning.md says is aliased."""
    levels = np.array(square(3))
    (_, _, third, rest), (_, _, other, left) = (
        [part.share for part in sources(np.cos(2 * np.pi * (levels[:, 0] + sign * levels[:, 1]) / 3), 3)]
        for sign in (1, -1)
    )
    assert (third, rest) == pytest.approx((1, 0), abs=1e-9)
    assert (other, left) == pytest.approx((0, 1), abs=1e-9)


def test_runs_that_are_all_alike_have_no_sources():
    assert [part.share for part in sources(np.full(9, 0.512), 3)] == [None] * 4


def test_the_number_of_scores_must_be_that_of_the_square():
    with pytest.raises(ValueError, match="9 scores"):
        sources(np.zeros(8), 3)


@pytest.mark.thorough
def test_without_effects_p_is_right_and_shares_are_those_of_chance():
    """At the n that is shown: nine runs."""
    generator = np.random.default_rng(1)
    drawn = [sources(generator.normal(size=9), 3) for _ in range(SIMULATED)]
    for factor in range(3):
        hits = sum(parts[factor].p < 0.05 for parts in drawn)
        assert binomtest(hits, SIMULATED, 0.05).pvalue > 0.001
        assert np.mean([parts[factor].share for parts in drawn]) == pytest.approx(drawn[0][factor].by_chance, abs=0.015)


@pytest.mark.parametrize("ratio", [1.0, *(pytest.param(ratio, marks=pytest.mark.slow) for ratio in (0.5, 4.0))])
def test_the_interval_of_a_planted_share_covers_it(ratio):
    """Levels are drawn with a standard deviation of `ratio` times the noise; other seeds do nothing."""
    generator, levels = np.random.default_rng(2), np.array(square(3))
    truth = ratio**2 / (1 + ratio**2)
    covered = 0
    for _ in range(SIMULATED):
        scores = generator.normal(size=9) + generator.normal(0, ratio, 3)[levels[:, 0]]
        part = sources(scores, 3)[0]
        covered += part.low <= truth <= part.high
    assert binomtest(covered, SIMULATED, 0.95).pvalue > 0.001


# ---------------------------------------------------------------- top heads


def test_the_highest_heads_are_chosen_and_the_first_of_equal_ones():
    values = np.array([[0.1, 0.9, 0.5, 0.5], [0.3, 0.3, 0.3, 0.0]])
    assert top_heads(values, 2).tolist() == [[False, True, True, False], [True, True, False, False]]


def test_overlap_is_the_mean_over_pairs_by_hand():
    chosen = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]], bool)
    assert overlap(chosen).value == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert overlap(chosen).n == 3
    assert overlap(chosen, [(0, 1)]).value == 0.5
    assert overlap(chosen, [(0, 1)]).low is None


@pytest.mark.thorough
def test_random_rankings_overlap_as_chance_says_and_intervals_cover_it():
    """Nine runs, ten of 36 heads: what the study shows."""
    generator = np.random.default_rng(3)
    seen = [overlap(top_heads(generator.random((9, 36)), 10)) for _ in range(1000)]
    chance = by_chance(36, 10)
    assert np.mean([shared.value for shared in seen]) == pytest.approx(chance, abs=0.005)
    assert 0.9 <= np.mean([shared.low <= chance <= shared.high for shared in seen]) <= 0.995


def test_equal_rankings_overlap_wholly():
    seen = overlap(top_heads(np.tile(np.arange(12.0), (9, 1)), 5))
    assert (seen.value, seen.low, seen.high) == (1, 1, 1)
