"""A file of every earlier schema opens with what was in it, after a copy of it was kept."""

import pytest

from core.store import migrations
from core.store.database import Database
from tests.spread import one_in
from tests.store.filling import columns, contents, fill_every_table

STEPS = migrations.known()


@pytest.mark.thorough
@pytest.mark.parametrize("upto", one_in(4, range(len(STEPS))), ids=lambda k: f"{k} steps")
def test_a_file_of_an_earlier_schema(tmp_path, monkeypatch, upto):
    path = tmp_path / "atlas.duckdb"
    monkeypatch.setattr(migrations, "known", lambda: STEPS[:upto])
    old = Database(path)
    names = fill_every_table(old)
    before, had = contents(old, names), columns(old, names)
    old.close()
    monkeypatch.undo()
    new = Database(path)
    assert contents(new, names, had) == before
    assert new.read("SELECT number FROM migration ORDER BY number")["number"].tolist() == [s.number for s in STEPS]
    copies = list((tmp_path / "backups").glob("*-before-*.duckdb"))
    assert len(copies) == (1 if upto else 0)  # a file without any step has nothing to lose
    new.close()
    if upto:
        monkeypatch.setattr(migrations, "known", lambda: STEPS[:upto])
        kept = Database(copies[0])
        assert contents(kept, names) == before
        kept.close()
