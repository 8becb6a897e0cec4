"""A study small enough to watch: squares, with units that can be slow, fail, kill their worker or hang."""

import os
import time
from functools import lru_cache
from pathlib import Path

from core.errors import InputError
from core.studies.study import Options, Row, Study, Unit

DEFAULTS: Options = {"count": 4, "seconds": 0.0, "fail": [], "die": [], "folder": "", "seed": 3, "task": "squares"}


@lru_cache(maxsize=1)
def opened(folder: str) -> int:
    """Stands for a checkpoint: opened once a worker, leaving a mark each time."""
    if folder:
        (Path(folder) / f"opened-{os.getpid()}-{time.monotonic_ns()}").touch()
    return 7


def units(options: Options) -> list[Unit]:
    if options["count"] > 1000:
        raise InputError(f"At most 1000 squares can be made, but {options['count']} were asked for; ask for fewer.")
    return [Unit(f"square-{k}", {"k": k}, size=10) for k in range(options["count"])]


def once(options: Options, what: str, k: int) -> bool:
    """True the first time, ever."""
    mark = Path(options["folder"]) / f"{what}-{k}"
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def run(options: Options, unit: Unit) -> list[Row]:
    k = unit.arguments["k"]
    opened(options["folder"])
    if options["folder"]:
        with (Path(options["folder"]) / f"ran-{k}").open("a") as stream:
            stream.write(f"{os.getpid()}\n")
    time.sleep(options["seconds"])  # the work
    if k in options["fail"] and once(options, "fail", k):
        raise ValueError(f"unit {k} is\nunlucky")
    if k in options["die"] and once(options, "die", k):
        os._exit(9)
    return [{"k": k, "square": k * k, "third": k / 3}, {"provenance": {"weights_hash": "w7", "row_ids": [f"r{k}"]}}]


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    return [{"n": len(rows), "total": sum(row["square"] for row in rows), "thirds": sum(row["third"] for row in rows)}]


STUDY = Study("tiny", DEFAULTS, units, run, summarize)
