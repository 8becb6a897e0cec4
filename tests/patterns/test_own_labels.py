"""A few labels of one's own beside the bundled ones: what is added, how it is weighted, and how good it is."""

from dataclasses import replace

import numpy as np
import pytest

from core import patterns
from core.patterns.snapshot import OWN_COPIES, Snapshot, bundled_snapshot, read, with_bundled, write
from core.studies.contract import TrainingUnit
from core.studies.patterns.train_patterns import ON, ON_OWN, Predictions, of_own, scored

MINE = "all-MiniLM-L6-v2"  # a checkpoint whose bundled labels play one's own here


def part(snapshot: Snapshot, places: list[int]) -> Snapshot:
    return replace(snapshot, facts=[snapshot.facts[k] for k in places], maps=[snapshot.maps[k] for k in places])


def own_of(snapshot: Snapshot, count: int) -> Snapshot:
    """Maps of one checkpoint as somebody else labelled them: with events of their own."""
    places = [k for k, name in enumerate(snapshot.column("checkpoint")) if name == MINE]
    drawn = np.random.default_rng(1).permutation(places)[:count].tolist()
    own = part(snapshot, drawn)
    return replace(own, facts=[row | {"event": f"mine-{k}", "soft": None} for k, row in enumerate(own.facts)])


@pytest.fixture(scope="module")
def bundled():
    return bundled_snapshot("bert")


@pytest.mark.thorough
def test_the_bundled_maps_are_added_and_ones_own_are_marked_and_repeated(bundled):
    own = own_of(bundled, 25)
    both = with_bundled(own)
    assert len(both.maps) == len(bundled.maps), "a map that is labelled twice is there once"
    assert both.own == list(range(25))
    assert [both.facts[k]["class"] for k in both.own] == own.column("class")
    assert len(both.repeated(range(len(both.maps)))) == len(both.maps) + 25 * (OWN_COPIES - 1)
    assert both.soft.shape == (len(both.maps), 5)
    np.testing.assert_allclose(both.soft.sum(1), 1, atol=1e-6)
    assert with_bundled(bundled).own == [], "bundled labels in one's database are not one's own"
    assert with_bundled(replace(own, class_set="custom")).maps == own.maps
    other = replace(own, classes=(*own.classes[:-1], "renamed"))
    assert with_bundled(other) is other
    assert own.repeated([3, 4]) == [3, 4]


def test_held_out_maps_of_ones_own_have_a_score_of_their_own(bundled):
    both = with_bundled(own_of(bundled, 40))
    places, own = list(range(140)), set(both.own)
    truth = np.array([both.classes.index(both.facts[k]["class"]) for k in places])
    answers = np.where([k in own for k in places], truth, (truth + 1) % 5)  # right on one's own maps alone
    columns = (tuple(both.facts[k][name] for k in places) for name in ("map_id", "group", "checkpoint"))
    fold = Predictions(TrainingUnit(kind="fold", fold=0), 9, 0, *columns, truth, np.eye(5)[answers], truth,
                       np.zeros(140, dtype=bool))  # fmt: skip
    (score,) = of_own([fold], both, kind="trees", seed=0)
    assert (score.on, score.accuracy, score.maps) == (ON_OWN, 1.0, 40)
    assert score.on not in ON.values(), "the main score stays that of all held-out maps"
    assert scored("fold", [fold], both, kind="trees", seed=0).accuracy == 40 / 140
    assert of_own([fold], bundled, kind="trees", seed=0) == []


@pytest.mark.slow  # fits three classifiers
def test_25_labels_of_ones_own_score_near_the_bundled_classifier_and_far_above_these_labels_alone(bundled):
    """On inputs of the checkpoint that nobody labelled: macro F1 with the bundled labels of the other checkpoints."""
    mine = [k for k, name in enumerate(bundled.column("checkpoint")) if name == MINE]
    groups = bundled.column("group")
    own = own_of(bundled, 25)
    used = set(own.column("group"))
    test = [k for k in mine if groups[k] not in used]
    others = [k for k, name in enumerate(bundled.column("checkpoint")) if name != MINE]
    held_out = {groups[k] for k in test}
    others = [k for k in others if groups[k] not in held_out]
    scores = {}
    for name, kept, maps in (
        ("bundled", part(bundled, others), None),
        ("mine", own, None),
        ("both", Snapshot("bert", own.classes, [row | {"own": True} for row in own.facts], own.maps), others),
    ):
        if maps is not None:
            kept = replace(
                kept,
                facts=[*kept.facts, *(bundled.facts[k] | {"own": False} for k in maps)],
                maps=[*kept.maps, *(bundled.maps[k] for k in maps)],
            )
        fitted = kept.repeated(range(len(kept.maps)))
        classifier = patterns.training.fit(
            [kept.maps[k] for k in fitted],
            [kept.facts[k]["class"] for k in fitted],
            kept.classes,
            patterns.training.ClassifierRecipe(kind="trees"),
            known=patterns.training.Known(None, [kept.facts[k]["checkpoint"] for k in fitted],
                                          [kept.heads[k] for k in fitted]),
        )  # fmt: skip
        likely = np.array(patterns.suggestions.judged(classifier, [bundled.maps[k] for k in test]).probabilities)
        truth = np.array([bundled.classes.index(bundled.facts[k]["class"]) for k in test])
        scores[name] = patterns.evaluation.scores(
            truth, likely.argmax(1), [groups[k] for k in test], bundled.classes
        ).macro_f1
    assert scores["both"] > scores["bundled"] - 0.03, scores
    assert scores["both"] > scores["mine"] + 0.2, scores


def test_labels_that_do_not_differ_stay_hard_beside_bundled_ones_that_do_not_either(monkeypatch):
    bundled = bundled_snapshot("bert")
    hard = replace(bundled, facts=[{k: v for k, v in row.items() if k != "soft"} for row in bundled.facts])
    monkeypatch.setattr("core.patterns.snapshot.bundled_snapshot", lambda name: hard)
    own, soft = own_of(hard, 3), own_of(hard, 3)
    for row in soft.facts:
        row["soft"] = [0.5, 0.5, *[0.0] * (len(soft.classes) - 2)]
    assert with_bundled(own).soft is None
    found = with_bundled(soft).soft
    assert found is not None
    assert len(found) == len(with_bundled(soft).facts)
    assert np.allclose(np.asarray(found).sum(1), 1)
    assert np.allclose(found[0], soft.facts[0]["soft"])


def test_a_snapshot_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr("core.patterns.snapshot.open_file", lambda file, given: file.open("rb"))
    labelled = replace(own_of(bundled_snapshot("bert"), 4), newest="tab:7")
    again = read(write(labelled, tmp_path))
    assert (again.class_set, again.classes, again.facts, again.newest) == (
        labelled.class_set,
        labelled.classes,
        labelled.facts,
        "tab:7",
    )
    for one, other in zip(again.maps, labelled.maps, strict=True):
        assert one.dtype == np.float32
        assert np.allclose(one, other, atol=1e-3)
    assert write(labelled, tmp_path) == write(again, tmp_path)
