import base64
import json

import numpy as np
import pytest

from core.codebook.registry import BERT
from core.errors import InputError
from core.patterns import snapshot as label_snapshot
from core.patterns.classifier_registry import open_classifier, training_options
from core.store import classifiers, labels
from core.store.database import Database
from core.store.label_files import export_labels
from core.studies.contract import Finished, TrainingUnit, Unit
from core.studies.patterns import train_patterns
from core.studies.patterns.records import Calibration, ClassScore, Confusion, HeldOutMap
from core.studies.patterns.train_patterns import (
    STUDY,
    Predictions,
    answers_of,
    curve,
    details,
    main_score,
    of_checkpoints,
    scored,
)
from tests.codebook.drawn_maps import synthetic_maps
from tests.store.labelling import a_map, event
from tests.studies.through_json import rows_of


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    yield database
    database.close()


def label_everything(db, *, each=8, inputs=8, checkpoints=("one",), annotator="ada", **other):
    maps, names, groups = synthetic_maps(each=each, inputs=inputs)
    rows, events = [], []
    for k, (one, name, group) in enumerate(zip(maps, names, groups, strict=True)):
        rows.append(
            {
                "map_id": f"m{k}",
                "checkpoint": checkpoints[k % len(checkpoints)],
                "weights_hash": "w",
                "task": "mrpc",
                "split": "dev",
                "row_id": group,
                "layer": k % 6,
                "head": k % 5,
                "length": len(one),
                "tokens": ["x"] * len(one),
                "separators": [],
                "causal": False,
                "maximum": float(one.max()),
                "seed": 0,
                "weights": one.astype("<f2").tobytes(),
            }
        )
        events.append(
            {
                "batch": annotator,
                "sequence": k + 1,
                "kind": "label",
                "class_set": "bert",
                "map_id": f"m{k}",
                "annotator": annotator,
                "class": name,
                "queue_order": "random",
            }
            | other
        )
    labels.store_maps(db, rows)
    labels.record_events(db, events)


def run_all(options):
    return STUDY.read(options), rows_of("train-patterns", options)


@pytest.mark.thorough
def test_a_training_is_scored_on_unseen_heads_kept_and_opened_again(db):
    label_everything(db)
    options, rows = run_all(training_options(db, label_snapshot.snapshot(db, "bert"), kind="baseline", folds=4))
    best = main_score(rows)
    assert best.maps == best.n_labels == 40
    assert best.on == "unseen heads", "the headline: a head's maps are alike, so on seen heads its name is enough"
    for row in rows:
        if row["part"] == "scores":  # beside each figure, what the head's name alone gives
            assert row["identity_low"] <= row["identity_f1"] <= row["identity_high"] <= 1
            assert row["identity_f1"] < row["macro_f1"]
    assert best.low <= best.macro_f1 <= best.high
    assert best.macro_f1 > 0.7
    assert sum(row["n"] for row in rows if row["part"] == "confusion") == 40
    assert {row["class"] for row in rows if row["part"] == "class"} == set(BERT.names)
    assert [row["labels"] for row in rows if row["part"] == "curve"] == sorted(
        row["labels"] for row in rows if row["part"] == "curve"
    )
    assert {row["on"] for row in rows if row["part"] == "scores"} == {"unseen inputs", "unseen heads"}
    for _ in range(2):
        STUDY.keep(db, Finished("one", "Training", options, rows))
    assert classifiers.classifiers(db)["macro_f1"].tolist() == [best.macro_f1]
    assert open_classifier(db, "one", class_set="bert").classes == BERT.names
    with pytest.raises(InputError, match="gpt2"):
        open_classifier(db, "one", class_set="gpt2")


def test_the_network_tells_its_loss_and_its_rows_are_json(db):
    label_everything(db, each=6, inputs=6)
    options = STUDY.read(training_options(db, label_snapshot.snapshot(db, "bert"), kind="paper", epochs=2, folds=2))
    (fold,) = STUDY.run(options, Unit("fold 0", TrainingUnit(kind="fold", split="group", fold=0))).partial.folds
    np.testing.assert_allclose(fold.probabilities.sum(1), 1, atol=1e-3)
    from pathlib import Path

    told = [json.loads(line) for line in (Path(options.log) / "fold-0.jsonl").read_text().splitlines()]
    assert [(one["epoch"], one["of"]) for one in told] == [(1, 2), (2, 2)]
    assert not list(Path(options.log).glob("*.safetensors"))


def test_train_and_test_share_no_input_head_or_checkpoint(db):
    label_everything(db, checkpoints=("one", "two"))
    options = STUDY.read(training_options(db, label_snapshot.snapshot(db, "bert"), kind="baseline", folds=4))
    kept = label_snapshot.read(options.snapshot)
    names = {
        "group": lambda row: row["group"],
        "heads": lambda row: (row["layer"], row["head"]),
        "checkpoint": lambda row: row["checkpoint"],
    }
    seen = set()
    for unit in STUDY.units(options):
        if unit.arguments.kind == "final":
            continue
        train, test = train_patterns.split_of(kept, options, unit.arguments)
        fact = names[unit.arguments.split]
        seen.add(unit.arguments.split)
        assert not {fact(kept.facts[k]) for k in train} & {fact(kept.facts[k]) for k in test}
    assert seen == set(names)


@pytest.mark.parametrize(("folds", "checkpoints"), [(3, 1), (2, 2)])
def test_the_units_of_a_training_and_their_sizes(db, folds, checkpoints):
    label_everything(db, checkpoints=("one", "two")[:checkpoints])
    asked = training_options(db, label_snapshot.snapshot(db, "bert"), kind="baseline", folds=folds)
    units = [(unit.key, unit.size) for unit in STUDY.units(STUDY.read(asked))]
    learning = [(f"{share}% of the labels, fold {k}", 40 * share // 100) for k in (0, 1) for share in (25, 50, 75)]
    assert units == [
        *((f"fold {k}", 40) for k in range(folds)),
        ("final", 40),
        *((f"unseen checkpoint {k}", 40) for k in (1, 2) if checkpoints > 1),
        *((f"unseen heads {k}", 40) for k in range(folds)),
        *learning,
    ]
    plain = STUDY.units(STUDY.read(asked | {"curve": False}))
    assert [(unit.key, unit.size) for unit in plain] == units[: -len(learning)]


@pytest.mark.thorough
def test_only_random_maps_without_a_suggestion_are_scored_but_all_are_trained_on(db):
    label_everything(db)
    (one,) = labels.maps_of(db, ["m0"])
    labels.store_maps(db, [one | {"map_id": "extra", "row_id": "input 0"}])
    labels.record_events(
        db,
        [
            {
                "batch": "x",
                "sequence": 1,
                "kind": "label",
                "class_set": "bert",
                "map_id": "extra",
                "annotator": "ada",
                "class": "vertical",
                "queue_order": "uncertain",
                "suggestion": "vertical",
            }
        ],
    )
    _, rows = run_all(
        training_options(db, label_snapshot.snapshot(db, "bert"), kind="baseline", folds=4, curve=False, beside=False)
    )
    best = main_score(rows)
    assert (best.maps, best.n_labels) == (40, 41)


def test_labels_made_with_suggestions_only_cannot_be_scored(db):
    label_everything(db, suggestion="vertical")
    with pytest.raises(InputError, match="suggestions off"):
        STUDY.units(STUDY.read(training_options(db, label_snapshot.snapshot(db, "bert"))))


def test_a_merge_of_classes_is_followed(db):
    label_everything(db)
    labels.change_class(
        db, "bert", labels.ClassChange("merge", "vertical+diagonal", into="vertical"), annotator="ada", taken=BERT.names
    )
    kept = label_snapshot.snapshot(db, "bert")
    assert "vertical+diagonal" not in kept.classes
    assert kept.column("class").count("vertical") == 16


def test_the_same_labels_give_the_same_file_and_it_reads_back(db, tmp_path):
    label_everything(db, each=3, inputs=3)
    found = label_snapshot.snapshot(db, "bert")
    one, two = (label_snapshot.write(found, tmp_path / "s") for _ in range(2))
    assert one == two
    again = label_snapshot.read(one)
    assert again.facts == found.facts
    assert all(np.array_equal(a, b) for a, b in zip(again.maps, found.maps, strict=True))
    one.write_bytes(b"damaged")
    with pytest.raises(InputError, match="damaged"):
        label_snapshot.read(one)


def test_a_label_file_trains_without_a_store(db, tmp_path):
    label_everything(db, each=3, inputs=3)
    export_labels(db, tmp_path / "labels.jsonl")
    found = label_snapshot.from_file(tmp_path / "labels.jsonl", "bert")
    assert found.facts == label_snapshot.snapshot(db, "bert").facts
    with pytest.raises(InputError, match="gpt2"):
        label_snapshot.from_file(tmp_path / "labels.jsonl", "gpt2")


def test_nothing_labelled_says_where_to_label(db):
    with pytest.raises(InputError, match="Label page"):
        label_snapshot.snapshot(db, "bert")


def test_the_final_weights_classify(db):
    label_everything(db, each=4, inputs=4)
    options = STUDY.read(training_options(db, label_snapshot.snapshot(db, "bert"), kind="baseline", folds=2))
    (final,) = STUDY.run(options, Unit("final", TrainingUnit(kind="final"))).partial.finals
    from core.patterns.training import Classifier

    assert Classifier.from_bytes(base64.b64decode(final.weights)).recipe.kind == "baseline"


def small_maps(db, lengths=(1, 2, 3)):
    """Labelled maps of so few tokens."""
    labels.store_maps(db, [a_map(f"tiny{n}", length=n, row_id=f"tiny-{n}", maximum=1.0) for n in lengths])
    labels.record_events(db, [event(n, f"tiny{n}", cls="vertical", batch="tiny") for n in lengths])


def test_maps_of_up_to_three_tokens_are_not_trained_on(db):
    label_everything(db)
    small_maps(db)
    assert len(label_snapshot.current_labels(db, "bert")) == 43, "nothing is lost"
    for method in (None, "majority"):
        kept = label_snapshot.snapshot(db, "bert", method=method)
        assert len(kept.facts) == len(kept.maps) == 40
        assert min(map(len, kept.maps)) > 3


def test_a_training_on_maps_of_up_to_three_tokens_alone_is_refused_in_a_sentence(db):
    small_maps(db)
    with pytest.raises(InputError, match="to be classified; all 3 labelled maps"):
        label_snapshot.snapshot(db, "bert")


@pytest.mark.thorough
@pytest.mark.parametrize("method", [None, "majority", "dawid-skene", "mace"])
def test_labels_of_one_person_who_gave_one_class_are_refused_in_a_sentence(db, method):
    label_everything(db)
    labels.record_events(
        db,
        [event(k, f"m{k}", cls="block", class_set="gpt2", batch="eve", annotator="eve") for k in range(1, 20)],
    )
    kept = label_snapshot.snapshot(db, "gpt2", method=method)
    with pytest.raises(InputError, match="labels of at least two classes; got 19 labels of block"):
        STUDY.units(STUDY.read(training_options(db, kept)))


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["majority", "dawid-skene", "mace"])
def test_a_person_who_gave_one_class_among_others_only_weighs_less(db, method):
    label_everything(db)
    labels.record_events(db, [event(k, f"m{k}", cls="block", batch="eve", annotator="eve") for k in range(1, 40)])
    kept = label_snapshot.snapshot(db, "bert", method=method)
    np.testing.assert_allclose(kept.soft.sum(1), 1, atol=1e-6)
    assert set(kept.column("class")) > {"block"}


SNAPSHOT = label_snapshot.Snapshot(
    "bert",
    ("vertical", "diagonal"),
    [{"map_id": f"m{k}", "checkpoint": "xy"[k % 2], "layer": k // 2 % 3, "head": k % 5} for k in range(24)],
    [],
)


def predictions(part, fold, numbers, wrong):
    """Of these maps, whose classes alternate by twos: sure and right but for `wrong` ones."""
    truth = np.array([k // 2 % 2 for k in numbers])
    said = np.where(np.isin(numbers, wrong), 1 - truth, truth)
    return Predictions(
        TrainingUnit(kind=part, split="group", fold=fold), 10, 0, tuple(f"m{k}" for k in numbers),
        tuple(f"input {k // 4}" for k in numbers),
        tuple("xy"[k % 2] for k in numbers), truth, 0.1 + 0.8 * np.eye(2)[said], truth * 0, np.isin(numbers, [0]),
    )  # fmt: skip


def test_each_checkpoint_is_scored_on_its_own_maps_alone():
    """Of x every answer is right, of y those on four of twelve maps are wrong."""
    folds = [predictions("checkpoints", 0, range(16), [1, 3, 5]), predictions("checkpoints", 1, range(16, 24), [17])]
    x, y = of_checkpoints(folds, SNAPSHOT)
    assert [(one.checkpoint, one.maps, one.accuracy) for one in (x, y)] == [
        ("x", 12, 1),
        ("y", 12, pytest.approx(2 / 3)),
    ]
    assert (x.macro_f1, x.outside, y.outside) == (1, pytest.approx(1 / 12), 0)
    assert x.sure_errors == 0 < y.sure_errors


def test_answers_say_of_every_map_what_was_said_when_it_was_left_out_and_where_it_never_was():
    parts = {
        "unseen inputs": [predictions("fold", 0, [0, 1, 2], [1])],
        "unseen heads": [predictions("heads", 0, [2, 3], [])],
    }
    found = answers_of(parts)
    assert (list(found.map_ids), list(found.truth)) == (["m0", "m1", "m2", "m3"], [0, 0, 1, 1])
    assert found.answers == {
        "unseen inputs": {"predicted": [0, 1, 1, None], "probability": [0.9, 0.9, 0.9, None]},
        "unseen heads": {"predicted": [None, None, 1, 1], "probability": [None, None, 0.9, 0.9]},
    }


def f1_of(truth, said):
    """Macro F1 of two classes, by counting."""
    found = []
    for one in (0, 1):
        both = sum(t == s == one for t, s in zip(truth, said, strict=True))
        found.append(2 * both / (sum(t == one for t in truth) + sum(s == one for s in said)))
    return sum(found) / 2


def test_a_learning_curve_has_each_number_of_labels_on_the_same_folds():
    def part(kind, fold, numbers, wrong, share=None, labels=10):
        made = predictions(kind, fold, numbers, wrong)
        unit = TrainingUnit(kind=kind, split="group", fold=fold, share=share)
        return Predictions(**{**vars(made), "of": unit, "trained_on": labels})

    folds = [
        part("fold", 0, range(8), [], labels=40),
        part("fold", 1, range(8, 16), [9], labels=44),
        part("fold", 2, range(16, 24), range(16, 24), labels=99),  # no smaller training judged this one
        part("curve", 1, range(8, 16), [9, 10, 12], 0.5, 22),
        part("curve", 0, range(8), [1], 0.5, 20),
        part("curve", 0, range(8), range(4), 0.25, 10),
        part("curve", 1, range(8, 16), [8], 0.25, 12),
    ]
    points = curve(folds, SNAPSHOT)
    assert [(one.labels, one.maps) for one in points] == [(11, 16), (21, 16), (42, 16)]
    truth = [k // 2 % 2 for k in range(16)]
    for one, wrong in zip(points, ([0, 1, 2, 3, 8], [1, 9, 10, 12], [9]), strict=True):
        assert one.macro_f1 == pytest.approx(f1_of(truth, [1 - t if k in wrong else t for k, t in enumerate(truth)]))
        assert one.low <= one.macro_f1 <= one.high
    assert curve(folds[:3], SNAPSHOT) == []


def test_held_out_maps_are_scored_beside_a_guess_by_head_and_listed_with_their_errors():
    folds = [predictions("fold", 0, range(8), [1, 2]), predictions("fold", 1, range(8, 16), [9])]
    truth, wrong = [k // 2 % 2 for k in range(16)], [1, 2, 9]
    said = [1 - t if k in wrong else t for k, t in enumerate(truth)]
    score = scored("fold", folds, SNAPSHOT, kind="trees", seed=0)
    assert (score.macro_f1, score.accuracy) == pytest.approx((f1_of(truth, said), 13 / 16))
    assert (score.identity_f1, score.identity_low <= score.identity_f1) == (pytest.approx(f1_of(truth, [0] * 16)), True)
    assert (score.part, score.kind, score.maps, score.inputs, score.folds) == ("scores", "trees", 16, 4, 2)
    assert (score.unsure, score.outside) == (0, 1 / 16)
    found = details(folds, SNAPSHOT, seed=0)
    confusions = {(one.truth, one.predicted): one.n for one in found if isinstance(one, Confusion)}
    names = SNAPSHOT.classes
    assert confusions == {
        (names[a], names[b]): sum(t == a and s == b for t, s in zip(truth, said, strict=True))
        for a in (0, 1)
        for b in (0, 1)
    }
    maps = [one for one in found if isinstance(one, HeldOutMap)]
    assert [(one.map_id, one.group, one.truth, one.predicted) for one in maps] == [
        (f"m{k}", f"input {k // 4}", names[truth[k]], names[said[k]]) for k in range(16)
    ]
    assert {one.probability for one in maps} == {0.9}
    assert len([one for one in found if isinstance(one, ClassScore)]) == 2
    bins = [one for one in found if isinstance(one, Calibration)]
    assert (sum(one.n for one in bins), sum(one.n * one.accuracy for one in bins)) == pytest.approx((16, 13))
    assert {round(one.confidence, 9) for one in bins} == {0.9}
    expected = sum(one.n * abs(0.9 - one.accuracy) for one in bins) / 16
    assert [one.error for one in bins] == pytest.approx([expected] * len(bins))


def test_own_maps_of_held_out_inputs_are_scored_apart():
    """Every third map is the user's own; of those, two answers of four are wrong, of the others none."""
    facts = [row | {"own": k % 3 == 0} for k, row in enumerate(SNAPSHOT.facts)]
    mixed = label_snapshot.Snapshot("bert", SNAPSHOT.classes, facts, [])
    folds = [predictions("fold", 0, range(6), [0]), predictions("fold", 1, range(6, 12), [9])]
    (own,) = train_patterns.of_own(folds, mixed, kind="trees", seed=0)
    assert (own.maps, own.accuracy, own.on) == (4, 0.5, train_patterns.ON_OWN)
    assert train_patterns.of_own(folds, SNAPSHOT, kind="trees", seed=0) == []
