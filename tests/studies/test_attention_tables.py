"""Scores and sentences of studies of attention, from sums made by hand: every column is a mean that a loop gives."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.attention import Head
from core.scoring.definitions import QUANTITIES, STATISTICS, TYPES
from core.scoring.intervals import Means
from core.scoring.roles import ROLES
from core.studies.attention.dependencies import STUDY as DEPENDENCIES
from core.studies.attention.effective import STUDY as EFFECTIVE
from core.studies.attention.effective import by_length
from core.studies.attention.partials import (
    EffectiveSums,
    InputOffset,
    PatternSums,
    RelationSums,
    RoleSums,
    StatisticsSums,
)
from core.studies.attention.records import (
    AlikeHead,
    DependencyScore,
    GroupMember,
    HeadGroup,
    LengthCorrelation,
    RelationScore,
    above_null,
    outstanding,
)
from core.studies.attention.redundancy import STUDY as REDUNDANCY
from core.studies.attention.relations import STUDY as RELATIONS
from core.studies.attention.roles import STUDY as ROLES_STUDY
from core.studies.attention.statistics import STUDY as STATISTICS_STUDY
from core.studies.headline import HeadScores
from tests.studies.figures import figures

INPUTS = 40
AT = InputOffset("c", "mrpc", 0)
LAYERS, HEADS, ATTENDING = 3, 2, (0, 2)
NAMES = [Head(layer, head) for layer in ATTENDING for head in range(HEADS)]


def means_of(values, counts=None):
    """An accumulator of values [input, layer, head, statistic]; the middle layer has no attention."""
    whole = Means(*values.shape[1:])
    counts = np.ones((len(values), values.shape[-1])) if counts is None else counts
    for layer in ATTENDING:
        whole.update(layer, values[:, layer] * counts[:, None], counts, range(len(values)))
    return whole


def drawn(width, seed=0, spread=0.05):
    chance = np.random.default_rng(seed)
    return chance.uniform(0.1, 0.5, (LAYERS, HEADS, width)) + chance.normal(0, spread, (INPUTS, LAYERS, HEADS, width))


def ends(values):
    """Student's interval, but for what lean and rounding add."""
    return pytest.approx(stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values)), rel=0.02)


def rows_of(results):
    return [result.as_row() for result in results]


# ---------------------------------------------------------------- relations


@pytest.mark.parametrize("causal", [False, True])
def test_a_relation_has_each_direction_beside_its_null_and_fixed_distances(causal):
    names = ("verb-object", "same-word", "determiner-noun")
    values = drawn(len(names) * 2 * len(QUANTITIES))
    counts = np.ones((INPUTS, values.shape[-1]))
    counts[:, 2 * 2 * len(QUANTITIES) :] = 0  # no input has the last relation
    by_turn = values.reshape(INPUTS, LAYERS, HEADS, len(names), 2, len(QUANTITIES))
    by_turn[:, 2, 1, 0, 0, 3] -= 0.4  # no contrast
    distances = ({-1: 3, 1: 5, 2: 8}, {4: 2}, {})
    sums = RelationSums(AT, LAYERS, HEADS, causal, means_of(values, counts), names, distances, attending=ATTENDING)
    scores = RELATIONS.scores(RELATIONS.read({"checkpoint": "c"}), sums)
    notes = [score for score in scores if score.note]
    assert [(one.feature, one.statistic, one.n, one.value) for one in notes] == [
        ("determiner-noun", direction, 0, None) for direction in ("forward", "backward")
    ]
    found = [score for score in scores if not score.note]
    turns = [(name, turn) for name in (0, 1) for turn in (0, 1)]
    assert [(one.feature, one.statistic, one.layer, one.head) for one in found] == [
        (names[name], ("forward", "backward")[turn], *head) for name, turn in turns for head in NAMES
    ]
    ps = []
    for one in found:
        own = by_turn[:, one.layer, one.head, names.index(one.feature), int(one.statistic == "backward")].T
        weight, excess, accuracy, contrast = own
        assert (one.value, one.effect, one.baseline) == pytest.approx(
            (weight.mean(), excess.mean(), (weight - excess).mean())
        )
        assert (one.low, one.high) == ends(weight)
        assert (one.effect_low, one.effect_high) == ends(excess)
        assert (one.accuracy, one.contrast) == pytest.approx((accuracy.mean(), contrast.mean()))
        assert (one.accuracy_low, one.accuracy_high) == ends(accuracy)
        assert (one.contrast_low, one.contrast_high) == ends(contrast)
        assert (one.n, one.checkpoint, one.task) == (INPUTS, "c", "mrpc")
        ps.append(max(stats.ttest_1samp(some, 0, alternative="greater").pvalue for some in (excess, contrast)))
        assert one.p == pytest.approx(ps[-1], rel=0.5, abs=1e-6)
        fixed = (one.best_distance, one.best_distance_accuracy, one.previous_accuracy, one.next_accuracy)
        if one.feature == "same-word":
            assert fixed == (None,) * 4  # across sentences
        elif not causal:
            assert fixed == pytest.approx((2, 0.5, 3 / 16, 5 / 16))
        else:
            assert fixed == pytest.approx((-1, 1, 1, 0) if one.statistic == "forward" else (2, 8 / 13, 0, 5 / 13))
    assert [one.q for one in found] == pytest.approx(stats.false_discovery_control([one.p for one in found]))
    assert ps[3] > 0.5 > 0.05 > max(ps[:3])


def relation(**changed):
    usual = {"checkpoint": "c", "task": "mrpc", "statistic": "forward", "feature": "subject", "layer": 0, "head": 1,
             "value": 0.4, "low": 0.3, "high": 0.5, "n": 12, "baseline": 0.1, "effect": 0.3, "q": 0.01}  # fmt: skip
    return RelationScore(**usual | changed)


def test_the_sentence_of_scores_above_their_baseline_names_the_strongest_significant_one():
    scores = [
        relation(),
        relation(layer=1, effect=0.5, value=0.9, q=0.2),
        relation(layer=2, effect=0.1, value=0.2),
        relation(layer=3, effect=-0.9, q=0.001),
        relation(checkpoint="d", layer=4, effect=0.9),
        relation(layer=None, effect=None, value=None, q=None),
    ]
    how = {"baseline": "other words", "of": "links"}
    said = above_null(scores, "pairs", lambda score: f"Head {score.name} is first", **how)
    assert figures(said.sentence) == figures(
        "In 2 of 4 pairs, attention is significantly higher than for other words. Head L1H2 is first: 0.40, compared "
        "with 0.10."
    )
    assert (said.n, said.of, said.interval) == (12, "links", "L1H2 has a 95 % CI of 0.30 to 0.50.")
    assert figures(said.baseline) == figures("The baseline (other words) has a value of 0.10.")
    none = above_null([scores[1], relation(q=None), scores[3]], "pairs", str, **how)
    assert figures(none.sentence) == figures(
        "Attention is not significantly higher than for other words in any of 3 pairs. The largest difference is that "
        "of head L2H2 and subject: 0.90, compared with 0.10."
    )
    assert above_null(scores[-1:], "pairs", str, **how).sentence.endswith("so it measured no head.")
    assert above_null([], "pairs", str, **how).sentence.startswith("No input contains")


def test_the_sentence_of_dependencies_names_the_relation_that_is_furthest_above_its_baseline():
    def score(**changed):
        usual = {"checkpoint": "c", "task": "mrpc", "statistic": "dependent to head", "feature": "obj", "layer": 0,
                 "head": 1, "value": 0.6, "low": 0.5, "high": 0.7, "n": 12, "baseline": 0.4, "q": 0.01,
                 "chosen": True}  # fmt: skip
        return DependencyScore(**usual | changed)

    scores = [
        score(),
        score(layer=1, feature="nsubj", value=0.9, high=1.02, baseline=0.6, n=7),
        score(layer=2, feature="det", value=0.9, baseline=0.1, q=0.05),  # not significant
        score(layer=3, feature="amod", value=0.9, baseline=0.1, chosen=False),
    ]
    said = DEPENDENCIES.headline(rows_of(scores))
    assert figures(said.sentence) == figures("Head L2H2 with an accuracy of 0.90. For 2 of 3 relations")
    assert "nsubj" in said.sentence
    assert (said.n, said.of, said.interval) == (7, "links", "95 % CI 0.50 to 1.00")
    assert figures(said.baseline) == ["0.60"]
    untested = DEPENDENCIES.headline(rows_of([score(q=None), score(layer=1, q=None, value=0.7)]))
    assert untested.sentence.startswith("Head L2H2 ")
    assert " does not test " in untested.sentence


def test_a_table_has_the_three_largest_of_each_score_and_the_notes_once():
    rows = [relation(layer=layer, effect=effect).as_row() for layer, effect in enumerate((0.1, 0.5, 0.3, 0.4))]
    rows += [relation(feature="object", effect=0.9).as_row(), relation(task="sst2", effect=0.2).as_row()]
    rows += [relation(checkpoint="difference", layer=5, value=value, effect=None).as_row() for value in (-0.7, 0.2)]
    rows.append(relation(feature="rare", effect=None, value=None, layer=None, n=0, note="no links").as_row())
    rows.append(rows[-1])
    rows.append(relation(effect=5).as_row() | {"chosen": False})
    table, *notes = outstanding(rows, "effect")
    assert [(row["task"], row["feature"], row["head"], row["value"]) for row in table] == [
        ("mrpc", "subject", "L2H2", 0.4), ("mrpc", "subject", "L4H2", 0.4), ("mrpc", "subject", "L3H2", 0.4),
        ("mrpc", "object", "L1H2", 0.4), ("sst2", "subject", "L1H2", 0.4),
        ("mrpc", "subject", "L6H2", -0.7), ("mrpc", "subject", "L6H2", 0.2),
    ]  # fmt: skip
    assert notes == ["rare: no links"]


# ---------------------------------------------------------------- statistics


def test_statistics_have_a_mean_for_each_head_and_a_place_by_their_distances():
    values = drawn(len(STATISTICS))
    numbers = {name: k for k, name in enumerate(STATISTICS)}
    values[..., [numbers[name] for name in ("previous", "next", "first", "separator")]] = 0.1
    values[:, 0, 0, numbers["previous"]], values[:, 2, 1, numbers["first"]] = 0.9, 0.8
    values[..., numbers["normalised entropy"]] = 0.2
    values[:, 0, 1, numbers["normalised entropy"]] = 0.95
    counts = np.ones((INPUTS, len(STATISTICS)))
    counts[:, numbers["separator"]] = 0
    rows, apart = 50, np.zeros((6, 6))
    for first, second, distance in ((0, 1, 0.2), (0, 4, 0.5), (0, 5, 0.4), (1, 4, 0.3), (1, 5, 0.6), (4, 5, 0.1)):
        apart[first, second] = apart[second, first] = rows * distance
    sums = StatisticsSums(AT, LAYERS, HEADS, False, means_of(values, counts), apart, rows, attending=ATTENDING)
    scores = STATISTICS_STUDY.scores(STATISTICS_STUDY.read({"checkpoint": "c"}), sums)
    for name, number in numbers.items():
        mine = [score for score in scores if score.statistic == name]
        if name == "separator":
            assert [(one.value, one.n, one.note) for one in mine] == [(None, 0, "not defined on these inputs")]
            continue
        assert [(one.layer, one.head) for one in mine] == [tuple(head) for head in NAMES]
        assert [one.value for one in mine] == pytest.approx([values[:, *head, number].mean() for head in NAMES])
    places = [score for score in scores if score.statistic == "place"]
    assert [(one.layer, one.head) for one in places] == [tuple(head) for head in NAMES]
    means = [(0.2 + 0.5 + 0.4) / 3, (0.2 + 0.3 + 0.6) / 3, (0.5 + 0.3 + 0.1) / 3, (0.4 + 0.6 + 0.1) / 3]
    assert [one.value for one in places] == pytest.approx(means)
    assert [one.sum for one in places] == pytest.approx([rows * mean for mean in means])
    assert [one.kind for one in places] == ["previous", "broad", "other", "first"]
    assert {(one.n, one.queries) for one in places} == {(INPUTS, rows)}
    drawn_apart = [[np.hypot(a.x - b.x, a.y - b.y) for b in places] for a in places]
    pairs = np.triu_indices(4, 1)
    wanted = (apart / rows)[np.ix_([0, 1, 4, 5], [0, 1, 4, 5])][pairs]
    assert stats.spearmanr(np.array(drawn_apart)[pairs], wanted).statistic > 0.9
    said = STATISTICS_STUDY.headline(rows_of(scores))
    assert figures(said.sentence) == figures(
        "Among the 4 heads of the model, 1 attend mostly to the previous token, 1 attend broadly, 1 show none of these "
        "behaviours, 1 attend mostly to the first token on MRPC."
    )
    assert (said.n, said.of) == (INPUTS, "inputs")
    sums.distances[0, 1] = np.nan
    again = STATISTICS_STUDY.scores(STATISTICS_STUDY.read({"checkpoint": "c"}), sums)
    assert not [score for score in again if score.statistic == "place"]


# ---------------------------------------------------------------- effective attention


def test_effective_attention_has_its_types_its_correlation_and_lengths_in_bins():
    values = drawn(2 * len(TYPES) + 1)
    values[..., -1] = 0.9 + values[..., -1] / 10
    counts = np.ones((INPUTS, 2 * len(TYPES) + 1))
    empty = list(TYPES).index("punctuation")
    counts[:, [empty, len(TYPES) + empty]] = 0
    by_lengths = {8: (7.99, 8), 1: (1.0, 1), 9: (1.0, 2), 16: (2.1, 3), 17: (0.5, 1)}
    squares = {8: 7.99, 1: 1.0, 9: 0.52, 16: 1.49, 17: 0.25}
    sums = EffectiveSums(AT, LAYERS, HEADS, False, means_of(values, counts), by_lengths, squares, attending=ATTENDING)
    results = EFFECTIVE.scores(EFFECTIVE.read({"checkpoint": "c"}), sums)
    lengths = [one for one in results if isinstance(one, LengthCorrelation)]
    scores = [one for one in results if not isinstance(one, LengthCorrelation)]
    expected = [(kind, type_) for kind in ("raw", "effective") for type_ in TYPES] + [("correlation", None)]
    for number, (statistic, feature) in enumerate(expected):
        mine = [one for one in scores if (one.statistic, one.feature) == (statistic, feature)]
        if feature == "punctuation":
            assert [(one.value, one.note) for one in mine] == [(None, "no input has such tokens")]
        else:
            assert [one.value for one in mine] == pytest.approx([values[:, *head, number].mean() for head in NAMES])
    assert [(one.length_from, one.length_to, one.n) for one in lengths] == [(1, 8, 9), (9, 16, 5), (17, 24, 1)]
    assert [one.mean for one in lengths] == pytest.approx([8.99 / 9, 3.1 / 5, 0.5])
    variance = (2.01 - 5 * 0.62**2) / 4
    reach = stats.t.ppf(0.975, 4) * (variance / 5) ** 0.5
    assert (lengths[1].low, lengths[1].high) == pytest.approx((0.62 - reach, 0.62 + reach))
    assert (lengths[2].low, lengths[2].high) == (None, None)
    said = EFFECTIVE.headline(rows_of(results))
    least = min((values[:, *head, -1].mean(), head) for head in NAMES)
    assert figures(said.sentence) == figures(
        "Raw and effective attention differ on all 15 inputs: r = 0.84 on average."
    )
    assert {str(least[1]), f"{least[0]:.2f}"} <= set(figures(said.interval))
    assert (said.n, said.of) == (INPUTS, "inputs")
    equal = EFFECTIVE.headline(rows_of([*scores, length(1, 1.0, 4), length(9, 0.6, 5)]))
    assert figures(equal.interval) == figures(
        "The correlation r is the mean over heads and longer inputs, without a confidence interval."
    )
    alone = EFFECTIVE.headline(rows_of(scores)).sentence
    mean = np.mean([values[:, *head, -1].mean() for head in NAMES])
    assert figures(alone) == [f"{mean:.2f}"]


def length(start, mean, n):
    return LengthCorrelation(task="mrpc", length_from=start, length_to=start + 7, mean=mean, n=n)


def test_lengths_are_divided_into_those_with_equal_attention_and_longer_ones():
    assert by_length([]) == ""
    assert figures(by_length([length(1, 1.0, 3)])) == ["8"]
    some = [length(1, 1.0, 3), length(9, 0.9996, 2), length(17, 0.9, 1), length(25, 0.5, 3)]
    assert figures(by_length(some, " over A, B")) == ["0.60", "16", "4"]
    assert "over A, B" in by_length(some, " over A, B")
    assert figures(by_length(some[:3])) == ["0.90", "16"]


# ---------------------------------------------------------------- roles


def test_a_role_has_its_weight_and_its_excess_and_needs_three_times_its_baseline():
    values = drawn(4 * len(ROLES), spread=0.02).reshape(INPUTS, LAYERS, HEADS, len(ROLES), 4)
    values[..., 0] = values[..., 2] = 0.5 + values[..., 0] / 10
    values[..., 1] = values[..., 3] = values[..., 0] - 0.3  # 0.3 even: not three times
    previous, first = ROLES.index("previous"), ROLES.index("first")
    values[:, 0, 1, previous, 1] = values[:, 0, 1, previous, 0] - 0.05
    values[:, 0, 1, previous, 3] = values[:, 0, 1, previous, 2] - 0.05
    counts = np.ones((INPUTS, len(ROLES), 4))
    counts[:, first, 2:] = 0
    counts[:, ROLES.index("dependency")] = 0
    whole = means_of(values.reshape(INPUTS, LAYERS, HEADS, -1), counts.reshape(INPUTS, -1))
    copying = np.arange(6.0).reshape(LAYERS, HEADS) / 10
    sums = RoleSums(AT, LAYERS, HEADS, False, whole, copying, attending=ATTENDING)
    scores = ROLES_STUDY.scores(ROLES_STUDY.read({"checkpoint": "c"}), sums)
    notes = {score.statistic: (score.note, score.n) for score in scores if score.note}
    assert notes == {
        "first without sink": ("not without the sink", 0),
        "dependency": ("no input has such tokens", 0),
        "dependency without sink": ("no input has such tokens", 0),
    }
    for score in scores:
        if score.note:
            continue
        at = (score.layer, score.head)
        if score.statistic == "copying":
            assert (score.value, score.n, score.role) == (copying[at], None, None)
            continue
        own = values[:, *at, ROLES.index(score.role)]
        shift = 2 * score.statistic.endswith("without sink")
        assert score.value == pytest.approx(own[:, shift].mean())
        assert (score.effect, score.baseline) == pytest.approx(
            (own[:, shift + 1].mean(), (own[:, shift] - own[:, shift + 1]).mean())
        )
        has = score.role == "previous" and at == (0, 1)
        assert (score.has, score.q < 0.05) == (has, has), score
    assert [tuple(score)[:2] for score in NAMES] == [
        (score.layer, score.head) for score in scores if score.statistic == "copying"
    ]
    said = ROLES_STUDY.headline(rows_of(scores))
    assert figures(said.sentence) == figures("1 head has a role, such as attending to the previous token: 1 previous.")
    twice = rows_of(
        [replace(one, **changed) for changed in ({}, {"task": "rte"}, {"checkpoint": "d"}) for one in scores]
    )
    assert ROLES_STUDY.headline(twice).sentence == said.sentence
    assert said.n == INPUTS
    strict = ROLES_STUDY.scores(ROLES_STUDY.read({"checkpoint": "c", "times": 40}), sums)
    assert not [score for score in strict if score.has]
    assert figures(ROLES_STUDY.headline(rows_of(strict)).sentence) == figures(
        "0 heads have a role, such as attending to the previous token."
    )
    bare = RoleSums(AT, LAYERS, HEADS, False, whole, np.zeros((0, 0)), attending=ATTENDING)
    assert "copying" not in {
        score.statistic for score in ROLES_STUDY.scores(ROLES_STUDY.read({"checkpoint": "c"}), bare)
    }


def own_scores(*rows):
    own = pd.DataFrame(rows, columns=("score", "value", "low", "high", "baseline", "q"))
    return HeadScores(own.assign(source=[f"run {k}" for k in range(len(rows))]), own)


def test_roles_of_a_head_are_told_from_the_largest_and_none_is_told_once():
    rows = [
        ("previous", 0.5, 0.4, 0.6, 0.1, 0.01),
        ("previous without sink", 0.6, 0.4, 0.7, 0.1, 0.01),
        ("first", 0.8, 0.7, 0.9, 0.2, 0.001),
        ("rare", 0.9, 0.7, 0.9, 0.5, 0.5),
        ("copying", 0.4, None, None, None, np.nan),
    ]
    told = ROLES_STUDY.facts(own_scores(*rows))
    assert [(fact.text, fact.source) for fact in told] == [
        ("The role of this head is first token (sink): 0.80 [0.70, 0.90] (baseline 0.20).", "run 2"),
        ("The role of this head is previous token: 0.50 [0.40, 0.60] (baseline 0.10).", "run 0"),
    ]
    (none,) = ROLES_STUDY.facts(own_scores(*rows[3:], ("next", 0.1, 0.0, 0.2, 0.1, 0.9)))
    assert none.text.startswith("This head has no role: among its 2 role scores, none is significantly above")
    assert none.source == "run 0"
    assert ROLES_STUDY.facts(own_scores(rows[-1])) == []


# ---------------------------------------------------------------- redundancy


def patterned(task="mrpc", checkpoint="c", swap=False):
    """Four heads of two kinds; heads of a kind are near. swap: other heads are of a kind."""
    kind = np.array([0, 1, 9, 9, 1, 0] if not swap else [0, 0, 9, 9, 1, 1])
    chance = np.random.default_rng(4 if swap else 3)
    apart = np.where(kind[:, None] == kind, 0.1, 0.5) + chance.uniform(0, 0.02, (6, 6))
    apart = (apart + apart.T) / 2
    np.fill_diagonal(apart, 0)
    shapes = np.stack([np.eye(4), np.full((4, 4), 0.25)])
    maps = shapes[np.minimum(kind, 1)].reshape(3, 2, 4, 4) * 20
    at = InputOffset(checkpoint, task, 0)
    return PatternSums(at, 3, 2, False, Means(3, 2, 0), apart * 50, 50, maps, 20, attending=ATTENDING), apart


def test_each_head_has_its_nearest_head_and_its_group_and_settings_are_compared():
    first, apart = patterned()
    other, _ = patterned(task="sst2")
    tuned, _ = patterned(checkpoint="d", swap=True)
    options = REDUNDANCY.read({"checkpoint": "c", "groups": 2})
    merged = type("Merged", (), {"pieces": (first, other, tuned)})
    results = REDUNDANCY.results(options, merged)
    about = {"checkpoint": "c", "task": "mrpc"}
    own = [one for one in results if all(getattr(one, key) == value for key, value in about.items())]
    heads = [one for one in own if isinstance(one, AlikeHead)]
    assert [(one.name, one.other) for one in heads] == [
        ("L1H1", "L3H2"),
        ("L1H2", "L3H1"),
        ("L3H1", "L1H2"),
        ("L3H2", "L1H1"),
    ]
    pairs = [(0, 5), (1, 4), (4, 1), (5, 0)]
    assert [one.value for one in heads] == pytest.approx([apart[pair] for pair in pairs])
    assert [one.group for one in heads] in ([1, 2, 2, 1], [2, 1, 1, 2])
    assert [one.clear for one in heads] == pytest.approx([1] * 4)
    assert {one.n for one in heads} == {50}
    members = [one for one in own if isinstance(one, GroupMember)]
    assert [(one.statistic, one.name, one.value, one.n) for one in members] == [
        (statistic, head.name, value, 20)
        for head in heads
        for statistic, value in (("group", head.group), ("clear", head.clear))
    ]
    groups = [one for one in own if isinstance(one, HeadGroup)]
    assert [(one.group, one.heads) for one in groups] == [(1, 2), (2, 2)]
    diagonal = groups[heads[0].group - 1].pattern
    assert diagonal == np.eye(4).tolist()
    kept = [one for one in results if getattr(one, "between", None)]
    assert [(one.between, one.checkpoint, one.task, one.other_checkpoint, one.other_task) for one in kept] == [
        ("task", "c", "mrpc", "c", "sst2"),
        ("checkpoint", "c", "mrpc", "d", "mrpc"),
        ("both", "c", "sst2", "d", "mrpc"),
    ]
    upper = np.triu_indices(4, 1)

    def distances(sums):
        return sums.distances[np.ix_([0, 1, 4, 5], [0, 1, 4, 5])][upper]

    for one, (a, b) in zip(kept, ((first, other), (first, tuned), (other, tuned)), strict=True):
        assert one.r == pytest.approx(np.corrcoef(distances(a), distances(b))[0, 1])
        assert one.n == 4
    said = REDUNDANCY.headline(rows_of(heads))
    near = min(heads, key=lambda head: head.value)
    assert figures(said.sentence) == figures(
        f"Heads {near.name} and {near.other} have the most similar attention (distance {near.value:.3f}). Clustered by "
        "mean attention pattern, the 4 heads form 2 groups."
    )
    assert said.n == 50
    assert said.sentence.endswith(" 2 groups.")
    tuned_too = [replace(head, checkpoint="tuned", value=0.0) for head in heads]
    assert REDUNDANCY.headline(rows_of([*heads, *tuned_too])).sentence == said.sentence
    assert REDUNDANCY.headline(rows_of([replace(head, group=1) for head in heads])).sentence.endswith(" 1 group.")
