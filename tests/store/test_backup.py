"""A backup is whole while labels arrive, also when another process asks for it; nothing is ever overwritten."""

import json
import os
import subprocess
import sys
import threading

import pytest

from core.errors import StoreError
from core.jobs import api
from core.store import backup, labels
from core.store.database import Database
from tests.store.filling import contents, fill_every_table
from tests.store.labelling import a_map, event


def events(path):
    with Database(path) as db:
        return db.read("SELECT event, class FROM label_event ORDER BY ordinal").to_dict("records")


def test_a_backup_equals_the_database_table_by_table(db, tmp_path):
    names = fill_every_table(db)
    size = backup.back_up(db, tmp_path / "copy.duckdb")
    assert size == (tmp_path / "copy.duckdb").stat().st_size > 0
    assert not list(tmp_path.glob("*.part*"))
    with Database(tmp_path / "copy.duckdb") as copy:
        assert contents(copy, names) == contents(db, names)


def test_who_holds_the_file_holds_it_still_after_a_backup(db, tmp_path):
    """A second process that could open it would write over what the first one stores."""
    backup.back_up(db, tmp_path / "copy.duckdb")
    assert "has it open" in refused_elsewhere(db.path)


def test_who_holds_the_file_holds_it_still_after_opening_it_once_more(db):
    labels.store_maps(db, [a_map()])
    Database(db.path).close()
    assert "has it open" in refused_elsewhere(db.path)


def refused_elsewhere(path):
    code = "import sys\nfrom core.store.database import Database\nDatabase(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stderr.splitlines()[-1] if done.stderr else "opened twice"


@pytest.mark.thorough
def test_every_label_acknowledged_before_a_backup_is_in_it_and_none_is_half_in_it(db, tmp_path):
    labels.store_maps(db, [a_map()])
    over, acknowledged = threading.Event(), [0]

    def annotate():
        for sequence in range(1, 2000):
            if over.is_set():
                return
            labels.record_events(db, [event(sequence, cls=("vertical", "diagonal")[sequence % 2])])
            acknowledged[0] = sequence

    annotator = threading.Thread(target=annotate)
    annotator.start()
    counts = []
    for number in range(5):
        while acknowledged[0] < 10 * (number + 1):
            assert annotator.is_alive()
        before = acknowledged[0]
        backup.back_up(db, tmp_path / f"{number}.duckdb")
        counts.append((before, acknowledged[0] + 1))
    over.set()
    annotator.join()
    for number, (least, most) in enumerate(counts):
        kept = events(tmp_path / f"{number}.duckdb")
        assert least <= len(kept) <= most
        assert [row["event"] for row in kept] == [f"tab:{k}" for k in range(1, len(kept) + 1)]


@pytest.mark.slow  # 5 CPU seconds, processes; in one process below
def test_a_terminal_asks_the_process_that_holds_the_file_while_labels_arrive(db, tmp_path):
    labels.store_maps(db, [a_map()])
    labels.record_events(db, [event(1)])
    api.runner(db)
    over, acknowledged = threading.Event(), [1]

    def annotate():
        while not over.wait(0.02):
            labels.record_events(db, [event(acknowledged[0] + 1)])
            acknowledged[0] += 1

    environment = os.environ | {"ATLAS_DB": str(db.path)}
    command = [sys.executable, "-m", "core", "backup", str(tmp_path / "copy.duckdb")]
    annotator = threading.Thread(target=annotate)
    annotator.start()
    before = acknowledged[0]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    over.set()
    annotator.join()
    assert done.returncode == 0, done.stderr
    assert "has been backed up to" in done.stdout
    kept = [row["event"] for row in events(tmp_path / "copy.duckdb")]
    assert before <= len(kept) <= acknowledged[0]
    assert kept == [f"tab:{k}" for k in range(1, len(kept) + 1)]
    assert acknowledged[0] > 1  # labels did arrive
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 2
    assert "must be written to a new file" in again.stderr
    assert "Traceback" not in again.stderr
    api.runner(db).close()


def test_a_request_is_answered_with_the_reason_where_no_copy_can_be_made(db, tmp_path):
    (tmp_path / "there").write_text("")
    requests = {"full": json.dumps({"file": str(tmp_path / "there")}), "broken": "{", "strange": "[]"}
    backup.runs_folder(db.path).mkdir()
    for name, text in requests.items():
        (backup.runs_folder(db.path) / f"backup-{name}.json").write_text(text)
    backup.answer_requests(db)
    answers = {file.name: json.loads(file.read_text()) for file in backup.runs_folder(db.path).iterdir()}
    assert answers.keys() == {f"backup-{name}.answer" for name in requests}  # what was asked is gone
    assert answers["backup-full.answer"]["error"].startswith("A backup must be written to a new file;")
    assert "could not be read (JSONDecodeError)" in answers["backup-broken.answer"]["error"]
    assert "could not be read (TypeError)" in answers["backup-strange.answer"]["error"]


def test_a_database_that_nobody_holds_is_copied_at_once(db, tmp_path):
    labels.store_maps(db, [a_map()])
    labels.record_events(db, [event(1)])
    db.close()
    size = backup.back_up_now(db.path, tmp_path / "copy.duckdb")
    assert size == (tmp_path / "copy.duckdb").stat().st_size
    assert [row["event"] for row in events(tmp_path / "copy.duckdb")] == ["tab:1"]
    with pytest.raises(StoreError, match="Only an existing database can be backed up; "):
        backup.back_up_now(tmp_path / "none.duckdb", tmp_path / "copy.duckdb")


def test_a_holder_that_does_not_answer_is_said(db, tmp_path):
    with pytest.raises(StoreError, match="has not answered within"):
        backup.ask(db.path, tmp_path / "copy.duckdb", seconds=0.2)


def test_restored_is_what_was_backed_up_and_nothing_is_overwritten(db, tmp_path):
    labels.store_maps(db, [a_map()])
    labels.record_events(db, [event(k) for k in (1, 2, 3)])
    backup.back_up(db, tmp_path / "copy.duckdb")
    assert backup.restore(tmp_path / "copy.duckdb", tmp_path / "new" / "atlas.duckdb") == 3
    assert events(tmp_path / "new" / "atlas.duckdb") == db.read(
        "SELECT event, class FROM label_event ORDER BY ordinal"
    ).to_dict("records")
    with pytest.raises(StoreError, match="must be written to a new file"):
        backup.restore(tmp_path / "copy.duckdb", tmp_path / "new" / "atlas.duckdb")
    with pytest.raises(StoreError):  # what lies there is no folder
        backup.restore(tmp_path / "copy.duckdb", tmp_path / "copy.duckdb" / "atlas.duckdb")


@pytest.mark.parametrize("content", [b"", b"no database", b"\0" * 20_000])
def test_what_is_no_backup_is_not_restored(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(StoreError, match=r"must be (a readable DuckDB file|an Attention Atlas)"):
        backup.restore(tmp_path / "file", tmp_path / "atlas.duckdb")
    assert not (tmp_path / "atlas.duckdb").exists()
    with pytest.raises(StoreError, match="must be an existing file"):
        backup.restore(tmp_path / "missing", tmp_path / "atlas.duckdb")


FILLS = """
import resource, sys
from pathlib import Path
from core.errors import StoreError
from core.store import backup, labels
from core.store.database import Database
from tests.store.labelling import a_map, event

db = Database(sys.argv[1])
labels.store_maps(db, [a_map()])
labels.record_events(db, [event(1)])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for room in (0, 4096, 100_000):  # nothing, the head of the file, a part of it
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        backup.back_up(db, sys.argv[2])
    except StoreError as error:
        print(error)
    try:
        backup.restore(sys.argv[3], Path(sys.argv[2]))
    except StoreError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(labels.record_events(db, [event(2)]).acknowledged, backup.back_up(db, sys.argv[2]) > 100_000)
"""


@pytest.mark.thorough
def test_a_disk_that_fills_while_the_copy_is_written_leaves_no_part_of_it_and_the_database_goes_on(db, tmp_path):
    """A limit on file sizes stands in for the full disk: the system refuses the write that goes past it."""
    labels.store_maps(db, [a_map()])
    backup.back_up(db, tmp_path / "whole.duckdb")
    (tmp_path / "out").mkdir()
    files = [str(tmp_path / name) for name in ("own.duckdb", "out/copy", "whole.duckdb")]
    done = subprocess.run(
        [sys.executable, "-c", FILLS, *files], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    *refused, last = done.stdout.splitlines()
    assert len(refused) == 6
    assert all("the disk is full" in line for line in refused), refused
    assert last == "2 True"
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["copy"]
