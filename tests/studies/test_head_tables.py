"""Tables of translation, pruning, duplicates, representations, written tokens and sinks, from figures made by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from core import scoring
from core.attention import Head
from core.capture import sinks as captured_sinks
from core.errors import InputError
from core.scoring.corrections import q_values
from core.studies.ablation import disable, prune
from core.studies.ablation.disable import group_contrasts, group_targets
from core.studies.ablation.prune import STUDY as PRUNE
from core.studies.ablation.prune import Curve, Curves, order_names, order_of
from core.studies.ablation.setup import AblationTarget, Opened
from core.studies.ablation.sinks import BROADCAST, CONSTANT, EFFECTS, NOP, SHARE, UNDECIDED, SinkPartial
from core.studies.ablation.sinks import STUDY as SINKS
from core.studies.ablation.translation import STUDY as TRANSLATION
from core.studies.ablation.translation import TranslationMeasurement, TranslationPartial
from core.studies.explanation.writes import COPYING, LISTED, RELATION, WritesPartial, WrittenOnText
from core.studies.explanation.writes import STUDY as WRITES
from core.studies.probing.representation import STUDY as REPRESENTATION
from core.studies.probing.representation import Entropies, RepresentationPartial, similarities
from core.tasks.glue import TaskRow, task_of
from tests.studies.figures import figures

NOTHING = np.zeros(0)


def of(results, kind):
    return [result for result in results if kind in result.KINDS]


def rows_of(results):
    return [result.as_row() for result in results]


def flipped(count, n=80):
    """Which examples are right: all but the first `count`."""
    return (np.arange(n) >= count).astype(float)


# ---------------------------------------------------------------- translation


def measurements():
    names = ("Enc L1H1", "Enc L2H1", "Dec L1H1", "Cross L1H1", "Cross L1H2")
    lost = [10, 10, 40, 12, 14, 30]
    exact = np.array([flipped(count) for count in lost])
    sweep = TranslationMeasurement("sweep", names, exact, exact / 2 + 0.4, NOTHING, NOTHING)
    weights = TranslationMeasurement("importance", names, NOTHING, NOTHING, np.arange(5.0), NOTHING)
    pruned = TranslationMeasurement("prune", names, exact, exact, NOTHING, NOTHING)
    row = np.repeat(np.arange(40), [1, 2] * 20)  # an example has one linked word, or two
    found = np.array([row % 4 == 0, row % 10 != 0, row % 3 == 0])
    train = np.array([[1, 1, 1, 1], [0, 0, 1, 0], [0, 1, 1, 0.0]])
    aligned = TranslationMeasurement("align", ("Cross L1H1", "Cross L1H2"), found.astype(float), train, NOTHING, row)
    return TranslationPartial((sweep, weights, pruned, aligned)), exact, row, found


def test_a_translation_is_zeroed_ranked_pruned_and_aligned_head_by_head():
    partial, exact, row, found = measurements()
    results = TRANSLATION.results(TRANSLATION.read({"checkpoint": "x"}), partial)
    (untouched,) = of(results, "baseline")
    assert (untouched.exact, untouched.tokens, untouched.n) == pytest.approx((70 / 80, 70 / 160 + 0.4, 80))
    zeroed = of(results, "zeroed")
    assert [(one.name, one.part, one.layer, one.head) for one in zeroed] == [
        ("Enc L1H1", "encoder", 0, 0),
        ("Enc L2H1", "encoder", 1, 0),
        ("Dec L1H1", "decoder", 0, 0),
        ("Cross L1H1", "cross", 0, 0),
        ("Cross L1H2", "cross", 0, 1),
    ]
    for k, one in enumerate(zeroed, start=1):
        change = (exact[k] - exact[0]).mean()
        assert (one.value, one.tokens_change) == pytest.approx((change, change / 2))
        assert (one.flipped, one.n) == ((exact[k] != exact[0]).sum(), 80)
        assert one.low < change < one.high or change == 0
        assert one.tokens_low <= one.tokens_change <= one.tokens_high
    assert [one.p < 0.05 for one in zeroed] == [False, True, False, False, True]
    assert [(one.name, one.value) for one in of(results, "importance")] == [
        (head.name, float(k)) for k, head in enumerate(zeroed)
    ]
    steps = of(results, "pruned")
    assert [(one.column, one.removed, one.share, one.heads) for one in steps] == [
        ("Enc-Enc", 0, 0, ""),
        ("Enc-Enc", 1, 0.5, "Enc L1H1"),
        ("Enc-Enc", 2, 1, "Enc L1H1,Enc L2H1"),
        ("Enc-Dec", 0, 0, ""),
        ("Enc-Dec", 1, 0.5, "Cross L1H1"),
        ("Enc-Dec", 2, 1, "Cross L1H1,Cross L1H2"),
        ("Dec-Dec", 0, 0, ""),
        ("Dec-Dec", 1, 1, "Dec L1H1"),
    ]
    assert [one.exact for one in steps] == pytest.approx([exact[k].mean() for k in (0, 1, 2, 0, 4, 5, 0, 3)])
    assert [one.change for one in steps] == pytest.approx([one.exact - 70 / 80 for one in steps])
    assert (steps[0].low, steps[0].high, steps[2].n, steps[2].baseline) == (0, 0, 80, pytest.approx(70 / 80))
    assert steps[2].low < steps[2].change < steps[2].high < 0
    first, second = of(results, "alignment")
    shares = [np.mean([found[k][row == number].mean() for number in range(40)]) for k in range(3)]
    for one, share in ((first, shares[1]), (second, shares[2])):
        assert (one.value, one.baseline, one.above) == pytest.approx((share, shares[0], share - shares[0]))
        assert one.low < share < one.high
        assert one.above_low < one.above < one.above_high
        assert (one.n, one.words) == (40, 60)
    assert [(one.best, one.p < 0.05) for one in (first, second)] == [(False, True), (True, False)]
    rows = rows_of(results)
    said = TRANSLATION.headline(rows)
    assert figures(said.sentence) == figures(
        "The share of exact translations is lowest if head Enc L2H1 (encoder) is ablated: -37.5 points "
        "compared with the unmodified model."
    )
    assert figures(said.interval) == figures(f"95 % CI {100 * zeroed[1].low:+.1f} to {100 * zeroed[1].high:+.1f}")
    table, sentence = TRANSLATION.shown(rows)
    assert len(table) == 9
    assert (table[0]["exact"], table[0]["removed"], table[3]["removed"]) == (pytest.approx(70 / 80), None, 2)
    best = (second.value, second.low, second.high, second.baseline, second.above_low, second.above_high)
    assert {f"{value:.0%}"[:-1] for value in map(abs, best)} <= {figure.lstrip("+-") for figure in figures(sentence)}
    assert "Enc L2H1, Cross L1H2" in sentence


# ---------------------------------------------------------------- pruning


def test_a_pruning_curve_adds_its_changes_to_the_unpruned_score():
    gold = np.tile([0, 1], 40)
    plain = np.where(np.arange(80) < 8, 1 - gold, gold)
    changed = np.array([np.where(np.arange(80) < count, 1 - gold, gold) for count in (8, 20, 48)])
    heads = (Head(1, 0), Head(0, 1), Head(0, 0), Head(1, 1))
    curve = Curve("importance", heads, (1, 2, 4), gold, plain, changed)
    by_chance = [Curve(f"random {k}", heads[::-1], (1, 2, 4), gold, plain, changed[[0, 1 + k, 2]]) for k in (0, 1)]
    options = PRUNE.read({"checkpoint": "x", "task": "sst2"})
    steps = PRUNE.results(options, Curves((curve, *by_chance)))
    assert [(one.order, one.removed, one.share, one.heads) for one in steps[:4]] == [
        ("importance", 0, 0, ""),
        ("importance", 1, 0.25, "L2H1"),
        ("importance", 2, 0.5, "L2H1,L1H2"),
        ("importance", 4, 1, "L2H1,L1H2,L1H1,L2H2"),
    ]
    assert [one.score for one in steps[:4]] == pytest.approx([0.9, 0.9, 0.75, 0.4])
    assert [one.change for one in steps[:4]] == pytest.approx([0, 0, -0.15, -0.5])
    assert (steps[0].low, steps[0].high) == pytest.approx((0.9, 0.9))
    assert 0.6 < steps[2].low < 0.75 < steps[2].high < 0.9
    assert {(one.metric, one.n, one.task) for one in steps} == {("accuracy", 80, "sst2")}
    assert [one.baseline for one in steps] == pytest.approx([0.9] * len(steps))
    said = PRUNE.headline(rows_of(steps))
    assert figures(said.sentence) == figures(
        'After pruning 50% of the heads in the order "importance", accuracy is 75.0, compared with 57.5 in random '
        "order."
    )
    assert figures(said.interval) == figures(f"95 % CI {100 * steps[2].low:.1f} to {100 * steps[2].high:.1f}")
    assert figures(said.baseline) == figures("The unpruned model scores 90.0.")
    assert "random" not in PRUNE.headline(rows_of(steps[:4])).sentence


def test_orders_are_drawn_by_their_number_or_made_of_what_a_sweep_measured(monkeypatch):
    options = PRUNE.read({"checkpoint": "x", "task": "sst2", "orders": ["random", "sweep"], "random_orders": 2})
    assert order_names(options) == ["sweep", "random 1", "random 2"]
    heads = [Head(layer, head) for layer in range(2) for head in range(2)]
    opened = SimpleNamespace(
        checkpoint=SimpleNamespace(all_heads=heads), task=task_of("sst2"),
        predicted=lambda logits: logits.argmax(-1).numpy(),
    )  # fmt: skip
    drawn = [order_of(options, f"random {k}", opened, []) for k in (1, 2)]
    assert [sorted(order) for order in drawn] == [heads] * 2
    assert drawn[0] != drawn[1]
    plain = torch.tensor([[0.0, 1.0]] * 4)
    right = torch.stack([plain, plain, plain.flip(-1), plain])
    right[1] += 0.5
    right[3, :2] = plain[:2].flip(-1)
    monkeypatch.setattr(prune, "_swept", lambda *given: SimpleNamespace(plain=plain, changed=right))
    learned = [TaskRow(str(k), "t", None, 1) for k in range(4)]
    assert order_of(options, "sweep", opened, learned) == [heads[0], heads[1], heads[3], heads[2]]


# ---------------------------------------------------------------- groups of duplicates


def test_a_group_has_its_heads_alone_and_matched_controls(monkeypatch):
    heads = [Head(layer, head) for layer in range(3) for head in range(2)]
    checkpoint = SimpleNamespace(
        name="x", weights_hash="h", layers=3, heads=2, attending=(), all_heads=heads, encode=lambda *texts: texts
    )
    opened = Opened(checkpoint, task_of("sst2"), (0, 1))
    apart = np.full((6, 6), 0.9)
    apart[:2, :2] = apart[4:, 4:] = 0.2
    apart[0, 1] = apart[1, 0] = 0.1
    np.fill_diagonal(apart, 0)
    seen = []

    def run(checkpoint, rows, observers):
        seen.append(len(rows))
        (observer,) = observers
        monkeypatch.setattr(observer, "result", lambda: apart.copy())

    monkeypatch.setattr("core.capture.running.run", run)
    monkeypatch.setattr(scoring.distances.HeadDistances, "seen", np.ix_(range(6), range(6)), raising=False)
    monkeypatch.setattr(disable, "read_rows", lambda *given, **named: [TaskRow("1", "t", None, 1)] * named["limit"])
    disable._KNOWN.clear()
    found = group_targets(opened, None, seed=1, within=0.5)
    again = group_targets(opened, None, seed=1, within=0.5)
    assert (found, len(seen), seen[0]) == (again, 1, disable.GROUP_ROWS)
    together = [target for target in found if target.role == disable.TOGETHER]
    assert [(target.heads, target.distance, target.group) for target in together] == [
        ((Head(0, 0), Head(0, 1)), pytest.approx(0.1), 0),
        ((Head(2, 0), Head(2, 1)), pytest.approx(0.2), 1),
    ]
    assert [target.name.split(" like ")[0] for target in together] == ["2", "2"]
    alone = [(target.name, target.heads, target.group) for target in found if target.role == disable.ALONE]
    assert alone == [(str(head), (head,), group) for group in (0, 1) for head in together[group].heads]
    for group in (0, 1):
        controls = [one for one in found if one.role == disable.CONTROL and one.group == group]
        names = [f"control {k + 1} of {together[group].name}" for k in range(len(controls))]
        assert [control.name for control in controls] == names
        assert controls
        for control in controls:
            assert len(control.heads) == 2
            assert not set(control.heads) & set(together[group].heads)
    disable._KNOWN.clear()
    with pytest.raises(InputError, match=r"closer than 0\.05 times the mean"):
        group_targets(opened, None, seed=1, within=0.05)


def test_a_group_is_compared_with_its_heads_and_with_controls():
    gold = np.ones(80)

    def predicted(lost):
        return (np.arange(80) >= lost).astype(float)

    lost = [30, 4, 6, *[12] * disable.CONTROLS, 9, 2, 3]
    roles = [disable.TOGETHER, disable.ALONE, disable.ALONE, *[disable.CONTROL] * disable.CONTROLS]
    targets = [AblationTarget("t", None, None, (), role, 0) for role in roles]
    targets += [AblationTarget("t", None, None, (), role, 1) for role in roles[:3]]
    changed = np.array([predicted(count) for count in lost])
    first, second = group_contrasts(["accuracy"], gold, gold, changed, targets)
    values = {name: estimate.value for name, estimate in first["accuracy"].items()}
    assert values == pytest.approx(
        {"apart": -10 / 80, "control": -12 / 80, "beyond_apart": -20 / 80, "beyond_control": -18 / 80}
    )
    assert first["accuracy"]["beyond_apart"].high < 0
    other = second["accuracy"]
    assert (other["apart"].value, other["beyond_apart"].value) == pytest.approx((-5 / 80, -4 / 80))
    assert (other["control"], other["beyond_control"]) == (None, None)  # too few other heads


# ---------------------------------------------------------------- representations


def test_cosines_are_of_random_pairs_equal_words_and_the_mean_of_the_input():
    """Layer 0: one direction for each word type. Layer 1: one for each input. Layer 2: the same for all."""
    types, inputs = [*"abc", *"abd", *"aef"], [0] * 3 + [1] * 3 + [2] * 3
    vectors = np.zeros((9, 3, 6), dtype=np.float32)
    for token, (word, number) in enumerate(zip(types, inputs, strict=True)):
        vectors[token, 0, "abcdef".index(word)] = 2
        vectors[token, 1, number] = 3
        vectors[token, 2, 0] = 1 + token
    found = similarities(vectors, inputs, types, seed=1)
    assert found.shape == (3, 3, 3)
    random, same_word, same_input = found
    np.testing.assert_allclose(random[:, 1:], [[0, 1]] * 3, atol=1e-6)
    assert (random[:, 0] < 0.7).all()
    np.testing.assert_allclose(same_word, [[1, 0, 1]] * 3, atol=1e-6)
    np.testing.assert_allclose(same_input, [[3**-0.5, 1, 1]] * 3, atol=1e-6)
    alone = similarities(vectors[:5], inputs[:5], [*"abc", *"de"], seed=1)
    assert np.isnan(alone[1]).all()  # no word comes twice
    assert np.isfinite(alone[[0, 2]]).all()


def test_layers_have_their_similarity_beyond_random_pairs_and_their_entropy():
    chance = np.random.default_rng(0)
    similarity, entropy = chance.uniform(0, 1, (3, 30, 4)), chance.uniform(0, 1, (30, 3))
    similarity[1, :6] = np.nan
    found = REPRESENTATION.results(
        REPRESENTATION.read({"checkpoint": "x", "task": "sst2"}), RepresentationPartial(similarity, entropy)
    )
    random, word, same = similarity
    expected = [("random pairs", random), ("same word", word), ("same input", same)]
    expected += [(f"{name}{extra}", values - random) for name, values in expected[1:]
                 for extra in [next(one.similarity for one in found if one.similarity.startswith(name)
                                    and one.similarity != name)[len(name):]]]  # fmt: skip
    number = 0
    for name, values in expected:
        for layer in range(4):
            one, known = found[number], values[:, layer][np.isfinite(values[:, layer])]
            assert (one.similarity, one.layer, one.n, one.task) == (name, layer, len(known), "sst2")
            assert one.value == pytest.approx(known.mean())
            assert (one.low, one.high) == pytest.approx(
                stats.t.interval(0.95, len(known) - 1, known.mean(), stats.sem(known)), abs=0.02
            )
            number += 1
    rest = found[number:]
    assert [(one.layer, one.value) for one in rest] == [(k + 1, pytest.approx(entropy[:, k].mean())) for k in range(3)]
    assert len({one.name for one in found}) == len(found)
    said = REPRESENTATION.headline(rows_of(found))
    assert figures(said.sentence) == figures(
        f"The vectors of words from different inputs have a mean cosine of {random[:, 0].mean():.2f} in the embeddings "
        f"and {random[:, 3].mean():.2f} in layer 3."
    )
    assert figures(said.interval) == figures(f"95 % CI {found[3].low:.2f} to {found[3].high:.2f}")
    none = REPRESENTATION.results(
        REPRESENTATION.read({"checkpoint": "x", "task": "sst2"}),
        RepresentationPartial(np.full((3, 2, 1), np.nan), entropy[:2]),
    )
    assert (none[0].value, none[0].low, none[0].n) == (None, None, 0)


def test_entropies_are_relative_to_the_keys_that_a_query_sees():
    even = torch.full((1, 2, 4, 4), 0.25)
    causal = torch.ones(4, 4).tril() / torch.arange(1, 5)[:, None]
    sharp = torch.eye(4).expand(1, 2, 4, 4)
    entropies = Entropies(3, 2)
    entropies.update(0, torch.cat([even, sharp]), [2, 0])
    entropies.update(1, causal.expand(1, 2, 4, 4), [1])
    assert entropies.means[[2, 0, 1], [0, 0, 1]] == pytest.approx([1, 0, 1], abs=1e-6)
    assert np.isnan(entropies.means[[0, 1], [1, 0]]).all()


# ---------------------------------------------------------------- written tokens


def test_what_heads_write_is_scored_beside_a_null_and_counted_by_source():
    chance = np.random.default_rng(0)
    copying = chance.uniform(0.2, 0.6, (2, 2, 50))
    copying[1, 0] += 0.4
    usual, p = np.full((2, 2), 0.5), np.array([[0.3, 0.6], [0.001, 0.9]])
    share, null = np.array([np.full((2, 2), 0.3), np.zeros((2, 2))]), np.full((2, 2, 2), 0.1)
    p_relation = np.array([[[0.01, 0.2], [0.5, 0.04]], np.ones((2, 2))])

    def text(example, layer, head, source, promoted, agreement):
        by_weights = (f"{source}1", f"{source}2")
        return WrittenOnText(example, layer, head, source, promoted, ("bad",), agreement, by_weights)

    texts = (
        text(3, 0, 1, "b", ("x", "y"), 0.9),
        text(1, 0, 1, "a", ("x", "z"), 0.5),
        text(2, 0, 1, "a", ("z", "x"), 0.7),
        text(0, 0, 1, "a", ("z",), 0.6),
        text(0, 1, 1, "c", tuple("abcdefghijklmnop"), 1.0),
    )
    merged = WritesPartial(
        np.arange(4), "prediction head", 2, 2, copying, usual, p, ("plural", "rare"), (30, 2), share, null, p_relation,
        texts,
    )  # fmt: skip
    results = WRITES.results(WRITES.read({"checkpoint": "x", "task": "sst2"}), merged)
    names = [(0, 0), (0, 1), (1, 0), (1, 1)]
    copied = [one for one in results if getattr(one, "statistic", None) == COPYING]
    assert [(one.layer, one.head) for one in copied] == names
    q = q_values(p)
    for one in copied:
        own = copying[one.layer, one.head]
        assert (one.value, one.baseline, one.n) == (pytest.approx(own.mean()), 0.5, 50)
        assert (one.low, one.high) == pytest.approx(stats.t.interval(0.95, 49, own.mean(), stats.sem(own)), abs=0.01)
        assert (one.p, one.q) == (p[one.layer, one.head], q[one.layer, one.head])
        assert (one.checkpoint, one.task, one.reads) == ("x", "sst2", "prediction head")
    related = [one for one in results if getattr(one, "statistic", None) == RELATION]
    assert [(one.feature, one.layer, one.head) for one in related] == [("plural", *at) for at in names] + [
        ("rare", None, None)
    ]
    for one, at in zip(related, names, strict=False):
        assert (one.value, one.baseline, one.p, one.q, one.n) == (0.3, 0.1, p_relation[0][at], p_relation[0][at], 30)
    assert (related[-1].n, related[-1].value) == (0, None)
    assert related[-1].note.startswith("fewer than")
    written = of(results, "written tokens")
    assert [(one.name, one.source, one.times, one.n) for one in written] == [
        ("L1H2", "a", 3, 4), ("L1H2", "b", 1, 4), ("L2H2", "c", 1, 4),
    ]  # fmt: skip
    assert (written[0].promoted, written[0].suppressed, written[0].agreement) == ("z, x", "bad", 0.6)
    assert written[0].by_weights == "a1, a2"
    assert written[2].promoted == ", ".join("abcdefghijklmnop"[:LISTED])
    rows = rows_of(results)
    said = WRITES.headline(rows)
    assert figures(said.sentence) == figures(
        "1 of 4 heads of x is a copying head. A copying head promotes the attended token more than other "
        f"tokens. Head L2H1 has the highest copying score: {copying[1, 0].mean():.2f}."
    )
    assert (said.n, said.of) == (50, "tokens")
    assert figures(said.baseline) == figures(
        "If the outputs of this head are assigned to other tokens at random, its copying score is 0.50."
    )
    scores, tokens = WRITES.shown(rows)
    assert [(one["name"], one["statistic"]) for one in scores] == [
        ("L2H1", COPYING), ("L1H1", RELATION), ("L2H2", RELATION),
    ]  # fmt: skip
    assert [one["source"] for one in tokens] == ["a", "b", "c"]
    (warning,) = WRITES.warnings(rows)
    assert "derivative of the masked-language-model head" in warning
    assert figures(WRITES.headline([]).sentence) == figures("No head was measured.")


# ---------------------------------------------------------------- sinks


def test_sinks_have_their_verdicts_by_head_and_by_layer():
    """L1H1 does nothing, L1H2 adds a constant, L2H1 broadcasts, and L2H2 is no sink head."""
    kinds = list(captured_sinks.KINDS)
    shape, n = (2, 2, len(kinds)), 50
    share = np.full(shape, 0.05)
    share[0, :, 0], share[1, 0, 1], share[1, 1, 0] = 0.8, 0.7, 0.2
    low, over = share - 0.02, np.where(share > 0.5, 0.1, -0.5)
    sway = 0.001 * np.tile([-1, 1], n // 2)
    at = {"L1H1": (0.5, 0.002, 0.3), "L1H2": (0.5, 0.4, 0.002), "L1": (0.9, 0.5, 0.6), "L2H1": (0.5, 0.4, 0.3)}
    effects = np.array([value + sway for values in at.values() for value in values])
    grid = np.arange(np.prod(shape), dtype=float).reshape(shape)
    massive = np.array([[3.0, 7, 0, 0.5, 0], [900.0, 5, -1, 3, 2]])
    merged = SinkPartial(
        np.arange(n), "nats", tuple(at), effects, share, low, share + 0.02, np.full(shape, 0.1), over, grid, grid + 0.1,
        grid[..., 0] + 0.2, grid + 0.3, massive, 60,
    )  # fmt: skip
    options = SINKS.read({"checkpoint": "x", "task": "sst2", "margin": 0.01})
    results = SINKS.results(options, merged)
    shares = [one for one in results if getattr(one, "statistic", None) == SHARE]
    assert [(one.name, one.feature, one.verdict) for one in shares] == [
        ("L1H1", kinds[0], NOP),
        ("L1H2", kinds[0], CONSTANT),
        ("L2H1", kinds[1], BROADCAST),
        ("L2H2", kinds[0], None),
    ]
    for one in shares:
        cell = (one.layer, one.head, kinds.index(one.feature))
        assert (one.value, one.low, one.high, one.baseline) == pytest.approx(
            (share[cell], low[cell], share[cell] + 0.02, 0.1)
        )
        described = (one.length, one.energy, one.rank, one.varies)
        expected = (grid[cell], grid[cell] + 0.1, grid[one.layer, one.head, 0] + 0.2, grid[cell] + 0.3)
        assert described == (pytest.approx(expected) if one.verdict else (None,) * 4)
        assert one.n == 60
    measured = [one for one in results if getattr(one, "statistic", None) in EFFECTS.values()]
    assert [(one.name, one.value) for one in measured] == [
        (name, pytest.approx(value)) for name in ("L1H1", "L1H2", "L2H1") for value in at[name]
    ]
    assert {(one.n, one.baseline, one.measure) for one in measured} == {(n, 0.01, "nats")}
    assert all(one.low < one.value < one.high for one in measured)
    (layer,) = of(results, "sinks of a layer")
    assert (layer.name, layer.heads, layer.verdict) == ("L1", "L1H1,L1H2", BROADCAST)
    assert (layer.whole, layer.value, layer.replaced) == pytest.approx(at["L1"])
    assert layer.low < layer.value < layer.high
    assert layer.whole_low < layer.whole < layer.whole_high
    assert layer.replaced_low < layer.replaced < layer.replaced_high
    first, second = of(results, "massive activations")
    assert (first.name, first.ratio, first.channel, first.at, first.at_sink) == ("L1", 3, 7, kinds[0], True)
    assert (second.at, second.at_sink, second.above_100, second.above_1000) == ("other token", False, 3, 2)
    rows = rows_of(results)
    said = SINKS.headline(rows)
    assert {"3", "4"} <= set(figures(said.sentence))
    assert "L1H1" in said.sentence
    assert "80" in figures(said.sentence)
    assert figures(said.interval) == figures("L1H1 has a 95 % CI of 78% to 82%.")
    assert figures(said.baseline) == figures(
        f"With uniform attention, this head would give 10% of its attention to the {kinds[0]}."
    )
    table, layers, activations = SINKS.shown(rows)
    assert [row["name"] for row in table] == ["L1H1", "L1H2", "L2H1"]
    assert ([row["name"] for row in layers], [row["name"] for row in activations]) == (["L1"], ["L1", "L2"])
    open_ends = replace(merged, effects=effects + np.tile(3 * sway, (12, 1)) * np.array([0, 9, 0] * 4)[:, None])
    assert SINKS.results(options, open_ends)[0].verdict in (NOP, UNDECIDED)
    nothing = SINKS.headline([row for row in rows if row.get("statistic") is None])
    assert nothing.n is None
