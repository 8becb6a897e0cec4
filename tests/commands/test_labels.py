"""`python -m core labels retire`: from a terminal, by event or all of no class."""

import json

import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.errors import InputError
from core.store import labels
from core.store.database import Database
from tests.store.labelling import SET, a_map, event


@pytest.fixture
def labelled(tmp_path, monkeypatch):
    file = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(file))
    with Database(file) as db:
        labels.store_maps(db, [a_map("m1")])
        labels.record_events(db, [event(1), event(2, cls="block")])
    return file


def typed(*arguments):
    return CliRunner().invoke(app, ["labels", "retire", *arguments])


def test_one_label_is_retired_by_its_event(labelled):
    done = typed("tab:2", "--annotator", "eve", "--why", "a slip", "--json")
    assert json.loads(done.stdout)["rows"] == [{"retired": 1}]
    with Database(labelled) as db:
        assert labels.decided(db, SET, "ada") == {"m1": "vertical"}


def test_labels_of_no_class_are_retired_at_once(labelled):
    with Database(labelled) as db, db.write() as cursor:
        cursor.execute("UPDATE label_event SET class = 'wavy' WHERE sequence = 2")
    assert "1 labels retracted" in typed("--unknown", SET).stdout
    assert "0 labels retracted" in typed("--unknown", SET).stdout


@pytest.mark.parametrize("arguments", [(), ("tab:1", "--unknown", SET)])
def test_which_labels_is_said_one_way(labelled, arguments):
    error = typed(*arguments).exception
    assert isinstance(error, InputError)
    assert "one of the two" in str(error)
