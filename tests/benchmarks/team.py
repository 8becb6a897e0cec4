"""Twenty annotators at one project: how soon labels are acknowledged, and that nothing is lost or given twice.

Annotators without a screen send what the labelling sheet sends (labels and maps through the app's doors, one label a
second each, an outbox that is sent until it is acknowledged); two real browsers label beside them. The server is killed
`KILLS` times in a second run. Waits that reach into the time from a kill until the server answers again are left out
of the acknowledgement times and told apart. At the end the store says whether each map has exactly k labels.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import labels, projects
from core.store.database import Database
from core.store.projects import Heading
from tests.pages.browsing import PATIENCE, PROJECT, answers, browsing, free_port, settled, until, visit

PEOPLE, BROWSERS, SECONDS, RATE, K, KILLS = 20, 2, 300.0, 1.0, 3, 3
CLASSES = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
TITLE = "Team"
TYPE = """([root, pause]) => {
  const press = () => new KeyboardEvent("keydown", { key: String(1 + Math.floor(5 * Math.random())), bubbles: true });
  window.atlasTyping = setInterval(() => root.querySelector("canvas").dispatchEvent(press()), pause);
}"""


@dataclass
class Annotator:
    """One person's outbox. acknowledged: (when sent first, seconds until acknowledged) of each label."""

    name: str
    project: str
    database: str
    sequence: int = 0
    outbox: list[dict[str, Any]] = field(default_factory=list)
    sent: dict[int, float] = field(default_factory=dict)
    acknowledged: list[tuple[float, float]] = field(default_factory=list)
    maps: list[dict[str, Any]] = field(default_factory=list)
    word: str = ""

    def label(self, given: str) -> None:
        """Label the next map that is held."""
        map_ = self.maps.pop(0)
        self.sequence += 1
        self.sent[self.sequence] = time.monotonic()
        self.outbox.append(
            {
                "sequence": self.sequence,
                "kind": "label",
                "class_set": "bert",
                "map_id": map_["id"],
                "annotator": self.name,
                "pass": map_["pass"],
                "class": given,
                "project": self.project,
                "queue_order": "random",
                "way": "single",
                "scale": "absolute",
                "seconds": 1.0,
            }
        )

    def heard(self, number: int) -> None:
        """The store has everything up to this number."""
        now = time.monotonic()
        for event in self.outbox:
            if event["sequence"] <= number:
                self.acknowledged.append((self.sent[event["sequence"]], now - self.sent[event["sequence"]]))
        self.outbox = [event for event in self.outbox if event["sequence"] > number]


class Team:
    """All annotators against one address, over connections that are kept open."""

    def __init__(self, address: str, project: str, database: str, people: int):
        self.address = address
        self.people = [Annotator(f"person{k:02d}", project, database) for k in range(people)]
        token = generate_xsrf_token_string()
        headers = {"origin": address, "x-xsrftoken": token, "cookie": f"_streamlit_xsrf={token}"}
        self.client = httpx.AsyncClient(base_url=address, headers=headers, timeout=30)
        self.batch = os.urandom(4).hex()

    def batch_of(self, person: Annotator) -> str:
        """The name of a person's outbox."""
        return f"tab-{self.batch}-{person.name}"

    async def send(self, person: Annotator) -> bool:
        """One try to send the outbox; whether the server answered."""
        name = self.batch_of(person)
        box = {"database": person.database, "batch": name, "events": person.outbox}
        try:
            answer = await self.client.post("/team/labels", json={"boxes": [box], "secret": person.name})
            reply = answer.json()
        except (httpx.HTTPError, ValueError):
            return False
        assert "refused" not in reply, reply
        person.heard(reply["acknowledged"].get(name, 0))
        return True

    async def fetch(self, person: Annotator) -> bool:
        """One try to fetch the next maps."""
        try:
            answer = await self.client.post("/team/maps", json={"project": person.project, "annotator": person.name})
            size = int.from_bytes(answer.content[:4], "little")
            header = json.loads(answer.content[4 : 4 + size])
        except (httpx.HTTPError, ValueError):
            return False
        person.maps, person.word = header["maps"], header["word"]
        return True

    async def work(self, person: Annotator, until_: float, pause: float) -> None:
        """Label one map in `pause` seconds until then or until nothing is left; labels in the outbox are sent first."""
        draw = random.Random(person.name)  # noqa: S311 - no secret
        await asyncio.sleep(pause * draw.random())
        following = time.monotonic()
        while time.monotonic() < until_ or person.outbox:
            if person.outbox:
                if not await self.send(person):
                    await asyncio.sleep(0.2)
            elif not person.maps:
                if not await self.fetch(person):
                    await asyncio.sleep(0.2)
                elif not person.maps:
                    if "complete" in person.word:
                        return
                    await asyncio.sleep(0.5)
            else:
                following = max(following + pause, time.monotonic() - pause)
                await asyncio.sleep(max(0.0, following - time.monotonic()))
                person.label(draw.choice(CLASSES))

    async def all(self, until_: float, pause: float) -> None:
        """Everybody at once."""
        await asyncio.gather(*(self.work(person, until_, pause) for person in self.people))


class Server:
    """The app with its own database, which can be killed and started again on its port."""

    def __init__(self, folder: Path):
        self.folder, self.port, self.downs = folder, free_port(), []
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        settings = {**os.environ, "ATLAS_DB": str(self.folder / "atlas.duckdb"), "HF_HUB_OFFLINE": "1"}
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=PROJECT, env=settings, stdout=log, stderr=log)
        until(lambda: answers(self.address))

    def kill(self) -> None:
        """SIGKILL, and start again; remembers how long nobody answered."""
        began = time.monotonic()
        os.kill(self.process.pid, signal.SIGKILL)  # type: ignore[union-attr]
        self.process.wait()  # type: ignore[union-attr]
        self.start()
        self.downs.append((began, time.monotonic() + 2.0))  # the outboxes of all come at once

    def stop(self) -> None:
        self.process.terminate()  # type: ignore[union-attr]
        self.process.wait(30)  # type: ignore[union-attr]


def made(folder: Path, maps: int) -> tuple[str, str]:
    """A store with a project; its id, and the database's."""
    from tests.benchmarks.labelling import fill

    fill(folder, maps)
    with Database(folder / "atlas.duckdb") as db:
        project = make_project(db, Heading(TITLE, "bert"), ProjectRecipe(count=maps), Rules(k=K, ahead=8, lapse=20.0))
        return project, db.id


def label_in(page: Any, address: str, project: str, name: str) -> Any:
    """A browser on the project's sheet, which labels by itself from now on, one map a second."""
    visit(page, f"{address}/annotate?project={project}")
    box = page.get_by_label("Your name")
    box.fill(name)
    box.press("Enter")
    root = page.locator(".root[data-cursor]")
    root.wait_for(timeout=4 * PATIENCE)
    settled(page)
    page.evaluate(TYPE, [root.element_handle(), 1000 / RATE])
    return root


def judge(folder: Path, project: str, team: Team) -> dict[str, object]:
    """What the store says: maps with other than k labels that count, labels twice by one person, acknowledged ones
    that are not there."""
    with Database(folder / "atlas.duckdb") as db:
        found = projects.label_times(db, project)
        maps = [one.map_id for one in projects.project_maps(db, project)]
        stored = Counter(row["batch"] for row in labels.all_events(db))
    counted = found[found["counted"]].groupby("map_id")["annotator"].agg(["size", "nunique"])
    wrong = sum(
        1
        for name in maps
        if name not in counted.index or counted.loc[name, "nunique"] != K or counted.loc[name, "size"] != K
    )
    lost = {person.name: len(person.acknowledged) - stored[team.batch_of(person)] for person in team.people}
    sent = sum(len(person.acknowledged) for person in team.people)
    return {
        "labels_acknowledged": sent,
        "labels_stored": len(found),
        "lost": sum(max(0, missing) for missing in lost.values()),
        "surplus": int((~found["counted"]).sum()),
        "maps": len(maps),
        "maps_with_other_than_k": wrong,
        "twice_by_one": int(found.duplicated(["map_id", "annotator"]).sum()),
    }


def run(seconds: float, *, kills: int) -> dict[str, object]:
    """One project from its first label to its last, the first `seconds` of it at RATE with browsers beside."""
    everybody = PEOPLE + BROWSERS
    maps = round(everybody * RATE * seconds / K * 1.05)  # enough work for that time, and a little more
    with tempfile.TemporaryDirectory() as name, browsing() as browser, ThreadPoolExecutor(1) as elsewhere:
        folder = Path(name)
        project, database = made(folder, maps)
        server = Server(folder)
        try:
            pages = [browser.new_context().new_page() for _ in range(BROWSERS)]
            roots = [label_in(page, server.address, project, f"browser{k}") for k, page in enumerate(pages)]
            team = Team(server.address, project, database, PEOPLE)
            waited = elsewhere.submit(asyncio.run, _together(team, server, seconds, kills)).result()
            saved = [int(root.get_attribute("data-saved") or 0) for root in roots]
            for page in pages:
                page.context.close()
            elsewhere.submit(asyncio.run, _finish(Team(server.address, project, database, everybody))).result()
        finally:
            server.stop()
        found = judge(folder, project, team)
    apart = [value for when, value in waited if any(a - value <= when <= b for a, b in server.downs)]
    plain = [value for when, value in waited if not any(a - value <= when <= b for a, b in server.downs)]
    return {
        "seconds": seconds,
        "annotators": PEOPLE,
        "browsers": BROWSERS,
        "kills": len(server.downs),
        "acknowledged_median_ms": 1000 * float(np.median(plain)),
        "acknowledged_p95_ms": 1000 * float(np.quantile(plain, 0.95)),
        "acknowledged_worst_ms": 1000 * max(plain),
        "waits_through_an_outage": len(apart),
        "saved_in_browsers": saved,
        **found,
    }


async def _together(team: Team, server: Server, seconds: float, kills: int) -> list[tuple[float, float]]:
    """Everybody labels; the server is killed at random moments. (when, seconds until acknowledged) of each label."""
    began = time.monotonic()
    working = asyncio.create_task(team.all(began + seconds, 1 / RATE))
    draw = random.Random(7)  # noqa: S311 - moments, not secrets
    for number in range(kills):
        moment = began + seconds * (number + 0.25 + 0.5 * draw.random()) / kills
        await asyncio.sleep(max(0.0, moment - time.monotonic()))
        await asyncio.to_thread(server.kill)
    await working
    await team.client.aclose()
    return [one for person in team.people for one in person.acknowledged]


async def _finish(team: Team) -> None:
    """Go on without pauses until every map has its labels; claims of those who left lapse first."""
    await team.all(time.monotonic() + 600, 0.0)
    await team.client.aclose()


def main(seconds: float | None = None) -> dict[str, object]:
    """A run without kills and one with; the headline figures are the worse of the two."""
    seconds = seconds or float(os.environ.get("ATLAS_TEAM_SECONDS", SECONDS))
    calm, killed = run(seconds, kills=0), run(seconds, kills=KILLS)
    worse = ("acknowledged_p95_ms", "lost", "maps_with_other_than_k", "twice_by_one")
    return {name: max(calm[name], killed[name]) for name in worse} | {  # type: ignore[type-var]
        "calm": calm,
        "through_kills": killed,
    }
