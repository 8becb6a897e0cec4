"""What a retraining changed: paired figures against scikit-learn on drawn maps, and what counts as worse."""

import json

import numpy as np
import pytest
from sklearn.metrics import f1_score

from core.patterns import retraining
from core.patterns import snapshot as label_snapshot
from core.patterns.classifier_registry import training_options
from core.patterns.evaluation import ends
from core.patterns.retraining import (
    ACCURACY,
    CLASS_F1,
    ECE,
    MACRO_F1,
    NEW_MAPS,
    SURE_ERRORS,
    Answers,
    LabelledMaps,
    compared,
    differences,
)
from core.store import classifiers, labels
from core.store.database import Database
from core.studies.contract import Finished
from core.studies.patterns.train_patterns import STUDY
from tests.studies.test_train_patterns import label_everything, run_all

CLASSES = ("block", "diagonal", "vertical")


def drawn(seed, right, *, inputs=12, each=5):
    """Labels, inputs, and answers that are right in about this share."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(CLASSES, inputs * each)
    wrong = rng.random(len(truth)) >= right
    said = np.where(wrong, rng.choice(CLASSES, len(truth)), truth)
    groups = [f"input {k // each}" for k in range(len(truth))]
    return LabelledMaps(list(truth), groups), Answers(list(said), list(rng.uniform(0.4, 1, len(truth)).round(3)))


@pytest.mark.thorough
def test_each_figure_and_the_interval_of_the_change_are_those_of_drawn_inputs(monkeypatch):
    monkeypatch.setattr(retraining, "SAMPLES", 60)
    judged, before = drawn(0, 0.5)
    _, after = drawn(1, 0.5)
    after = Answers(
        [a if k % 3 else t for k, (a, t) in enumerate(zip(after.predicted, judged.truth, strict=True))],
        after.probability,
    )
    found = {one.figure: one for one in differences("unseen heads", judged, before, after, seed=3)}
    times = np.random.default_rng(3).multinomial(12, np.full(12, 1 / 12), size=60)
    numbers = np.array([int(name.split()[1]) for name in judged.inputs])
    samples = [np.repeat(np.arange(60), counts[numbers]) for counts in times]
    oracle = {
        ACCURACY: lambda t, p: float(np.mean(t == p)),
        MACRO_F1: lambda t, p: float(f1_score(t, p, labels=CLASSES, average="macro", zero_division=0)),
    }
    truth = np.array(judged.truth)
    for figure, score in oracle.items():
        one, columns = found[figure], []
        for answers, interval in ((before, one.before), (after, one.after)):
            predicted = np.array(answers.predicted)
            columns.append(np.array([score(truth[maps], predicted[maps]) for maps in samples]))
            assert interval.value == pytest.approx(score(truth, predicted))
            assert (interval.low, interval.high) == pytest.approx(tuple(ends(columns[-1], 12)))
        change = ends(columns[1] - columns[0], 12)
        assert (one.change.low, one.change.high) == pytest.approx(tuple(change))
        assert (one.maps, one.inputs, one.on) == (60, 12, "unseen heads")
    error = found[ECE]
    for answers, interval in ((before, error.before), (after, error.after)):
        likely, right = np.array(answers.probability), np.array(answers.predicted) == truth
        order = np.argsort(likely, kind="stable").reshape(10, 6)
        assert interval.value == pytest.approx(
            np.mean([abs(likely[part].mean() - right[part].mean()) for part in order])
        )
        assert interval.low <= interval.high
    sure = found[SURE_ERRORS]
    for answers, interval in ((before, sure.before), (after, sure.after)):
        marked = (np.array(answers.predicted) != truth) & (np.array(answers.probability) > 0.8)
        assert interval.value == pytest.approx(marked.mean())
        shares = [marked[maps].mean() for maps in samples]
        assert (interval.low, interval.high) == pytest.approx(tuple(ends(np.array(shares), 12)))


def test_the_interval_of_a_single_class_covers_all_classes_at_once(monkeypatch):
    monkeypatch.setattr(retraining, "SAMPLES", 60)
    judged, before = drawn(0, 0.5)
    _, after = drawn(1, 0.7)
    found = {one.figure: one for one in differences("unseen heads", judged, before, after, seed=3)}
    assert [name for name in found if name.startswith(CLASS_F1)] == [CLASS_F1 + name for name in CLASSES]
    times = np.random.default_rng(3).multinomial(12, np.full(12, 1 / 12), size=60)
    numbers = np.array([int(name.split()[1]) for name in judged.inputs])
    samples = [np.repeat(np.arange(60), counts[numbers]) for counts in times]
    truth, columns = np.array(judged.truth), []
    for answers in (before, after):
        predicted = np.array(answers.predicted)
        columns.append(
            [f1_score(truth[k], predicted[k], labels=["block"], average=None, zero_division=0)[0] for k in samples]
        )
    change = found[CLASS_F1 + "block"].change
    assert (change.low, change.high) == pytest.approx(
        tuple(ends(np.subtract(columns[1], columns[0]), 12, tail=0.025 / 3))
    )
    assert found[CLASS_F1 + "block"].maps == int((truth == "block").sum())


def test_a_rise_of_sure_errors_and_a_class_that_is_lost_are_worse():
    judged, good = drawn(0, 1.0, inputs=30)
    lost = ["vertical" if name == "block" else name for name in judged.truth]
    said = {one.figure: one.is_worse for one in differences("x", judged, good, Answers(lost, [0.9] * 150))}
    assert said[SURE_ERRORS]
    assert said[CLASS_F1 + "block"]
    assert not said[CLASS_F1 + "diagonal"], "it is told as before"


def test_worse_is_only_what_is_wholly_on_the_wrong_side():
    judged, good = drawn(0, 0.95, inputs=30)
    _, poor = drawn(5, 0.3, inputs=30)
    said = {one.figure: one.is_worse for one in differences("x", judged, good, poor)}
    assert said[ACCURACY]
    assert said[MACRO_F1]
    better = differences("x", judged, poor, good)
    assert not any(one.is_worse for one in better if one.figure != ECE)
    assert not any(one.is_worse for one in differences("x", judged, good, good)), "the same is not worse"


def test_the_calibration_error_is_worse_when_it_rises():
    judged, good = drawn(0, 1.0, inputs=30)
    sure = Answers(good.predicted, [0.99] * 150)
    unsure = Answers(good.predicted, [0.4] * 150)
    (error,) = (one for one in differences("x", judged, sure, unsure) if one.figure == ECE)
    assert error.is_worse
    assert error.change.value == pytest.approx(0.59)
    (error,) = (one for one in differences("x", judged, unsure, sure) if one.figure == ECE)
    assert not error.is_worse


def test_too_few_inputs_have_no_interval_and_are_not_called_worse():
    judged, good = drawn(0, 1.0, inputs=4)
    poor = Answers(["block"] * 20)
    found = differences("x", judged, good, poor)
    assert not {ECE, SURE_ERRORS} & {one.figure for one in found}, "no probabilities, no calibration error"
    assert all(one.change.low is None and not one.is_worse for one in found)


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    yield database
    database.close()


def train(db, name, **options):
    wanted = {"kind": "baseline", "folds": 4, "curve": False} | options
    complete, rows = run_all(training_options(db, label_snapshot.snapshot(db, "bert"), **wanted))
    STUDY.keep(db, Finished(name, "Training", complete, rows))


@pytest.mark.thorough
def test_two_stored_classifiers_are_compared_on_maps_that_both_left_out_and_on_new_ones(db):
    label_everything(db)
    train(db, "first")
    maps = labels.maps_of(db, ["m0", "m9"])
    labels.store_maps(db, [row | {"map_id": f"n{row['map_id']}", "row_id": "new"} for row in maps])
    shared = {"batch": "eve", "kind": "label", "class_set": "bert", "annotator": "eve", "queue_order": "random"}
    new = [shared | {"sequence": k, "map_id": name, "class": "block"} for k, name in enumerate(["nm0", "nm9"], 1)]
    labels.record_events(db, new)
    train(db, "second")
    found = compared(db, "first", "second")
    assert {one.on: one.maps for one in found if one.figure == ACCURACY} == {
        "unseen heads": 40,
        "unseen inputs": 40,
        NEW_MAPS: 2,
    }
    figures = {one.figure for one in found}
    assert {name for name in figures if not name.startswith(CLASS_F1)} == {ACCURACY, MACRO_F1, ECE, SURE_ERRORS}
    scores = {row["on"]: row for row in classifiers.one_classifier(db, "first")["scores"]["rows"] if row.get("on")}
    before = {(one.on, one.figure): one.before for one in found}
    for on in ("unseen heads", "unseen inputs"):  # the labels of these maps are as they were, so are the figures
        assert before[on, ACCURACY].value == pytest.approx(scores[on]["accuracy"])
        assert before[on, MACRO_F1].value == pytest.approx(scores[on]["macro_f1"])


@pytest.mark.thorough
def test_a_classifier_of_an_earlier_version_is_compared_on_its_headline(db):
    label_everything(db)
    train(db, "first")
    train(db, "second")
    about = classifiers.one_classifier(db, "first")
    earlier = {name: value for name, value in about["scores"].items() if name != "held_out"}
    with db.write() as cursor:
        cursor.execute("UPDATE classifier SET scores = ? WHERE classifier = 'first'", [json.dumps(earlier)])
    found = compared(db, "first", "second")
    assert {one.on for one in found} == {"unseen heads"}
    assert not {ECE, SURE_ERRORS} & {one.figure for one in found}, "it stored no probabilities"
    assert all(one.change.value == 0 and not one.is_worse for one in found), "trained on the same"
