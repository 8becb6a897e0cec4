"""A disk that fills while labels come in: one sentence, no label half written, and work goes on after."""

import subprocess
import sys
from pathlib import Path

CODE = """
import resource, signal, sys
from core.errors import StoreError
from core.store import labels
from core.store.database import Database
from tests.store.labelling import a_map, event

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
db = Database(sys.argv[1])
labels.store_maps(db, [a_map("m1")])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
acknowledged = 0
try:
    for number in range(1, 5000):
        acknowledged = labels.record_events(db, [event(number, note="x" * 4000)]).acknowledged
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
for number in range(acknowledged + 1, acknowledged + 4):  # the browser sends what was not acknowledged again
    labels.record_events(db, [event(number)])
db.close()
stored = [row["sequence"] for row in labels.all_events(Database(sys.argv[1]))]
print(acknowledged > 10, stored == list(range(1, acknowledged + 4)))
"""


def test_labels_on_a_full_disk(tmp_path):
    """A limit on file sizes stands for the disk: the system refuses the same write with the same kind of error."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "atlas.duckdb")],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    sentence, result = done.stdout.strip().splitlines()
    assert "its disk is full" in sentence, done.stderr
    assert result == "True True"
