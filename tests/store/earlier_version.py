"""A database as the last released version left it: run by that version's own code, from its checkout.

    git worktree add ../released 7897a70          (the commit that wrote 0.1.0 into CHANGELOG.md)
    cd ../released && python path/to/this/tests/store/earlier_version.py version-0.1.0.duckdb
    gzip -9n version-0.1.0.duckdb                  (goes into tests/store/files)

It holds a run with head scores, maps, labels of two people with an undo and a note, and a class of somebody's own.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))  # the version whose folder this runs in, not ours

from core import __version__
from core.codebook.registry import BERT
from core.store import labels, runs
from core.store.database import Database
from core.store.runs import Provenance
from tests.store.labelling import a_map, event

ROWS = [
    {"statistic": "entropy", "layer": layer, "head": head, "value": 0.5 + layer / 10, "low": 0.4, "high": 0.9, "n": 8}
    for layer in range(2)
    for head in range(2)
]


def fill(path: str) -> None:
    with Database(path) as db:
        about = Provenance("atlas-encoder", "abc", "mrpc", "dev", row_ids=(1, 2), seed=0)
        run = runs.record_run(db, "statistics", {"checkpoint": "atlas-encoder"}, about, title="Statistics")
        runs.store_rows(db, run, ROWS)
        labels.store_maps(db, [a_map("m1"), a_map("m2", head=1)])
        labels.record_events(db, [event(1), event(2, "m2", "diagonal"), event(3, "m2", kind="note", note="naïve")])
        labels.record_events(db, [event(1, cls="diagonal", batch="other", annotator="grace")])
        labels.record_events(db, [event(4, "m2", kind="undo", undoes="tab:2")])
        wavy = labels.ClassChange("add", "wavy", eye="waves", title="Wavy", colour="#123456", key="6")
        labels.change_class(db, "bert", wavy, annotator="ada", taken=BERT.names)
    print(f"{path} is written by version {__version__}")


if __name__ == "__main__":
    fill(sys.argv[1])
