"""Heads removed together, measured on a model whose logits are a sum over heads and one pair: all values are known."""

from dataclasses import replace
from importlib import import_module
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.attention import Head
from core.studies.ablation import setup
from core.studies.ablation.operators import STUDY as OPERATORS
from core.studies.circuits import gates, pairs, shapley
from core.studies.circuits.gates import PRICES, GatePartial
from core.studies.circuits.gates import STUDY as GATES
from core.studies.circuits.pairs import STUDY as PAIRS
from core.studies.circuits.shapley import STUDY as SHAPLEY
from core.studies.contract import ExampleUnit, Unit
from core.tasks.glue import TaskRow, task_of
from tests.studies.figures import figures

HEADS = [Head(0, 0), Head(0, 1), Head(2, 0), Head(2, 1)]  # the middle layer has no attention
WEIGHTS = np.array([0.5, 1.0, -0.25, 2.0])
BOTH = 0.75  # what the second and the last head add together
ROWS = [TaskRow(f"row-{k}", "t" * (k + 1), None, k % 2) for k in range(6)]
ABOUT = {"checkpoint": "x", "task": "sst2", "operator": "zero"}


def left(number, gone):
    """The logit of the gold label of a row, less that of the other, without these heads."""
    kept = [k for k in range(4) if HEADS[k] not in gone]
    return 0.1 * number + WEIGHTS[kept].sum() + BOTH * ({1, 3} <= set(kept))


@pytest.fixture
def opened(monkeypatch):
    """Encodings are the rows' numbers; labels are given by the outputs the other way round."""

    def logits(number, gone):
        both = [0.3 * number, 0.3 * number]
        both[1 - ROWS[number].label] += left(number, gone)
        return both

    def sweep(checkpoint, encodings, variants, operator, *, source):
        assert (operator, source) == ("zero", None)
        changed = [[logits(number, gone) for number in encodings] for gone in variants]
        return SimpleNamespace(
            plain=torch.tensor([logits(number, ()) for number in encodings]), changed=torch.tensor(changed)
        )

    def gradients(checkpoint, encodings, labels):
        assert labels == [1 - ROWS[number].label for number in encodings]
        return SimpleNamespace(example=torch.arange(6.0).reshape(3, 2) * len(encodings))

    for name in ("pruning", "losses", "patching"):  # they bind these functions when they are first imported
        import_module(f"core.capture.{name}")
    monkeypatch.setattr("core.capture.sweeping.sweep", sweep)
    monkeypatch.setattr("core.capture.importance.gradients", gradients)
    checkpoint = SimpleNamespace(
        layers=3, heads=2, attending=(0, 2), all_heads=HEADS, sets=[SimpleNamespace(numbers=(0, 2))],
        encode=lambda text, pair: len(text) - 1, weights_hash="w", device="cpu", dtype="float32",
    )  # fmt: skip
    made = setup.Opened(checkpoint, task_of("sst2"), (1, 0))
    monkeypatch.setattr(setup, "opened", lambda options: made)
    monkeypatch.setattr(
        setup, "rows_of", lambda options, split=None, limit=None: ROWS[: limit if split == "train" else None]
    )
    return made


def test_shapley_values_share_what_a_pair_adds(opened):
    options = SHAPLEY.read(ABOUT | {"orders": 4, "judge_rows": 3})
    done = SHAPLEY.run(options, Unit("rows", ExampleUnit((4, 1, 3))))
    partial = done.partial
    assert done.provenance.row_ids == ("row-4", "row-1", "row-3")
    assert partial.rows.tolist() == [4, 1, 3]
    assert partial.whole == pytest.approx([left(number, ()) for number in (4, 1, 3)])
    assert partial.none == pytest.approx([0.4, 0.1, 0.3])
    values = WEIGHTS + np.array([0, BOTH / 2, 0, BOTH / 2])
    np.testing.assert_allclose(partial.values, np.repeat(values[:, None], 3, 1), atol=1e-5)
    alone = WEIGHTS + np.array([0, BOTH, 0, BOTH])
    np.testing.assert_allclose(partial.alone, np.repeat(alone[:, None], 3, 1), atol=1e-5)
    assert partial.gradients.tolist() == [0, 3, 12, 15]
    assert partial.attending == (0, 2)
    (orders,) = SHAPLEY.more(options, [partial])
    assert (orders.key, orders.size) == ("orders", 3)
    assert orders.arguments.groups == shapley.weakest_first(partial) == ((2, 0, 1, 3), (0, 2, 3, 1))
    kept = SHAPLEY.run(options, orders)
    assert kept.provenance.row_ids == ("row-0", "row-1", "row-2")
    for number, order in enumerate(orders.arguments.groups):
        for step in range(5):
            gone = [HEADS[k] for k in order[:step]]
            assert kept.partial.kept[number, step] == pytest.approx([left(k, gone) for k in range(3)], abs=1e-5)
    assert SHAPLEY.more(options, [partial, kept.partial]) == []
    assert SHAPLEY.more(SHAPLEY.read(ABOUT | {"judge_rows": 0}), [partial]) == []
    merged = SHAPLEY.merge(options, [kept.partial, partial])
    assert [one.name for one in SHAPLEY.results(options, merged)[:4]] == ["L3H2", "L1H2", "L1H1", "L3H1"]


@pytest.mark.parametrize("most", [3, 10])
def test_pairs_are_those_of_the_strongest_heads_and_a_sample_or_all(opened, monkeypatch, most):
    """With more heads than `most`, the two strongest are paired, and two of the other five pairs are drawn."""
    monkeypatch.setattr(pairs, "ALL_PAIRS", most)
    monkeypatch.setattr(pairs, "CHOOSING_ROWS", 2)
    options = PAIRS.read(ABOUT | {"strongest": 2, "sample": 2, "seed": 7})
    (choosing,) = PAIRS.units(options)
    chosen = PAIRS.run(options, choosing)
    assert chosen.partial.strongest == ((1, 3) if most == 3 else ())
    assert chosen.provenance.row_ids == (("row-0", "row-1") if most == 3 else ())
    (unit,) = PAIRS.more(options, [chosen.partial])
    assert unit.arguments.targets == chosen.partial.strongest
    found = PAIRS.run(options, unit).partial
    assert sorted(found.rows.tolist()) == list(range(6))
    listed = [tuple(pair) for pair in found.pairs.tolist()]
    every = list(combinations(range(4), 2))
    if most == 3:
        assert listed[0] == (1, 3)
        assert set(listed[1:]) < set(every) - {(1, 3)}
        assert found.sampled.tolist() == [0, 1, 1]
        assert listed[1:] == sorted(set(listed[1:]))
    else:
        assert (listed, found.sampled.tolist()) == (every, [0] * 6)
    numbers = found.rows.tolist()
    whole = np.array([left(number, ()) for number in numbers])

    def checked(gone, fall, gain):
        rest = np.array([left(number, [HEADS[k] for k in gone]) for number in numbers])
        assert fall == pytest.approx(whole - rest, abs=1e-5)
        assert gain == pytest.approx(np.log1p(np.exp(-rest)) - np.log1p(np.exp(-whole)), abs=1e-5)

    for head in range(4):
        checked([head], found.alone[head], found.lost_alone[head])
    for number, pair in enumerate(listed):
        checked(pair, found.together[number], found.lost_together[number])
    assert PAIRS.more(options, [chosen.partial, found]) == []
    results = PAIRS.results(options, PAIRS.merge(options, [chosen.partial, found]))
    interacting = next(one for one in results if one.name == "L1H2 and L3H2")
    assert interacting.interaction == pytest.approx(-BOTH, abs=1e-5)
    assert all(one.interaction == 0 for one in results if one is not interacting and hasattr(one, "interaction"))


def test_the_sentence_of_pairs_says_what_none_is(opened):
    options = PAIRS.read(ABOUT)
    found = PAIRS.run(options, PAIRS.more(options, [PAIRS.run(options, PAIRS.units(options)[0]).partial])[0]).partial
    said = PAIRS.headline([one.as_row() for one in PAIRS.results(options, found)])
    assert figures(said.interval) == figures("The p-values are corrected for the number of pairs (max-T).")
    assert figures(said.baseline) == figures(
        "The interaction is 0 if the effect of ablating both heads is the sum of their separate effects."
    )


def test_gates_are_fitted_on_train_rows_at_a_price_and_judged_on_others(opened, monkeypatch):
    asked = []

    def doing(name, **fields):
        def do(options, opened, rows, *stage):
            asked.append((name, [row.id for row in rows], *stage))
            return GatePartial(3, 2, 0.2, **fields)

        monkeypatch.setattr(gates, name, do)

    losses = np.array([0.0, 0.01, 0.02, 0.05, 0.09, 0.3, 0.6, -0.1])[:, None] + np.zeros(4)
    up = np.tile([0.9, 0.2, 0.8, 0.7], (20, 1))
    down = np.tile([0.8, 0.1, 0.3, 0.4], (20, 1))
    doing("gate_path", path_gates=np.ones((7, 4)), path_losses=losses)
    doing("fits", price=0.05, fits=np.arange(20), up=up, down=down)
    doing("zeroing_effects", effects=np.zeros((46, 6)), gradient=np.ones(4))
    options = replace(GATES.read({"checkpoint": "x", "task": "sst2", "samples": 5, "starts": 4}), fit_rows=4)
    (first,) = GATES.units(options)
    partials = [GATES.run(options, first).partial]
    fits = GATES.more(options, partials)
    assert [k for unit in fits for k in unit.arguments.targets] == list(range(20))
    assert {unit.arguments.price for unit in fits} == {0.2 / 4}  # the largest that adds at most the margin
    assert [unit.size for unit in fits] == [2 * len(unit.arguments.targets) for unit in fits]
    partials.append(GATES.run(options, fits[0]).partial)
    (last,) = GATES.more(options, partials)
    assert last.arguments.groups == ((2, 3), (1,))
    partials.append(GATES.run(options, last).partial)
    assert GATES.more(options, partials) == []
    train, every = [f"row-{k}" for k in range(4)], [f"row-{k}" for k in range(6)]
    assert [(name, rows) for name, rows, *_ in asked] == [
        ("gate_path", train),
        ("fits", train),
        ("zeroing_effects", every),
    ]
    assert (first.size, last.size) == (len(PRICES), len(PRICES))


def test_each_ablation_method_is_a_unit_as_large_as_its_rows(opened):
    units = OPERATORS.units(OPERATORS.read({"checkpoint": "x", "task": "sst2", "operators": ["mean", "zero"]}))
    assert [(unit.key, unit.arguments.name, unit.arguments.number, unit.size) for unit in units] == [
        ("mean", "mean", 0, 6), ("zero", "zero", 1, 6),
    ]  # fmt: skip
