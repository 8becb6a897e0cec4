"""Races against formulas written out, loops, and simulation where the truth is known."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from core.errors import InputError
from core.scoring.race_estimates import EffectEstimate, control_of, estimated, slope_of
from core.scoring.race_steps import FirstOrderChoice, Work, choose, foreseen, next_step
from core.scoring.racing import (
    Rules,
    batch_half_widths,
    chance_left,
    sequence_half_widths,
    sequence_scale,
    standings,
    taken,
    verdicts,
)


def run(exact, first_order, rules, work=None, *, control=None):
    """A race over effects that are known: what it took, and where it ended. control None: the race's own choice."""
    seen, beside = np.full_like(exact, np.nan), np.full_like(exact, np.nan)
    work = work or Work(np.full(rules.heads, 0.5), 3.0)
    choice = None
    while True:
        step = next_step(seen, beside, rules, choice)
        if step.over:
            return standings(seen, rules, beside if choice.use else None), seen, choice
        rows = slice(step.start, step.stop)
        if step.exact:
            seen[step.heads, rows] = exact[step.heads, rows]
        if step.first_order:
            beside[:, rows] = first_order[:, rows]
        if choice is None:
            choice = choose(seen[:, : rules.first], beside[:, : rules.first], rules, work)
            choice = choice if control is None else FirstOrderChoice(control, choice.without, choice.with_control)


def effects(generator, means, rows, spread, noise=0.1):
    """Normal effects with these means, and first-order effects that follow them up to `noise` of their spread."""
    exact = generator.normal(np.asarray(means)[:, None], spread, (len(means), rows))
    return exact, 0.6 * exact + generator.normal(0.05, noise * spread, exact.shape)


# ---------------------------------------------------------------- pieces


@pytest.mark.parametrize(
    ("rows", "looks"), [(872, (64, 128, 192, 256, 384, 512, 768, 872)), (64, (64,)), (65, (64, 65)), (128, (64, 128))]
)
def test_looks_double_up_to_all_rows(rows, looks):
    """Where heads may be found not to matter at the first look: four that change a row by .1 at most need 22 rows."""
    assert Rules(0.02, 0.1, rows, 4).looks == looks


@pytest.mark.parametrize(
    ("rows", "looks"), [(300, (64, 159, 191, 229, 274, 300)), (159, (64, 159)), (130, (64, 130)), (64, (64,))]
)
def test_looks_wait_until_a_head_can_be_found_not_to_matter(rows, looks):
    """20 ln(36 / .05) = 131.6 rows, so 132: a fifth more, and a fifth more each."""
    assert Rules(0.02, 0.4, rows, 36).looks == looks


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"margin": 0.0}, "above 0"),
        ({"margin": float("nan")}, "above 0"),
        ({"clip": 0.02}, "above the margin, 0.02"),
        ({"clip": float("inf")}, "above the margin"),
        ({"rows": 63}, "63"),
        ({"heads": 0}, "at least one head"),
        ({"alpha": 1.0}, "between 0 and 1"),
        ({"hopeless": 1.0}, "below 1"),
    ],
)
def test_rules_that_cannot_be(change, said):
    with pytest.raises(InputError, match=said):
        Rules(**({"margin": 0.02, "clip": 0.4, "rows": 100, "heads": 2} | change))


def test_estimates_by_loops():
    generator = np.random.default_rng(1)
    exact, first = effects(generator, [0.1, -0.2, 0.0], 40, 0.3)
    copies = exact.copy(), first.copy()
    control = control_of(exact[:, :16], first)
    found = estimated(exact[:, :16], 40, first_order=first[:, :16], control=control)
    plain = estimated(exact[:, :16], 40)
    for head in range(3):
        e, g = exact[head, :16].tolist(), first[head].tolist()
        mean_e, mean_g = sum(e) / 16, sum(g[:16]) / 16
        c = sum((a - mean_e) * (b - mean_g) for a, b in zip(e, g, strict=False))
        c /= sum((b - mean_g) ** 2 for b in g[:16])
        d = [a - c * b for a, b in zip(e, g, strict=False)]
        mean_d = sum(d) / 16
        s_e = sum((a - mean_e) ** 2 for a in e) / 15
        s_d = sum((a - mean_d) ** 2 for a in d) / 14
        assert found.value[head] == pytest.approx(c * sum(g) / 40 + mean_d)
        assert found.error[head] == pytest.approx(math.sqrt(s_e / 40 + s_d * (1 / 16 - 1 / 40)))
        assert plain.error[head] == pytest.approx(math.sqrt(s_e / 16))
    assert (found.degrees, plain.degrees) == (14, 15)
    assert np.array_equal(exact, copies[0])
    assert np.array_equal(first, copies[1])


def test_rows_that_were_missed_are_missed_as_seldom_as_the_bound_says():
    """Rows of size c that make a mean of exactly `unseen`: none of n is among them with less than alpha / heads."""
    rules = Rules(0.02, 0.4, 872, 36)
    for n in (64, 192, 872):
        share = rules.unseen(n) / 0.4
        assert (1 - share) ** n < 0.05 / 36
        assert share == pytest.approx(np.log(36 / 0.05) / n)
    assert rules.unseen(64, np.array([0.1, 0.4])) == pytest.approx([1.25 * rules.unseen(64), 2 * rules.unseen(64)])
    assert rules.unseen(rules.fewest) <= 0.02 < rules.unseen(rules.fewest - 1)
    assert rules.fewest == np.ceil(20 * np.log(36 / 0.05))


def test_a_head_that_changed_nothing_matters_not_once_enough_rows_say_so():
    state = standings(np.zeros((2, 300)), Rules(0.02, 0.4, 300, 2))
    assert state.verdicts == ["does not matter"] * 2
    assert state.rows.tolist() == [89, 89]  # 20 ln(2 / .05) = 73.8 rows at least, and a fifth of 74 more
    assert (-state.low).tolist() == pytest.approx([0.4 * np.log(40) / 89] * 2)
    assert standings(np.zeros((2, 70)), Rules(0.02, 0.4, 70, 2)).verdicts == ["open"] * 2


def test_batch_intervals_are_t_intervals_at_the_shared_level():
    exact, _ = effects(np.random.default_rng(2), [0.1, -0.2], 64, 0.3)
    rules = Rules(0.02, 0.4, 256, 2)
    half = batch_half_widths(estimated(exact, 256), rules)
    for head in range(2):
        low, high = stats.t.interval(1 - 0.05 / (2 * len(rules.looks)), 63, exact[head].mean(), stats.sem(exact[head]))
        assert 2 * (half[head] - rules.unseen(64)) == pytest.approx(high - low)


def test_the_sequence_is_the_papers_and_narrow_where_it_is_meant_to_be():
    def scale(log_rho, n, alpha):
        square = n * math.exp(2 * log_rho)
        return math.sqrt(2 * (square + 1) / (n * square) * math.log(math.sqrt(square + 1) / alpha))

    for n, alpha in ((64, 0.05), (218, 0.05 / 144), (500, 1e-4)):
        best = minimize_scalar(lambda x, n=n, alpha=alpha: scale(x, n, alpha), bounds=(-9, 3), method="bounded").fun
        assert sequence_scale(n, alpha, n) == pytest.approx(best, rel=0.01)
        assert sequence_scale(n, alpha, n) > stats.norm.ppf(1 - alpha / 2) / math.sqrt(n)  # what peeking costs
        narrowest = min(range(n // 2, 2 * n), key=lambda rows, n=n, alpha=alpha: sequence_scale(n, alpha, rows))
        assert narrowest == pytest.approx(n, rel=0.05)


def test_verdicts_by_where_the_interval_lies():
    low, high = np.array([0.03, -0.01, 0.01, -0.05, 0.02]), np.array([0.05, 0.01, 0.03, -0.03, 0.03])
    assert verdicts(low, high, 0.02) == ["matters", "does not matter", "open", "matters", "open"]


def test_rows_count_up_to_the_first_gap():
    nan = np.nan
    assert taken(np.array([[1, nan, 1], [nan, 1, 1], [1, 1, 1], [nan, nan, nan]])).tolist() == [1, 0, 3, 0]
    assert taken(np.zeros((2, 0))).tolist() == [0, 0]


# ---------------------------------------------------------------- standings


def test_nothing_is_said_before_the_first_look_and_a_verdict_stays():
    exact, _ = effects(np.random.default_rng(3), [0.0, 0.5], 256, 0.05)
    rules = Rules(0.1, 1.0, 256, 2)
    early = np.where(np.arange(256) < 63, exact, np.nan)
    assert standings(early, rules).verdicts == ["open", "open"]
    first = np.where(np.arange(256) < 64, exact, np.nan)
    later = np.concatenate([exact[:, :64], -exact[:, 64:]], 1)  # what comes after a verdict is not asked
    for seen in (first, later):
        state = standings(seen, rules)
        assert state.verdicts == ["does not matter", "matters"]
        assert state.rows.tolist() == [64, 64]


def test_between_looks_only_the_confidence_sequence_goes_on():
    exact, _ = effects(np.random.default_rng(4), [0.02, 0.02], 256, 0.3)
    rules = Rules(0.02, 0.4, 256, 2)
    look = rules.looks[1]
    at, between = (standings(np.where(np.arange(256) < n, exact, np.nan), rules) for n in (look, rules.looks[2] - 1))
    assert at.rows.tolist() == between.rows.tolist() == [look, look]
    assert np.array_equal(at.low, between.low)
    assert not np.array_equal(at.always_low, between.always_low)


def test_the_same_effects_in_any_pieces_give_the_same_verdicts():
    generator = np.random.default_rng(5)
    exact, first = effects(generator, generator.normal(0, 0.04, 20), 500, 0.1)
    rules = Rules(0.02, 0.4, 500, 20)
    whole = standings(exact, rules)
    raced, seen, _ = run(exact, first, rules, control=False)
    assert raced.verdicts == whole.verdicts
    assert np.array_equal(raced.low, whole.low)
    assert taken(seen).tolist() == raced.rows.tolist()


def test_a_head_without_hope_of_a_verdict_takes_no_more_rows():
    """Just within the margin and far spread: no verdict can come of the rows there are, and the race ends early. One
    that is clear, and one that has a chance, are as in a race that never gives up."""
    generator = np.random.default_rng(16)
    exact, first = effects(generator, [0.0, 0.019, 0.1], 600, 0.02)
    exact[1] = generator.normal(0.018, 0.1, 600)
    hopeful, stopping = (Rules(0.02, 0.1, 600, 3, hopeless=chance) for chance in (0.0, 0.05))
    (all_the_way, _, _), (early, seen, _) = (run(exact, first, rules, control=False) for rules in (hopeful, stopping))
    assert early.verdicts == all_the_way.verdicts == ["does not matter", "open", "matters"]
    assert (all_the_way.rows[1], all_the_way.hopeless.any()) == (600, False)
    assert early.hopeless.tolist() == [False, True, False]
    assert taken(seen)[1] == early.rows[1] < 600
    whole = standings(exact, stopping)  # what is known beyond where it stopped is not asked
    assert (whole.rows.tolist(), whole.verdicts) == (early.rows.tolist(), early.verdicts)


@pytest.mark.parametrize(("control", "noise"), [(False, 0.06), (False, 0.1), (True, 0.06)])
def test_the_chance_that_is_left_is_that_of_races_that_go_on(control, noise):
    """Of 4,000 ways to go on from 100 of 300 rows, as unsure of the mean as these leave it, so many have a verdict."""
    generator, rules = np.random.default_rng(17), Rules(0.02, 0.04, 300, 3)
    exact, first = effects(generator, [0.0, 0.012, 0.036], 300, noise, noise=0.5)
    some = control_of(exact[:, :100], first) if control else None
    here = estimated(exact[:, :100], 300, first_order=first[:, :100] if control else None, control=some)
    left = np.sqrt(here.error**2 - here.residual**2 * (1 / 100 - 1 / 300))
    half = batch_half_widths(EffectEstimate(here.value, left, here.degrees + 200, here.residual, 300), rules, some)
    means = generator.normal(here.value, here.residual / 10, (4000, 3)).T
    coming = generator.normal(means, here.residual[:, None] / math.sqrt(200))
    ends = (100 * here.value[:, None] + 200 * coming) / 300
    decided = (np.abs(ends) + half[:, None] < 0.02) | (np.abs(ends) - half[:, None] > 0.02)
    chance = chance_left(here, rules, some)
    assert chance == pytest.approx(decided.mean(1), abs=0.03)
    assert 0.01 < chance.min() < chance.max()


def test_work_falls_as_heads_get_their_verdicts():
    exact, first = effects(np.random.default_rng(6), [0.0] * 30 + [0.02], 800, 0.02)
    state, seen, _ = run(exact, first, Rules(0.02, 0.4, 800, 31), control=False)
    assert state.verdicts[:30] == ["does not matter"] * 30
    assert np.isfinite(seen).sum() < 0.4 * seen.size


def test_first_order_effects_are_taken_where_they_pay():
    """With g nearly e, and 144 heads that need many rows, a backward is cheap; for two heads it is dear."""
    generator = np.random.default_rng(7)
    rules = Rules(0.02, 0.4, 5000, 144)  # of 872 rows those that unseen ones ask for are too many for g to pay
    exact, first = effects(generator, [0.0] * 144, 5000, 0.08, noise=0.05)
    _, seen, choice = run(exact, first, rules, Work(np.full(144, 0.5), 3.0))
    _, plain, _ = run(exact, first, rules, control=False)
    assert choice.use
    assert choice.with_control < choice.without
    assert np.isfinite(seen).sum() < 0.7 * np.isfinite(plain).sum()
    noise = generator.normal(0, 0.08, exact.shape)
    assert not run(exact, noise, rules)[2].use
    assert not run(exact[:2], first[:2], Rules(0.02, 0.4, 5000, 2), Work(np.full(2, 0.5), 3.0))[2].use


# ---------------------------------------------------------------- simulation


def null_sweeps(anytime=False, sweeps=200):
    """Sweeps of 144 heads exactly at the margin, where either verdict is false: how many had any."""
    wrong = 0
    for seed in range(sweeps):
        generator = np.random.default_rng([11, seed])
        signs = generator.choice([-0.02, 0.02], 144)
        exact, first = effects(generator, signs, 872, 0.06 * np.exp(generator.normal(0, 1, (144, 1))), noise=0.3)
        state, _, _ = run(exact, first, Rules(0.02, 0.4, 872, 144, anytime=anytime), control=bool(seed % 2))
        wrong += len(state.open) < 144
    return wrong


@pytest.mark.slow  # 11 CPU seconds; tests/simulations has the same of fewer draws by default
def test_heads_at_the_margin_get_no_verdict():
    assert null_sweeps() <= 19


def test_planted_effects_are_found():
    """Twice the margin, with rows that spread four times the margin. With a control variate unseen rows count twice, so
    that it takes more of them."""
    generator = np.random.default_rng(12)
    for control, rows in ((False, 872), (True, 1500)):
        exact, first = effects(generator, [0.04, -0.04] * 72, rows, 0.08, noise=0.5)
        state, _, _ = run(exact, first, Rules(0.02, 0.4, rows, 144), control=control)
        assert np.mean([one == "matters" for one in state.verdicts]) >= 0.95


@pytest.mark.parametrize("control", [False, True])
def test_the_sequence_holds_at_all_rows_at_once(control):
    """100 runs of 8 heads: every interval from the first look on holds the truth in 95 of them."""
    held, truth = 0, np.linspace(-0.1, 0.1, 8)
    rules = Rules(0.02, 0.4, 400, 8, anytime=True)
    for seed in range(100):
        exact, first = effects(np.random.default_rng([13, seed]), truth, 400, 0.3, noise=0.5)
        some = control_of(exact[:, :64], first) if control else None
        inside = True
        for n in range(64, 401, 8):
            found = estimated(exact[:, :n], 400, first_order=first[:, :n] if control else None, control=some)
            inside &= bool((np.abs(found.value - truth) <= sequence_half_widths(found, rules, some)).all())
        held += inside
    assert held >= 95 - 2


def test_the_variance_counts_rows_that_are_in_both_means():
    """theta's spread over 2000 races is its SE; adding the two means' variances would be wrong."""
    generator, found, said = np.random.default_rng(14), [], []
    for _ in range(2000):
        exact, first = effects(generator, [0.1], 256, 0.3, noise=0.3)
        estimate = estimated(exact[:, :64], 256, first_order=first[:, :64], control=control_of(exact[:, :64], first))
        found.append(estimate.value[0])
        said.append(estimate.error[0])
    assert np.mean(said) == pytest.approx(np.std(found), rel=0.05)


def test_the_look_of_a_verdict_is_foreseen_as_a_loop_over_looks_says():
    rules, generator = Rules(0.05, 0.2, 300, 5, first=16), np.random.default_rng(4)
    exact, first = effects(generator, [0.3, 0.08, 0.0, 0.052, -0.4], 16, 0.2)
    estimate = estimated(exact, 300, first_order=first, control=control_of(exact, np.tile(first, 20)[:, :300]))
    plain = estimated(exact, 300)
    for some, control in ((estimate, True), (plain, False)):
        beside = control_of(exact, first).beside if control else None
        found = foreseen(some, rules, plain.residual, beside=beside)
        for head in range(5):
            needed = 300
            for n in sorted(rules.looks, reverse=True):
                far = stats.t.ppf(1 - 0.05 / (2 * 5 * len(rules.looks)), n - 2)
                left = some.residual[head]
                error = left / math.sqrt(n)
                if control:
                    error = math.sqrt(plain.residual[head] ** 2 / 300 + left**2 * (1 / n - 1 / 300))
                most = 0.2 + (beside[head] if control else 0)
                if far * error + most * math.log(5 / 0.05) / n <= abs(abs(some.value[head]) - 0.05):
                    needed = n
            assert found[head] == needed
        assert len(set(found.tolist())) > 1


def test_what_a_race_costs_with_and_without_first_order_effects_by_hand():
    rules, generator = Rules(0.05, 0.2, 256, 4, first=32), np.random.default_rng(11)
    exact, first = effects(generator, [0.2, 0.07, 0.0, -0.1], 32, 0.25, noise=0.3)
    work = Work(np.array([0.5, 0.25, 1.0, 0.75]), 3.0)
    choice = choose(exact, first, rules, work)
    slopes = [np.polyfit(first[head], exact[head], 1)[0] for head in range(4)]
    rest = exact - np.array(slopes)[:, None] * first
    own, left = exact.std(1, ddof=1), rest.std(1, ddof=2)
    costs = []
    for spread, control in ((own, False), (left, True)):
        stops = []
        for head in range(4):
            stop = 256
            for n in (256, 192, 128, 96, 64, 32):
                error = spread[head] / math.sqrt(n)
                if control:
                    error = math.sqrt(own[head] ** 2 / 256 + spread[head] ** 2 * (1 / n - 1 / 256))
                most = 0.2 + (abs(slopes[head]) * np.abs(first[head]).max() if control else 0)
                half = stats.t.ppf(1 - 0.05 / (2 * 4 * 6), n - 2) * error + most * math.log(4 / 0.05) / n
                if half <= abs(abs(exact[head].mean()) - 0.05):
                    stop = n
            stops.append(stop)
        steps = sum(cost * (stop - 32) for cost, stop in zip(work.heads.tolist(), stops, strict=True)) + max(stops) - 32
        costs.append(steps + (3.0 * (256 - 32) if control else 0))
    assert (choice.without, choice.with_control) == pytest.approx(tuple(costs))
    assert choice.use == (costs[1] < costs[0])


def test_a_first_order_effect_that_does_not_vary_has_slope_0():
    exact = np.array([[0.1, 0.4, -0.2], [0.3, 0.1, 0.2]])
    assert slope_of(exact, np.array([[0.5, 0.5, 0.5], [0.2, 0.4, 0.6]])).tolist() == pytest.approx(
        [0.0, np.polyfit([0.2, 0.4, 0.6], exact[1], 1)[0]]
    )


def test_before_the_first_look_rows_are_counted_as_none():
    state = standings(np.full((2, 64), np.nan), Rules(0.1, 2.0, 64, 2))
    assert state.rows.tolist() == [0, 0]
    assert state.rows.dtype.kind == "i"
    assert state.verdicts == ["open", "open"]
    for values in (state.value, state.low, state.high, state.always_low, state.always_high):
        assert np.isnan(values).all()
