"""An app in use for long: whether memory, open files, threads and page times grow, and whether labels are lost.

Viewers without a screen open every page again and again, each in a new session after `SESSION` pages, while people
label maps of a project. Memory, files and threads of the server are read after every `EVERY` page runs; growth is from
the first 300 runs to the end. Then many annotators label at once, one map a second each.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from tests.benchmarks.team import CLASSES, K, Server, Team, judge, made
from tests.survival.load import PAGES, TEXT
from tests.survival.viewers import Seen, opened

VIEWERS, SESSION, EVERY, WARM, SECONDS = 4, 15, 50, 300, 30.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=3000, help="page runs (default 3000)")
    parser.add_argument("--labels", type=int, default=2000, help="labels given meanwhile (default 2000)")
    parser.add_argument("--people", type=int, default=20, help="people who give them (default 20)")
    parser.add_argument("--annotators", type=int, default=50, help="annotators at once, afterwards (default 50)")


def usage(process: int) -> tuple[float, int, int]:
    """Resident megabytes, open files and threads of a process (Linux)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    resident, threads = int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"])
    return resident, len([*Path(f"/proc/{process}/fd").iterdir()]), threads


class Drive:
    """Page runs by viewers, with labels between them at an even pace."""

    def __init__(self, server: Server, team: Team, runs: int, labels: int):
        self.server, self.team, self.runs, self.labels = server, team, runs, labels
        self.asked = self.labelled = 0
        self.seen, self.usage = Seen(), list[tuple[float, int, int]]()

    async def viewer(self, number: int) -> None:
        draw = random.Random(number)  # noqa: S311 - no secret
        while self.asked < self.runs:
            async with opened(self.server.address, self.seen) as viewer:
                for _ in range(SESSION):
                    if self.asked >= self.runs:
                        return
                    self.asked += 1
                    page, text = draw.choice(PAGES), f"{TEXT} {draw.randrange(200)}"
                    try:
                        self.seen.seconds.append(await viewer.visit(page, urlencode({"text": text})))
                    except TimeoutError:
                        self.seen.errors.append(f"{page}: no answer")
                        break
                    if len(self.seen.seconds) % EVERY == 0:
                        self.usage.append(usage(self.server.process.pid))  # type: ignore[union-attr]
                        print(len(self.seen.seconds), *self.usage[-1], file=sys.stderr, flush=True)
                    await self.label()

    async def label(self) -> None:
        """Give the labels that are due."""
        while self.labelled < self.labels * len(self.seen.seconds) / self.runs:
            person = self.team.people[self.labelled % len(self.team.people)]
            self.labelled += 1
            if not person.maps and not (await self.team.fetch(person) and person.maps):
                continue
            person.label(CLASSES[self.labelled % len(CLASSES)])
            await self.team.send(person)

    async def all(self) -> None:
        await asyncio.gather(*(self.viewer(number) for number in range(VIEWERS)))
        await self.team.client.aclose()


def growth(values: list[float], first: int) -> float:
    """The median of the last fifth divided by that of a fifth from `first` on, minus 1."""
    some = values[first:]
    fifth = max(1, len(some) // 5)
    return float(np.median(some[-fifth:]) / np.median(some[:fifth]) - 1)


def _halves(values: list[int]) -> list[int]:
    half = (len(values) + 1) // 2
    return [max(values[:half]), max(values[half:] or values)]


def driven(runs: int, labels: int, people: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project, database = made(folder, -(-labels // K) + 100)
        server = Server(folder)
        try:
            team = Team(server.address, project, database, people)
            drive = Drive(server, team, runs, labels)
            asyncio.run(drive.all())
        finally:
            server.stop()
        stored = judge(folder, project, team)
    first = min(WARM // EVERY, len(drive.usage) - 1)
    resident, files, threads = ([one[k] for one in drive.usage] for k in range(3))
    seconds = drive.seen.seconds[WARM:] or drive.seen.seconds
    half = len(seconds) // 2
    waits = [wait for person in team.people for _, wait in person.acknowledged]
    return {
        "page runs": len(drive.seen.seconds),
        "labels": len(waits),
        "people": people,
        "resident, MB after the first 300 runs": resident[first],
        "resident, MB at the end": resident[-1],
        "resident, growth": growth(resident, first),
        "resident, goal": "at most 0.1",
        "open files, most in both halves": _halves(files[first:]),  # they fall when sessions expire
        "threads, most in both halves": _halves(threads[first:]),
        "page p95, first half, s": float(np.quantile(seconds[:half], 0.95)),
        "page p95, second half, s": float(np.quantile(seconds[half:], 0.95)),
        "label p95, ms": 1000 * float(np.quantile(waits, 0.95)),
        "labels lost": stored["lost"],
        "labels twice by one": stored["twice_by_one"],
        "errors on pages": len(drive.seen.errors),
        "the first errors": sorted(set(drive.seen.errors))[:3],
    }


def crowded(annotators: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project, database = made(folder, round(annotators * SECONDS / K * 1.2))
        server = Server(folder)

        async def together() -> None:
            await team.all(time.monotonic() + SECONDS, 1.0)
            await team.client.aclose()

        try:
            team = Team(server.address, project, database, annotators)
            asyncio.run(together())
        finally:
            server.stop()
        stored = judge(folder, project, team)
    waits = [wait for person in team.people for _, wait in person.acknowledged]
    return {
        "annotators at once": annotators,
        "their labels": len(waits),
        "their p95, ms": 1000 * float(np.quantile(waits, 0.95)),
        "their p95, goal, ms": 150,
        "their labels lost": stored["lost"],
    }


def main(runs: int, labels: int, people: int, annotators: int) -> dict[str, object]:
    return driven(runs, labels, people) | (crowded(annotators) if annotators else {})
