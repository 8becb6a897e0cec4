import pytest

from core.errors import InputError, StoreError
from core.store import classifiers as store

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
    store.choose(db, "bert", name, annotator="ada")
    assert store.suggesting(db, "bert") == name
    store.choose(db, "bert", None, annotator="ada")
    assert store.suggesting(db, "bert") is None


def test_a_classifier_of_another_set_or_none_is_refused(db):
    name = store.save_classifier(db, store.Trained("bert", b"weights", **ABOUT))
    with pytest.raises(InputError, match="gpt2"):
        store.choose(db, "gpt2", name, annotator="ada")
    with pytest.raises(StoreError, match="none-such"):
        store.choose(db, "bert", "none-such", annotator="ada")
