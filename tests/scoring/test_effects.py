"""Effects against loops and exact enumeration; noise is not claimed, a planted effect is."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.errors import InputError
from core.interval import Interval
from core.scoring import effects
from core.scoring.effects import (
    contrast_intervals,
    counted,
    flips,
    max_t,
    mcnemar,
    mean_intervals,
    metric_intervals,
    rank_agreement,
    row_correlations,
    split_half,
)
from core.scoring.influence import change_ends, influence


def outcomes(seed, heads=144, rows=277, accuracy=0.65, flip=0.04, unsure=0.3):
    """A sweep without any effect: heads flip only rows that the model is unsure of, which are right half the time.

    So a row's differences are as likely as their negatives, which is the null. (Flipping rows at random instead
    would cost accuracy, because more rows are right than wrong: that is an effect.)
    """
    generator = np.random.default_rng(seed)
    open_to_both = generator.random(rows) < unsure
    sure = generator.random(rows) < (accuracy - unsure / 2) / (1 - unsure)
    before = np.where(open_to_both, generator.random(rows) < 0.5, sure)
    flipped = open_to_both & (generator.random((heads, rows)) < flip / unsure)
    return before, before ^ flipped


def test_flips_by_a_loop():
    before, after = np.array([0, 1, 2, 1]), np.array([[0, 1, 2, 1], [1, 1, 0, 0]])
    assert flips(before, after).tolist() == [0, 3]


@settings(deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 5))
def test_mcnemar_is_the_exact_binomial_test(lost, won, both):
    before = np.array([True] * lost + [False] * won + [True] * both)
    after = np.array([False] * lost + [True] * won + [True] * both)
    n, k = lost + won, min(lost, won)
    tail = sum(comb(n, j) for j in range(k + 1)) / 2**n
    assert mcnemar(before, after) == pytest.approx(min(1.0, 2 * tail))


def test_accuracy_changes_have_the_interval_of_bonett_and_price():
    """(lost + 1, won + 1) of (n + 2): p = (b + 1) / (n + 2) ..., with Student's t for the normal quantile."""
    generator = np.random.default_rng(3)
    gold, before, after = (generator.integers(0, 2, shape) for shape in (40, 40, (3, 40)))
    copies = before.copy(), after.copy()
    for head, interval in enumerate(metric_intervals("accuracy", gold, before, after)):
        lost = sum(int(before[k] == gold[k] != after[head, k]) for k in range(40))
        won = sum(int(before[k] != gold[k] == after[head, k]) for k in range(40))
        p, q = (lost + 1) / 42, (won + 1) / 42
        reach = stats.t.ppf(0.975, 39) * np.sqrt((p + q - (q - p) ** 2) / 42)
        assert interval.value == pytest.approx((won - lost) / 40)
        assert (interval.low, interval.high) == pytest.approx((q - p - reach, q - p + reach), abs=2e-3)
    assert np.array_equal(before, copies[0])
    assert np.array_equal(after, copies[1])


def test_a_contrast_is_its_heads_weighted_row_by_row():
    generator = np.random.default_rng(4)
    gold, before, after = (generator.integers(0, 2, shape) for shape in (30, 30, (3, 30)))
    contrasts = np.array([[1.0, -1, -1], [0, 0.5, 0.5], [0, 0, 0]])
    found = contrast_intervals("accuracy", gold, before, after, contrasts)
    assert found[2] == Interval(None, None, None)  # of no heads
    for interval, weights in zip(found[:2], contrasts, strict=False):
        rows = [
            sum(weights[head] * (float(after[head, k] == gold[k]) - float(before[k] == gold[k])) for head in range(3))
            for k in range(30)
        ]
        mean, unseen = sum(rows) / 30, sum(weight**2 for weight in weights)  # one flip more and one less of each head
        error = np.sqrt(sum((row - mean) ** 2 for row in rows) + 2 * unseen) / 32
        assert interval.value == pytest.approx(mean)
        assert interval.high - interval.low == pytest.approx(2 * stats.t.ppf(0.975, 29) * error)
    alone = contrast_intervals("accuracy", gold, before, after, np.eye(3))
    assert alone == metric_intervals("accuracy", gold, before, after)


@pytest.mark.parametrize("rows", [2, 60, 200])
def test_no_flip_is_not_no_doubt(rows):
    """A head that flips one row in fifty flips none of 60 in three of ten: [0, 0] would say that it costs nothing."""
    same = np.ones(rows, int)
    for name in ("accuracy", "f1"):
        (found,) = metric_intervals(name, same, same, same[None])
        assert found.value == 0
        most = 1.8 if name == "accuracy" else 0.9  # a miss among hits moves F1 by half as much
        assert found.low < -most / rows
        assert found.high > most / rows
        assert found.low >= -1
        assert found.high <= 1


def test_what_has_no_interval():
    one, two = np.array([1]), np.array([1, 0])
    assert metric_intervals("accuracy", one, one, one[None]) == [Interval(0.0, None, None)]  # one row
    assert metric_intervals("pearson", np.ones(9), np.arange(9.0), np.arange(9.0)[None]) == [Interval(None, None, None)]
    nothing = np.zeros(20, int)  # a task of one class, none of which is what F1 is of
    (found,) = metric_intervals("f1", nothing, nothing, nothing[None])
    assert (found.value, found.low, found.high) == (0, -1, 1)
    assert mean_intervals(two, two[None], most=None) == [Interval(0.0, None, None)]
    assert mean_intervals(one, one[None], most=None) == [Interval(0.0, None, None)]
    with pytest.raises(InputError, match='got "recall"'):
        metric_intervals("recall", two, two, two[None])


@pytest.mark.parametrize("name", ["accuracy", "f1", "pearson"])
def test_metrics_of_counted_rows_equal_those_of_the_rows_written_out(name):
    from scipy.stats import pearsonr
    from sklearn.metrics import accuracy_score, f1_score

    generator = np.random.default_rng(2)
    gold, predicted = generator.integers(0, 2, 30), generator.integers(0, 2, (3, 30))
    if name == "pearson":
        gold, predicted = generator.normal(size=30), generator.normal(size=(3, 30))
    counts = generator.multinomial(30, [1 / 30] * 30, size=5)
    oracle = {"accuracy": accuracy_score, "f1": f1_score, "pearson": lambda a, b: pearsonr(a, b).statistic}[name]
    found = counted(name, gold, predicted, counts)
    for draw in range(5):
        rows = [row for row in range(30) for _ in range(counts[draw, row])]
        for head in range(3):
            assert found[draw, head] == pytest.approx(oracle(gold[rows], predicted[head, rows]))


@pytest.mark.thorough
def test_rows_share_out_their_correlation():
    """Against scipy's r of all rows, its jackknife (a row left out), and r of half of the rows."""
    from scipy.stats import pearsonr

    def r(*sides):
        return pearsonr(*sides).statistic

    generator = np.random.default_rng(5)
    gold = generator.normal(size=300)
    predicted = np.stack([3 * gold + generator.normal(size=300) * noise - 7 for noise in (1, 5, 20)])
    shares = row_correlations(gold, predicted)
    rows = np.arange(300)
    for one, share in zip(predicted, shares, strict=True):
        assert share.mean() == pytest.approx(r(gold, one))
        jackknife = [300 * r(gold, one) - 299 * r(gold[rows != k], one[rows != k]) for k in rows]
        assert np.allclose(share, jackknife, rtol=0.05, atol=0.02)  # they differ by terms in 1/n
        assert share[:150].mean() == pytest.approx(r(gold[:150], one[:150]), abs=0.02)
    assert np.allclose(row_correlations(gold, 10 * predicted + 2), shares)  # scale and shift are nothing to r
    assert np.array_equal(row_correlations(gold, np.ones((2, 300))), np.zeros((2, 300)))


def test_intervals_of_a_metric_that_is_no_mean():
    generator = np.random.default_rng(0)
    gold = generator.normal(size=80)
    near, far = gold + generator.normal(size=80) * 0.1, gold + generator.normal(size=80) * 3
    worse, same, constant = metric_intervals("pearson", gold, near, np.stack([far, near, near * 0]))
    assert worse.value == pytest.approx(np.corrcoef(gold, far)[0, 1] - np.corrcoef(gold, near)[0, 1])
    assert worse.low < worse.value < worse.high < 0
    draws = generator.integers(0, 80, (4000, 80))
    changes = [np.corrcoef(gold[k], far[k])[0, 1] - np.corrcoef(gold[k], near[k])[0, 1] for k in draws]
    assert (worse.low, worse.high) == pytest.approx(tuple(np.quantile(changes, [0.025, 0.975])), abs=0.05)
    assert same.low < same.value == 0 < same.high
    assert constant.value is None


def test_a_change_of_a_correlation_reaches_at_least_as_far_as_t_with_two_spreads_estimated():
    generator = np.random.default_rng(8)
    gold = generator.normal(size=60)
    before, after = gold + generator.normal(size=(2, 60))
    (found,) = metric_intervals("pearson", gold, before, after[None])
    added = influence("pearson", gold, after[None]).rows[0] - influence("pearson", gold, before[None]).rows[0]
    reach = stats.t.ppf(0.975, 59) * np.sqrt((added**2).sum() / (60 * 58))
    assert min(found.high - found.value, found.value - found.low) == pytest.approx(reach)
    assert max(found.high - found.value, found.value - found.low) < 1.2 * reach


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["accuracy", "f1", "pearson"])
def test_what_rows_add_is_what_leaving_them_out_takes(name):
    """Influence against the jackknife of scikit-learn's and scipy's metrics."""
    from sklearn.metrics import accuracy_score, f1_score

    generator = np.random.default_rng(5)
    gold, predicted = generator.integers(0, 2, 400), generator.integers(0, 2, (2, 400))
    if name == "pearson":
        gold = generator.normal(size=400)
        predicted = gold + generator.normal(size=(2, 400))
    metric = {"accuracy": accuracy_score, "f1": f1_score, "pearson": lambda a, b: stats.pearsonr(a, b).statistic}[name]
    found, rows = influence(name, gold, predicted), np.arange(400)
    for run in range(2):
        whole = metric(gold, predicted[run])
        left_out = [metric(gold[rows != k], predicted[run, rows != k]) for k in rows]
        assert found.value[run] == pytest.approx(whole)
        np.testing.assert_allclose(found.rows[run], 399 * (whole - np.array(left_out)), rtol=0.05, atol=0.02)
    if name != "pearson":
        for flipped, said in ((gold[0], found.gained[0]), (1 - gold[0], found.lost[0])):
            one = [0] if name == "accuracy" else [int(np.flatnonzero(gold == 1)[0])]
            more = metric(
                np.append(gold, gold[one]), np.append(predicted[0], gold[one] if flipped == gold[0] else 1 - gold[one])
            )
            assert 401 * (more - found.value[0]) == pytest.approx(said, abs=0.02)


def test_max_t_equals_the_enumeration_of_all_signs():
    """With 8 rows all 256 sign patterns can be listed; many random permutations come near that share."""
    difference = np.array([[1, 1, 1, 0, 1, 1, 0, 1], [1, -1, 0, 0, 1, 0, 0, -1], [0, 0, 0, 0, 0, 0, 0, 0]])
    scales = [np.sqrt(sum(d * d for d in row)) or 1 for row in difference]
    observed = [abs(sum(row)) / scale for row, scale in zip(difference, scales, strict=True)]
    largest = []
    for signs in itertools.product([-1, 1], repeat=8):
        totals = [
            abs(sum(s * d for s, d in zip(signs, row, strict=True))) / c
            for row, c in zip(difference, scales, strict=True)
        ]
        largest.append(max(totals))
    exact = [np.mean([one >= t - 1e-12 for one in largest]) for t in observed]
    found = max_t(np.zeros(8), difference, permutations=20000)
    assert found[0] == pytest.approx(exact[0], abs=0.01)
    assert found[1] == pytest.approx(exact[1], abs=0.01)
    assert found[2] == 1.0


def test_200_sweeps_of_pure_noise_make_a_claim_in_at_most_19():
    claims = 0
    for seed in range(200):
        before, after = outcomes(seed)
        claims += bool((max_t(before, after, seed=seed, permutations=400) < 0.05).any())
    assert claims <= 19


def test_uncorrected_tests_would_claim_nearly_always():
    """Why the correction is there: the best of 144 noise heads passes McNemar at 5% in most sweeps."""
    claims = 0
    for seed in range(20):
        before, after = outcomes(seed)
        claims += min(mcnemar(before, one) for one in after) < 0.05
    assert claims >= 15


def test_a_planted_effect_is_claimed_and_only_that_one():
    before, after = outcomes(7)
    after[31] = before & (np.arange(len(before)) % 4 > 0)  # this head carries a quarter of the right answers
    found = max_t(before, after)
    assert found[31] < 0.05
    assert (np.delete(found, 31) >= 0.05).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_corrected_p_is_never_below_the_single_test(seed):
    before, after = outcomes(seed, heads=6, rows=40, flip=0.2)
    together = max_t(before, after, seed=1, permutations=300)
    for head in range(6):
        assert together[head] >= max_t(before, after[head : head + 1], seed=1, permutations=300)[0] - 1e-12


def test_the_gain_of_a_lucky_head_is_gone_on_the_other_half_and_that_of_a_real_one_stays():
    before, after = outcomes(11)
    lucky = split_half(before, after, splits=200)
    assert lucky.chosen > 0.02
    assert lucky.held_out < lucky.chosen / 2
    after[5] = before | (np.arange(len(before)) % 5 == 0)  # repairs a fifth of the rows
    real = split_half(before, after, splits=200)
    assert real.head == 5
    assert real.same > 0.5
    assert real.low > 0 or real.held_out > lucky.held_out
    with pytest.raises(InputError, match="two examples"):
        split_half(before[:1], after[:, :1])


def test_the_held_out_gain_is_of_the_other_rows_alone():
    """Two heads, each right on the row that the other is wrong on: the best of one row is the worst of the other."""
    found = split_half(np.zeros(2), np.array([[1.0, -1.0], [-1.0, 1.0]]), splits=40)
    assert (found.chosen, found.held_out, found.low, found.high) == (1.0, -1.0, -1.0, -1.0)


def test_no_permutation_makes_p_smaller_than_one_in_as_many_as_there_are_with_the_truth():
    p = max_t(np.zeros(60), np.ones((1, 60)), permutations=99)  # 1 of 2^59 sign patterns reaches it
    assert p.tolist() == [1 / 100]


def test_rank_agreement_by_counting_pairs():
    one, two = np.array([0.1, 0.4, 0.2, 0.9, np.nan]), np.array([1.0, 3.0, 2.0, 0.0, 5.0])
    found = rank_agreement(one, two)
    agree = sum(np.sign(one[a] - one[b]) * np.sign(two[a] - two[b]) for a, b in itertools.combinations(range(4), 2))
    assert found.kendall == pytest.approx(agree / 6)
    ranks = np.array([1, 3, 2, 4]), np.array([2, 4, 3, 1])
    assert found.spearman == pytest.approx(1 - 6 * ((ranks[0] - ranks[1]) ** 2).sum() / (4 * 15))
    assert found.n == 4
    assert rank_agreement(np.ones(5), np.arange(5.0)).spearman is None
    with pytest.raises(InputError, match="same heads"):
        rank_agreement(np.ones(5), np.ones(4))


def test_f1_is_0_where_nothing_is_of_the_class_and_other_names_are_refused():
    nothing = np.zeros(6, int)
    assert counted("f1", nothing, nothing[None], np.ones((2, 6))).tolist() == [[0.0], [0.0]]
    with pytest.raises(InputError, match="accuracy, f1 and pearson"):
        counted("recall", nothing, nothing[None], np.ones((1, 6)))


def test_a_correlation_far_from_0_keeps_its_figures_and_one_of_constants_is_none():
    generator = np.random.default_rng(1)
    gold, counts = generator.normal(size=30), generator.multinomial(30, [1 / 30] * 30, size=5)
    near = np.stack([gold + generator.normal(size=30), generator.normal(size=30)])
    wanted = [[np.corrcoef(np.repeat(gold, some), np.repeat(row, some))[0, 1] for row in near] for some in counts]
    offsets = np.array([[1e7], [-3e6]])
    np.testing.assert_allclose(counted("pearson", gold - 5e6, near + offsets, counts), wanted, atol=1e-6)
    assert np.isnan(counted("pearson", gold, np.full((1, 30), 0.1), counts)).all()
    assert np.isnan(counted("pearson", np.full(30, 0.1), near, counts)).all()


def test_row_correlations_are_zero_of_constants_and_one_row_of_heads_is_like_several():
    generator = np.random.default_rng(2)
    gold, heads = generator.normal(size=12) / 50, generator.normal(size=(2, 3, 12)) / 50  # r has no unit
    shares = row_correlations(gold, heads)
    for place in np.ndindex(2, 3):
        assert shares[place].mean() == pytest.approx(np.corrcoef(gold, heads[place])[0, 1])
        x, y = (values / values.std() for values in (gold - gold.mean(), heads[place] - heads[place].mean()))
        r = float((x * y).mean())
        np.testing.assert_allclose(shares[place], r + x * y - r * (x**2 + y**2) / 2)
        np.testing.assert_allclose(row_correlations(gold, heads[place]), shares[place])
    assert not row_correlations(gold, np.full(12, 0.1)).any()
    assert not row_correlations(np.full(12, 0.1), heads).any()
    whole = row_correlations(np.arange(5), np.array([1, 0, 2, 4, 3]))  # whole numbers are no less
    assert whole.mean() == pytest.approx(np.corrcoef(np.arange(5), [1, 0, 2, 4, 3])[0, 1])


def test_intervals_of_shares_count_a_row_more_and_a_row_less():
    before, after = np.array([0.5, 1.0, 0.0, 1.0]), np.array([[1.0, 1.0, 0.0, 0.5], [0.5, 0.0, 1.0, 1.0]])
    for head, interval in enumerate(mean_intervals(before, after)):
        change = [float(a - b) for a, b in zip(after[head], before, strict=True)] + [1.0, -1.0]
        mean = sum(change) / 6
        reach = stats.t.ppf(0.975, 3) * np.sqrt(sum((d - mean) ** 2 for d in change) / 6 / 6)
        assert interval.value == pytest.approx(sum(change) / 4)
        assert (interval.low, interval.high) == pytest.approx((max(-1, mean - reach), min(1, mean + reach)))


def test_intervals_of_losses_reach_as_far_as_t():
    generator = np.random.default_rng(6)
    loss = generator.normal(0.1, 1, (2, 50))
    for head, interval in enumerate(mean_intervals(np.zeros(50), loss, most=None)):
        low, high = stats.t.interval(0.95, 49, loss[head].mean(), stats.sem(loss[head]))
        assert interval.low <= low + 1e-9
        assert interval.high >= high - 1e-9
        assert interval.high - interval.low < 1.3 * (high - low)


def test_losses_of_mean_zero_are_not_claimed_for_being_skewed():
    """What sign flips made of them: .58 of sweeps claimed a head at n = 200."""
    claims, flipped = 0, 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        difference = np.exp(0.5) - generator.lognormal(0, 1, (36, 200))
        claims += bool((max_t(np.zeros(200), difference, seed=seed, permutations=200) <= 0.05).any())
        signs, scaled = (
            generator.choice([-1.0, 1.0], (200, 200)),
            difference / np.sqrt((difference**2).sum(1, keepdims=True)),
        )
        largest = np.abs(signs @ scaled.T).max(1)
        flipped += bool((np.abs(scaled.sum(1)) > np.quantile(largest, 0.95)).any())
    assert claims <= 7
    assert flipped >= 15


def test_few_rows_that_changed_and_the_same_change_everywhere():
    rows = np.zeros((3, 60))
    rows[0, :11] = 0.5  # too few to say
    rows[1] = 0.5 + 0.01 * np.arange(60)
    rows[2] = 0.5  # all alike say nothing of another row
    few, spread, alike = max_t(np.zeros(60), rows)
    assert (few, spread < 0.01, alike) == (1, True, 1)
    assert max_t(np.zeros(1), np.full((3, 1), 0.5)).tolist() == [1, 1, 1]  # one row


def test_a_mean_over_rows_that_miss_two_in_a_hundred_is_not_claimed():
    """One head that gains .069 on all rows but loses 3.45 on 2 %: 148 rows of it show none of these in 1 draw of 20."""
    assert [effects.rows_to_see(0.02, heads) for heads in (1, 36)] == [149, 326]
    for heads in (1, 36):
        rows = effects.rows_to_see(0.02, heads)
        assert effects.unseen_share(heads, rows) <= 0.02 < effects.unseen_share(heads, rows - 1)
    gains = np.random.default_rng(0).normal(-0.069, 0.03, (1, 149))
    assert max_t(np.zeros(148), gains[:, :148]).tolist() == [1]
    assert max_t(np.zeros(149), gains)[0] < 0.01


def test_the_share_of_rows_that_may_be_missed_is_missed_in_one_draw_of_twenty():
    for heads, rows in ((1, 20), (36, 300)):
        share = effects.unseen_share(heads, rows)
        assert (1 - share) ** rows == pytest.approx(0.05 / heads)
    assert effects.unseen_share(36, 656) <= 0.01 < effects.unseen_share(36, 650)


def test_the_seed_that_is_not_named_is_0():
    gold, before = np.array([0, 1, 1, 0, 1, 0]), np.array([0, 1, 0, 0, 1, 1])
    right_before, right_after = before == gold, np.array([[1, 0, 0, 1, 1, 0], [0, 0, 1, 0, 0, 1]])
    assert max_t(right_before, right_after).tolist() == max_t(right_before, right_after, seed=0).tolist()
    for wrong in (np.zeros((0, 6)), np.zeros((1, 0))):
        with pytest.raises(InputError, match="A test over heads needs outcomes"):
            max_t(np.zeros(wrong.shape[-1]), wrong)


def test_two_rows_have_an_interval_and_one_has_none_and_a_contrast_of_no_heads_leaves_the_others_theirs():
    (two,), (one,) = (mean_intervals(np.zeros(rows), np.ones((1, rows)) * 0.5) for rows in (2, 1))
    mean, spread = 0.25, np.sqrt((0.5 + 2) / 4 - 0.25**2)  # a row of 1 and one of -1 beside them
    assert two.high == pytest.approx(min(1.0, mean + stats.t.ppf(0.975, 1) * spread / 2))
    assert two.low == -1
    assert (one.value, one.low, one.high) == (0.5, None, None)
    gold, before, after = np.ones(20), np.zeros(20), np.ones((2, 20))
    found = contrast_intervals("accuracy", gold, before, after, np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert [interval.value for interval in found] == [None, 1.0]


def test_t_of_losses_has_two_unseen_rows_of_the_largest_change_and_of_answers_none():
    losses = np.array([[0.5, 0.3, -0.1], [0.0, 0.0, 0.0], [-0.9, 0.1, 0.2]])
    wanted = [sum(row) / np.sqrt(sum(d * d for d in row) + 2 * 0.9**2) for row in losses.tolist()]
    assert effects.t_values(losses) == pytest.approx(wanted)
    answers = np.array([[1.0, -1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0] * 4])
    assert effects.t_values(answers) == pytest.approx([1 / np.sqrt(3), 2, 0])


def test_the_interval_of_a_change_of_a_correlation_leans_where_its_rows_do():
    """Every prediction moves towards the mean, a few of them far."""
    chance = np.random.default_rng(2)
    gold = chance.normal(size=60)
    before = gold + chance.normal(0, 0.2, 60)
    after = before - np.sign(gold) * chance.lognormal(-1.5, 1.0, 60)
    value, low, high = change_ends("pearson", gold, before, after[None], np.ones(1))
    rows = (influence("pearson", gold, after[None]).rows - influence("pearson", gold, before[None]).rows)[0]
    assert value < 0
    assert stats.skew(rows) < -2
    assert (rows**2).mean() < 1
    assert value - low > 1.5 * (high - value)
