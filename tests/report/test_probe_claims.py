"""Claims on probes and subnetworks, on rows whose answer is known."""

import pytest

from core.report.claims import probes
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED, UNTESTED
from core.report.measures import scores as measures
from tests.report.evidence_made import evidence, found


def valued(kind, name, value, half=0.02, **more):
    return {"kind": kind, "name": name, "value": value, "low": value - half, "high": value + half, "n": 100} | more


def only(outcomes):
    (one,) = outcomes
    return one.outcome


def syntax_rows(more=0.05, own=0.6, fixed=0.4):
    rooted = {"rooted": fixed + more, "rooted_low": fixed + more - 0.02, "rooted_high": fixed + more + 0.02}
    return [
        valued("probe", "attention and embeddings", own),
        valued("probe", "attention and embeddings, random weights", 0.2),
        valued("baseline", "right-branching", fixed),
        valued("baseline", "left-branching", 0.1),
        valued("best head", "L1H2", 0.7, whole_trees=0.01) | rooted,
    ]


@pytest.mark.parametrize(("more", "word"), [(0.05, HOLDS), (0.09, UNDECIDED), (0.2, FAILS)])
def test_no_head_has_the_whole_tree(more, word):
    assert only(probes.no_whole_tree(evidence(found("syntax", syntax_rows(more))))) == word


@pytest.mark.parametrize(("own", "word"), [(0.6, HOLDS), (0.41, UNDECIDED), (0.3, FAILS)])
def test_attention_knows_syntax(own, word):
    assert only(probes.attention_knows_syntax(evidence(found("syntax", syntax_rows(own=own))))) == word


@pytest.mark.parametrize(
    ("layers", "word"),
    [((0.1, 0.2, 0.8, 0.9), HOLDS), ((0.1, 0.2, 0.1, 0.2), FAILS), ((0.86, 0.2, 0.8, 0.9), UNDECIDED)],
)
def test_a_switch_to_hierarchy(layers, word):
    rows = [
        valued("probe", "x", value, layer=layer, probe=probe, property="main auxiliary, rules part", control=0.5)
        for layer, value in enumerate(layers)
        for probe in ("linear", "one hidden layer")
    ]
    assert only(probes.hierarchical(evidence(found("probe", rows)))) == word
    assert len(measures.probes(evidence(found("probe", rows)))) == 2  # the embeddings and the last layer


@pytest.mark.parametrize(
    ("layers", "word"),
    [
        ((0.5, 0.6, 0.6, 0.9, 0.9, 0.7, 0.7), HOLDS),
        ((0.5, 0.6, 0.6, 0.7, 0.7, 0.9, 0.9), FAILS),
        ((0.5, 0.9, 0.6, 0.77, 0.75, 0.6, 0.6), UNDECIDED),
    ],
)
def test_middle_layers_transfer(layers, word):
    rows = [
        valued("classifier", f"layer {k}", value, layer=k, reading="mean over tokens", metric="accuracy", task="sst2")
        for k, value in enumerate(layers)
    ]
    best = valued("best layer", "x", 0.1, layer=6, layers=6, reading="mean over tokens", note="")
    (one,) = probes.middle_transfers(evidence(found("transfer", [*rows, best], "sst2")))
    assert one.outcome == word
    assert "Layer 6 of 6 is best on half of the examples" in one.said


@pytest.mark.parametrize(("change", "word"), [(0.02, HOLDS), (-0.02, UNDECIDED), (-0.1, FAILS)])
def test_a_third_of_the_weights(change, word):
    ends = {"change": change, "change_low": change - 0.02, "change_high": change + 0.02, "constant": 0.5}
    row = valued("curve", "30%", 0.8, scope="global", moment="before", share=0.3) | ends
    other = valued("curve", "90%", 0.5, scope="global", moment="before", share=0.9) | ends | {"change": -0.4}
    assert only(probes.a_third_can_go(evidence(found("subnetworks", [other, row], "sst2")))) == word


@pytest.mark.parametrize(
    ("more", "bad", "word"),
    [(0.1, 0.8, HOLDS), (0.0, 0.8, UNDECIDED), (-0.1, 0.8, FAILS), (0.1, 0.51, UNDECIDED), (0.1, 0.4, FAILS)],
)
def test_good_and_bad_subnetworks(more, bad, word):
    rows = [valued("subnetwork", name, 0.8) for name in ("full", "good", "random")]
    rows.append(valued("subnetwork", "bad", bad, constant=0.5))
    rows.append(valued("difference", "good less bad", more))
    outcome = probes.good_and_bad(evidence(found("subnetworks", rows, "sst2")))
    assert only(outcome) == word
    assert len(measures.subnetworks(evidence(found("subnetworks", rows, "sst2")))) == 5


def test_where_nothing_can_be_lost_nothing_is_tested():
    rows = [valued("subnetwork", name, 0.51, constant=0.5) for name in ("full", "good", "bad", "random")]
    rows.append(valued("difference", "good less bad", 0.2))
    ends = {"change": 0.0, "change_low": 0.0, "change_high": 0.0, "constant": 0.5}
    rows.append(valued("curve", "30%", 0.51, scope="global", moment="before", share=0.3) | ends)
    some = evidence(found("subnetworks", rows, "sst2"))
    for test in (probes.good_and_bad, probes.a_third_can_go):
        assert only(test(some)) == UNTESTED
        assert "Nothing can be lost" in test(some)[0].said
