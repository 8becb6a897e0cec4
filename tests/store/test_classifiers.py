import pytest

from core.errors import InputError, StoreError
from core.store import classifiers as store
from core.store import labels
from tests.store.labelling import a_map, event

ABOUT = {
    "recipe": {"kind": "paper", "epochs": 3},
    "classes": ["a", "b"],
    "snapshot": [["m1", "a", "tab:1"]],
    "scores": {"macro_f1": 0.5},
}


def test_a_classifier_comes_back_with_its_labels_and_scores(db):
    name = store.save_classifier(db, store.Trained("bert", b"weights", **ABOUT))
    found = store.one_classifier(db, name)
    assert found["weights"] == b"weights"
    assert {key: found[key] for key in ABOUT} == ABOUT
    (row,) = store.classifiers(db, "bert").to_dict("records")
    assert (row["classifier"], row["labels"], row["macro_f1"]) == (name, 1, 0.5)
    assert store.classifiers(db, "gpt2").empty


def test_saying_it_twice_keeps_one(db):
    for _ in range(2):
        store.save_classifier(db, store.Trained("bert", b"weights", **ABOUT), classifier="one")
    assert len(store.classifiers(db)) == 1


def test_the_newest_choice_suggests_and_may_be_none(db):
    name = store.save_classifier(db, store.Trained("bert", b"weights", **ABOUT))
    assert store.suggesting(db, "bert") is None
    assert not store.is_turned_off(db, "bert")  # nobody chose yet
    store.choose(db, "bert", name, annotator="ada")
    assert store.suggesting(db, "bert") == name
    assert not store.is_turned_off(db, "bert")
    store.choose(db, "bert", None, annotator="ada")
    assert store.suggesting(db, "bert") is None
    assert store.is_turned_off(db, "bert")
    assert not store.is_turned_off(db, "gpt2")


def test_labels_are_new_to_the_newest_classifier_from_those_on_that_it_has_seen(db):
    labels.store_maps(db, [a_map("m1"), a_map("m2"), a_map("m3")])
    labels.record_events(db, [event(1), event(2, "m2")])
    assert store.labels_since_newest(db, "bert") == 2  # nothing is trained yet
    seen = ABOUT | {"snapshot": [["m1", "vertical", "tab:1"]]}
    store.save_classifier(db, store.Trained("bert", b"weights", **seen))
    assert store.labels_since_newest(db, "bert") == 1
    labels.record_events(db, [event(3, "m3")])
    assert store.labels_since_newest(db, "bert") == 2
    looked_at = seen | {"scores": {"newest": "tab:3"}}  # tied labels were looked at, and trained nothing
    store.save_classifier(db, store.Trained("bert", b"weights", **looked_at))
    assert store.labels_since_newest(db, "bert") == 0
    store.save_classifier(db, store.Trained("bert", b"weights", **ABOUT | {"snapshot": [["x", "a", "elsewhere:1"]]}))
    assert store.labels_since_newest(db, "bert") == 0  # what came with the project is not in this store: since then
    labels.record_events(db, [event(4, "m3", cls="block")])
    assert store.labels_since_newest(db, "bert") == 1


def test_a_classifier_of_another_set_or_none_is_refused(db):
    name = store.save_classifier(db, store.Trained("bert", b"weights", **ABOUT))
    with pytest.raises(InputError, match="gpt2"):
        store.choose(db, "gpt2", name, annotator="ada")
    with pytest.raises(StoreError, match="none-such"):
        store.choose(db, "bert", "none-such", annotator="ada")
