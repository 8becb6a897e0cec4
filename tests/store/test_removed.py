"""A result or finding that was taken away comes back as it was."""

import pytest

from core.errors import InputError, StoreError
from core.store import runs
from core.store.database import Database, Person
from core.store.findings import LONGEST_NOTE, Finding, findings, pin
from core.store.people import RightsError
from core.store.runs import put_back, remove_finding, remove_run


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as opened:
        yield opened


def stored(db, title, value):
    run = runs.record_run(db, "statistics", {"limit": 3}, runs.Provenance("atlas-encoder", row_ids=(1, 2)), title=title)
    runs.store_rows(
        db, run, [{"statistic": "entropy", "layer": 0, "head": 1, "value": value}, {"kind": "note", "n": 2}]
    )
    return run


def test_a_run_comes_back_with_its_rows_scores_and_place(db):
    first, second = stored(db, "first", 0.5), stored(db, "second", 0.7)
    before = (runs.runs(db).to_dict("records"), runs.run_rows(db, first), len(runs.head_scores(db)))
    removed = remove_run(db, first)
    assert list(runs.runs(db)["run"]) == [second]
    assert removed.title == "first"
    put_back(db, removed)
    assert (runs.runs(db).to_dict("records"), runs.run_rows(db, first), len(runs.head_scores(db))) == before


def test_a_finding_comes_back_with_note_and_picture(db):
    name = pin(db, Finding("run", "A head", "my note", "about", "python -m core", pictures=({"mark": "bar"},)))
    other = pin(db, Finding("run", "Another head", "n" * LONGEST_NOTE, "about", "python -m core"))
    before = findings(db)
    removed = remove_finding(db, name)
    assert removed.title == "A head"
    assert [finding.finding for finding in findings(db)] == [other]
    put_back(db, removed)
    assert findings(db) == before


def test_a_note_without_bound_is_not_pinned(db):
    with pytest.raises(InputError, match="at most 5,000 characters; this note has 5,001"):
        pin(db, Finding("run", "A head", "n" * (LONGEST_NOTE + 1), "about", "python -m core"))


def test_what_is_gone_cannot_be_taken_away_and_viewers_take_nothing(db):
    with pytest.raises(StoreError, match="must be stored in the database"):
        remove_run(db, "nothing")
    run = stored(db, "first", 0.5)
    with pytest.raises(RightsError):
        remove_run(db.acting_as(Person("", "viewer")), run)
    assert list(runs.runs(db)["run"]) == [run]
