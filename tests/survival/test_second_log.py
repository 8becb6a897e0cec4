"""Two connections of another program at one file: what it leaves when one folds while the other commits.

DuckDB keeps a second log (`.wal.checkpoint`) for as long as that takes; the app itself folds under its own lock.
"""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from core.store.database import Database

pytestmark = pytest.mark.slow  # 4 CPU seconds: a table that takes long enough to fold
COUNT = "SELECT max(n), count(*) FROM counted"
COMMIT = bytes.fromhex("640064ffff")  # what ends a transaction in a log
WRITER = """
import sys, threading, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("SET wal_autocheckpoint='1TB'")
connection.execute("CREATE TABLE junk AS SELECT random() a, random()::VARCHAR b FROM range(300000)")
connection.execute("CREATE TABLE counted (n INTEGER)")
connection.execute("CHECKPOINT")

def commit():
    cursor, n = connection.cursor(), 0
    while True:
        n += 1
        cursor.execute("INSERT INTO counted VALUES (?)", [n])
        print(n, flush=True)

threading.Thread(target=commit, daemon=True).start()
while True:
    connection.execute("INSERT INTO junk SELECT random(), random()::VARCHAR FROM range(200000)")
    connection.execute("CHECKPOINT")
"""


def stands_still(process: int) -> bool:
    states = [(task / "stat").read_text() for task in Path(f"/proc/{process}/task").iterdir()]
    return all(state.rpartition(")")[2].split()[0] == "T" for state in states)


@pytest.fixture(scope="module")
def left(tmp_path_factory) -> tuple[Path, int]:
    """A folder as a kill in the middle of a fold leaves it, with a second log; the last acknowledged commit."""
    folder = tmp_path_factory.mktemp("two")
    here, path = folder / "here", folder / "here" / "atlas.duckdb"
    Database(path).close()
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=said) as other,
    ):
        last = time.monotonic() + 60
        while time.monotonic() < last and not (folder / "left").exists():
            time.sleep(0.002)
            second = path.with_name("atlas.duckdb.wal.checkpoint")
            if not second.exists():
                continue
            other.send_signal(signal.SIGSTOP)
            while not stands_still(other.pid):
                time.sleep(0.001)
            if second.exists() and second.stat().st_size > 200:  # with a commit or more, each of some 110 bytes
                shutil.copytree(here, folder / "left")
            else:
                other.send_signal(signal.SIGCONT)
        other.kill()
    numbers = (folder / "said").read_text().split()
    return folder / "left", int(numbers[-1])


def counted(folder: Path) -> tuple[int, int]:
    with duckdb.connect(str(folder / "atlas.duckdb")) as connection:
        return connection.execute(COUNT).fetchall()[0]


def test_both_logs_are_read_and_nothing_acknowledged_is_missing(left, tmp_path):
    folder, acknowledged = left
    plain, ours = (Path(shutil.copytree(folder, tmp_path / name)) for name in ("plain", "ours"))
    with Database(ours / "atlas.duckdb") as db:
        read = db.cursor().execute(COUNT).fetchall()[0]
        assert db.notice is None
    assert read == counted(plain)
    assert read[0] == read[1] >= acknowledged
    assert not list(ours.rglob("*.unread"))


def test_a_second_log_without_its_end_is_said_and_kept_once(left, tmp_path):
    folder, _ = left
    whole = counted(Path(shutil.copytree(folder, tmp_path / "whole")))
    ours = Path(shutil.copytree(folder, tmp_path / "ours"))
    second = ours / "atlas.duckdb.wal.checkpoint"
    cut = second.read_bytes()[:-20]
    second.write_bytes(cut)
    with Database(ours / "atlas.duckdb") as db:
        assert db.cursor().execute(COUNT).fetchall()[0] == (whole[0] - 1, whole[1] - 1)
        assert "bytes of the database's log could not be read" in str(db.notice)
    (copy,) = ours.rglob("*.unread")
    assert copy.read_bytes() == cut
    assert copy.name in str(db.notice)
    with Database(ours / "atlas.duckdb") as db:
        assert db.notice is None  # both logs are folded in by now


def test_a_second_log_whose_first_write_was_never_whole_is_no_matter(left, tmp_path):
    """Nothing in it was acknowledged."""
    ours = Path(shutil.copytree(left[0], tmp_path / "ours"))
    second = ours / "atlas.duckdb.wal.checkpoint"
    data = second.read_bytes()
    second.write_bytes(data[: data.find(COMMIT)])
    with Database(ours / "atlas.duckdb") as db:
        assert db.notice is None
    assert not list(ours.rglob("*.unread"))
