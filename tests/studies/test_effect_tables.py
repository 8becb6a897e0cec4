"""Tables of studies that ablate, patch, cut and perturb, from figures made by hand: every column by another way."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.errors import InputError
from core.studies.ablation.importance import STUDY as IMPORTANCE
from core.studies.ablation.importance import Weighed
from core.studies.ablation.knockout import STUDY as KNOCKOUT
from core.studies.ablation.knockout import Knocked
from core.studies.ablation.operators import STUDY as OPERATORS
from core.studies.ablation.operators import Effects
from core.studies.ablation.patch import STUDY as PATCH
from core.studies.ablation.patch import PatchPartial
from core.studies.ablation.perturb import STUDY as PERTURB
from core.studies.ablation.perturb import Perturbations, corrected
from core.studies.ablation.records import ImportantHead, Perturbation
from core.studies.ablation.separators import STUDY as SEPARATORS
from core.studies.ablation.separators import Slopes
from core.studies.headline import HeadScores
from tests.studies.figures import figures

SWAY = np.tile([-0.2, -0.1, -0.1, 0.0, 0.0, 0.1, 0.1, 0.2], 20)  # symmetric, so that Student's interval is the one
ABOUT = {"checkpoint": "x", "task": "sst2"}


def student(values):
    return pytest.approx(stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values)), rel=1e-6)


def of(results, kind):
    return [result for result in results if kind in result.KINDS]


def rows_of(results):
    return [result.as_row() for result in results]


# ---------------------------------------------------------------- importance

TOTAL = np.array([[6.0, 8.0, 0.0], [np.nan] * 3, [30.0, 10.0, 20.0]])  # the middle layer has no attention


def weighed():
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 2, 40)
    plain = np.where(np.arange(40) % 10, gold, 1 - gold)
    changed = np.array([np.where(np.arange(40) < count, 1 - gold, plain) for count in (0, 30, 2, 20, 5, 10)])
    moved = np.array([0.3, 0.1, 0.2, 0.6, 0.4, 0.5])[:, None] + 0 * gold
    return Weighed(np.arange(40), TOTAL, 7 * TOTAL + 1, 20, 100, gold, plain, changed, moved)


@pytest.mark.parametrize(("reading", "normalize"), [("example", True), ("example", False), ("token", True)])
def test_importance_is_a_mean_scaled_in_its_layer_and_compared_with_what_a_sweep_measured(reading, normalize):
    merged = weighed()
    options = IMPORTANCE.read(ABOUT | {"reading": reading, "normalize": normalize})
    raw = TOTAL / 20 if reading == "example" else (7 * TOTAL + 1) / 100
    expected = {}
    for layer, head in [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (2, 2)]:
        size = np.sqrt(sum(value**2 for value in raw[layer])) if normalize else 1
        expected[layer, head] = raw[layer, head] / size
    results = IMPORTANCE.results(options, merged)
    heads = of(results, "head")
    assert [(one.layer, one.head) for one in heads] == sorted(expected, key=lambda at: (-expected[at], at))
    for rank, one in enumerate(heads, start=1):
        at = (one.layer, one.head)
        assert (one.rank, one.name, one.n) == (rank, f"L{one.layer + 1}H{one.head + 1}", 20)
        assert (one.value, one.gradient) == pytest.approx((expected[at], raw[at]))
        assert (one.statistic, one.feature, one.task) == ("importance", "sst2", "sst2")
    right = merged.plain == merged.gold
    measured = {
        "loss of accuracy": [(right.mean() - (row == merged.gold).mean()) for row in merged.changed],
        "mean change of logits": merged.moved[:, 0],
        "predictions changed": [(row != merged.plain).sum() for row in merged.changed],
    }
    agreements = of(results, "correlation")
    assert [one.name for one in agreements] == list(measured)
    for one in agreements:
        rho = stats.spearmanr(list(expected.values()), measured[one.name])
        tau = stats.kendalltau(list(expected.values()), measured[one.name])
        assert (one.spearman, one.p, one.kendall) == pytest.approx((rho.statistic, rho.pvalue, tau.statistic))
        assert (one.operator, one.n) == ("zero", 6)
    said = IMPORTANCE.headline(rows_of(results))
    most = max(heads, key=lambda one: one.gradient)
    assert figures(said.sentence) == figures(
        f"By gradient importance, the loss depends most on head {most.name} ({most.gradient:.2g}) and least on head "
        f"L1H3 ({raw[0, 2]:.2g})."
    )
    first = agreements[0]
    assert f"{first.spearman:.2f}" in said.interval
    bare = replace(merged, plain=None, changed=None, moved=None)
    alone = IMPORTANCE.results(IMPORTANCE.read(ABOUT | {"sweep": False}), bare)
    assert {type(one) for one in alone} == {ImportantHead}
    assert figures(IMPORTANCE.headline(rows_of(alone)).interval) == figures(
        "The gradient is an estimate without an interval."
    )
    of_scores = IMPORTANCE.read(ABOUT | {"task": "stsb"})
    names = [one.name for one in of(IMPORTANCE.results(of_scores, merged), "correlation")]
    assert names == ["loss of pearson", "mean change of logits"]


def test_a_heads_importance_has_its_rank_among_all_heads():
    every = pd.DataFrame(
        [("importance", value, None, None, "run 3") for value in (0.2, 0.5, 0.9, np.nan)] + [("other", 5.0, 1, 2, "r")],
        columns=("score", "value", "low", "high", "source"),
    )
    (fact,) = IMPORTANCE.facts(HeadScores(every.iloc[[1, 4]], every))
    assert figures(fact.text) == figures("The gradient importance of this head is 0.50 (rank 2 among 3 heads).")
    assert fact.source == "run 3"


# ---------------------------------------------------------------- ablation methods


def effects():
    """Three heads under two methods; both find the first and rank the others otherwise."""
    changes = np.array([[0.5, 0.01, -0.3], [0.4, -0.02, 0.005]])[:, :, None] + np.array([1, 2, 1])[:, None] * SWAY
    fitting = np.array([[0.7, 0.6, 0.5], [0.9, 0.8, 0.7], [0.4, 0.3, 0.2]])
    return Effects(3, 1, ("zero", "constant"), 0.6 + SWAY, changes, fitting, numbers=np.arange(2))


def test_each_method_has_its_effects_and_two_methods_their_agreement():
    merged = effects()
    options = OPERATORS.read(ABOUT | {"operators": ["zero", "constant"], "seed": 3})
    results = OPERATORS.results(options, merged)
    (untouched,), found = of(results, "baseline"), of(results, "effect")
    assert (untouched.loss, untouched.n, untouched.task) == (pytest.approx(0.6), 160, "sst2")
    assert [(one.operator, one.name) for one in found] == [
        (operator, f"L{layer}H1") for operator in ("zero", "constant") for layer in (1, 2, 3)
    ]
    for one in found:
        number = ("zero", "constant").index(one.operator)
        values = merged.changes[number, one.layer]
        assert one.value == pytest.approx(values.mean())
        assert (one.low, one.high) == student(values)
        assert (one.statistic, one.feature, one.n) == (f"{one.operator} loss change", "sst2", 160)
        fits = (one.fit_mean, one.fit_zero, one.fit_constant)
        assert fits == (tuple(merged.fitting[:, one.layer]) if number else (None,) * 3)
    assert [one.p < 0.05 for one in found] == [True, False, True, True, False, False]
    (agreement,) = of(results, "agreement")
    tau = stats.kendalltau(merged.changes[0].mean(1), merged.changes[1].mean(1)).statistic
    assert (agreement.name, agreement.heads, agreement.n) == ("zero and constant", 3, 160)
    assert agreement.kendall == pytest.approx(tau, abs=0.35)  # over halves of the examples
    assert agreement.low is None  # of three heads there is no interval
    said = OPERATORS.headline(rows_of(results))
    assert figures(said.sentence) == figures(
        "Ablating head L1H1 by the method zero changes the loss most (+0.500). After correction, 3 of 6 effects are "
        "significant."
    )
    low, high = student(merged.changes[0, 0]).expected
    assert (said.n, said.interval) == (160, f"95 % CI {low:+.3f} to {high:+.3f}")
    assert figures(said.baseline) == figures("The unmodified model has a loss of 0.600.")
    table, sentence = OPERATORS.shown(rows_of(results))
    assert [row["name"] for row in table] == ["zero and constant"]
    assert figures(sentence) == figures(
        "The loss rises significantly (p < 0.05, corrected over heads and methods) under every one of 2 ablation "
        "methods for L1H1, and under only some of them for no head."
    )
    one_method = replace(merged, operators=("zero",), changes=merged.changes[:1], fitting=np.zeros((3, 0)))
    assert not of(OPERATORS.results(options, one_method), "agreement")
    lower = replace(merged, changes=merged.changes * np.array([1, -1])[:, None, None])
    _, other = OPERATORS.shown(rows_of(OPERATORS.results(options, lower)))
    assert other.index("no head") < other.index("L1H1")


# ---------------------------------------------------------------- patching


@pytest.mark.parametrize("what", ["heads", "layers"])
def test_a_patched_component_has_the_share_of_the_difference_that_comes_back(what):
    """B has more logits than A in every third pair; some pairs could not be made, and some hardly differ."""
    generator, pairs = np.random.default_rng(0), 160
    first = 1.5 + SWAY
    second = np.where(np.arange(pairs) % 3, first - 1 - SWAY, first + 1.5)
    second[:8] = first[:8] - 0.05
    made = np.ones(pairs)
    made[10:20] = 0
    shares = np.array([0.0, 0.6, -0.1, 0.3])[: 4 if what == "heads" else 2, None]
    shares = shares + generator.normal(0, 0.02, (len(shares), pairs))
    merged = PatchPartial(np.arange(pairs), 2, 2, made, first, second, second + shares * (first - second))
    options = PATCH.read(ABOUT | {"what": what, "kind": "mask"})
    found = PATCH.results(options, merged)
    kept = (made > 0) & (np.abs(first - second) >= 0.1)
    names = ["L1H1", "L1H2", "L2H1", "L2H2"] if what == "heads" else ["L1", "L2"]
    assert [one.name for one in found] == names
    for one, share in zip(found, shares, strict=True):
        weights = np.abs(first - second)[kept]
        assert one.recovered == pytest.approx((share[kept] * weights).sum() / weights.sum())
        assert one.low < one.recovered < one.high < one.recovered + 0.01
        assert (one.n, one.under_floor, one.not_made) == (kept.sum(), 8, 10)
        assert (one.what, one.made_by, one.task, one.operator) == (what, "mask", "sst2", "patch")
        is_head = what == "heads"
        assert (one.statistic, one.feature) == (("patch recovered", "sst2 mask") if is_head else (None, None))
        assert (one.value, one.baseline) == ((one.recovered, 0.0) if is_head else (None, None))
    assert [one.p < 0.05 for one in found] == [False, True, True, True][: len(names)]
    said = PATCH.headline(rows_of(found))
    best = found[1]
    assert figures(said.sentence) == figures(
        f"Patching {best.name} alone recovers {best.recovered:.0%} of the logit difference, more than patching any "
        f"other component. After correction, {len(names) - 1} of {len(names)} components have significant effects."
    )
    assert figures(said.interval) == figures(f"95 % CI {100 * best.low:.0f} to {100 * best.high:.0f}")
    (table,) = PATCH.shown(rows_of(found))
    assert [row["name"] for row in table] == [names[k] for k in np.argsort(-shares.mean(1))]
    with pytest.raises(InputError, match="changes none of the 160 examples"):
        PATCH.results(options, replace(merged, made=np.zeros(pairs)))


# ---------------------------------------------------------------- cut edges

GOLD = np.tile([0, 1], 40)
PLAIN = np.where(np.arange(80) < 10, 1 - GOLD, GOLD)


def wrong(count):
    """Predictions of which so many more are wrong."""
    return np.where((np.arange(80) >= 10) & (np.arange(80) < 10 + count), 1 - GOLD, PLAIN)


@pytest.mark.parametrize("renormalise", [True, False])
def test_cuts_are_named_by_their_edges_and_layers(renormalise):
    having = np.array([[1] * 80, [1] * 30 + [0] * 50, [0] * 80])
    counts = [0, 20, 30, 0, 0, 5, 0, 0, 10]
    moved = np.stack([0.5 + SWAY[:80], 0.2 - SWAY[:80]])
    links = np.array([np.tile([2, 0], 40), np.tile([1, 0], 40)])
    merged = Knocked(
        np.arange(80), 3, GOLD, PLAIN, np.array([wrong(count) for count in counts]), having, moved, links, (0, 2)
    )
    edges = ["first", "noun-verb", "noun-adjective"]
    options = KNOCKOUT.read(ABOUT | {"edges": edges, "renormalise": renormalise})
    results = KNOCKOUT.results(options, merged)
    (untouched,), cuts, (contrast,) = of(results, "baseline"), of(results, "cut"), of(results, "link contrast")
    how = "knockout, renormalised" if renormalise else "knockout, weights set to 0"
    assert (untouched.operator, untouched.n, untouched.metrics.first.value) == (how, 80, pytest.approx(70 / 80))
    assert [(one.edges, one.name, one.layer) for one in cuts] == [
        (kind, f"{kind} in {place}", layer)
        for kind in edges
        for place, layer in (("L1", 0), ("L3", 2), ("all layers", None))
    ]
    for one, count in zip(cuts, counts, strict=True):
        assert one.metrics.first.change.value == pytest.approx(-count / 80)
        assert (one.flipped, one.operator, one.task) == (count, how, "sst2")
    assert [one.with_edges for one in cuts[::3]] == [80, 30, 0]
    assert (contrast.first, contrast.other, contrast.links, contrast.n) == ("noun-verb", "noun-adjective", 40, 40)
    apart = (moved[0] - moved[1])[::2]
    assert contrast.value == pytest.approx(apart.mean())
    assert (contrast.low, contrast.high) == student(apart)
    assert (contrast.first_moves, contrast.other_moves) == pytest.approx((moved[0, ::2].mean(), moved[1, ::2].mean()))
    said = KNOCKOUT.headline(rows_of(results))
    assert figures(said.sentence) == figures(
        "Removing first (first in all layers) changes accuracy most, by -37.5 points, which is significant."
    )
    assert figures(said.baseline) == figures("The unmodified model scores 87.5.")
    still = replace(merged, changed=np.array([PLAIN] * 9), moved=None, links=None)
    results = KNOCKOUT.results(options, still)
    assert not of(results, "link contrast")
    assert figures(KNOCKOUT.headline(rows_of(results)).sentence) == figures(
        "None of the 9 ablations changes a prediction."
    )


# ---------------------------------------------------------------- separators


def test_separators_have_their_gradients_weights_and_cuts_by_layer():
    generator = np.random.default_rng(2)
    to_separator, to_other = generator.uniform(0.1, 0.3, (2, 80)), generator.uniform(1, 2, (2, 80))
    to_separator[:, 70:] = np.nan  # inputs without a separator
    weight, norm = generator.uniform(0.3, 0.6, (2, 80)), np.full((2, 80), np.nan)
    share = generator.uniform(0.1, 0.2, 80)
    changed = np.array([wrong(2), wrong(0), wrong(20)])
    merged = Slopes(np.arange(80), 2, to_separator, to_other, weight, norm, share, GOLD, PLAIN, changed)
    results = SEPARATORS.results(SEPARATORS.read(ABOUT), merged)
    (untouched,), layers = of(results, "baseline"), of(results, "layer")
    assert untouched.metrics.first.value == pytest.approx(70 / 80)
    assert [(one.name, one.layer) for one in layers] == [("L1", 0), ("L2", 1), ("all layers", None)]
    assert [one.metrics.first.change.value for one in layers] == pytest.approx([-2 / 80, 0, -20 / 80])
    for one in layers[:2]:
        own, others = to_separator[one.layer, :70], to_other[one.layer, :70]
        assert (one.gradient_separator, one.gradient_other) == pytest.approx((own.mean(), others.mean()))
        assert one.ratio == pytest.approx(own.mean() / others.mean())
        left = [np.delete(own, k).sum() / np.delete(others, k).sum() for k in range(70)]
        reach = stats.t.ppf(0.975, 69) * np.sqrt(69 * np.var(left))
        assert (one.ratio - one.ratio_low, one.ratio_high - one.ratio) == pytest.approx((reach, reach), rel=0.15)
        assert one.weight_on_separators == pytest.approx(weight[one.layer, :70].mean())
        ends = (one.weight_on_separators_low, one.weight_on_separators_high)
        wanted = weight[one.layer, :70]
        assert ends == pytest.approx(stats.t.interval(0.95, 69, wanted.mean(), stats.sem(wanted)), abs=0.003)
        assert (one.norm_on_separators, one.norm_on_separators_low) == (None, None)
        assert (one.separators_of_pieces, one.with_separators) == (pytest.approx(share[:70].mean()), 70)
    assert (layers[2].ratio, layers[2].with_separators) == (None, None)
    said = SEPARATORS.headline(rows_of(results))
    assert figures(said.sentence) == figures(
        "Removing attention to separators (all layers) changes accuracy most, by -25.0 points, which is significant."
    )
    none = replace(merged, to_separator=np.full((2, 80), np.nan))
    for one in of(SEPARATORS.results(SEPARATORS.read(ABOUT), none), "layer"):
        assert (one.gradient_separator, one.ratio, one.ratio_low, one.with_separators) == (None,) * 4
    only = replace(merged, layers=1, changed=changed[:1])
    assert [one.name for one in of(SEPARATORS.results(SEPARATORS.read(ABOUT), only), "layer")] == ["L1"]


# ---------------------------------------------------------------- perturbed inputs


def test_a_perturbation_counts_only_the_rows_that_have_what_it_changes():
    made = np.array([[1] * 80, [1] * 40 + [0] * 40, [1] + [0] * 79, [1] * 80])
    changed = np.array([wrong(30), wrong(4), wrong(0), wrong(0)])
    moved = np.stack([-0.3 + SWAY[:80], np.where(made[1], -0.1, 9.0), SWAY[:80], SWAY[:80] * 0])
    kinds = ["drop", "mask", "negate", "first-only"]
    merged = Perturbations(np.arange(80), GOLD, PLAIN, changed, made, moved)
    results = PERTURB.results(PERTURB.read(ABOUT | {"kinds": kinds}), merged)
    (untouched,), found = of(results, "baseline"), [one for one in results if isinstance(one, Perturbation)]
    assert (untouched.metrics.first.value, untouched.constant, untouched.n) == (pytest.approx(70 / 80), 0.5, 80)
    assert [(one.name, one.kind, one.n, one.of_rows) for one in found] == [
        ("drop", "perturbation", 80, 80),
        ("mask", "perturbation", 40, 80),
        ("negate", "perturbation", 1, 80),
        ("first-only", "partial input", 80, 80),
    ]
    drop, mask, negate, first = found
    assert (drop.flipped, drop.changed_rate, drop.probability_change) == (30, 30 / 80, pytest.approx(-0.3))
    assert (mask.flipped, mask.changed_rate, mask.probability_change) == (4, 4 / 40, pytest.approx(-0.1))
    assert mask.metrics.first.full == pytest.approx(30 / 40)  # of whole inputs, on the same rows
    assert mask.metrics.first.change.value == pytest.approx(-4 / 40)
    assert mask.constant == 0.5
    assert (negate.p, negate.changed_rate) == (None, None)
    assert negate.note
    assert drop.p < 0.05 < mask.p
    assert first.p == 1
    said = PERTURB.headline(rows_of(results))
    assert figures(said.sentence) == figures(
        "The perturbation drop changes the most predictions (38% of them), and the perturbation mask changes the "
        "fewest (10%)."
    )
    assert figures(said.interval) == figures(f"95 % CI {100 * drop.changed_low:.0f} to {100 * drop.changed_high:.0f}")
    (warning,) = PERTURB.warnings(rows_of(results))
    assert "negate" in warning
    assert figures(warning) == ["1", "80", "not"]


def test_ps_of_perturbations_are_corrected_by_holm_over_those_that_have_one():
    bare = of(PERTURB.results(PERTURB.read(ABOUT | {"kinds": ["drop"]}), Perturbations(
        np.arange(80), GOLD, PLAIN, PLAIN[None], np.ones((1, 80)), np.zeros((1, 80)))), "perturbation")[0]  # fmt: skip
    found = corrected([replace(bare, p=p) for p in (0.01, None, 0.04, 0.03)])
    assert [one.p and round(one.p, 9) for one in found] == [0.03, None, 0.06, 0.06]
    assert corrected([replace(bare, p=None)])[0].p is None
