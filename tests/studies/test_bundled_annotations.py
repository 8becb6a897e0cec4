"""The bundled annotations are what they say: labelled by eye, of the bundled checkpoints, and enough to train on."""

import json
from collections import Counter

import pytest

from core import config
from core.models.opening import open_checkpoint
from core.patterns.agreement import agreement, opinions
from core.patterns.classes import SHIPPED
from core.store.database import Database
from core.studies.kept_classifiers import best_known, bundled_classifier, bundled_labels, open_classifier
from core.studies.label_snapshot import snapshot, standing_labels

CHECKPOINTS = {"bert": config.ENCODER, "gpt2": config.DECODER}


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    database = Database(tmp_path_factory.mktemp("bundled") / "atlas.duckdb")
    for name in SHIPPED:
        bundled_labels(database, name)
    yield database
    database.close()


@pytest.mark.parametrize("name", SHIPPED)
def test_there_are_400_maps_a_set_labelled_without_suggestions_and_100_twice(db, name):
    found = standing_labels(db, name)
    assert (found["pass"] == 1).sum() >= 400
    assert (found["pass"] == 2).sum() >= 100
    assert found["suggestion"].isna().all()
    assert set(found["way"]) == {"image"}
    assert set(found["class"]) <= set(SHIPPED[name].names)
    per_input = Counter(zip(found["task"], found["row_id"], strict=True)).most_common(1)[0][1]
    assert per_input <= 2 * 4  # at most four maps of an input, each labelled at most twice
    first, second = opinions(found).columns
    assert agreement(found, first, second).kappa > 0.6
    assert bundled_labels(db, name) == 0


@pytest.mark.parametrize("name", SHIPPED)
def test_the_maps_are_of_the_bundled_checkpoint(name):
    rows = [json.loads(line) for line in (config.ANNOTATIONS / name / "maps.jsonl").read_text().splitlines()]
    assert {row["weights_hash"] for row in rows} == {open_checkpoint(CHECKPOINTS[name]).weights_hash}
    assert {row["checkpoint"] for row in rows} == {CHECKPOINTS[name]}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_bundled_classifier_was_trained_on_these_labels_and_reached_its_aim(db, name):
    assert best_known(db, name) == bundled_classifier(db, name) == f"bundled-{name}"
    from core.store.classifiers import one_classifier

    about = one_classifier(db, f"bundled-{name}")
    kept = snapshot(db, name)
    assert [(one, label) for one, label, _ in about["snapshot"]] == list(
        zip(kept.column("map_id"), kept.column("class"), strict=True)
    )
    assert about["scores"]["macro_f1"] >= {"bert": 0.86, "gpt2": 0.80}[name]
    assert open_classifier(db, f"bundled-{name}", class_set=name).classes == SHIPPED[name].names
