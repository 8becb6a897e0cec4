"""Upgrade, tried: the file that 0.1.0 wrote (earlier_version.py) opens with all that was in it, after a copy."""

import gzip
from pathlib import Path

import pytest

from core.store import labels, migrations, runs
from core.store.backup import back_up, restore
from core.store.database import Database

FILE = Path(__file__).with_name("files") / "version-0.1.0.duckdb.gz"


@pytest.mark.thorough
def test_the_last_versions_file_is_brought_up_to_date_with_nothing_lost_and_a_copy_kept(tmp_path):
    path, before = tmp_path / "atlas.duckdb", gzip.decompress(FILE.read_bytes())
    path.write_bytes(before)
    with Database(path) as db:
        steps = db.read("SELECT number FROM migration ORDER BY number")["number"].tolist()
        assert steps == [step.number for step in migrations.known()]
        (run,) = runs.runs(db)["run"]
        assert runs.one_run(db, run)["row_ids"] == [1, 2]
        assert [row["value"] for row in runs.run_rows(db, run)] == [0.5, 0.5, 0.6, 0.6]
        assert len(runs.head_scores(db, statistic="entropy")) == 4
        assert len(labels.all_events(db)) == 5
        assert labels.decided(db, "bert", "ada") == {"m1": "vertical"}  # the label of m2 was undone
        assert labels.decided(db, "bert", "grace") == {"m1": "diagonal"}
        assert [one["class"] for one in labels.class_events(db)] == ["wavy"]
        back_up(db, tmp_path / "after.duckdb")
    (copy,) = (tmp_path / "backups").glob("*.duckdb")
    assert copy.read_bytes() == before
    assert restore(tmp_path / "after.duckdb", tmp_path / "elsewhere" / "atlas.duckdb") == 5
