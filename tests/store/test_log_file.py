"""DuckDB's log read without DuckDB, byte by byte; what is kept of one that was read in part; when it is folded in."""

import threading
from types import SimpleNamespace

import duckdb
import pytest

from core.store.database import IdleCheckpointer
from core.store.recovery import STOPPED, LogContent, LogCopy, backups, explain, is_of_file, read_log, root_block

HEADING = bytes.fromhex("640062") + b"\xff" * 37


def entry(content):
    return len(content).to_bytes(8, "little") + bytes(8) + content


WRITE, COMMIT = entry(b"some rows"), entry(bytes.fromhex("640064ffff"))
FOLD = entry(bytes.fromhex("6400636500") + bytes.fromhex("6400") + b"\xac\x02" + bytes.fromhex("ffff"))  # 300 by 7 bits
WHOLE = HEADING + WRITE + COMMIT


@pytest.mark.parametrize(
    ("log", "content"),
    [
        (WHOLE, LogContent(len(WHOLE), len(WHOLE), len(WHOLE), None, False)),
        (WHOLE + entry(b"half of it")[:-3], LogContent(len(WHOLE) + 23, len(WHOLE), len(WHOLE), None, False)),
        (
            WHOLE + FOLD + COMMIT,
            LogContent(len(WHOLE + FOLD + COMMIT), len(WHOLE), len(WHOLE + FOLD + COMMIT), 300, False),
        ),
        (HEADING + WRITE, LogContent(len(HEADING + WRITE), None, None, None, True)),
        (b"no log at all", LogContent(13, None, None, None, False)),
    ],
    ids=["whole", "a write cut short", "folded in", "torn in its first write", "none"],
)
def test_what_a_log_holds(tmp_path, log, content):
    (tmp_path / "log").write_bytes(log)
    assert read_log(tmp_path / "log") == content


def test_the_newer_of_a_files_two_headings_names_its_root(tmp_path):
    def heading(iteration, root):
        return (bytes(8) + iteration.to_bytes(8, "little") + root.to_bytes(8, "little")).ljust(4096, b"\0")

    (tmp_path / "file").write_bytes(bytes(4096) + heading(7, 300) + heading(6, 299))
    assert root_block(tmp_path / "file") == 300
    (tmp_path / "file").write_bytes(bytes(8192))
    assert root_block(tmp_path / "file") is None


def test_a_second_log_that_ends_inside_a_write_is_copied_and_said(tmp_path):
    path = tmp_path / "atlas.duckdb"
    path.with_name("atlas.duckdb.wal.checkpoint").write_bytes(WHOLE + b"half a write")
    notice = LogCopy(path).check(duckdb.connect())
    assert notice.startswith("The last 12 bytes of the database's log could not be read")
    (copy,) = backups(path).iterdir()
    assert str(copy) in notice
    assert copy.read_bytes() == WHOLE + b"half a write"


def test_of_a_log_of_an_unknown_form_what_the_database_says_it_has_not_read_is_missing(tmp_path):
    path = tmp_path / "atlas.duckdb"
    path.write_bytes(b"")
    path.with_name("atlas.duckdb.wal").write_bytes(b"\xff" * 120)
    says = SimpleNamespace(execute=lambda sql: SimpleNamespace(fetchall=lambda: [("100 bytes",)]))
    assert LogCopy(path).check(says).startswith("The last 20 bytes of the database's log could not be read")


@pytest.mark.parametrize(
    ("error", "of_file"),
    [
        (duckdb.IOException("anything"), True),
        (duckdb.InternalException("Could not write to file"), True),
        (duckdb.TransactionException("Failed to commit: Read-only file system"), True),
        (duckdb.TransactionException("Conflict on update"), False),
        (duckdb.CatalogException("Table with name Read-only does not exist"), False),
    ],
    ids=str,
)
def test_what_went_wrong_with_the_file_and_not_with_what_was_asked(error, of_file):
    assert is_of_file(error) is of_file


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            duckdb.FatalException(f"{STOPPED}\nCould not write: No space left on device"),
            "needs space to grow, but its disk",
        ),
        (duckdb.FatalException(f"Failed: {STOPPED}"), "stopped after a failed write, often because the disk is full"),
        (duckdb.IOException("Could not fsync: Input/output error"), "The disk or network folder of the database"),
        (duckdb.InvalidInputException("No open result set"), "was closed while it was being read"),
        (OSError(30, "Read-only file system"), "must be writable; it is read-only"),
        (duckdb.IOException("Failure while replaying WAL file"), "contains the latest writes but is damaged"),
        (duckdb.IOException("written by a newer version of DuckDB"), "must have the format of DuckDB"),
        (
            duckdb.IOException('Could not read from file "x": Is a directory'),
            "cannot be opened (Is a directory)",
        ),
        (duckdb.IOException("Could not write all bytes"), "a write failed (Could not write all bytes)"),
        (duckdb.IOException("no magic bytes"), "is damaged or not a DuckDB file"),
        (ValueError(""), "is damaged or not a DuckDB file (ValueError)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_failure_is_one_sentence_of_its_own(tmp_path, error, said):
    sentence = str(explain(error, tmp_path / "atlas.duckdb"))
    assert said in sentence
    assert "\n" not in sentence


def test_the_log_is_folded_in_once_after_each_time_of_writing_in_a_thread_that_holds_nobody_up():
    folded = threading.Semaphore(0)
    at_rest = IdleCheckpointer(folded.release, seconds=0.01)
    for _ in range(2):
        at_rest.wrote()
        assert folded.acquire(timeout=10)
    assert not folded.acquire(timeout=0.05)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "atlas-log")
    at_rest.end()
    at_rest.wrote()
    assert not folded.acquire(timeout=0.05)
