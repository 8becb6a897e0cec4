"""Many maps, labels and projects in a store: how soon the Label page stands, the next maps come, a label is
acknowledged, the dashboard and the agreement show, and all labels are exported.

Pages are asked for over the app's own websocket and doors, on a server that was visited before (its imports are in);
`cold` is the first time, when the project's books are read from the store.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
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

PEOPLE, NEW, LENGTH, SOME, AT_ONCE = 40, 8, 12, 20, 50_000
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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--maps", type=int, default=100_000, help="maps of the large project (default 100,000)")
    parser.add_argument("--each", type=int, default=3, help="labels per map (default 3)")
    parser.add_argument("--projects", type=int, default=1, help=f"projects; all but one have {SOME} maps (default 1)")


def fill(folder: Path, maps: int, each: int, others: int) -> tuple[str, str]:
    """A project of `maps` maps for each + 1 people a map, which `each` labelled; its id, and the database's."""
    rng = np.random.default_rng(0)
    begin = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=3)
    weights = rng.dirichlet(np.full(LENGTH, 0.2), (64, LENGTH)).astype("<f2")
    with Database(folder / "atlas.duckdb") as db:
        for start in range(0, maps, AT_ONCE):
            with db.write() as cursor:
                insert(cursor, "attention_map", MAP, ({
                    "map_id": f"m{k:06d}", "checkpoint": f"c{k % 4}", "weights_hash": "w", "task": "mrpc",
                    "split": "dev", "row_id": f"r{k // 144}", "layer": k % 12, "head": k // 12 % 12, "length": LENGTH,
                    "tokens": json.dumps(["x"] * LENGTH), "separators": "[]", "causal": False,
                    "maximum": float(weights[k % 64].max()), "seed": 0, "weights": weights[k % 64].tobytes(),
                    "stored": begin,
                } for k in range(start, min(maps, start + AT_ONCE))))  # fmt: skip

        def project_of(title: str, count: int) -> str:
            chosen = [ProjectMap(f"m{k:06d}", "label") for k in range(count)]
            heading = projects.Heading(title, "bert", annotator="admin")
            return projects.add_project(db, heading, recipe={}, rules=vars(Rules(k=each + 1)), maps=chosen)

        for number in range(others):
            project_of(f"Project {number}", min(SOME, maps))
        project = project_of(TITLE, maps)
        given, wrong = rng.integers(0, len(CLASSES), maps), rng.random((maps, each)) < 0.2
        for start in range(0, maps * each, AT_ONCE):
            events, answers, claims = [], [], []
            for number in range(start, min(maps * each, start + AT_ONCE)):
                k, vote = divmod(number, each)
                name, event = f"m{k:06d}", f"b{vote}:{k + 1}"
                who, when = f"person{(k + vote * 7) % PEOPLE:02d}", begin + timedelta(seconds=number // 2 % 200_000)
                events.append(dict.fromkeys(EVENT.names) | {
                    "event": event, "batch": f"b{vote}", "sequence": k + 1, "kind": "label", "class_set": "bert",
                    "map_id": name, "annotator": who, "pass": 1,
                    "class": CLASSES[(given[k] + wrong[k, vote]) % len(CLASSES)], "seconds": 1.0,
                    "queue_order": "random", "happened": when, "stored": when,
                })  # fmt: skip
                answers.append({"event": event, "project": project, "purpose": "label", "counted": True})
                claims.append({
                    "project": project, "map_id": name, "annotator": who, "pass": 1, "purpose": "label",
                    "given": when, "until": when + timedelta(minutes=15),
                })  # fmt: skip
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
            while not await team.fetch(person):  # the first may last longer than a request
                pass
            waits.append(1000 * (time.monotonic() - began))
            person.label(CLASSES[k % len(CLASSES)])
            assert await team.send(person)
            labels.append(1000 * person.acknowledged[-1][1])
        dashboard = [
            await viewer.visit("projects", urlencode({"view": "progress", "project": project})) for _ in range(6)
        ]
        agreement = [await viewer.visit("projects", urlencode({"view": "agreement"})) for _ in range(3)]
    await team.client.aclose()
    return {
        "next_maps_cold_ms": waits[0],
        "next_maps_median_ms": statistics.median(waits[1:]),
        "next_maps_p95_ms": float(np.quantile(waits[1:], 0.95)),
        "label_median_ms": statistics.median(labels),
        "label_p95_ms": float(np.quantile(labels, 0.95)),
        "dashboard_first_s": dashboard[0],
        "dashboard_s": statistics.median(dashboard[1:]),
        "agreement_first_s": agreement[0],
        "agreement_s": statistics.median(agreement[1:]),
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


def exported(folder: Path) -> float:
    """Seconds of exporting all labels to a file, by the command."""
    began = time.monotonic()
    command = [sys.executable, "-m", "core", "labels", "export", str(folder / "labels.parquet"), "--no-weights"]
    subprocess.run(
        command, check=True, capture_output=True, env=os.environ | {"ATLAS_DB": str(folder / "atlas.duckdb")}
    )
    return time.monotonic() - began


def main(maps: int, each: int, projects: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        project, database = fill(Path(name), maps, each, projects - 1)
        with serving(Path(name)) as address, ThreadPoolExecutor(1) as elsewhere:
            found = elsewhere.submit(asyncio.run, doors(address, project, database)).result()
        found["export_s"] = exported(Path(name))
        os.environ["ATLAS_DB"] = str(Path(name) / "atlas.duckdb")
        for what, chosen in (("in_project", project), ("free", None)):
            found[f"label_page_{what}_first_s"], found[f"label_page_{what}_s"] = label_page(chosen)
    return {"maps": maps, "labels": maps * each, "projects": projects, **found}
