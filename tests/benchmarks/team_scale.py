"""100,000 maps and 300,000 labels in a store: how soon the Label page stands, the next maps come, a label is
acknowledged, the dashboard shows.

Pages are asked for over the app's own websocket and doors, on a server that was visited before (its imports are in);
`cold` is the first time, when the project's books are read from the store.
"""

import asyncio
import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
from streamlit.testing.v1 import AppTest

from core.labelling.assignment import Rules
from core.store import projects
from core.store.database import Database
from core.store.label_checks import EVENT, MAP
from core.store.projects import ProjectMap
from core.store.rows import insert
from tests.benchmarks.team import Team
from tests.pages.browsing import serving
from tests.pages.opening import switched
from tests.survival.viewers import Seen, opened

MAPS, EACH, PEOPLE, NEW, LENGTH = 100_000, 3, 40, 8, 12
TITLE, CLASSES = "Large", ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
ANSWER = pa.schema(
    [("event", pa.string()), ("project", pa.string()), ("purpose", pa.string()), ("counted", pa.bool_())]
)
CLAIM = pa.schema(
    [
        ("project", pa.string()),
        ("map_id", pa.string()),
        ("annotator", pa.string()),
        ("pass", pa.int32()),
        ("purpose", pa.string()),
        ("given", pa.timestamp("us")),
        ("until", pa.timestamp("us")),
    ]
)


def fill(folder: Path) -> tuple[str, str]:
    """A project of MAPS maps for EACH + 1 people a map, which EACH labelled; its id, and the database's."""
    rng = np.random.default_rng(0)
    begin = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=3)
    weights = rng.dirichlet(np.full(LENGTH, 0.2), (64, LENGTH)).astype("<f2")
    with Database(folder / "atlas.duckdb") as db:
        with db.write() as cursor:
            insert(cursor, "attention_map", MAP, ({
                "map_id": f"m{k:06d}", "checkpoint": f"c{k % 4}", "weights_hash": "w", "task": "mrpc", "split": "dev",
                "row_id": f"r{k // 144}", "layer": k % 12, "head": k // 12 % 12, "length": LENGTH,
                "tokens": json.dumps(["x"] * LENGTH), "separators": "[]", "causal": False,
                "maximum": float(weights[k % 64].max()), "seed": 0, "weights": weights[k % 64].tobytes(),
                "stored": begin,
            } for k in range(MAPS)))  # fmt: skip
        maps = [ProjectMap(f"m{k:06d}", "label") for k in range(MAPS)]
        project = projects.add_project(
            db, projects.Heading(TITLE, "bert", annotator="admin"), recipe={}, rules=vars(Rules(k=EACH + 1)), maps=maps
        )
        events, answers, claims = [], [], []
        given = rng.integers(0, len(CLASSES), MAPS)
        wrong = rng.random((MAPS, EACH)) < 0.2
        for number in range(MAPS * EACH):
            k, vote = divmod(number, EACH)
            who, when = f"person{(k + vote * 7) % PEOPLE:02d}", begin + timedelta(seconds=number // 2)
            class_ = CLASSES[(given[k] + wrong[k, vote]) % len(CLASSES)]
            events.append(
                dict.fromkeys(EVENT.names)
                | {
                    "event": f"b{vote}:{k + 1}",
                    "batch": f"b{vote}",
                    "sequence": k + 1,
                    "kind": "label",
                    "class_set": "bert",
                    "map_id": f"m{k:06d}",
                    "annotator": who,
                    "pass": 1,
                    "class": class_,
                    "seconds": 1.0,
                    "queue_order": "random",
                    "happened": when,
                    "stored": when,
                }
            )
            answers.append({"event": f"b{vote}:{k + 1}", "project": project, "purpose": "label", "counted": True})
            claims.append(
                {
                    "project": project,
                    "map_id": f"m{k:06d}",
                    "annotator": who,
                    "pass": 1,
                    "purpose": "label",
                    "given": when,
                    "until": when + timedelta(minutes=15),
                }
            )
        with db.write() as cursor:
            insert(cursor, "label_event", EVENT, events)
            insert(cursor, "claim", CLAIM, claims)
            insert(cursor, "project_label", ANSWER, answers)
        return project, db.id


async def doors(address: str, project: str, database: str) -> dict[str, object]:
    """Milliseconds from asking for the next maps until they are there (the first time the books are read), and from
    sending a label until it is acknowledged; seconds until the dashboard stands."""
    waits, labels, seen = [], [], Seen()
    team = Team(address, project, database, NEW)
    async with opened(address, seen) as viewer:
        await viewer.visit("results", "view=jobs")  # the server's imports
        for k in range(40):
            person = team.people[k % NEW]
            began = time.monotonic()
            assert await team.fetch(person)
            waits.append(1000 * (time.monotonic() - began))
            person.label(CLASSES[k % len(CLASSES)])
            assert await team.send(person)
            labels.append(1000 * person.acknowledged[-1][1])
        dashboard = [
            await viewer.visit("projects", urlencode({"view": "progress", "project": project})) for _ in range(6)
        ]
    await team.client.aclose()
    return {
        "next_maps_cold_ms": waits[0],
        "next_maps_median_ms": statistics.median(waits[1:]),
        "next_maps_p95_ms": float(np.quantile(waits[1:], 0.95)),
        "label_median_ms": statistics.median(labels),
        "label_p95_ms": float(np.quantile(labels, 0.95)),
        "dashboard_first_s": dashboard[0],
        "dashboard_s": statistics.median(dashboard[1:]),
        "errors": seen.errors,
    }


def label_page(project: str | None) -> tuple[float, float]:
    """Seconds until the Label page stands with a name typed, the first time in a process and the median of five."""
    from pages.parts.shell import shell

    taken = []
    for k in range(6):
        page = AppTest.from_file(shell.__file__, default_timeout=120).run()
        page.session_state["annotator"] = f"viewer{k}"
        page.session_state["project"] = project or ""
        began = time.monotonic()
        switched(page, "annotate").run()
        taken.append(time.monotonic() - began)
        assert not page.exception
        assert not page.error, page.error[0].value
    return taken[0], statistics.median(taken[1:])


def main() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        project, database = fill(Path(name))
        with serving(Path(name)) as address, ThreadPoolExecutor(1) as elsewhere:
            found = elsewhere.submit(asyncio.run, doors(address, project, database)).result()
        os.environ["ATLAS_DB"] = str(Path(name) / "atlas.duckdb")
        for what, chosen in (("in_project", project), ("free", None)):
            found[f"label_page_{what}_first_s"], found[f"label_page_{what}_s"] = label_page(chosen)
    return {"maps": MAPS, "labels": MAPS * EACH, **found}
