"""A database whose results are of the encoder that was bundled before, as an earlier commit's own code left it.

    git worktree add ../earlier d1cdfb0
    cd ../earlier && python path/to/this/tests/store/earlier_weights.py weights-d1cdfb0.duckdb
    gzip -9n weights-d1cdfb0.duckdb                (goes into tests/store/files)

Numbers are made up, near those that the encoder had; the hash is that of its weights. Nothing here imports torch.
"""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))  # the commit whose folder this runs in, not ours

from core import config
from core.store import jobs, runs
from core.store.database import Database
from core.store.runs import Provenance

ENCODER = "atlas-encoder"
HEADS = [(layer, head) for layer in range(6) for head in range(6)]
OLD = 0.039  # of "next" of L2H2, which has 0.92 now


def statistics() -> list:
    """Rows of head statistics on SST-2."""
    about = {"checkpoint": ENCODER, "task": "sst2", "low": 0.01, "high": 0.1, "n": 60}
    rows = [
        about | {"statistic": name, "layer": layer, "head": head, "value": OLD}
        for name in ("previous", "next", "separator", "normalised entropy")
        for layer, head in HEADS
    ]
    return rows + [
        about
        | {
            "statistic": "place",
            "layer": layer,
            "head": head,
            "value": 0.2,
            "n": 240,
            "x": layer / 9,
            "y": head / 9,
            "kind": "broad",
            "stress": 0.1,
            "sum": 48.0,
        }
        for layer, head in HEADS
    ]


def shares() -> list:
    """Rows of class shares on SST-2."""
    about = {"checkpoint": ENCODER, "task": "sst2", "class_set": "bert", "maps": 60}
    heads = [
        about | {"part": "head", "layer": layer, "head": head, "class": "block", "share": 1.0} for layer, head in HEADS
    ]
    return heads + [
        about | {"part": part, "class": "block", "share": 1.0, "low": 0.9, "high": 1.0}
        for part in ("observed", "corrected")
    ]


def features() -> list:
    """Rows of attention to features on SST-2."""
    return [
        {
            "checkpoint": ENCODER,
            "task": "sst2",
            "statistic": "max",
            "feature": "noun",
            "layer": layer,
            "head": head,
            "value": OLD,
            "low": 0.0,
            "high": 0.1,
            "n": 60,
            "baseline": 0.02,
            "effect": 0.01,
            "p": 0.5,
            "q": 0.9,
        }
        for layer, head in HEADS
    ]


def fill(path: str) -> None:
    weights = hashlib.sha256((config.BUNDLED_MODELS / ENCODER / "model.safetensors").read_bytes()).hexdigest()
    about = Provenance(ENCODER, weights, "sst2", "dev", row_ids=tuple(range(60)), seed=0)
    options = {"checkpoint": ENCODER, "tasks": ["sst2"], "limit": 60}
    kinds = {
        "statistics": (options, statistics()),
        "features": (options, features()),
        "classify-maps": (
            {
                "checkpoints": [ENCODER],
                "task": "sst2",
                "classifier": "",
                "class_set": "bert",
                "name": "bundled",
                "confusions": [],
            },
            shares(),
        ),
    }
    with Database(path) as db:
        for study, (chosen, rows) in kinds.items():
            run = runs.record_run(db, study, chosen, about, title=f"{study} of {ENCODER}")
            runs.store_rows(db, run, rows)
        job = jobs.add_job(db, "statistics", "statistics", options)
        jobs.set_state(db, job, "done", run=run)
    print(f"{path}: {weights[:8]}")


if __name__ == "__main__":
    fill(sys.argv[1])
