"""What happened to a class set elsewhere is added where the same happened here so far, and to nothing else."""

from datetime import datetime

import pytest

from core.errors import InputError
from core.store.database import Database
from core.store.labels import add_history, class_history, known_names

STORED = datetime(2026, 1, 31, 12)
WAVE = {"kind": "add", "class": "wave", "title": "Wave", "eye": "A wave.", "annotator": "ada", "stored": STORED}
SPOT = WAVE | {"class": "spot", "title": "Spot", "eye": 40 * "A spot. ", "colour": "#0072B2", "key": "6"}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A database in which nothing happened to a class, and nothing is to happen."""
    with Database(tmp_path_factory.mktemp("classes") / "atlas.duckdb") as database:
        yield database


def added(db, *history):
    with db.write() as cursor:
        return add_history(cursor, "own", list(history))


def test_a_history_is_added_from_where_it_stands_here(db):
    assert added(db, WAVE) == 1
    assert added(db, WAVE) == 0
    assert added(db, WAVE, SPOT) == 1
    assert added(db, SPOT | {"eye": "Another."}) == 0  # something else happened here
    assert [{name: row[name] for name in WAVE} for row in class_history(db)["own"]] == [
        {name: one[name] for name in WAVE} for one in (WAVE, SPOT)
    ]
    assert known_names(db.cursor(), ["own", "bert", "none"]).keys() == {"own", "bert"}
    assert known_names(db.cursor(), ["own"]) == {"own": {"wave", "spot"}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "paint"}, "must be one of set, add, rename, merge, delete; got 'paint'"),
        ({"class": None}, "must have the name of its class"),
        ({"class": " "}, "must have the name of its class"),
        ({"kind": "merge", "into_class": "x" * 201}, '"into_class" must be text of at most 200 characters'),
        ({"title": "x" * 201}, '"title" must be text of at most 200 characters'),
        ({"key": "Enter"}, "a digit as its shortcut key"),
        ({"title": ""}, "must have an annotator and a title, and a new class a description"),
        ({"eye": "x" * 4001}, '"eye" must be text of at most 4000 characters'),
        ({"eye": None}, "must have an annotator and a title, and a new class a description"),
        ({"annotator": None}, "must have an annotator and a title, and a new class a description"),
        ({"stored": "noon"}, "got 'noon' in the class 'wave'"),
    ],
)
def test_a_change_that_is_none_is_refused_with_its_reason(empty, change, said):
    with pytest.raises(InputError, match=said):
        added(empty, SPOT, WAVE | change)
    assert class_history(empty) == {}


@pytest.mark.parametrize("history", ["[]", {}, [WAVE, "x"]])
def test_a_history_that_is_no_list_of_changes_is_refused(empty, history):
    with empty.write() as cursor, pytest.raises(InputError, match="must be a list of class changes"):
        add_history(cursor, "own", history)
