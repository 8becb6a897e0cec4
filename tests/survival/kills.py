"""SIGKILLs at random moments while labels are written: every acknowledged label is there after the restart."""

import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

from core.store import labels
from core.store.database import Database
from tests.pages.browsing import PROJECT

SEED = 20
LONGEST = 0.6  # s between the first label and the kill


def main(count: int = 100) -> dict[str, object]:
    """`count` kills; acknowledged and stored labels, and how many acknowledged ones were lost."""
    draw = random.Random(SEED)  # noqa: S311 - moments, not secrets
    acknowledged: set[int] = set()
    lost = beyond = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "atlas.duckdb"
        for _ in range(count):
            acknowledged |= killed(path, max(acknowledged, default=0) + 1000, draw.uniform(0, LONGEST))
            db = Database(path)
            stored = {row["sequence"] for row in labels.all_events(db)}
            db.close()
            lost += len(acknowledged - stored)
            beyond = len(stored - acknowledged)  # stored, and killed before it was said: at most one a kill
        copies = len(list((Path(folder) / "backups").glob("*.unread")))
    return {
        "kills": count,
        "acknowledged": len(acknowledged),
        "acknowledged and lost": lost,
        "stored without being acknowledged": beyond,
        "logs that could not be read": copies,
        "passed": lost == 0 and beyond <= count and bool(acknowledged),
    }


def killed(path: Path, start: int, seconds: float) -> set[int]:
    """The numbers that a client had acknowledged when it was killed `seconds` after it was ready."""
    command = [sys.executable, "-m", "tests.survival.client", str(path), str(start)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    stream: IO[str] = process.stdout  # type: ignore[assignment]
    try:
        assert stream.readline().strip() == "ready"
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        numbers = [line for line in stream if line.endswith("\n")]
        timer.join()
    finally:
        process.kill()
        process.wait()
    return {int(line) for line in numbers}
