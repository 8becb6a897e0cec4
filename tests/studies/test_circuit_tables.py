"""The tables of heads and edges together, from figures made by hand: every column by another way, every sentence."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from core.capture.components import Graph
from core.errors import InputError
from core.scoring.circuits import half_level
from core.studies.ablation import setup
from core.studies.ablation.patch import differences
from core.studies.circuits import circuit, edge_effects, gates, shapley
from core.studies.circuits.circuit import STUDY as CIRCUIT
from core.studies.circuits.circuit import CircuitOptions, CircuitPartial, CircuitState, PairSet, said_of_stability
from core.studies.circuits.edge_effects import STUDY as EDGE_EFFECTS
from core.studies.circuits.edge_effects import EdgePartial
from core.studies.circuits.gates import PRICES, GatePartial
from core.studies.circuits.gates import STUDY as GATES
from core.studies.circuits.pairs import STUDY as PAIRS
from core.studies.circuits.pairs import PairPartial
from core.studies.circuits.records import GatedHead, tables_except
from core.studies.circuits.shapley import STUDY as SHAPLEY
from core.studies.circuits.shapley import ShapleyPartial
from core.tasks.glue import TaskRow, task_of
from core.tasks.perturbations import PerturbationChoice, perturb
from tests.studies.figures import figures

SWAY = np.array([-0.2, -0.1, -0.1, 0.0, 0.0, 0.1, 0.1, 0.2])  # symmetric, so that Student's interval is the one


def student(values):
    """The ends of a mean's interval, by SciPy."""
    return pytest.approx(stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values)), rel=1e-6)


def of(results, kind):
    return [result for result in results if kind in result.KINDS]


# ---------------------------------------------------------------- gates

# Of four heads in 20 fits: one needed, one in the way, one that does not matter, one that is here this and there that.
UP = np.tile([0.9, 0.2, 0.8, 0.7], (20, 1))
DOWN = np.tile([0.8, 0.1, 0.3, 0.4], (20, 1))
DOWN[:10, 3] = 0.6


def gate_partial(irrelevant, interfering):
    """20 drawn sets beside each class cost 0.01, 0.02 ... 0.20."""
    alone = np.array([[1.0], [-0.4], [0.02], [0.3]]) + SWAY
    sets = [np.concatenate([own[None], np.arange(1, 21)[:, None] / 100 + SWAY]) for own in (irrelevant, interfering)]
    added = np.array([0.0, 0.01, 0.02, 0.05, 0.09, 0.3, 0.6, -0.1])  # last the untouched model
    return GatePartial(
        1,
        4,
        0.2,
        path_gates=np.array([[1, 1, 0.6, 0.2]] * 7),
        path_losses=added[:, None] + SWAY,
        price=0.05,
        fits=np.arange(20),
        up=UP,
        down=DOWN,
        effects=np.concatenate([alone, *sets]),
        gradient=np.array([1.0, 0.1, 0.3, 0.2]),
    )


@pytest.mark.parametrize(
    ("irrelevant", "interfering", "verdicts"),
    [
        (0.06 + SWAY / 2, -0.5 + SWAY, ("within the margin", "lowers the loss")),
        (0.5 + SWAY, 0.19 + SWAY, ("beyond the margin", "open")),
        (0 * SWAY, -0.1 + 3 * SWAY, ("open", "open")),  # nothing moved, so nobody knows how far; below the margin
    ],
)
def test_gates_say_what_was_fitted_and_what_the_classes_do_together(irrelevant, interfering, verdicts):
    partial = gate_partial(irrelevant, interfering)
    results = GATES.results(GATES.read({"checkpoint": "x", "task": "sst2"}), partial)
    heads, together = of(results, "head"), of(results, "together")
    assert [head.gate_class for head in heads] == ["facilitating", "interfering", "irrelevant", "undecided"]
    assert (heads[3].facilitating, heads[3].interfering, heads[3].irrelevant) == (0.5, 0, 0.5)
    assert [(head.up, head.down) for head in heads] == [
        pytest.approx(pair) for pair in zip(UP.mean(0), DOWN.mean(0), strict=True)
    ]
    for head, values in zip(heads, partial.effects, strict=False):
        assert head.effect == pytest.approx(values.mean())
        assert (head.low, head.high) == student(values)
    assert [(head.fits, head.n, head.gradient) for head in heads] == [(20, 8, g) for g in partial.gradient]
    assert [(one.name, one.heads, one.count, one.verdict) for one in together] == [
        ("irrelevant", "L1H3", 1, verdicts[0]),
        ("interfering", "L1H2", 1, verdicts[1]),
    ]
    for one, values in zip(together, (irrelevant, interfering), strict=True):
        assert (one.random, one.random_low, one.random_high) == pytest.approx((0.105, 0.01, 0.2))
        assert one.effect == pytest.approx(values.mean(), abs=1e-12)
        assert (one.low, one.high) == (student(values) if values.any() else (None, None))
    prices = of(results, "price")
    assert [price.added for price in prices] == pytest.approx([0.1, 0.11, 0.12, 0.15, 0.19, 0.4, 0.7])
    assert [price.price for price in prices] == pytest.approx([0.2 * share for share in PRICES])
    assert [price.chosen for price in prices] == [False] * 4 + [True] + [False] * 2  # the largest that adds at most 0.2
    assert {(price.open_gates, price.n) for price in prices} == {(3, 8)}
    ways = {"gradient": partial.gradient, "effect": partial.effects[:4].mean(1), "gate": (UP + DOWN).mean(0)}
    agreements = of(results, "agreement")
    assert [one.name for one in agreements] == ["gradient and effect", "gradient and gate", "gate and effect"]
    for one in agreements:
        assert one.value == pytest.approx(stats.spearmanr(ways[one.first], ways[one.second]).statistic)
        assert one.n == 4
    (needed,) = [one.name for one in of(results, "head") if one.gate_class == "facilitating"]
    said = GATES.headline([result.as_row() for result in results])
    assert said.sentence == (
        f"The task needs 1 of 4 heads ({needed}). 1 head interferes with the task. 1 head is irrelevant. 1 head is "
        "undecided."
    )
    assert (said.n, said.of, said.baseline) == (8, "examples", "")
    assert said.interval == (
        "The gates are fitted in 20 pairs of runs: one with a penalty for open gates, one with a reward. If "
        "the gate of a head is open in both runs of at least 19 pairs, the task needs the head. If the gate is open "
        "only with the reward in at least 19 pairs, the head is irrelevant. This rule measures stability, not "
        "significance."
    )


def test_where_every_price_costs_too_much_the_smallest_is_taken():
    dear = replace(gate_partial(SWAY, SWAY), margin=0.05)
    assert gates.chosen_price(dear) == pytest.approx(0.05 / 64)
    assert gates.chosen_price(gate_partial(SWAY, SWAY)) == pytest.approx(0.2 / 4)


# ---------------------------------------------------------------- Shapley values


def valued(rows):
    """Four heads in two layers, on rows of these numbers."""
    sway = SWAY[rows]
    return ShapleyPartial(
        np.array(rows),
        2,
        2,
        whole=3 + sway,
        none=1 - sway,
        values=np.array([[0.5], [-0.3], [1.5], [0.3]]) + np.array([[0.5], [0.5], [1], [0.1]]) * sway,
        alone=np.array([[0.4], [-0.1], [0.2], [0.3]]) + sway,
        gradients=np.array([3.0, 4.0, 5.0, 12.0]) * len(rows),
    )


def test_shapley_values_are_ranked_summed_and_set_beside_orders():
    first, second = valued([0, 2, 4, 6]), valued([1, 3, 5, 7])
    kept = np.stack([np.array([[3.0], [2.9], [2.0]]) + SWAY, np.array([[3.0], [1.8], [1.5]]) - SWAY])
    empty = np.zeros((4, 0))
    orders = ShapleyPartial(np.zeros(0, int), 2, 2, empty[0], empty[0], empty, empty, np.zeros(4), kept)
    options = SHAPLEY.read({"checkpoint": "x", "task": "sst2", "orders": 6, "operator": "mean"})
    merged = SHAPLEY.merge(options, [second, orders, first])
    whole = valued(list(range(8)))
    for name in ("rows", "whole", "none", "values", "alone", "gradients"):
        assert np.allclose(getattr(merged, name), getattr(whole, name)), name
    assert shapley.weakest_first(merged) == ((1, 3, 0, 2), (2, 0, 1, 3))  # 5/13, 3/5, 4/5, 12/13 of a layer's norm
    results = SHAPLEY.results(options, merged)
    heads = of(results, "head")
    assert [head.name for head in heads] == ["L2H1", "L1H1", "L2H2", "L1H2"]
    assert [head.rank for head in heads] == [1, 2, 3, 4]
    for head in heads:
        values = whole.values[2 * head.layer + head.head]
        assert head.value == pytest.approx(values.mean())
        assert (head.low, head.high) == student(values)
        assert (head.orders, head.operator, head.n) == (6, "mean", 8)
    assert [head.effect for head in heads] == pytest.approx([0.2, 0.4, 0.3, -0.1])
    assert [head.gradient for head in heads] == pytest.approx([5 / 13, 3 / 5, 12 / 13, 4 / 5])
    (total,) = of(results, "sum")
    assert (total.with_all, total.with_none, total.values, total.n) == pytest.approx((3, 1, 2, 8))
    ways = {"Shapley value": [0.5, -0.3, 1.5, 0.3], "gradient": [0.6, 0.8, 5 / 13, 12 / 13], "effect": [4, -1, 2, 3]}
    for one in of(results, "agreement"):
        assert one.value == pytest.approx(stats.spearmanr(ways[one.first], ways[one.second]).statistic)
    assert len(of(results, "agreement")) == 3
    steps = of(results, "order")
    assert [(step.order, step.removed) for step in steps] == [
        (order, removed) for order in ("Shapley value", "gradient") for removed in range(3)
    ]
    assert [step.value for step in steps] == pytest.approx([3, 2.9, 2, 3, 1.8, 1.5])
    assert (steps[4].low, steps[4].high, steps[4].n) == (*student(kept[1, 1]).expected, 8)
    (contrast,) = of(results, "order contrast")
    beyond = (kept[0] - kept[1]).mean(0)
    assert contrast.value == pytest.approx((1.1 + 0.5) / 3)
    assert (contrast.low, contrast.high) == student(beyond)
    assert contrast.verdict == "the order by Shapley value keeps more"
    said = SHAPLEY.headline([result.as_row() for result in results])
    assert said.sentence == (
        "Head L2H1 contributes most to the logit difference in favour of the correct label: +1.50 logits. For 1 "
        "of 4 heads, the 95 % CI of the contribution is below 0 (not corrected for the number of heads). Pruning in "
        "the order by Shapley value keeps more of the logit difference than pruning in the other order."
    )
    assert (said.n, said.of) == (8, "examples")
    low, high = student(whole.values[2]).expected
    assert said.interval == f"L2H1 has a 95 % CI of {low:.2f} to {high:.2f}."
    (other,) = of(SHAPLEY.results(options, replace(merged, kept=kept[::-1])), "order contrast")
    assert other.verdict == "the order by gradient keeps more"
    (level,) = of(
        SHAPLEY.results(options, replace(merged, kept=np.stack([kept[0], kept[0] + 3 * SWAY]))), "order contrast"
    )
    assert level.verdict == "no significant difference"
    assert not of(SHAPLEY.results(options, replace(merged, kept=None)), "order")


# ---------------------------------------------------------------- pairs


def test_pairs_are_judged_by_what_both_add_beyond_each():
    sway = np.tile(SWAY, 8)
    alone = np.array([[0.1], [0.2], [1.0]]) + sway
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    beyond = np.array([[0.02], [1.5], [-0.7]]) + np.array([[1], [1], [2]]) * sway
    together = alone[pairs[:, 0]] + alone[pairs[:, 1]] + beyond
    lost = np.array([0.3, 0.5, 0.7])[:, None] + 0 * sway
    partial = PairPartial(
        rows=np.arange(64),
        layers=1,
        heads=3,
        pairs=pairs,
        sampled=np.array([0.0, 1.0, 1.0]),
        alone=alone,
        together=together,
        lost_alone=lost,
        lost_together=lost[pairs[:, 0]] + lost[pairs[:, 1]] + np.array([[0.1], [0.2], [-0.4]]),
    )
    options = PAIRS.read({"checkpoint": "x", "task": "sst2", "operator": "mean"})
    results = PAIRS.results(options, partial)
    found, (sample,) = of(results, "pair"), of(results, "sampled pairs")
    assert [(pair.name, pair.verdict, pair.sampled) for pair in found] == [
        ("L1H1 and L1H3", "redundant", True),
        ("L1H2 and L1H3", "cooperating", True),
        ("L1H1 and L1H2", "open", False),
    ]
    assert [pair.interaction for pair in found] == pytest.approx([1.5, -0.7, 0.02])
    assert [pair.loss_interaction for pair in found] == pytest.approx([0.2, -0.4, 0.1])
    assert [(pair.first, pair.second, pair.both) for pair in found] == [
        pytest.approx(three) for three in ((0.1, 1, 2.6), (0.2, 1, 0.5), (0.1, 0.2, 0.32))
    ]
    for pair, values in zip(found, beyond[[1, 2, 0]], strict=True):
        assert (pair.low, pair.high) == student(values)
        assert (pair.operator, pair.n) == ("mean", 64)
    assert found[0].p < 0.01 < 0.05 < found[2].p
    assert (sample.interacting, sample.sampled, sample.of_pairs) == (2, 2, 2)
    assert (sample.low, sample.high) == pytest.approx((stats.beta.ppf(0.025, 2, 1), 1))
    said = PAIRS.headline([result.as_row() for result in results])
    assert said.sentence == (
        "1 of 3 pairs of heads is redundant and 1 cooperates. "
        "The pair L1H1 and L1H3 has the largest interaction: +1.50 logits."
    )
    assert (said.n, said.of) == (64, "examples")
    assert PAIRS.results(options, replace(partial, pairs=None)) == []


# ---------------------------------------------------------------- edges by name


def test_named_edges_are_measured_where_the_answers_differ():
    same = np.array([0] * 8 + [1] * 2)
    effects = np.array([np.append(0.5 + SWAY, [0.1, 0.3]), np.append(-0.9 + 2 * SWAY, [0.0, 0.2])])
    gap = np.append(2 + SWAY, [7, 9])
    partial = EdgePartial(("L1H1>L2H2.q", "L1H2>L2H2.q"), 2, 2, effects, gap, same)
    options = EDGE_EFFECTS.read({"checkpoint": "x", "task": "sst2", "edges": ["L1H1>L2H2.q"]})
    found = EDGE_EFFECTS.results(options, partial)
    assert [(edge.name, edge.sender, edge.receiver, edge.input, edge.n) for edge in found] == [
        ("L1H1>L2H2.q", "L1H1", "L2H2", "q", 8),
        ("L1H2>L2H2.q", "L1H2", "L2H2", "q", 8),
    ]
    assert [(edge.effect, edge.same, edge.difference) for edge in found] == [
        pytest.approx((0.5, 0.2, 2)),
        pytest.approx((-0.9, 0.1, 2)),
    ]
    for edge, values in zip(found, effects, strict=True):
        assert (edge.low, edge.high) == student(values[:8])
    said = EDGE_EFFECTS.headline([edge.as_row() for edge in found])
    assert (
        said.sentence == "Among 2 edges, the edge L1H2>L2H2.q has the largest effect on the logit difference: -0.900."
    )
    low, high = student(effects[1, :8]).expected
    assert (said.n, said.of, said.interval) == (8, "pairs", f"95 % CI {low:+.3f} to {high:+.3f}")
    assert said.baseline == "On average, the two inputs of a pair differ by 2.00 in the logit difference."
    alike = EDGE_EFFECTS.results(options, replace(partial, same=np.ones(10)))
    assert {(edge.effect, edge.low, edge.high, edge.difference, edge.n) for edge in alike} == {(None,) * 4 + (0,)}
    nothing = EDGE_EFFECTS.headline([edge.as_row() for edge in alike])
    assert (nothing.sentence, nothing.n, nothing.of) == (
        "The two inputs of every pair have the same answer, so the effects of edges could not be measured.",
        0,
        "pairs",
    )


def test_what_stands_against_a_row_is_made_of_it_with_a_seed_of_its_own():
    options = SimpleNamespace(kind="scramble", seed=7)
    opened = SimpleNamespace(checkpoint=SimpleNamespace(tokenizer=SimpleNamespace(mask_token="[MASK]")))
    text = "one two three four five six", "seven eight nine ten"
    for number in (0, 3):
        made = circuit.other_text(options, opened, (text, None), number)
        by_hand = perturb("scramble", *text, seed=7 + number, choice=PerturbationChoice(mask="[MASK]")).made
        assert made == (by_hand.text, by_hand.pair)
    assert circuit.other_text(options, opened, (text, ("the line's", None)), 0) == ("the line's", None)


def test_logit_differences_of_a_pair_are_of_its_two_answers_or_of_the_score():
    first, second = np.array([[2.0, 0.5, 1.0], [0.0, 3.0, 1.0]]), np.array([[1.0, 4.0, 0.0], [0.0, 5.0, 2.0]])
    patched = np.stack([first + np.array([1, 0, 0]), second])
    a, b, both = differences(first, second, patched)
    assert a.tolist() == [1.5, 2.0]  # of the first's answer less the second's, or less its own rival
    assert b.tolist() == [-3.0, 3.0]
    assert both.tolist() == [[2.5, 2.0], [-3.0, 3.0]]
    scores = differences(first[:, :1], second[:, :1], patched[..., :1])
    assert [part.tolist() for part in scores] == [[2.0, 0.0], [1.0, 0.0], [[3.0, 1.0], [1.0, 0.0]]]


def test_a_named_edge_is_measured_with_those_of_its_senders_layer_by_their_numbers_in_the_graph(monkeypatch):
    """Each edge's effect is its number here."""
    graph, checkpoint = Graph(3, 2), SimpleNamespace(weights_hash="h", device="cpu", dtype="float32")
    pairs = SimpleNamespace(
        layers=3, heads=2, firsts=np.arange(4), first_m=np.full(4, 3.0), second_m=np.ones(4), same=np.arange(4) % 2
    )

    def measured(options, opened, pairs, wanted):
        effects = np.full((len(graph.edges), 4), np.nan)
        effects[list(wanted.targets)] = np.array(wanted.targets)[:, None]
        assert wanted.positions == (0, 1, 2, 3)
        assert (options.answers, options.kind, options.seed) == ("any", "drop", 5)
        return CircuitPartial(exact=effects)

    monkeypatch.setattr(setup, "opened", lambda options: SimpleNamespace(checkpoint=checkpoint))
    monkeypatch.setattr(setup, "rows_of", lambda options: [SimpleNamespace(id=f"row {k}") for k in range(2)])
    monkeypatch.setattr(circuit, "made_pairs", lambda options, opened: pairs)
    monkeypatch.setattr(edge_effects, "measured", measured)
    named = {"edges": ["L1H2>L3H1.k", "L2H1>L3H1.k"], "kind": "drop", "seed": 5}
    options = EDGE_EFFECTS.read({"checkpoint": "x", "task": "sst2"} | named)
    done = EDGE_EFFECTS.run(options, None)
    partial, about = done.partial, done.provenance
    assert (partial.layers, partial.heads, partial.same.tolist()) == (3, 2, [0, 1, 0, 1])
    assert (about.weights_hash, about.device, about.dtype, about.row_ids) == ("h", "cpu", "float32", ("row 0", "row 1"))
    assert partial.names == ("L1H2>L3H1.k", "L1H1>L3H1.k", "L2H1>L3H1.k", "L2H2>L3H1.k")
    edges = [graph.edges[int(number)] for number in partial.effects[:, 0]]
    readers = {graph.receiver_name(edge.receiver) for edge in edges}
    assert [graph.sender_name(edge.sender) for edge in edges] == ["L1H2", "L1H1", "L2H1", "L2H2"]
    assert readers == {("L3H1", "k")}
    assert partial.gap.tolist() == [2.0] * 4


# ---------------------------------------------------------------- the circuit

COUNT = 300
# Of the eight edges of one layer with one head; attribution overrates the first and misses the last.
EFFECT = np.array([0.9, 0.0, 0.7, 0.01, 0.02, 0.03, 0.6, 0.8])
ATTRIBUTED = np.array([2.0, 0.0, 0.7, 0.01, 0.02, 0.03, 0.6, 0.005])


def state_of_a_circuit():
    """A circuit's study when all was measured: 200 pairs decide, 40 judge, and 20 have one answer."""
    options = CircuitOptions(
        checkpoint="x", task="sst2", pairs=200, judging=40, control=10, margin=0.3, strongest=3, sample=3, first=200
    )
    generator = np.random.default_rng(0)
    same = np.zeros(COUNT)
    same[:20] = 1
    pairs = PairSet(
        layers=1, heads=1, firsts=np.arange(COUNT), seconds=np.arange(COUNT) + 1, first_m=np.full(COUNT, 1.5),
        second_m=np.full(COUNT, 0.5), answer=np.zeros(COUNT, int), rival=np.ones(COUNT, int), same=same,
        lengths=np.full(COUNT, 5), not_made=4, under_floor=6,
    )  # fmt: skip
    noise = 0.05 * generator.choice([-1, 1], (8, COUNT))
    exact = EFFECT[:, None] + noise
    exact[:, :20] = 0.1 * np.arange(8)[:, None] + 0.01 * np.tile([-1, 1], 10)
    state = CircuitState(options, CircuitPartial(pairs, np.arange(COUNT), ATTRIBUTED[:, None] + 0 * noise, exact))
    exact[np.setdiff1d(np.arange(8), state.patched)] = np.nan
    circuits = circuit.circuits_of(state.graph)
    shares = np.array([0.0 if order == "none" else size / 8 - 0.01 * draw for order, size, draw in circuits])
    kept = 0.5 + shares[:, None] * (pairs.first_m - 0.5)
    return CircuitState(options, replace(state.taken, exact=exact, kept=kept))


def test_a_circuit_has_every_edge_that_raced_and_says_of_the_others_that_they_did_not():
    state = state_of_a_circuit()
    results = CIRCUIT.results(state.options, state.taken)
    edges, (whole,) = of(results, "edge"), of(results, "circuit")
    assert [edge.name for edge in edges] == [
        *(f"embeddings to L1H1 {kind}" for kind in "qkv"),
        *(f"{sender} to L1-feedforward" for sender in ("embeddings", "L1H1")),
        *(f"{sender} to output" for sender in ("embeddings", "L1H1", "L1-feedforward")),
    ]
    assert [edge.proposed for edge in edges] == [True, False, True, False, False, False, True, False]
    assert [(edge.sender_layer, edge.receiver_layer) for edge in edges] == [
        *[(-1, 0)] * 4, (0, 0), (-1, 1), (0, 1), (0, 1),
    ]  # fmt: skip
    decides = state.division.deciding
    matter = {k for k in state.patched if EFFECT[k] > 0.3}
    for number, edge in enumerate(edges):
        assert edge.attribution == pytest.approx(ATTRIBUTED[number])
        if number not in state.patched:
            assert (edge.verdict, edge.effect, edge.low, edge.high, edge.n) == ("not raced", None, None, None, 0)
            assert (edge.estimator, edge.stable) == ("", False)
            continue
        values = state.taken.exact[number, decides]
        assert (edge.effect, edge.n) == (pytest.approx(np.clip(values, -0.6, 0.6).mean()), 200)
        assert edge.estimator == "mean; a pair counts up to 0.6 logits"
        assert edge.low < edge.effect < edge.high
        assert edge.verdict == ("matters" if number in matter else "does not matter")
        assert (edge.selection, edge.stable) == ((1, True) if number in matter else (0, False))
    means = of(results, "edge mean")
    assert [(one.name, one.pairs) for one in means] == [
        (edges[number].name, pairs) for pairs in ("different answers", "same answer") for number in state.patched
    ]
    assert {(one.pairs, one.estimator, one.n) for one in means} == {
        ("different answers", "mean", 200),
        ("same answer", "mean", 10),
    }
    for one, number in zip(means, [*state.patched, *state.patched], strict=True):
        places = decides if one.pairs == "different answers" else state.division.control
        values = state.taken.exact[number, places]
        assert one.effect == pytest.approx(values.mean())
        assert one.low < one.effect < one.high
        if len(set(np.round(values, 9))) == 2 and np.isclose(np.mean(values), np.median(values)):
            assert (one.low, one.high) == student(values)
    ranked = sorted(edges, key=lambda edge: edge.rank)
    assert [edge.rank for edge in ranked] == list(range(1, 9))
    assert [edge.verdict for edge in ranked[-2:]] == ["not raced"] * 2
    sizes = [(point.order, point.size) for point in of(results, "faithfulness")]
    assert sizes == [*(("effect", k) for k in (1, 2, 4, 8)), *(("random", k) for k in (1, 2, 4)), ("without L1", 3)]
    values = [point.value for point in of(results, "faithfulness")]
    assert values == pytest.approx([*(k / 8 for k in (1, 2, 4, 8)), *(k / 8 - 0.01 for k in (1, 2, 4)), 3 / 8])
    assert {point.n for point in of(results, "faithfulness")} == {40}
    assert (whole.cpr, whole.cmd) == pytest.approx((0.5, 0.5))  # the diagonal
    assert whole.random_cpr < 0.5
    assert (whole.edges, whole.raced, whole.matter) == (8, 6, len(matter))
    assert (whole.does_not_matter, whole.open) == (6 - len(matter), 0)
    assert (whole.n, whole.judging, whole.control) == (200, 40, 10)
    assert (whole.evaluations, whole.of_evaluations) == (6 * 200, 8 * 200)
    assert (whole.margin, whole.clip, whole.difference) == pytest.approx((0.3, 0.6, 1))
    assert (whole.pairs_by, whole.answers, whole.task) == ("row", "different", "sst2")
    assert (whole.not_made, whole.under_floor, whole.bound) == (4, 6, 1)
    assert whole.level == half_level(8)
    assert whole.stable == len(matter)
    missed = len(matter & set(state.sampled.tolist()))
    assert whole.missed == pytest.approx(missed / 3)
    low = stats.beta.ppf(0.025, missed, 4 - missed) if missed else 0
    assert (whole.missed_low, whole.missed_high) == pytest.approx((low, stats.beta.ppf(0.975, missed + 1, 3 - missed)))
    assert whole.of_matter_proposed == 3
    assert [pair.use for pair in of(results, "pair")] == ["decides"] * 200 + ["judges"] * 40 + ["control"] * 10
    for pair, number in zip(of(results, "pair"), decides, strict=False):
        assert (pair.first, pair.second, pair.first_m, pair.second_m, pair.same) == (
            number,
            number + 1,
            1.5,
            0.5,
            False,
        )


def test_a_terminal_shows_the_strongest_edges_with_their_means(monkeypatch):
    state = state_of_a_circuit()
    results = CIRCUIT.results(state.options, state.taken)
    rows = [result.as_row() for result in results]
    monkeypatch.setattr(circuit, "SHOWN_EDGES", 2)
    table, _, means, _, sentence = CIRCUIT.shown(rows)
    ranked = sorted(of(results, "edge"), key=lambda edge: edge.rank)[:2]
    assert [(row["name"], row["effect"], row["n"], row["verdict"]) for row in table] == [
        (edge.name, edge.effect, edge.n, edge.verdict) for edge in ranked
    ]
    assert sorted((row["name"], row["pairs"]) for row in means) == sorted(
        (edge.name, pairs) for edge in ranked for pairs in ("different answers", "same answer")
    )
    (whole,) = of(results, "circuit")
    assert {str(whole.matter), str(whole.raced), f"{whole.margin:.3f}", str(whole.open)} <= set(figures(sentence))


def test_an_edge_that_changed_nothing_has_a_mean_without_an_interval():
    state = state_of_a_circuit()
    state.taken.exact[0] = 0.0
    means = of(CIRCUIT.results(state.options, state.taken), "edge mean")
    same = [one for one in means if one.name == "embeddings to L1H1 q"]
    assert [(one.effect, one.low, one.high) for one in same] == [(0.0, None, None)] * 2


@pytest.mark.parametrize(("answers", "said"), [("same", "same answer"), ("any", "any answers")])
def test_mean_effects_name_the_pairs_that_were_used(answers, said):
    state = state_of_a_circuit()
    state = replace(state, options=replace(state.options, answers=answers))
    means = of(CIRCUIT.results(state.options, state.taken), "edge mean")
    assert {one.pairs for one in means if one.n > 10} == {said}


@pytest.mark.parametrize(("matter", "open_edges", "said"), [(1, 1, "changes"), (3, 0, "change")])
def test_the_sentence_of_a_circuit_names_the_edges_that_matter(matter, open_edges, said):
    state = state_of_a_circuit()
    results = CIRCUIT.results(state.options, state.taken)
    (whole,) = of(results, "circuit")
    whole = replace(whole, matter=matter, open=open_edges, stable=2, threshold=0.9)
    headline = CIRCUIT.headline([result.as_row() for result in (whole, *of(results, "edge"))])
    assert headline.sentence.startswith(
        f"{matter} of 6 edges {said} the logit difference by more than 30%: embeddings → L1H1"
    )
    assert f" {open_edges} edge{' is' if open_edges == 1 else 's are'} undecided. All" in headline.sentence
    assert headline.sentence.endswith("All other tested edges change the logit difference by less than 30%.")
    assert (headline.n, headline.of) == (200, "pairs of inputs")
    assert headline.interval == (
        "An edge matters if its mean effect exceeds 30% of the mean change in the logit difference between the inputs "
        "of a pair. With 95% confidence, all verdicts are correct."
    )
    assert headline.baseline == ""
    assert said_of_stability(whole).startswith("2 edges are stable (different from 0 in 90% of half-samples)")
    assert said_of_stability(replace(whole, stable=0)) == (
        "No edge is stable, because none differs from 0 in 90 % of half-samples."
    )
    assert "Run the study again" in said_of_stability(replace(whole, level=None))


# ---------------------------------------------------------------- pairs of inputs


def answering(monkeypatch, logits):
    """A classifier whose logits are those of each text; encodings are texts, as long as their words."""
    encoded = SimpleNamespace(
        layers=2, heads=2, tokenizer=SimpleNamespace(mask_token="[MASK]"), encode=lambda text, pair: text.split()
    )

    def predict(checkpoint, encodings):
        return torch.tensor([logits[" ".join(words)] for words in encodings])

    monkeypatch.setattr("core.capture.running.predict", predict)
    return setup.Opened(encoded, task_of("sst2"), (0, 1, 2))


def test_pairs_of_a_file_compare_the_answers_of_both_inputs_or_the_rival_of_an_equal_one(monkeypatch, tmp_path):
    logits = {
        "a one": [3.0, 1.0, 0.0], "b one": [0.5, 0.0, 2.0],  # other answers: 0 and 2
        "a two": [0.0, 3.0, 1.0], "b two": [0.0, 2.0, 1.9],  # both say 1; the rival is 2
        "a three": [1.0, 0.9, 0.0], "b three": [1.05, 0.9, 0.0],  # hardly differ
        "a four x": [0.0, 0.0, 5.0], "b four x": [4.0, 0.0, 1.0],
    }  # fmt: skip
    (tmp_path / "pairs.tsv").write_text("\n".join(f"a {name}\tb {name}" for name in ("one", "two", "three", "four x")))
    options = CircuitOptions(checkpoint="x", task="sst2", pairs_file=str(tmp_path / "pairs.tsv"))
    pairs = circuit.made_pairs(options, answering(monkeypatch, logits))
    assert (pairs.firsts.tolist(), pairs.seconds.tolist()) == ([0, 1, 3], [-1] * 3)
    assert (pairs.answer.tolist(), pairs.rival.tolist()) == ([0, 1, 2], [2, 2, 0])
    assert pairs.first_m.tolist() == pytest.approx([3, 2, 5])
    assert pairs.second_m.tolist() == pytest.approx([-1.5, 0.1, -3])
    assert pairs.same.tolist() == [False, True, False]
    assert pairs.lengths.tolist() == [2, 2, 3]
    assert (pairs.not_made, pairs.under_floor, pairs.layers, pairs.heads) == (0, 1, 2, 2)


def test_scores_are_compared_by_themselves_and_an_answer_is_above_their_median(monkeypatch, tmp_path):
    logits = {"a one": [3.0], "b one": [0.5], "a two": [4.0], "b two": [3.5], "a three": [0.1], "b three": [0.6]}
    (tmp_path / "pairs.tsv").write_text("\n".join(f"a {name}\tb {name}" for name in ("one", "two", "three")))
    options = CircuitOptions(checkpoint="x", task="stsb", pairs_file=str(tmp_path / "pairs.tsv"))
    pairs = circuit.made_pairs(options, answering(monkeypatch, logits))
    assert (pairs.first_m.tolist(), pairs.second_m.tolist()) == (
        pytest.approx([3, 4, 0.1]),
        pytest.approx([0.5, 3.5, 0.6]),
    )
    assert (pairs.answer.tolist(), pairs.rival.tolist()) == ([0] * 3, [-1] * 3)
    assert pairs.same.tolist() == [False, True, True]
    logits = torch.arange(24.0).reshape(2, 3, 4)  # of scores, the first output alone
    difference = circuit.differences(replace(pairs, answer=np.array([1, 0, 3])), np.array([2, 0, 1]))
    assert difference(logits).tolist() == [[3, 5, 8], [15, 17, 20]]


def test_rows_of_one_length_are_paired_once_first_with_another_answer(monkeypatch):
    texts = [*(f"w{k} w" for k in range(7)), *(f"w{k} w w" for k in range(4)), "w w w w"]
    said = [0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0]
    logits = {text: [2.0 + k / 10, 0.0] if answer == 0 else [0.0, 2.0 + k / 10] for k, (text, answer) in
              enumerate(zip(texts, said, strict=True))}  # fmt: skip
    rows = [TaskRow(str(k), text, None, 0) for k, text in enumerate(texts)]
    monkeypatch.setattr(setup, "rows_of", lambda options: rows)
    options = CircuitOptions(checkpoint="x", task="sst2", seed=3)
    opened = answering(monkeypatch, logits)
    monkeypatch.setattr(circuit, "FLOOR", 0.0)
    pairs = circuit.made_pairs(options, opened)
    both = list(zip(pairs.firsts.tolist(), pairs.seconds.tolist(), strict=True))
    used = [number for pair in both for number in pair]
    assert len(set(used)) == len(used) == 10  # of seven rows one is left, and the row without a partner
    for first, second in both:
        assert len(texts[first].split()) == len(texts[second].split())
    assert sum(said[a] != said[b] for a, b in both) == 3  # two of the short ones differ, and one of the longer three
    assert pairs.same.tolist() == [said[a] == said[b] for a, b in both]
    assert circuit.made_pairs(options, opened).firsts.tolist() == pairs.firsts.tolist()


def test_words_are_compared_with_their_foils_at_the_place_of_the_mask(monkeypatch):
    vocabulary = {" can": [5], " may": [7], " must": [2], " do not": [1, 3], " odd": [0]}
    tokenizer = SimpleNamespace(
        encode=lambda word, add_special_tokens: vocabulary[word], unk_token_id=0, mask_token_id=99
    )
    checkpoint = SimpleNamespace(tokenizer=tokenizer, causal=False)
    sides = [[SimpleNamespace(ids=(1, 99, 2, 3), text="t"), SimpleNamespace(ids=(1, 2, 99), text="t")]] * 2
    asked = []

    def answers(checkpoint, encodings, places):
        asked.append(places)
        return torch.arange(20.0).reshape(2, 10) ** 2 * (1 if len(asked) == 1 else 2)

    monkeypatch.setattr("core.capture.running.answers", answers)
    first, second, answer, rival = circuit.word_differences(checkpoint, sides, [("can", "may"), ("must", "can")])
    assert asked == [[1, 2], [1, 2]]
    assert first.tolist() == [25 - 49, 12**2 - 15**2]
    assert second.tolist() == [2 * (25 - 49), 2 * (12**2 - 15**2)]
    assert (answer.tolist(), rival.tolist()) == ([5, 2], [7, 5])
    for words, said in (
        ([("can", "may"), ("may", "may")], "line 2"),
        ([("can", "do not")], "2 "),
        ([("odd", "can")], "odd"),
    ):
        with pytest.raises(InputError, match=said):
            circuit.word_differences(checkpoint, sides, words)
    decoder = SimpleNamespace(causal=True)
    assert circuit.place_of(decoder, range(7)) == 6


def test_rows_of_each_kind_become_a_table():
    kinds = ("price", "head", "check", "price", "check")
    rows = [{"kind": kind, "number": number} for number, kind in enumerate(kinds)]
    assert tables_except(rows, GatedHead) == [[rows[0], rows[3]], [rows[2], rows[4]]]
    assert tables_except(rows) == [[rows[0], rows[3]], [rows[1]], [rows[2], rows[4]]]
