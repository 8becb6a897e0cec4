"""A file of every earlier schema opens with what was in it, after a copy of it was kept."""

import pytest

from core.store import exchange, migrations
from core.store.database import Database

STEPS = migrations.known()
FILLED = {  # a row of a table that each step adds
    1: "INSERT INTO study_row VALUES ('r', 0, '{}')",
    2: "INSERT INTO class_event (class_set, kind, class, annotator, stored) "
    "VALUES ('b', 'add', 'x', 'a', DATE '2026-01-31')",
    3: "INSERT INTO classifier_choice (class_set, annotator, stored) VALUES ('bert', 'a', now()::TIMESTAMP)",
}


def contents(db, tables):
    return {name: db.cursor().execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}  # noqa: S608 - ours


@pytest.mark.parametrize("upto", range(len(STEPS)), ids=lambda k: f"{k} steps")
def test_a_file_of_an_earlier_schema(tmp_path, monkeypatch, upto):
    path = tmp_path / "atlas.duckdb"
    monkeypatch.setattr(migrations, "known", lambda: STEPS[:upto])
    old = Database(path)
    with old.write() as cursor:
        for step in STEPS[:upto]:
            if step.number in FILLED:
                cursor.execute(FILLED[step.number])
    names = exchange.tables(old)
    before = contents(old, names)
    old.close()
    monkeypatch.undo()
    new = Database(path)
    assert contents(new, names) == before
    assert new.read("SELECT number FROM migration ORDER BY number")["number"].tolist() == [s.number for s in STEPS]
    copies = list((tmp_path / "backups").glob("*-before-*.duckdb"))
    assert len(copies) == (1 if upto else 0)  # a file without any step has nothing to lose
    new.close()
    if upto:
        monkeypatch.setattr(migrations, "known", lambda: STEPS[:upto])
        kept = Database(copies[0])
        assert contents(kept, names) == before
        kept.close()
