"""Whole pages over 10,000 maps and 12,000 labels of three people: Agreement and Label maps, as Streamlit runs them.

The aim: a second each. `first` is a fresh session on a server that has the page's modules; `again` is the next run of
that session, each by the clock and as time of this process, which other work on the machine disturbs less. The store is
filled before.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from core.patterns.classes import BERT
from core.store import labels
from core.store.database import Database

MAPS, LABELS, SIDE, SESSIONS = 10_000, 12_000, 12, 3
PEOPLE = ("ada", "bob", "cyd")


def fill(file: Path) -> None:
    """Maps of 12 tokens; half of the labels by one person, and the others' on maps that she has labelled too."""
    rng = np.random.default_rng(0)
    with Database(file) as db:
        weights = rng.dirichlet(np.full(SIDE, 0.1), size=(MAPS, SIDE)).astype("<f2")
        labels.store_maps(db, [_map(k, weights[k]) for k in range(MAPS)])
        share = {"ada": LABELS // 2, "bob": LABELS // 4, "cyd": LABELS // 4}
        for who, count in share.items():
            chosen = rng.choice(LABELS // 2, count, replace=False)
            classes = rng.choice(BERT.names, count)
            pairs = zip(chosen, classes, strict=True)
            labels.record_events(db, [_label(k, f"m{m}", who, name) for k, (m, name) in enumerate(pairs, start=1)])


def _map(number: int, weights: np.ndarray) -> dict[str, object]:
    about = {"checkpoint": "atlas-encoder", "weights_hash": "w", "task": "mrpc", "split": "dev", "seed": 0}
    place = {"row_id": f"dev-{number // 36}", "layer": number % 36 // 6, "head": number % 6, "length": SIDE}
    seen = {"tokens": ["x"] * SIDE, "separators": [SIDE - 1], "causal": False, "maximum": float(weights.max())}
    return {"map_id": f"m{number}", "weights": weights.tobytes()} | about | place | seen


def _label(number: int, name: str, who: str, cls: str) -> dict[str, object]:
    about = {"class_set": "bert", "seconds": 1.5, "scale": "absolute", "way": "sheet", "queue_order": "random"}
    return {"batch": who, "sequence": number, "kind": "label", "map_id": name, "annotator": who, "class": cls} | about


def session(name: str) -> list[tuple[float, float]]:
    """A session's first run of a page, and its next: seconds by the clock, and of this process."""
    from streamlit.testing.v1 import AppTest

    import pages.parts.frame.shell as shell

    page = AppTest.from_file(shell.__file__, default_timeout=300)
    page.session_state["annotator"] = "dee"
    page.switch_page(f"../../{name}.py")
    waits = []
    for _ in range(2):
        start, used = time.perf_counter(), time.process_time()
        page.run()
        waits.append((time.perf_counter() - start, time.process_time() - used))
        if page.exception or page.error:
            raise RuntimeError(page.exception or page.error)
    return waits


def main() -> dict[str, object]:
    figures: dict[str, object] = {"maps": MAPS, "labels": LABELS}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "atlas.duckdb"
        fill(file)
        os.environ["ATLAS_DB"] = str(file)
        for name in ("agreement", "label"):
            session(name)  # imports its modules
            runs = [session(name) for _ in range(SESSIONS)]
            for place, when in enumerate(("first", "again")):
                for kind, what in enumerate(("s", "cpu_s")):
                    figures[f"{name}_{when}_{what}"] = statistics.median(one[place][kind] for one in runs)
    return figures
