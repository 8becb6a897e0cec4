"""Two admins change one class set at the same moment: what the second one asks is checked against what is stored."""

import threading

import pytest

from core.errors import InputError
from core.patterns import class_sets
from core.patterns.class_sets import NewClassSet, PatternClass
from core.patterns.snapshot import known_class_set
from core.store.database import Database


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as database:
        yield database


def a_class(name="wave", **told):
    return PatternClass(**{"name": name, "title": name, "eye": "A wave.", "colour": "#56B4E9", "key": "6"} | told)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "second",
    [
        a_class("Wave", colour="#0072B3", key="7"),
        a_class("ripple", title="WAVE ", colour="#0072B3", key="7"),
        a_class("ripple", colour="#0072B3"),  # the same key
        a_class("ripple", key="7"),  # the same colour
    ],
)
def test_a_form_that_was_opened_before_adds_no_class_that_looks_like_another(db, second):
    opened = known_class_set(db, "bert")  # both forms show this
    class_sets.add_class(db, opened, a_class(), annotator="ada")
    with pytest.raises(InputError, match="in a set must be different"):
        class_sets.add_class(db, opened, second, annotator="bob")
    assert [name for name in known_class_set(db, "bert").names if name not in opened.names] == ["wave"]


def test_two_at_once_add_one_class(db):
    opened, start, outcomes = known_class_set(db, "bert"), threading.Barrier(2), []

    def admin(name):
        start.wait(30)
        try:
            class_sets.add_class(db, opened, a_class(name), annotator=name)
            outcomes.append("added")
        except InputError:
            outcomes.append("told")

    threads = [threading.Thread(target=admin, args=[name]) for name in ("wave", "Wave")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added", "told"]
    assert len(known_class_set(db, "bert")) == len(opened) + 1


def test_a_class_that_was_deleted_meanwhile_is_not_changed_or_merged_into(db):
    class_sets.add_class(db, known_class_set(db, "bert"), a_class(), annotator="ada")
    opened = known_class_set(db, "bert")
    class_sets.delete_class(db, opened, "wave", annotator="ada")
    for act in (
        lambda: class_sets.edit_class(db, opened, "wave", annotator="bob", title="Ripple"),
        lambda: class_sets.delete_class(db, opened, "block", annotator="bob", into="wave"),
        lambda: class_sets.delete_class(db, opened, "wave", annotator="bob"),
    ):
        with pytest.raises(InputError):
            act()
    assert "block" in known_class_set(db, "bert").names


def test_no_two_class_sets_look_alike(db):
    classes = [a_class("a", key="1", colour="#0072B1"), a_class("b", key="2", colour="#0072B2")]
    class_sets.make_class_set(db, NewClassSet("Mine", "Mine", "", "any", classes), annotator="ada")
    with pytest.raises(InputError, match="must not be empty or already in use"):
        class_sets.make_class_set(db, NewClassSet("mine ", "Other", "", "any", classes), annotator="bob")
