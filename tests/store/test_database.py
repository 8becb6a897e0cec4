"""The file: who may hold it, what survives, and the sentence it fails with."""

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from core.errors import StoreError
from core.store import migrations, recovery
from core.store.database import Database, Opening
from core.store.people import Person

ROOT = Path(__file__).resolve().parents[2]
OPEN = """
from core.errors import StoreError
from core.store.database import Database
try:
    Database(sys.argv[1])
except StoreError as error:
    print(error)
"""


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def one_sentence(error: pytest.ExceptionInfo) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_a_new_file_has_every_migration_recorded(db):
    recorded = db.read("SELECT number, name FROM migration ORDER BY number")
    assert list(recorded.itertuples(index=False, name=None)) == [(m.number, m.name) for m in migrations.known()]


def test_folders_that_are_missing_are_made(tmp_path):
    path = tmp_path / "own" / "data" / "atlas.duckdb"
    with Database(path) as db:
        assert db.path == path
    assert path.is_file()


def test_reopening_changes_nothing_and_makes_no_backup(tmp_path):
    path = tmp_path / "atlas.duckdb"
    Database(path).close()
    Database(path).close()
    assert not (tmp_path / "backups").exists()


def test_an_older_file_is_backed_up_then_brought_up_to_date(tmp_path, monkeypatch):
    path = tmp_path / "atlas.duckdb"
    old = Database(path)
    with old.write() as cursor:
        cursor.execute("INSERT INTO study_row VALUES ('r', 0, '{}')")
    old.close()
    step = migrations.Migration(900, "later", "CREATE TABLE later (a INTEGER); INSERT INTO later VALUES (7);")
    known = migrations.known()
    monkeypatch.setattr(migrations, "known", lambda: [*known, step])
    new = Database(path)
    assert new.read("SELECT a FROM later")["a"].tolist() == [7]
    new.close()
    (copy,) = (tmp_path / "backups").glob("atlas-before-900-*.duckdb")
    monkeypatch.undo()
    assert Database(copy).read("SELECT * FROM study_row")["run"].tolist() == ["r"]


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "atlas.duckdb"
    Database(path).close()
    known = migrations.known()
    broken = migrations.Migration(900, "broken", "CREATE TABLE half (a INTEGER); SELECT nonsense FROM nowhere;")
    monkeypatch.setattr(migrations, "known", lambda: [*known, broken])
    with pytest.raises(StoreError):
        Database(path)
    monkeypatch.undo()
    db = Database(path)
    assert db.read("SELECT * FROM duckdb_tables() WHERE table_name = 'half'").empty
    assert 900 not in db.read("SELECT number FROM migration")["number"].tolist()
    db.close()


def test_a_file_from_newer_code_is_refused(tmp_path):
    path = tmp_path / "atlas.duckdb"
    db = Database(path)
    with db.write() as cursor:
        cursor.execute("INSERT INTO migration VALUES (901, 'future', now()::TIMESTAMP)")
    db.close()
    with pytest.raises(StoreError, match=r"it has migration 901") as error:
        Database(path)
    one_sentence(error)


@pytest.mark.parametrize("kept", [0, 10, 100, 4096, 8192, 200_000])
def test_a_truncated_file_is_said_to_be_damaged(tmp_path, kept):
    path = tmp_path / "atlas.duckdb"
    Database(path).close()
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(StoreError, match="damaged") as error:
        Database(path)
    assert str(tmp_path / "backups") in one_sentence(error)


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello " * 5000)
    with pytest.raises(StoreError, match="not a DuckDB file") as error:
        Database(path)
    one_sentence(error)
    assert path.read_text() == "hello " * 5000


def test_a_folder_in_place_of_the_file(tmp_path):
    with pytest.raises(StoreError, match="must be a file") as error:
        Database(tmp_path)
    one_sentence(error)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot") as error:
        Database(tmp_path / "file" / "sub" / "atlas.duckdb")
    one_sentence(error)


def test_a_second_process_is_told_who_holds_the_file(db):
    said = run_python("import sys\n" + OPEN, db.path).stdout.strip()
    assert f"process {os.getpid()} " in said
    assert "--db" in said
    assert "\n" not in said


@pytest.mark.skipif(os.getuid() != 0, reason="a root user must give up rights to meet a read-only file; others chmod")
def test_a_read_only_file_as_seen_by_a_user_who_may_not_write(tmp_path):
    path = tmp_path / "atlas.duckdb"
    Database(path).close()
    for folder in [tmp_path, *tmp_path.parents[:4]]:  # up to the one in memory
        folder.chmod(0o755)
    path.chmod(0o444)
    os.seteuid(65534)
    try:
        with pytest.raises(StoreError, match="read-only") as error:
            Database(path)
    finally:
        os.seteuid(0)
    one_sentence(error)


def killed_while_writing(path: Path) -> int:
    """Rows acknowledged by a process that is killed with SIGKILL in the middle of its inserts."""
    code = """
import sys
from core.store.database import Database
db = Database(sys.argv[1])
for place in range(100_000):
    with db.write() as cursor:
        cursor.execute("INSERT INTO study_row VALUES ('r', ?, '{}')", [place])
    print(place, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:
        lines.append(int(line))
        if len(lines) == 150:
            process.send_signal(signal.SIGKILL)
    process.wait()
    return max(lines) + 1


def test_opening_a_database_writes_nothing_to_standard_output(tmp_path):
    """DuckDB takes `python -c` for a person at a prompt and draws a bar when a statement lasts two seconds."""
    code = """
import sys, duckdb
from core.store.database import Database
connections, connect = [], duckdb.connect
duckdb.connect = lambda *where, **options: connections.append(connect(*where, **options)) or connections[-1]
db = Database(sys.argv[1])
print(connections[-1].execute("SELECT current_setting('enable_progress_bar')").fetchall())
"""
    assert run_python(code, tmp_path / "atlas.duckdb").stdout == "[(False,)]\n"


@pytest.mark.thorough
def test_sigkill_loses_nothing_that_was_acknowledged(tmp_path):
    path = tmp_path / "atlas.duckdb"
    acknowledged = killed_while_writing(path)
    db = Database(path)
    stored = db.read("SELECT position FROM study_row ORDER BY position")["position"].tolist()
    assert stored == list(range(len(stored)))
    assert len(stored) in {acknowledged, acknowledged + 1}  # the last may have been stored but not yet printed
    assert not list((tmp_path / "backups").glob("*.unread"))
    db.close()


@pytest.mark.parametrize(
    "place", [None, 0.5, *(pytest.param(place, marks=pytest.mark.slow) for place in (0.1, 0.3, 0.7, 0.9))]
)  # a process each
def test_a_corrupt_log_is_never_lost_in_silence(tmp_path, place):
    """Garbage from end to end (None), or 64 bytes overwritten at a place in the log."""
    path = tmp_path / "atlas.duckdb"
    Database(path).close()
    killed_while_writing(path)
    log = path.with_name(path.name + ".wal")
    good = log.read_bytes()
    start = int(len(good) * (place or 0))
    bad = b"x" * 5000 if place is None else good[:start] + b"\xff" * 64 + good[start + 64 :]
    log.write_bytes(bad)
    try:
        db = Database(path)
    except StoreError as error:
        said = str(error)
        assert log.read_bytes() == bad
    else:
        said = db.notice
        db.close()
    assert log.name in said
    assert said.count("\n") == 0
    (copy,) = (tmp_path / "backups").glob("atlas.duckdb.wal.*.unread")
    assert copy.read_bytes() == bad


@pytest.mark.thorough
def test_a_log_that_cannot_be_copied_is_not_read_either(tmp_path):
    """Reading it could lose it; nothing is opened, and the log stays."""
    path = tmp_path / "atlas.duckdb"
    Database(path).close()
    killed_while_writing(path)
    log = path.with_name(path.name + ".wal")
    held, limit = log.read_bytes(), "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))"
    said = run_python(f"import resource, sys\n{limit}\n{OPEN}", path).stdout.strip()
    assert "disk is full" in said
    assert log.read_bytes() == held
    assert not list((tmp_path / "backups").iterdir())
    assert len(Database(path).read("SELECT * FROM study_row")) >= 150


@pytest.mark.thorough
@pytest.mark.parametrize("trouble", ["a full disk", "a file in place of the folder"])
def test_without_room_for_a_backup_nothing_is_brought_up_to_date(tmp_path, trouble):
    path = tmp_path / "atlas.duckdb"
    db = Database(path)
    with db.write() as cursor:
        cursor.execute("DELETE FROM migration WHERE number = (SELECT max(number) FROM migration)")
    db.close()
    held, limit = path.read_bytes(), ""
    if trouble == "a full disk":
        limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))"
    else:
        (tmp_path / "backups").write_text("")
    said = run_python(f"import resource, sys\n{limit}\n{OPEN}", path).stdout.strip()
    assert "must be copied to" in said
    assert "Free space" in said
    assert "\n" not in said
    assert path.read_bytes() == held
    assert not list(tmp_path.glob("backups/*"))


@pytest.mark.thorough
def test_a_full_disk_stores_nothing_half_and_work_goes_on_after(tmp_path):
    """A file-size limit stands for the full disk: the system refuses the same write."""
    code = """
import os, resource, signal, sys
from core.errors import StoreError
from core.store.database import Database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
db = Database(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
stored = 0
try:
    for place in range(5000):
        with db.write() as cursor:
            for half in (0, 1):
                cursor.execute("INSERT INTO study_row VALUES (?, ?, ?)",
                               [str(half), place, '"' + os.urandom(500).hex() + '"'])
        stored += 1
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
with db.write() as cursor:
    cursor.execute("INSERT INTO study_row VALUES ('after', 0, '{}')")
db.close()
db = Database(sys.argv[1])
print([stored == n for n in db.read("SELECT run, count(*) AS n FROM study_row GROUP BY run ORDER BY run")["n"]])
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = run_python(code, tmp_path / "atlas.duckdb")
    sentence, counts = done.stdout.strip().splitlines()
    assert "its disk is full" in sentence, done.stderr
    assert counts == "[True, True, False]"


def test_external_access_is_off_and_stays_off(db, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for sql in (
        "SET enable_external_access = true",
        f"FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY migration TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error), db.write() as cursor:
            cursor.execute(sql)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO study_row VALUES ('r', 0, '{}')",
        "WITH x AS (SELECT 1) INSERT INTO study_row SELECT 'r', 0, '{}'",
        "INSERT INTO study_row VALUES ('r', 0, '{}') RETURNING run",
        "UPDATE study_row SET run = 'r'",
        "DELETE FROM study_row",
        "DROP TABLE study_row",
        "CREATE TEMP TABLE mine (a INTEGER)",
        "SELECT 1; DELETE FROM study_row",
        "EXPLAIN ANALYZE DELETE FROM study_row",
        "SELECT nextval('run_order')",
        "SELECT setval ('run_order', 9)",
        "SET threads = 1",
        "CHECKPOINT",
        "BEGIN",
        "PREPARE x AS DELETE FROM study_row",
    ],
)
@pytest.mark.parametrize("role", ["viewer", pytest.param("admin", marks=pytest.mark.slow)])
def test_a_cursor_for_reading_reads(db, sql, role):
    with db.write() as cursor:
        cursor.execute("INSERT INTO study_row VALUES ('kept', 0, '{}')")
    with pytest.raises(StoreError, match="only reads the database") as error:
        db.acting_as(Person("eve", role)).cursor().execute(sql)
    one_sentence(error)
    assert db.read("SELECT run FROM study_row")["run"].tolist() == ["kept"]


@pytest.mark.thorough
def test_the_log_is_folded_in_at_rest_and_on_exit(tmp_path):
    """Then a copy of the file alone is whole."""
    path = tmp_path / "atlas.duckdb"
    code = (
        "import sys, time; from core.store import database\n"
        "from core.store.database import Database\n"
        "db = Database(sys.argv[1])\n"
        "if sys.argv[2] == 'at rest': db._rest = database.IdleCheckpointer(db.fold, 0.2)\n"
        "with db.write() as cursor: cursor.execute(\"INSERT INTO study_row SELECT 'r', range, '{}' FROM range(999)\")\n"
        "log, end = db.path.with_name(db.path.name + '.wal'), time.monotonic() + 20\n"
        "print(log.exists())\n"
        "while sys.argv[2] == 'at rest' and log.exists() and time.monotonic() < end: time.sleep(0.05)\n"
        "print(log.exists())\n"
    )
    assert run_python(code, path, "at rest").stdout.split() == ["True", "False"]
    path.unlink()
    assert run_python(code, path, "on exit").stdout.split() == ["True", "True"]
    assert not path.with_name(path.name + ".wal").exists()
    (tmp_path / "copy.duckdb").write_bytes(path.read_bytes())
    with Database(tmp_path / "copy.duckdb") as copy:
        assert len(copy.read("SELECT * FROM study_row")) == 999


def one_row(db, place):
    with db.write() as cursor:
        cursor.execute("INSERT INTO study_row VALUES ('r', ?, '{}')", [place])


def deleted(path):
    path.unlink()


def replaced(path):
    subprocess.run(["cp", path, path.with_name("other")], check=True)
    path.with_name("other").replace(path)


def moved_away(path):
    path.rename(path.with_name("moved"))


def cut_short(path):
    os.truncate(path, 12_288)


def emptied(path):
    os.truncate(path, 0)


def without_its_log(path):
    path.with_name(path.name + ".wal").unlink()


def folder_gone(path):
    path.parent.rename(path.parent.with_name("gone"))


HARMS = {
    deleted: "deleted",
    replaced: "replaced by another file",
    moved_away: "deleted",
    cut_short: "truncated",
    emptied: "truncated",
    without_its_log: "separated from its log, which was deleted",
    folder_gone: "deleted",
}


@pytest.mark.parametrize("harm", HARMS, ids=lambda f: f.__name__)
def test_a_file_that_is_not_the_one_opened_acknowledges_nothing(tmp_path, harm):
    db = Database(tmp_path / "here" / "atlas.duckdb")
    one_row(db, 0)
    db.fold()
    one_row(db, 1)  # in the log
    harm(db.path)
    for place in (2, 3):
        with pytest.raises(StoreError, match=f"was {HARMS[harm]} while this program had it open") as error:
            one_row(db, place)
        one_sentence(error)
    db.close()


def test_a_file_that_is_put_back_goes_on(tmp_path):
    db = Database(tmp_path / "atlas.duckdb")
    db.path.rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="deleted"):
        one_row(db, 0)
    (tmp_path / "moved").rename(db.path)
    one_row(db, 1)
    db.close()
    with Database(db.path) as again:
        assert again.read("SELECT position FROM study_row")["position"].tolist() == [1]


def test_a_file_that_becomes_smaller_by_its_own_checkpoint_goes_on(db):
    with db.write() as cursor:
        cursor.execute("INSERT INTO study_row SELECT 'r', range, '{\"a\": ' || random() || '}' FROM range(200000)")
    db.fold()
    large = db.path.stat().st_size
    with db.write() as cursor:
        cursor.execute("DELETE FROM study_row")
    for place in range(3):
        db.fold()
        one_row(db, place)
    assert db.path.stat().st_size < large


LOGS = [(3, 200, 1), (300, 200, 0), (300, 9_000, 40)]  # rows, their width, bytes that are missing
OTHER_LOGS = {(rows, width, missing) for rows, width, _ in LOGS for missing in (0, 1, 40)} - {*LOGS}


@pytest.mark.parametrize(
    ("rows", "width", "missing"),
    [*LOGS, *(pytest.param(*log, marks=pytest.mark.slow) for log in sorted(OTHER_LOGS))],  # a process and a second each
)
def test_a_log_is_said_to_lack_what_it_lacks_to_the_byte(tmp_path, rows, width, missing):
    """DuckDB says its size as "3.7 MiB": a log that was read whole is not said to be damaged, nor the other way."""
    path = tmp_path / "atlas.duckdb"
    code = (
        "import os, sys; from core.store.database import Database\n"
        "db = Database(sys.argv[1]); cursor = db._current().cursor()\n"
        "cursor.execute('CREATE TABLE t (a INTEGER, b VARCHAR)'); db.fold()\n"
        "for k in range(int(sys.argv[2])): cursor.execute('INSERT INTO t VALUES (?, ?)', [k, 'x' * int(sys.argv[3])])\n"
        "os.kill(os.getpid(), 9)"
    )
    run_python(code, path, rows, width)
    log = path.with_name(path.name + ".wal")
    size = log.stat().st_size
    os.truncate(log, size - missing)
    whole = recovery.read_log(log).whole
    db = Database(path)
    kept = db.read("SELECT count(*) AS n FROM t")["n"].item()
    assert kept == rows - (missing > 0)
    if missing:
        assert f"last {size - missing - whole} bytes" in db.notice
    else:
        assert db.notice is None
        assert not list((tmp_path / "backups").iterdir())
    db.close()


@pytest.mark.thorough
def test_a_file_called_backups_makes_no_sound_database_damaged(tmp_path):
    path = tmp_path / "atlas.duckdb"
    Database(path).close()
    killed_while_writing(path)
    (tmp_path / "backups").write_text("")
    with pytest.raises(StoreError, match="this path is not a folder") as error:
        Database(path)
    one_sentence(error)
    (tmp_path / "backups").unlink()
    assert len(Database(path).read("SELECT * FROM study_row")) >= 150


def fail_after_a_row(db):
    with db.write() as cursor:
        cursor.execute("INSERT INTO study_row VALUES ('r', 0, '{}')")
        raise ZeroDivisionError


def fail_after_a_nested_row(db):
    with db.write():
        with db.write() as cursor:
            cursor.execute("INSERT INTO study_row VALUES ('r', 0, '{}')")
        raise ZeroDivisionError


@pytest.mark.parametrize("write", [fail_after_a_row, fail_after_a_nested_row])
def test_a_write_that_fails_is_taken_back_whole(db, write):
    with pytest.raises(ZeroDivisionError):
        write(db)
    assert db.read("SELECT * FROM study_row").empty
    with db.write() as cursor:
        cursor.execute("INSERT INTO study_row VALUES ('r', 0, '{}')")
    assert len(db.read("SELECT * FROM study_row")) == 1


@pytest.mark.thorough
def test_threads_write_and_read_with_cursors_of_their_own(db):
    errors: list[Exception] = []

    def work(name: str) -> None:
        try:
            for place in range(60):
                with db.write() as cursor:
                    cursor.execute("INSERT INTO study_row VALUES (?, ?, '{}')", [name, place])
                mine = db.read("SELECT count(*) AS n FROM study_row WHERE run = ?", [name])["n"].item()
                assert mine == place + 1
        except Exception as error:  # collected, so that the test names it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert db.read("SELECT count(*) AS n FROM study_row")["n"].item() == 240


def test_two_objects_on_one_file_share_its_lock(db):
    again = Database(db.path)
    with db.write() as cursor:
        cursor.execute("INSERT INTO study_row VALUES ('r', 0, '{}')")
    assert len(again.read("SELECT * FROM study_row")) == 1
    assert again._lock is db._lock


def test_a_closed_cursor_is_of_the_file_only_after_duckdb_stopped(tmp_path):
    opening = Opening(tmp_path / "a.duckdb", None)
    gone, damaged = duckdb.ConnectionException("Connection already closed!"), duckdb.IOException("Could not read")
    for error, wanted in ((gone, duckdb.ConnectionException), (damaged, StoreError)):
        with pytest.raises(wanted), opening.explaining():
            raise error
    opening.heed(duckdb.FatalException("INTERNAL Error"))
    assert opening.stopped
    with pytest.raises(StoreError), opening.explaining():
        raise gone
    with pytest.raises(duckdb.ConnectionException), opening.explaining():
        raise duckdb.ConnectionException("another reason")
