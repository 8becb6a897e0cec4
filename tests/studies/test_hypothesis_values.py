"""The values that hypotheses are decided by, from planted sums: each equals a mean over inputs that a loop gives."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from core.attention import Head
from core.scoring.counterparts import similarity_sums
from core.scoring.definitions import QUANTITIES
from core.scoring.intervals import Means
from core.scoring.roles import ROLES
from core.studies.ablation.patch import PatchPartial
from core.studies.attention.partials import InputOffset, RelationSums, RoleSums
from core.studies.circuits.edge_effects import EdgePartial
from core.studies.comparison.counterparts import Compared, CounterpartsPartial, Drawn
from core.studies.frames.frame_heads import Draws, Scores, packed
from core.studies.frames.records import FrameSentence
from core.studies.hypotheses import hypothesis as testing
from core.studies.hypotheses.hypothesis import HypothesisOptions, RowChoice, heads_known, usual_rows
from core.studies.hypotheses.predicates import Hypothesis, checked
from core.studies.hypotheses.readings import evidence_of, random_effect
from core.studies.hypotheses.records import Criterion

INPUTS = 40
AT = InputOffset("c", "t", 0)
SUBJECT = Head(1, 0)


def said(predicate, head=SUBJECT, **parameters):
    return Hypothesis("h", *head[:2], predicate, checked(predicate, parameters))


def means_of(values, counts=None):
    """An accumulator of values [input, layer, head, statistic]."""
    whole = Means(*values.shape[1:])
    counts = np.ones((len(values), values.shape[-1])) if counts is None else counts
    for layer in range(values.shape[1]):
        whole.update(layer, values[:, layer], counts, range(len(values)))
    return whole


def p_above(values, least):
    p = stats.ttest_1samp(values, least, alternative="greater").pvalue
    return pytest.approx(p, rel=0.5, abs=1e-5)


def parities(values):
    return [pytest.approx(values[parity::2].mean()) for parity in (0, 1)]


# ---------------------------------------------------------------- offsets and relations


def roles(values):
    return SimpleNamespace(pieces=(RoleSums(AT, 2, 3, False, means_of(values), np.zeros(0)),))


def role_values(seed=0):
    """Of each role: the weight, its excess over an even spread, and both without the sink."""
    chance = np.random.default_rng(seed)
    middle = chance.uniform(0.1, 0.6, (2, 3, 4 * len(ROLES)))
    return middle + chance.normal(0, 0.1, (INPUTS, 2, 3, 4 * len(ROLES)))


@pytest.mark.parametrize(("offset", "control"), [("previous", "next"), ("first", "previous")])
def test_an_offset_is_read_from_its_own_columns(offset, control):
    values = role_values()
    own = {role: values[:, 1, 0, 4 * k : 4 * k + 4].T for k, role in enumerate(ROLES)}
    weight, excess, _, _ = own[offset]
    least = round(float(excess.mean()) - 0.02, 3)
    found = evidence_of(said("offset", offset=offset, control=control, least=str(least)), roles(values), SUBJECT)
    assert found.effect.interval.value == pytest.approx(excess.mean())
    assert found.effect.interval.n == INPUTS
    assert found.effect.interval.low < excess.mean() < found.effect.interval.high
    assert found.effect.p == p_above(excess, least)
    assert (found.effect.least, found.effect.baseline) == pytest.approx((least, (weight - excess).mean()))
    mine, beyond_even = own[offset][:2] if offset == "first" else own[offset][2:]
    thrice = mine - 3 * (mine - beyond_even)
    assert found.explained.interval.value == pytest.approx(thrice.mean())
    assert found.explained.p == p_above(thrice, 0)
    assert found.specific.interval.value == pytest.approx((weight - own[control][0]).mean())
    assert found.specific.measure == f"weight less that on the {control} token"
    assert [half.interval.value for half in found.halves] == parities(excess)
    assert {half.least for half in found.halves} == {least}
    raised = evidence_of(said("offset", offset=offset, least="0.01"), roles(values), SUBJECT, random=0.9)
    assert (raised.effect.least, raised.effect.is_beyond) == (0.9, False)
    assert raised.effect.interval.value == pytest.approx(excess.mean())
    assert raised.specific == "no control was named"


def test_what_no_input_has_is_said_of_the_effect_and_its_halves():
    values = role_values()
    counts = np.ones((INPUTS, values.shape[-1]))
    place = 4 * ROLES.index("previous")
    counts[:, place : place + 4] = 0
    partial = SimpleNamespace(pieces=(RoleSums(AT, 2, 3, False, means_of(values, counts), np.zeros(0)),))
    none = evidence_of(said("offset", offset="previous"), partial, SUBJECT)
    assert none.effect == none.explained == "no input has such tokens"
    counts[::2, place : place + 4] = 1
    half = SimpleNamespace(pieces=(RoleSums(AT, 2, 3, False, means_of(values, counts), np.zeros(0)),))
    found = evidence_of(said("offset", offset="previous"), half, SUBJECT)
    assert found.effect.interval.n == INPUTS / 2
    assert found.halves == "a half has no such inputs"


def test_the_largest_effect_of_random_heads_of_the_layer_has_to_be_exceeded():
    first, second = role_values(1), role_values(2)
    place = 4 * ROLES.index("next") + 1
    first[:, 0, :, place] += 1  # of another layer
    claim = said("offset", offset="next")
    largest = max(values[:, 1, head, place].mean() for values in (first, second) for head in range(3))
    assert random_effect(claim, [roles(first), roles(second)]) == pytest.approx(largest)
    assert random_effect(claim, []) == 0


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_relation_is_read_in_its_direction_beside_its_control(direction):
    chance, names = np.random.default_rng(3), ("determiner-noun", "verb-object")
    width = len(names) * 2 * len(QUANTITIES)
    counts = np.repeat(chance.integers(1, 3, (INPUTS, 1)), width, axis=1).astype(float)
    middle = chance.uniform(0.1, 0.5, (2, 3, width))
    values = counts[:, None, None] * (middle + chance.normal(0, 0.1, (INPUTS, 2, 3, width)))
    sums = RelationSums(AT, 2, 3, False, means_of(values, counts), names, ({},) * len(names))

    def own(relation, quantity):
        turn = names.index(relation) * 2 + (direction == "backward")
        return values[:, 1, 0, turn * len(QUANTITIES) + QUANTITIES.index(quantity)]

    n = counts[:, 0].sum()
    claim = said("relation", relation="verb-object", direction=direction, control="determiner-noun", least="0.05")
    found = evidence_of(claim, SimpleNamespace(pieces=(sums,)), SUBJECT)
    excess, contrast = own("verb-object", "excess"), own("verb-object", "contrast")
    assert (found.effect.interval.value, found.effect.interval.n) == (pytest.approx(excess.sum() / n), n)
    assert found.effect.baseline == pytest.approx((own("verb-object", "weight") - excess).sum() / n)
    assert found.effect.least == 0.05
    assert found.explained.interval.value == pytest.approx(contrast.sum() / n)
    assert found.specific.interval.value == pytest.approx((contrast - own("determiner-noun", "contrast")).sum() / n)
    assert found.specific.measure == "log weight less the same along determiner-noun"
    for parity, half in enumerate(found.halves):
        assert half.interval.value == pytest.approx(excess[parity::2].sum() / counts[parity::2, 0].sum())


# ---------------------------------------------------------------- patched pairs and edges


def ratio(brought, whole):
    """The ratio of two sums, and its standard error by leaving out each pair in turn."""
    n = len(brought)
    left = np.array([np.delete(brought, k).sum() / np.delete(whole, k).sum() for k in range(n)])
    return brought.sum() / whole.sum(), np.sqrt((n - 1) * left.var())


def check_pairs(found, brought, whole, others, moved, same, least):
    """Against shares of the pairs with different answers, and those with equal ones."""
    share, error = ratio(brought[moved], whole[moved])
    effect = found.effect
    assert (effect.interval.value, effect.interval.n) == (pytest.approx(share), moved.sum())
    assert (effect.least, effect.baseline) == (least, least)
    spread = (brought[moved] - least * whole[moved]) / whole[moved].mean()
    assert effect.p == p_above(spread, 0)
    rest = others[:, moved].mean(0)
    assert found.explained.interval.value == pytest.approx((brought[moved] - rest).sum() / whole[moved].sum())
    alike, its_error = ratio(brought[same], whole[same])
    n = min(moved.sum(), same.sum())
    assert (found.specific.interval.value, found.specific.interval.n) == (pytest.approx(share - alike), n)
    assert found.specific.baseline == pytest.approx(alike)
    reach = stats.t.ppf(0.975, n - 1) * np.hypot(error, its_error)
    assert found.specific.interval.high - (share - alike) == pytest.approx(reach, rel=0.1)
    assert (share - alike) - found.specific.interval.low == pytest.approx(reach, rel=0.1)
    halves = [(brought[moved] - least * whole[moved])[k::2].mean() / whole[moved].mean() for k in (0, 1)]
    assert [half.interval.value for half in found.halves] == pytest.approx(halves)
    assert found.causal is found.effect


def test_patched_pairs_give_shares_of_what_both_inputs_differ_by():
    """Every tenth pair could not be made, every seventh hardly differs, and a third of A has the smaller logits."""
    chance, pairs = np.random.default_rng(0), 200
    first = chance.uniform(-3, 3, pairs)
    second = np.where(np.arange(pairs) % 2, chance.uniform(0.2, 2, pairs), chance.uniform(-2, -0.2, pairs))
    first[::7] = second[::7] + 0.05
    made = np.ones(pairs)
    made[::10] = 0
    whole, turn = np.abs(first - second), np.sign(first - second)
    shares = np.array([0.1, 0.0, 0.05, 0.4, 0.1, 0.2])[:, None] + chance.normal(0, 0.2, (6, pairs))
    shares[3, second > 0] -= 0.3
    patched = second + shares * (first - second)
    partial = PatchPartial(np.arange(pairs), 2, 3, made, first, second, patched)
    usable = (made > 0) & (whole >= 0.1)
    moved, same = usable & (second < 0), usable & (second > 0)
    found = evidence_of(said("property", kind="drop", least="0.35"), partial, SUBJECT)
    brought = (patched - second) * turn
    check_pairs(found, brought[3], whole, brought[[4, 5]], moved, same, 0.35)
    alone = PatchPartial(np.arange(pairs), 6, 1, made, first, second, patched)
    claim = said("property", Head(3, 0), kind="drop")
    assert evidence_of(claim, alone, Head(3, 0)).explained == "its layer has no other head"
    few = replace(partial, made=made * ~same + made * same * (np.cumsum(same) <= 11))
    assert evidence_of(said("property", kind="drop"), few, SUBJECT).specific.startswith("11 pairs have the same answer")


def test_an_edge_carries_a_share_of_the_difference_whichever_input_has_more():
    chance, pairs = np.random.default_rng(1), 120
    gap = chance.uniform(1, 3, pairs) * chance.choice((-1, 1), pairs)
    same = np.arange(pairs) % 3 == 0
    names = ("L2H2>L3H1.k", "L2H1>L3H1.q", "L2H3>L3H1.k", "L2H1>L3H1.k")
    shares = np.array([0.1, 0.7, 0.2, 0.3])[:, None] + chance.normal(0, 0.1, (4, pairs))
    partial = EdgePartial(names, 3, 3, shares * gap, gap, same)
    found = evidence_of(said("read-by", reader="L3H1", input="k", least="0.28"), partial, SUBJECT)
    brought = shares * np.abs(gap)
    check_pairs(found, brought[3], np.abs(gap), brought[[0, 2]], ~same, same, 0.28)


# ---------------------------------------------------------------- counterparts and frame links


def test_a_counterpart_has_the_means_of_its_similarities_and_of_their_differences():
    """The other checkpoint has two layers of two heads; the counterpart is its L2H1, the control its L1H2."""
    chance = np.random.default_rng(0)
    means = np.full((6, 4), 0.6)
    means[3] = (0.6, 0.5, 0.2, 0.45)
    distances = means + chance.normal(0, 0.05, (80, 6, 4))
    sums = similarity_sums(distances, np.arange(80))
    whole = Compared(sums.sums, sums.inputs, 3, 2, "tokens", False, "a", "b", "o")
    chances = chance.normal(0.4, 0.03, (99, 6))
    drawn = [Drawn(1 - means, chances[:40], 24, "o"), Drawn(1 - means, chances[40:], 24, "o")]
    partial = CounterpartsPartial((whole,), tuple(drawn))
    found = evidence_of(said("counterpart", of="other:L2H1", control="L1H2", least="0.1"), partial, SUBJECT)
    similarity = 1 - distances[:, 3]
    own = similarity[:, 2]

    def check(read, values):
        groups = [values[k::16].mean() for k in range(16)]
        assert read.interval.value == pytest.approx(values.mean())
        assert (read.interval.low, read.interval.high) == pytest.approx(
            stats.t.interval(0.95, 15, values.mean(), stats.sem(groups))
        )
        assert read.interval.n == 80

    check(found.effect, own)
    assert found.effect.baseline == found.effect.least == pytest.approx(np.median(chances[:, 3]))
    assert found.effect.p == pytest.approx(1 / 100)
    check(found.explained, own - similarity[:, 3])  # the next head
    check(found.specific, own - similarity[:, 1])
    assert (found.explained.baseline, found.specific.baseline) == pytest.approx(similarity[:, [3, 1]].mean(0), abs=1e-6)
    assert found.explained.p < 1e-6
    wrong = evidence_of(said("counterpart", of="other:L2H2", control="L2H1"), partial, SUBJECT)
    check(wrong.explained, similarity[:, 3] - own)
    assert wrong.specific.p > 1 - 1e-6
    for parity, half in enumerate(found.halves):
        some = similarity[parity::2].mean(0)
        assert half.interval.value == pytest.approx(some[2] - some[3], abs=1e-6)
        assert half.interval.n == 40
    above = evidence_of(said("counterpart", of="other:L2H1", least="0.79"), partial, SUBJECT)
    assert above.effect.least == pytest.approx(max(0.79, np.median(chances[:, 3])))
    z = (own.mean() - 0.79) / ((found.effect.interval.high - own.mean()) / 1.959964)
    assert above.effect.p == pytest.approx(stats.norm.sf(z))


def frame_scores(nulls):
    """Two layers of two heads; L2H1 gives 0.5 to frame links. nulls: of distance, exchange, query and share."""
    chance, sentences, draws = np.random.default_rng(0), 60, 199
    scores = chance.normal((0.1, 0.2, 0.5, 0.3), 0.05, (sentences, 4))
    scored = tuple(
        FrameSentence(id=str(k), text="", frame=None, target="", elements=[], before=0, links=1, scores=row.tolist())
        for k, row in enumerate(scores)
    )
    drawn = [packed(chance.normal((0.3, 0.3, null, 0.3), 0.005, (draws, 4)) * sentences) for null in nulls]
    observed = scores.sum(0)
    (distance, exchange, query, share) = drawn
    part = Draws(sentences, draws, 2, 2, False, {}, 0, 0, 0, distance, exchange, observed, query, observed, share, {})
    return scores[:, 2], Scores(scored, (part,))


def test_a_frame_link_is_read_beside_each_null_model():
    scores, partial = frame_scores((0.3, 0.4, 0.1, 0.2))
    claim = said("frame-link", direction="element_to_target", least="0.1")
    found = evidence_of(claim, partial, SUBJECT)
    assert (found.effect.interval.value, found.effect.interval.n) == (pytest.approx(scores.mean()), 60)
    assert found.effect.baseline == pytest.approx(0.3, abs=0.002)
    assert found.effect.least == pytest.approx(found.effect.baseline + 0.1)
    assert (found.effect.p, found.explained.p) == pytest.approx((1 / 200, 1 / 200))
    assert found.explained.least == found.explained.baseline == pytest.approx(0.4, abs=0.002)
    for half, some in zip(found.halves, (scores[::2], scores[1::2]), strict=True):
        assert (half.interval.value, half.interval.n) == (pytest.approx(some.mean()), 30)
        assert (half.least, half.baseline) == (found.effect.least, found.effect.baseline)
    beside = evidence_of(claim, partial, Head(1, 1)).effect.interval.value
    assert beside == pytest.approx(np.mean([scored.scores[3] for scored in partial.sentences]))
    far = evidence_of(said("frame-link", direction="element_to_target", least="0.21"), partial, SUBJECT)
    assert far.effect.p == p_above(scores, far.effect.least)
    assert far.effect.p > 0.5
    for place in range(4):  # each of the null models can explain what is there
        nulls = [0.3] * 4
        nulls[place] = 0.6
        explained = evidence_of(claim, frame_scores(nulls)[1], SUBJECT)
        assert explained.explained.p == 1
        assert explained.effect.p == pytest.approx(1.0 if place == 0 else 1 / 200, abs=1e-9) or place == 0
    assert random_effect(claim, [partial]) == pytest.approx(scores.mean() - found.effect.baseline)
    assert "no link can be seen" in evidence_of(claim, Scores((), ()), SUBJECT).effect


# ---------------------------------------------------------------- heads and rows of hypotheses


def test_a_head_counts_the_criteria_of_its_best_hypothesis_and_those_met_both_ways():
    def one(name, head, states):
        made = replace(said("offset", head, offset="next"), hypothesis=name)
        return made, [
            Criterion(hypothesis=name, subject=str(head), sentence="s", criterion=criterion, state=state)
            for criterion, state in states.items()
        ]

    made = [
        one("a", Head(1, 1), {"seen": "met", "held out": "met", "causal": "not met"}),
        one("b", Head(1, 1), {"seen": "met", "held out": "not met", "causal": "met", "stable": "met"}),
        one("c", Head(0, 1), {"held out": "met", "causal": "met"}),
        one("d", Head(0, 0), {"held out": "not met", "causal": "not met"}),
    ]
    options = HypothesisOptions(checkpoint="c", hypotheses=tuple(hypothesis for hypothesis, _ in made))
    rows = heads_known(options, [criterion for _, criteria in made for criterion in criteria])
    assert [(row.name, row.layer, row.head, row.statistic, row.value, row.n) for row in rows] == [
        ("L1H1", 0, 0, "criteria met", 0.0, 1),
        ("L1H1", 0, 0, "held out and causal", 0.0, 1),
        ("L1H2", 0, 1, "criteria met", 2.0, 1),
        ("L1H2", 0, 1, "held out and causal", 1.0, 1),
        ("L2H2", 1, 1, "criteria met", 3.0, 2),
        ("L2H2", 1, 1, "held out and causal", 0.0, 2),
    ]
    assert {row.checkpoint for row in rows} == {"c"}


def test_usual_rows_are_of_the_task_that_a_study_can_take():
    assert usual_rows("frame-link", 50) == ("frames:train:0:0", "frames:dev:0:0")
    for predicate in ("needed-for", "property", "read-by"):
        assert usual_rows(predicate, 50) == ("sst2:train:50:0", "sst2:dev:50:0")
    assert usual_rows("looks-at", 70) == ("sst2:dev:70:0", "rte:dev:70:0")


def test_sentences_with_frames_alternate_between_the_splits_and_are_drawn_by_their_seed():
    dev, train = (RowChoice("frames", split, None) for split in ("dev", "train"))
    ids = [row.id for row in dev.rows()], [row.id for row in train.rows()]
    every = [row.id for row in testing.read_sentences(testing.FRAME_SENTENCES).sentences]
    assert [one for pair in zip(*ids, strict=False) for one in pair] == every[: 2 * min(map(len, ids))]
    assert len(ids[0]) + len(ids[1]) == len(every)
    few = [row.id for row in RowChoice("frames", "dev", 10, 3).rows()]
    assert len(few) == 10
    assert few == [one for one in ids[0] if one in few] == [row.id for row in RowChoice("frames", "dev", 10, 3).rows()]
    assert few != [row.id for row in RowChoice("frames", "dev", 10, 4).rows()]
    assert [row.id for row in RowChoice("frames", "dev", 10_000).rows()] == ids[0]
    assert len(RowChoice("frames", "dev", 4).frames().splitlines()) == 4
