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


@pytest.mark.parametrize(
    ("fold", "room"), [("100MB", "0"), ("256KB", "1500000")], ids=["in the log", "while the log is folded in"]
)
def test_labels_on_a_full_disk(tmp_path, fold, room):
    """A limit on file sizes stands for the disk: the system refuses the same write with the same kind of error."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "atlas.duckdb"), fold, room],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    *sentences, result = done.stdout.strip().splitlines()
    assert sentences, done.stderr
    assert all("its disk is full" in sentence for sentence in sentences)
    assert result == "True True", done.stderr
