"""A copy put back: beside no old log, once for two who try, whole in its place, and of a version that is known here."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import duckdb
import pytest

from core.errors import StoreError
from core.store import backup, labels, migrations
from core.store.database import Database
from tests.store.labelling import a_map, event

KILLED = """
import os, sys
from core.store import labels
from core.store.database import Database
from tests.store.labelling import a_map, event
db = Database(sys.argv[1])
labels.store_maps(db, [a_map()])
labels.record_events(db, [event(1), event(2)])
db.fold()
labels.record_events(db, [event(k) for k in range(3, 3 + int(sys.argv[2]))])
os.kill(os.getpid(), 9)
"""


def killed(path, later):
    """A database whose process was killed: two label events in the file, `later` ones in its log."""
    subprocess.run([sys.executable, "-c", KILLED, str(path), str(later)], check=False, timeout=120)
    assert path.with_name(path.name + ".wal").stat().st_size > 0


def count(path):
    with Database(path) as db:
        return len(labels.all_events(db))


@pytest.fixture
def copy(tmp_path):
    with Database(tmp_path / "first.duckdb") as db:
        labels.store_maps(db, [a_map()])
        labels.record_events(db, [event(1)])
        backup.back_up(db, tmp_path / "copy.duckdb")
    return tmp_path / "copy.duckdb"


@pytest.mark.thorough
def test_nothing_is_restored_beside_the_log_of_another_database(copy, tmp_path):
    path, moved = tmp_path / "atlas.duckdb", tmp_path / "moved.duckdb"
    killed(path, 3)
    path.rename(moved)  # the log is forgotten
    with pytest.raises(
        StoreError, match=r"atlas\.duckdb\.wal is the log of an earlier database, and DuckDB would apply it"
    ):
        backup.restore(copy, path)
    assert not path.exists()
    path.with_name("atlas.duckdb.wal").rename(moved.with_name("moved.duckdb.wal"))  # as the sentence says
    assert backup.restore(copy, path) == 1
    assert count(path) == 1
    assert count(moved) == 5  # what was moved away has its log


@pytest.mark.thorough
@pytest.mark.parametrize("ending", [".wal", ".wal.checkpoint", ".wal.recovery"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_whatever_log_lies_there_is_in_the_way(copy, tmp_path, ending, kind):
    log = tmp_path / f"atlas.duckdb{ending}"
    log.write_bytes(b"log") if kind == "file" else log.symlink_to("nowhere")
    with pytest.raises(StoreError, match="Move this log to the folder of its own database"):
        backup.restore(copy, tmp_path / "atlas.duckdb")
    assert [path.name for path in tmp_path.glob("atlas*")] == [log.name]


@pytest.mark.thorough
def test_a_database_that_was_moved_away_is_restored_with_its_log(tmp_path):
    killed(tmp_path / "old.duckdb", 3)
    assert backup.restore(tmp_path / "old.duckdb", tmp_path / "atlas.duckdb") == 5
    assert count(tmp_path / "atlas.duckdb") == 5
    assert (tmp_path / "old.duckdb.wal").exists()
    assert not list(tmp_path.glob(".*part*"))


@pytest.mark.thorough
def test_a_log_that_ends_in_the_middle_is_restored_as_far_as_it_goes_and_said(tmp_path):
    killed(tmp_path / "old.duckdb", 3)
    log = tmp_path / "old.duckdb.wal"
    log.write_bytes(log.read_bytes()[:-40])
    said = []
    assert backup.restore(tmp_path / "old.duckdb", tmp_path / "atlas.duckdb", say=said.append) < 5
    assert "could not be read" in said[0]


def test_of_two_who_restore_at_once_one_is_told(copy, tmp_path, monkeypatch):
    path, both, outcomes = tmp_path / "atlas.duckdb", threading.Barrier(2), []
    checked = backup._checked

    def together(*arguments):
        events = checked(*arguments)
        both.wait(30)
        return events

    monkeypatch.setattr(backup, "_checked", together)

    def admin():
        try:
            outcomes.append(backup.restore(copy, path))
        except StoreError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=admin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str)[0] == 1
    assert "must be written to a new file" in sorted(outcomes, key=str)[1]
    assert count(path) == 1


def test_a_database_that_was_begun_meanwhile_is_not_replaced(copy, tmp_path, monkeypatch):
    path, checked = tmp_path / "atlas.duckdb", backup._checked

    def begun(*arguments):
        events = checked(*arguments)
        Database(path).close()
        return events

    monkeypatch.setattr(backup, "_checked", begun)
    with pytest.raises(StoreError, match="must be written to a new file"):
        backup.restore(copy, path)
    assert count(path) == 0


def test_a_disk_without_hard_links_is_restored_to_once_too(copy, tmp_path, monkeypatch):
    def none(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    assert backup.restore(copy, tmp_path / "atlas.duckdb") == 1
    assert count(tmp_path / "atlas.duckdb") == 1
    with pytest.raises(StoreError, match="must be written to a new file"):
        backup.restore(copy, tmp_path / "atlas.duckdb")


# ---------------------------------------------------------------- versions


def test_a_backup_names_its_schema_and_a_newer_one_is_refused(copy, tmp_path):
    newest = migrations.known()[-1].number
    assert backup.schema_of(copy) == newest
    with duckdb.connect(str(copy)) as connection:
        connection.execute("INSERT INTO migration VALUES (?, 'later', now())", [newest + 1])
    assert backup.schema_of(copy) == newest + 1
    with pytest.raises(StoreError, match=rf"has schema {newest + 1}, and this version has schema {newest}\."):
        backup.restore(copy, tmp_path / "atlas.duckdb")
    assert not list(tmp_path.glob("atlas*"))


def test_the_schema_of_a_file_that_is_no_database_is_an_error_that_names_it(tmp_path):
    file = tmp_path / "notes.duckdb"
    file.write_text("no database " * 900)
    with pytest.raises(StoreError, match=re.escape(str(file))):
        backup.schema_of(file)


def test_an_older_backup_is_restored(copy, tmp_path):
    newest = migrations.known()[-1].number
    with duckdb.connect(str(copy)) as connection:
        connection.execute("DELETE FROM migration WHERE number = ?", [newest])
    assert backup.schema_of(copy) == newest - 1
    assert backup.restore(copy, tmp_path / "atlas.duckdb") == 1


# ---------------------------------------------------------------- folders and users without rights

AS_NOBODY = """
import os, sys
from pathlib import Path
from core.errors import AtlasError
from core.labelling import assignment_service
from core.store import backup
from core.store.database import Database
from tests.store.labelling import event
def label(folder):
    with Database(folder / "atlas.duckdb") as db:
        assignment_service.record(db, [event(9)], secret="s")
ACTS = {
    "label": label,
    "new": lambda folder: Database(folder / "new.duckdb").close(),
    "backup": lambda folder: backup.back_up_now(folder / "atlas.duckdb", folder / "copy.duckdb"),
    "restore": lambda folder: backup.restore(folder / "first.duckdb", folder / "restored.duckdb"),
}
for act in ACTS.values():  # loads all modules, also where another user may not read them
    act(Path(sys.argv[2]))
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for what, act in ACTS.items():
    try:
        act(Path(sys.argv[1]))
    except AtlasError as error:
        print(f"{what}: {error}")
"""


@pytest.mark.thorough
@pytest.mark.parametrize("rights", [(0o555, 0o444), (0o555, 0o666), (0o777, 0o444)])
def test_a_folder_without_rights_is_a_sentence_for_everybody(copy, tmp_path, rights):
    """As a folder that was mounted read-only, and for another user than the one who made the file."""
    home = Path(tempfile.mkdtemp())  # not among pytest's own folders, which nobody else may enter
    folder, other = home / "data", home / "other"
    for place in (folder, other):
        place.mkdir()
        for name in ("atlas", "first"):
            shutil.copy(copy, place / f"{name}.duckdb")
    for_folder, for_file = rights
    home.chmod(0o755)
    (folder / "atlas.duckdb").chmod(for_file)
    (folder / "first.duckdb").chmod(0o444)
    folder.chmod(for_folder)
    try:
        done = subprocess.run(
            [sys.executable, "-B", "-c", AS_NOBODY, str(folder), str(other)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        folder.chmod(0o755)
    assert "Traceback" not in done.stderr, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    expected = {"label", "new", "backup", "restore"} if for_folder == 0o555 else {"label"}
    assert expected <= set(said), done.stdout
    assert "writable" in said["label"]
    with duckdb.connect(str(folder / "atlas.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM label_event").fetchall() == [(1,)]
    shutil.rmtree(home)


@pytest.mark.thorough
@pytest.mark.skipif(os.getuid() != 0, reason="another user needs root")
def test_a_folder_that_cannot_be_entered_is_a_sentence(copy, tmp_path):
    home = Path(tempfile.mkdtemp())
    for name in ("closed", "other"):
        (home / name).mkdir()
        for file in ("atlas", "first"):
            shutil.copy(copy, home / name / f"{file}.duckdb")
    home.chmod(0o755)
    (home / "closed").chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-B", "-c", AS_NOBODY, str(home / "closed"), str(home / "other")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    shutil.rmtree(home)
    assert "Traceback" not in done.stderr, done.stderr
    assert {line.split(": ")[0] for line in done.stdout.splitlines()} == {"label", "new", "backup", "restore"}
