"""A disk that fills while labels come in: one sentence, no label half written, and work goes on after."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import os, resource, sys
from core.errors import StoreError
from core.store import labels
from core.store.database import Database
from tests.store.labelling import a_map, event

db = Database(sys.argv[1])
with db.write() as cursor:
    cursor.execute(f"SET wal_autocheckpoint = '{sys.argv[2]}'")
labels.store_maps(db, [a_map("m1")])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
db.fold()
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(sys.argv[1]) + int(sys.argv[3]), hard))

def label(number, **more):
    return labels.record_events(db, [event(number, **more)]).acknowledged

acknowledged = 0
try:
    for number in range(1, 50_000):
        acknowledged = label(number, note=os.urandom(2000).hex())
except StoreError as error:
    print(error)
for _ in range(3):  # on a disk that is full still
    try:
        acknowledged = label(acknowledged + 1, note="x" * 4000)
    except StoreError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
for number in range(acknowledged + 1, acknowledged + 4):  # the browser sends what was not acknowledged again
    label(number)
seen = [row["sequence"] for row in labels.all_events(db)]
db.close()
stored = [row["sequence"] for row in labels.all_events(Database(sys.argv[1]))]
print(acknowledged > 10, seen == stored == list(range(1, acknowledged + 4)))
"""


STOPPED = """
import os, resource, sys, threading
from concurrent.futures import ThreadPoolExecutor
from core.errors import StoreError
from core.store import labels
from core.store.database import Database
from core.store.people import Person
from tests.store.labelling import a_map, event

path = sys.argv[1]
db, twin = Database(path), Database(path)
ada = db.acting_as(Person("ada", "annotator"))
labels.store_maps(db, [a_map("m1")])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
kept, another = db.cursor(), ThreadPoolExecutor(1)

def label(handle, number):
    try:
        return labels.record_events(handle, [event(number)]).acknowledged
    except StoreError as error:
        return str(error)

def seen(handle):
    return [row["sequence"] for row in labels.all_events(handle)]

def elsewhere(work, *given):
    return another.submit(work, *given).result()

def long_reading(started):
    reader = db.cursor()
    started.set()
    query = "SELECT count(*) FROM range(3000) a, range(60000) b WHERE a.range + b.range = 7"
    try:
        return reader.execute(query).fetchall() == [(8,)]
    except StoreError as error:  # stopped before the statement or between it and its rows: to be repeated, nothing lost
        return "epeat the last step" in str(error)

print(label(ada, 1), elsewhere(seen, db), seen(twin))
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path + ".wal"), hard))
db.fold()  # as it is at rest: DuckDB stops at it, with every cursor that there is
print(kept.execute("SELECT count(*) FROM label_event").fetchall(), seen(ada), elsewhere(seen, db), seen(twin))
print(label(ada, 2))
print(elsewhere(label, db, 2))
started = threading.Event()
reading = ThreadPoolExecutor(1).submit(long_reading, started)
started.wait()
db.fold()
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(label(ada, 2), elsewhere(label, db, 3), label(twin, 4), reading.result())
print(elsewhere(label, twin, 4), seen(db), elsewhere(seen, ada), seen(twin))
print(kept.execute("SELECT count(*) FROM label_event").fetchall(), db.writes)
twin.close()
db.close()
print(seen(Database(path)))
"""


def run(code: str, *given: object) -> subprocess.CompletedProcess[str]:
    """A limit on file sizes stands for the disk: the system refuses the same write with the same kind of error."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, given)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.thorough
def test_a_database_that_stopped_is_opened_again_by_whatever_is_asked_next(tmp_path):
    done = run(STOPPED, tmp_path / "atlas.duckdb")
    assert done.returncode == 0, done.stderr
    before, full, refused, refused_again, *after = done.stdout.splitlines()
    assert before == "1 [1] [1]"
    assert full == "[(1,)] [1] [1] [1]"
    assert "its disk is full" in refused
    assert "its disk is full" in refused_again
    assert after == ["2 3 4 True", "4 [1, 2, 3, 4] [1, 2, 3, 4] [1, 2, 3, 4]", "[(4,)] 4", "[1, 2, 3, 4]"]


@pytest.mark.parametrize(
    ("fold", "room"),
    [
        pytest.param("100MB", "0", id="in the log", marks=pytest.mark.slow),  # 3 CPU seconds in a process of its own
        pytest.param("256KB", "1500000", id="while the log is folded in"),
    ],
)
def test_labels_on_a_full_disk(tmp_path, fold, room):
    done = run(CODE, tmp_path / "atlas.duckdb", fold, room)
    *sentences, result = done.stdout.strip().splitlines()
    assert sentences, done.stderr
    assert all("its disk is full" in sentence for sentence in sentences)
    assert result == "True True", done.stderr
