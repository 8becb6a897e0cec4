"""The bundled annotations are what they say: labelled by eye, of the bundled checkpoints, and enough to train on."""

import json
from collections import Counter

import numpy as np
import pytest

from core import config
from core.codebook.registry import SHIPPED, labelled_folders
from core.models.opening import open_checkpoint
from core.patterns.agreement import agreement, inputs_of, tied
from core.patterns.classifier_registry import bundled_classifier, bundled_labels, keep_best_known, open_classifier
from core.patterns.snapshot import current_labels, snapshot
from core.store import label_files
from core.store.classifiers import Trained, labels_since_newest, one_classifier, save_classifier
from core.store.database import Database

CHECKPOINTS = {"encoder-60m": config.ENCODER, "decoder-30m": config.DECODER}
FIRST_ENCODER = "147b9daf9fac0a67dd511d9c3c18c23924b5c4dde457417d45ac9c864c737904"  # the weights after 14M tokens
FIRST_DECODER = "480a18c2b4ad9a72ef8e7cec968b93a83546c9a0204189a007482e514470e362"  # the weights after 9M tokens
FIRST = {
    "bert": (FIRST_ENCODER, "atlas-encoder (14M tokens)"),
    "gpt2": (FIRST_DECODER, "atlas-decoder (9M tokens)"),
}
LABELLERS = {
    "encoder-60m": ("bert", "claude-ai-model-5"),
    "decoder-30m": ("gpt2", "claude-ai-model-6"),
}


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    database = Database(tmp_path_factory.mktemp("bundled") / "atlas.duckdb")
    for name in SHIPPED:
        bundled_labels(database, name)
    yield database
    database.close()


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHIPPED)
def test_there_are_400_maps_a_set_labelled_without_suggestions_and_100_twice(db, name):
    found = current_labels(db, name)
    assert (found["pass"] == 1).sum() >= 400
    assert (found["pass"] == 2).sum() >= 100
    assert found["suggestion"].isna().all()
    assert set(found["way"]) == {"image"}
    assert set(found["class"]) <= set(SHIPPED[name].names)
    maps = found.drop_duplicates("map_id")  # however often each was labelled
    assert max(Counter(zip(maps["checkpoint"], inputs_of(maps), strict=True)).values()) <= 5
    assert agreement(found, "Claude (AI model)", "Claude (AI model), pass 2").kappa > 0.6
    assert bundled_labels(db, name) == 0


def rows_of(folder):
    return [json.loads(line) for line in (config.ANNOTATIONS / folder / "maps.jsonl").read_text().splitlines()]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param("bert", marks=pytest.mark.slow), "gpt2"])  # 2.4 CPU seconds
def test_bundled_labels_give_the_same_training_rows_in_either_order_of_import(db, name, tmp_path):
    """Every file of labels, last first: no row differs, and no tie goes to whoever was stored last."""
    backwards = Database(tmp_path / "atlas.duckdb")
    for folder in reversed(labelled_folders()[name]):
        for file in sorted((config.ANNOTATIONS / folder).glob("labels-*.jsonl"), reverse=True):
            alone = tmp_path / folder / file.stem
            alone.mkdir(parents=True)
            for shared in ("maps.jsonl", "maps.npz"):
                (alone / shared).symlink_to(config.ANNOTATIONS / folder / shared)
            (alone / file.name).symlink_to(file)
            label_files.import_folder(backwards, alone)
    there, back = snapshot(db, name), snapshot(backwards, name)
    backwards.close()
    assert back.facts == there.facts
    assert all((one == other).all() for one, other in zip(there.maps, back.maps, strict=True))
    ties = tied(current_labels(db, name))
    rows = [(row, share) for row, share in zip(there.facts, there.soft, strict=True) if row["map_id"] in ties]
    assert len(rows) == len(ties) > 0
    assert all(np.sort(share)[-2:].tolist() == [max(share)] * 2 for _, share in rows), "as much of one as of another"
    assert not any(row["headline"] for row, _ in rows), "no class to be scored by"
    assert not set(ties) & set(there.without_ties().column("map_id"))


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_maps_are_of_the_bundled_checkpoint(name):
    rows = rows_of(name)
    assert {row["weights_hash"] for row in rows} == {open_checkpoint(CHECKPOINTS[name]).weights_hash}
    assert {row["checkpoint"] for row in rows} == {CHECKPOINTS[name]}


@pytest.mark.parametrize("name", FIRST)
def test_labels_of_the_first_weights_stay_those_of_them(name):
    rows = rows_of(name)
    assert {(row["weights_hash"], row["checkpoint"]) for row in rows} == {FIRST[name]}


@pytest.mark.parametrize("name", LABELLERS)
def test_every_head_of_what_ships_has_eight_labelled_maps_and_all_classes_occur(db, name):
    rows, (class_set, labeller) = rows_of(name), LABELLERS[name]
    assert set(Counter((row["layer"], row["head"]) for row in rows).values()) == {8}
    labels = current_labels(db, class_set).set_index("map_id").loc[[row["map_id"] for row in rows]]
    assert set(labels["annotator"]) == {labeller, "claude-ai-model-7", "claude-ai-model-8"}
    labels = labels[labels["annotator"] == labeller]
    assert len(labels) == len(rows)
    assert set(labels["class"]) == set(SHIPPED[class_set].names)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHIPPED)
def test_the_bundled_classifier_was_trained_on_these_labels_and_reached_its_aim(db, name):
    bundled = bundled_classifier(db, name)
    assert keep_best_known(db, name) == bundled
    assert bundled.startswith(f"bundled-{name}-")
    about = one_classifier(db, bundled)
    kept = snapshot(db, name)
    assert [(one, label) for one, label, _ in about["snapshot"]] == list(
        zip(kept.column("map_id"), kept.column("class"), strict=True)
    )
    unseen = {row["checkpoint"]: row for row in about["scores"]["rows"] if row["part"] == "checkpoint"}
    assert about["scores"]["on"] == "unseen checkpoints"
    if name == "gpt2":
        assert set(unseen) == {config.DECODER, "atlas-decoder (9M tokens)"}
        (row,) = [row for row in about["scores"]["rows"] if row.get("on") == "unseen inputs"]
        assert row["macro_f1"] >= 0.80
    else:
        assert unseen["BERT-base, SST-2 (Dodrio)"]["accuracy"] >= 0.75
        assert unseen["BERT-base, SST-2 (Dodrio)"]["macro_f1"] >= 0.65
        (row,) = [row for row in about["scores"]["rows"] if row.get("on") == "unseen checkpoints"]
        assert row["ece"] <= 0.08
    assert open_classifier(db, bundled, class_set=name).classes == SHIPPED[name].names


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHIPPED)
def test_no_bundled_label_is_new_to_the_bundled_classifier(tmp_path, name):
    """Nor those that tie, or that second a class which somebody gave before."""
    database = Database(tmp_path / "atlas.duckdb")
    bundled_labels(database, name)
    bundled_classifier(database, name)
    assert labels_since_newest(database, name) == 0
    database.close()


def test_an_older_bundled_classifier_gives_way_to_the_one_that_ships(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    newest = bundled_classifier(database, "bert")
    about = one_classifier(database, newest)
    facts = {key: about[key] for key in ("weights", "recipe", "classes", "snapshot", "scores")}
    save_classifier(database, Trained("bert", **facts), classifier="bundled-bert")
    assert keep_best_known(database, "bert") == newest
    save_classifier(database, Trained("bert", **facts), classifier="mine")
    assert keep_best_known(database, "bert") == "mine"
    database.close()
