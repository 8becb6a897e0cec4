"""A disk or a network folder that fails: one sentence that says so and sends nobody away from a sound file.

strace makes the system refuse chosen calls on the database's own files, as a failing disk does; nothing is lost that
was acknowledged, and the file opens after.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import StoreError
from core.store import database, labels
from core.store.database import Database
from tests.store.labelling import a_map, event

ROOT = Path(__file__).resolve().parents[2]
with_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace (Debian's package) makes the system refuse a call"
)
SENTENCES = {
    "EIO": "The disk or network folder",
    "ESTALE": "The disk or network folder",
    "EDQUOT": "its disk is full",
    "ENOSPC": "its disk is full",
    "EPERM": "it is read-only",
    "EACCES": "it is read-only",
    "EROFS": "it is read-only",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    with Database(folder / "atlas.duckdb") as db:
        labels.store_maps(db, [a_map("m1")])
        labels.record_events(db, [event(number) for number in (1, 2, 3)])
    return folder


def steps_with(path: Path, call: str, error: str, when: str) -> list[dict]:
    """A life of the database during which the `when`-th `call` on its files fails with `error`."""
    command = ["strace", "-f", "-o", "/dev/null", "-P", str(path), "-P", f"{path}.wal", "-e", f"trace={call}"]
    command += ["-e", f"inject={call}:error={error}:when={when}", sys.executable, "-m", "tests.survival.failing"]
    done = subprocess.run([*command, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


QUICK = [
    ("fdatasync", "EIO", "1"),
    ("fdatasync", "EDQUOT", "2"),
    ("pread64", "ESTALE", "3"),
]
MORE = [
    ("openat", "EDQUOT", "5"),
    ("openat", "EPERM", "5"),
    *(("write", error, "1") for error in ("EIO", "EDQUOT", "ENOSPC", "ESTALE")),
    *(("pwrite64", error, "1+") for error in ("EIO", "EDQUOT", "ESTALE")),
    *(("pread64", "EIO", when) for when in ("2", "4", "6")),
    *(("openat", error, when) for error in ("ESTALE", "EACCES", "EROFS") for when in ("1", "5")),
    *(("fdatasync", "ESTALE", when) for when in ("1", "3+")),
]


@with_strace
@pytest.mark.parametrize(
    ("call", "error", "when"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in MORE)]
)
def test_a_call_that_fails_is_a_sentence_and_loses_nothing(base, tmp_path, call, error, when):
    shutil.copytree(base, tmp_path / "here")
    path = tmp_path / "here" / "atlas.duckdb"
    steps = steps_with(path, call, error, when)
    raised = [step for step in steps if step["kind"]]
    assert raised or call == "pwrite64"  # only a fold writes so: it is put off, and what it was to fold is in the log
    for step in raised:
        assert step["kind"] == "StoreError"
        assert SENTENCES[error] in step["sentence"] or "epeat the last step" in step["sentence"]
        assert "damaged" not in step["sentence"]
        assert "start with an empty one" not in step["sentence"]
    with Database(path) as db:
        stored = {(row["batch"], row["sequence"]) for row in labels.all_events(db)}
    acknowledged = {("failing", step["acknowledged"]) for step in steps if step["acknowledged"]}
    assert stored >= {("tab", 1), ("tab", 2), ("tab", 3)} | acknowledged


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES, errno.EPERM])
def test_a_folder_that_does_not_answer_is_not_called_a_deleted_file(tmp_path, monkeypatch, number):
    with Database(tmp_path / "atlas.duckdb") as db:
        labels.store_maps(db, [a_map("m1")])

        def refused(_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(database, "_seen", refused)
        with pytest.raises(StoreError) as error:
            labels.record_events(db, [event(1)])
        said = SENTENCES[errno.errorcode[number]]
        assert said in str(error.value)
        monkeypatch.setattr(Path, "exists", refused)
        with pytest.raises(StoreError, match=said):
            database.begin(tmp_path / "another.duckdb", {})
        monkeypatch.undo()
        assert labels.record_events(db, [event(1)]).acknowledged == 1
