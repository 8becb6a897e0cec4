"""A cross-fitted sweep: every train row is tested once, by a model that never saw it; seeds apart, run by run."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.importance import gradients
from core.capture.interventions import Intervention
from core.capture.running import predict
from core.errors import AtlasError
from core.models.opening import open_checkpoint
from core.studies.ablation import cross_fitted, cross_fitted_prune, cross_fitted_scores, cross_fitting, seeds
from core.studies.tuning import finetune
from core.tasks.glue import TaskRow, read_rows, task_of
from core.tuning.recipe import Recipe, Seeds
from tests.capture.conftest import tiny
from tests.studies.through_json import rows_of

SMALL = {"epochs": 1, "batch": 8, "max_length": 24, "learning_rate": 1e-2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("crossed")
    torch.set_num_threads(1)
    base = tiny("bert")
    base.model.save_pretrained(place / "tiny")
    base.tokenizer.save_pretrained(place / "tiny")
    return place


@pytest.fixture(scope="module")
def crossing(folder):
    return {
        "checkpoint": str(folder / "tiny"),
        "task": "mrpc",
        "limit": 48,
        "folds": 3,
        "settings": SMALL,
        "out": str(folder / "crossed"),
    }


@pytest.fixture(scope="module")
def swept(crossing):
    return rows_of("cross-fitted", crossing)


def predicted(checkpoint, rows, heads=()):
    changes = [Intervention("disable", frozenset(heads))] if heads else []
    encodings = [checkpoint.encode(row.text, row.pair) for row in rows]
    return predict(checkpoint, encodings, interventions=changes).argmax(1).numpy()


@pytest.mark.thorough
def test_every_row_is_tested_by_the_model_that_never_saw_it(crossing, swept, monkeypatch):
    """The whole sweep again, from the saved checkpoints, a row's own part left out of its model's training."""
    every, folds = cross_fitting.cut_rows(cross_fitted.STUDY.read(crossing))
    parts = [row for row in swept if row["kind"] == "fold"]
    assert [part["n"] for part in parts] == [(folds == k).sum() for k in range(3)]
    assert [part["train_rows"] for part in parts] == [48 - part["n"] for part in parts]
    gold = np.array([row.label for row in every])
    plain, without = np.zeros(48, int), np.zeros(48, int)
    for number, part in enumerate(parts):
        model = open_checkpoint(part["folder"], head="classifier")
        assert json.loads((Path(part["folder"]) / "training.json").read_text())["initialisation"] == "pretrained"
        own = [row for row, fold in zip(every, folds, strict=True) if fold == number]
        plain[folds == number] = predicted(model, own)
        without[folds == number] = predicted(model, own, [Head(0, 1)])
        assert part["score"] == pytest.approx((plain == gold)[folds == number].mean())
    assert swept[0]["accuracy"] == pytest.approx((plain == gold).mean())
    variant = next(row for row in swept if row.get("name") == "L1H2")
    difference = (without == gold).astype(float) - (plain == gold)
    assert variant["accuracy_change"] == pytest.approx(difference.mean())
    signs = [np.sign(difference[folds == number].mean()) for number in range(3)]
    whole = np.sign(difference.mean())
    assert variant["folds_agree"] == sum(sign == whole != 0 for sign in signs)
    assert variant["n"] == 48
    monkeypatch.setattr(finetune, "tune_on", None)  # the same models: nothing is trained again
    layers = rows_of("cross-fitted", crossing | {"what": "layers"})
    assert [row for row in layers if row["kind"] == "fold"] == parts
    first = next(row for row in layers if row["kind"] == "variant" and row["layer"] == 0)
    for number, part in enumerate(parts):
        model = open_checkpoint(part["folder"], head="classifier")
        own = [row for row, fold in zip(every, folds, strict=True) if fold == number]
        heads = [Head(0, k) for k in range(model.heads)]
        without[folds == number] = predicted(model, own, heads)
    assert first["accuracy_change"] == pytest.approx((without == gold).mean() - (plain == gold).mean())


@pytest.mark.thorough
def test_scores_are_of_all_rows_each_by_a_model_that_never_saw_it(crossing, swept):
    """From the saved checkpoints, of two initialisations and two seeds; the sweep's models are not trained again."""
    asked = crossing | {"initialisations": ["pretrained", "untrained"], "seeds": [0, 1]}
    scores = rows_of("cross-fitted-scores", asked)
    every, folds = cross_fitting.cut_rows(cross_fitted.STUDY.read(crossing))
    gold = np.array([row.label for row in every])
    runs = {(row["initialisation"], row["seed"]): row for row in scores if row["kind"] == "run"}
    assert set(runs) == {(name, seed) for name in ("pretrained", "untrained") for seed in (0, 1)}
    options = cross_fitted_scores.STUDY.read(asked)
    for (name, seed), row in runs.items():
        said = np.zeros(48, int)
        for number in range(3):
            folder = cross_fitting.run_without(options, number, name, seed).folder
            own = [row for row, fold in zip(every, folds, strict=True) if fold == number]
            said[folds == number] = predicted(open_checkpoint(str(folder), head="classifier"), own)
        assert row["accuracy"] == pytest.approx((said == gold).mean())
        assert (row["dev_rows"], row["train_rows"]) == (48, 48 - max(np.bincount(folds)))
    assert runs["pretrained", 0]["accuracy"] == pytest.approx(swept[0]["accuracy"])
    means = {row["initialisation"]: row for row in scores if row["kind"] == "mean"}
    both = [runs["pretrained", seed]["accuracy"] for seed in (0, 1)]
    assert means["pretrained"]["accuracy"] == pytest.approx(np.mean(both))
    assert means["pretrained"]["accuracy_sd"] == pytest.approx(np.std(both, ddof=1))
    (constant,) = (row for row in scores if row["kind"] == "baseline")
    assert constant["accuracy"] == pytest.approx(max(gold.mean(), 1 - gold.mean()))
    assert "on the train examples of" in cross_fitted_scores.STUDY.headline(scores).sentence


@pytest.mark.thorough
def test_pruning_on_all_rows_takes_each_models_own_least_important_heads(crossing, swept, monkeypatch):
    """Again from the saved checkpoints: the order by gradients on rows that the model learned, a row's own part out."""
    monkeypatch.setattr(finetune, "tune_on", None)  # the sweep's models
    asked = crossing | {"steps": 2, "order_rows": 20, "random_orders": 1}
    rows = rows_of("cross-fitted-prune", asked)
    parts = [row for row in swept if row["kind"] == "fold"]
    assert [row for row in rows if row["kind"] == "fold"] == parts
    every, folds = cross_fitting.cut_rows(cross_fitted.STUDY.read(crossing))
    gold, without = np.array([row.label for row in every]), np.zeros(48, int)
    for number, part in enumerate(parts):
        model = open_checkpoint(part["folder"], head="classifier")
        learned = [row for row, fold in zip(every, folds, strict=True) if fold != number]
        drawn = [learned[k] for k in np.random.default_rng([0, number]).permutation(len(learned))[:20]]
        encodings = [model.encode(row.text, row.pair) for row in drawn]
        weight = gradients(model, encodings, [int(row.label) for row in drawn]).example
        weight = weight / weight.pow(2).sum(1, keepdim=True).sqrt()
        order = sorted((float(weight[i, j]), Head(i, j)) for i in range(model.layers) for j in range(model.heads))
        gone = [Intervention("zero", frozenset(head for _, head in order[: len(order) // 2]))]
        own = [row for row, fold in zip(every, folds, strict=True) if fold == number]
        encodings = [model.encode(row.text, row.pair) for row in own]
        without[folds == number] = predict(model, encodings, interventions=gone).argmax(1).numpy()
    whole, half, _ = (row for row in rows if row.get("order") == "importance")
    assert (whole["n"], whole["score"]) == (48, pytest.approx(swept[0]["accuracy"]))
    assert (half["share"], half["score"]) == (0.5, pytest.approx((without == gold).mean()))
    assert {row["order"] for row in rows if row["kind"] == "step"} == {"importance", "random 1"}


@pytest.mark.parametrize(
    ("study", "changes", "says"),
    [
        (
            cross_fitted_scores,
            {"initialisations": ["guessed"]},
            'must be one of pretrained, random, frozen, untrained; got "guessed"',
        ),
        (cross_fitted_scores, {"seeds": []}, "number of seeds must be at least 1"),
        (cross_fitted_scores, {"settings": SMALL | {"keep": "best"}}, "Set keep=last"),
        (cross_fitted_prune, {"orders": ["weight"]}, 'got "weight"'),
        (cross_fitted_prune, {"limit": 12, "folds": 20}, "fewer folds"),
    ],
)
def test_scores_and_curves_that_cannot_be_are_one_sentence(crossing, study, changes, says):
    with pytest.raises(AtlasError, match=says):
        study.STUDY.units(study.STUDY.read(crossing | changes))


def test_labels_are_spread_evenly_over_the_parts(crossing):
    every, folds = cross_fitting.cut_rows(cross_fitted.STUDY.read(crossing))
    gold = np.array([row.label for row in every])
    assert {row.id for row in every} == {row.id for row in read_rows("mrpc", "train", limit=48)}
    ones = [int(gold[folds == k].sum()) for k in range(3)]
    assert max(ones) - min(ones) <= 1


def _row(number, text, pair=None, label=0):
    return TaskRow(f"train-{number}", text, pair, label)


def test_rows_that_share_a_sentence_are_in_one_group():
    """Directly, through a third row, in either column, and in another case or spacing."""
    rows = [
        _row(0, "A b.", "c"),
        _row(1, "d", "a  B."),
        _row(2, "d", "e"),
        _row(3, "f", "g"),
        _row(4, "F"),
        _row(5, "h"),
    ]
    assert cross_fitting.groups_by_text(rows).tolist() == [0, 0, 0, 1, 1, 2]


def test_no_sentence_is_in_two_parts(crossing, monkeypatch):
    """Every sentence stands in two rows or three, as premises of RTE do."""
    rows = [_row(k, f"premise {k // 3}", f"hypothesis {k % 40}", k % 2) for k in range(60)]
    monkeypatch.setattr(cross_fitting, "read_rows", lambda *_, **__: rows)
    every, folds = cross_fitting.cut_rows(cross_fitted.STUDY.read(crossing | {"limit": None}))
    for column in ("text", "pair"):
        parts = {getattr(row, column): fold for row, fold in zip(every, folds, strict=True)}
        assert all(parts[getattr(row, column)] == fold for row, fold in zip(every, folds, strict=True))
    assert set(folds) == {0, 1, 2}


@pytest.mark.thorough
def test_parts_in_any_order_give_the_same_table(crossing, swept):
    def told(rows):
        return [{name: value for name, value in row.items() if name != "folder"} for row in rows]

    assert told(rows_of("cross-fitted", crossing, order=random.Random(1))) == told(swept)  # noqa: S311


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"settings": SMALL | {"keep": "best"}}, "Set keep=last"),
        ({"operator": "mean"}, "must be one of disable"),
        ({"what": "groups"}, "must be one of heads, layers"),
        ({"limit": 12, "folds": 20}, "fewer folds"),
    ],
)
def test_what_cannot_be_crossed_is_one_sentence(crossing, changes, says):
    with pytest.raises(AtlasError, match=says):
        cross_fitted.STUDY.units(cross_fitted.STUDY.read(crossing | changes))


# ---------------------------------------------------------------- seeds apart


@pytest.fixture(scope="module")
def seeding(folder):
    return {
        "checkpoint": str(folder / "tiny"),
        "task": "sst2",
        "train_rows": 40,
        "limit": 30,
        "top": 3,
        "settings": SMALL | {"dev_limit": 40},
        "out": str(folder / "seeds"),
    }


@pytest.fixture(scope="module")
def square(seeding):
    return rows_of("seeds", seeding)


@pytest.mark.slow  # 3 CPU seconds of training
def test_each_seed_moves_what_it_is_of_and_nothing_else(folder):
    """Head, sample and order, each changed alone: other first weights, other rows, the same rows in another order."""
    base = open_checkpoint(str(folder / "tiny"))
    facts = {}
    for seeds_of_run in (Seeds(0, 0, 0), Seeds(1, 0, 0), Seeds(0, 1, 0), Seeds(0, 0, 1)):
        key = "-".join(map(str, (seeds_of_run.head, seeds_of_run.rows, seeds_of_run.order)))
        run = finetune.FinetuningRun(
            task_of("sst2"),
            "pretrained",
            "pretrained",
            seeds_of_run,
            "small",
            Recipe.of("small", SMALL | {"train_limit": 16}),
            None,
            str(folder / "apart"),
            key,
        )
        finetune.tune(base, run)
        facts[key] = json.loads((run.folder / "training.json").read_text())
    plain = facts["0-0-0"]
    assert facts["1-0-0"]["train_rows_hash"] == plain["train_rows_hash"] != facts["0-1-0"]["train_rows_hash"]
    assert facts["0-0-1"]["train_rows_hash"] == plain["train_rows_hash"]
    assert facts["0-0-1"]["epochs"][0] == plain["epochs"][0]  # before training: the same head on the same dev rows
    assert facts["0-1-0"]["epochs"][0] == plain["epochs"][0]
    assert facts["0-0-1"]["losses"] != plain["losses"]
    assert facts["1-0-0"]["losses"][0] != plain["losses"][0]
    assert facts["1-0-0"]["seeds"] == {"head": 1, "rows": 0, "order": 0}


@pytest.mark.thorough
def test_runs_of_the_square_and_their_most_important_heads(seeding, square):
    runs = [row for row in square if row["kind"] == "run"]
    assert [(row["head_seed"], row["rows_seed"], row["order_seed"]) for row in runs] == [
        (i, j, (i + j) % 3) for i in range(3) for j in range(3)
    ]
    model = open_checkpoint(runs[4]["folder"], head="classifier")
    rows = read_rows("sst2", "dev", limit=30, seed=0)
    encodings = [model.encode(row.text, row.pair) for row in rows]
    sums = gradients(model, encodings, [row.label for row in rows])
    best = np.argsort(-sums.example.numpy().ravel(), kind="stable")[:3]
    assert set(runs[4]["heads"].split()) == {str(Head(*divmod(int(place), model.heads))) for place in best}
    counted = {row["name"]: row["runs"] for row in square if row["kind"] == "head"}
    assert sum(counted.values()) == 9 * 3
    assert counted == {name: sum(name in row["heads"].split() for row in runs) for name in counted}


@pytest.mark.thorough
def test_sources_add_up_and_overlaps_stand_beside_chance(square):
    sources = [row for row in square if row["kind"] == "source"]
    assert [row["name"] for row in sources] == ["head", "rows", "order", "rest"]
    assert sum(row["share"] for row in sources) == pytest.approx(1)
    overlaps = {row["name"]: row for row in square if row["kind"] == "overlap"}
    pairs = {"all pairs": 36, "same head": 9, "same rows": 9, "same order": 9, "no seed in common": 9}
    assert {name: overlaps[name]["pairs"] for name in pairs} == pairs
    whole = sum(overlaps[name]["value"] for name in pairs if name != "all pairs") / 4
    assert overlaps["all pairs"]["value"] == pytest.approx(whole)
    assert "same run, other rows" in overlaps
    (spread,) = [row for row in square if row["kind"] == "spread"]
    scores = [row["score"] for row in square if row["kind"] == "run"]
    assert spread["deviation"] == pytest.approx(np.std(scores, ddof=1))
    accuracy = scores[0]
    assert spread["dev_error"] == pytest.approx((accuracy * (1 - accuracy) / 40) ** 0.5, rel=0.15)


def test_a_sample_of_all_rows_is_refused(seeding):
    with pytest.raises(AtlasError, match="so that samples differ between seeds"):
        seeds.STUDY.units(seeds.STUDY.read(seeding | {"train_rows": 2000}))
