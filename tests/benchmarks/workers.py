"""How much faster two single-threaded workers are than one, on units of real arithmetic, workers warm.

Rounds with one and with two workers alternate in one run; the ratio is of the medians. Also: what a unit costs
beside its own work (hand-over, JSON, one row in the database).
"""

import os
import statistics
import tempfile
import time
from concurrent.futures import wait
from pathlib import Path

from core.jobs import work
from core.jobs.pools import Place, Pool
from core.store import jobs as store
from core.store.database import Database

STUDY = "tests.jobs.forward"
OPTIONS = {"inputs": 16, "tokens": 96, "folder": "", "seconds": 0.0, "repeat": 60}
ROUNDS = 3


def seconds(pool: Pool, options: dict) -> float:
    """Wall time of all units."""
    units = work.divide(STUDY, options)["units"]
    started = time.perf_counter()
    futures = [pool.submit("unit", STUDY, options, unit) for unit in units]
    wait(futures)
    if errors := [future.result()["error"] for future in futures if "error" in future.result()]:
        raise RuntimeError(errors[0])
    return time.perf_counter() - started


def overhead(pool: Pool) -> float:
    """Milliseconds a unit of no work takes, through a worker and into the store."""
    options = work.divide(STUDY, OPTIONS | {"inputs": 100, "tokens": 1, "repeat": 1})["options"]
    units = work.divide(STUDY, options)["units"]
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "atlas.duckdb") as db:
        job = store.add_job(db, STUDY, "overhead", options)
        store.add_units(db, job, options, units)
        started = time.perf_counter()
        for place, unit in enumerate(units):
            outcome = pool.submit("unit", STUDY, options, unit).result()
            store.store_outcome(db, job, place, rows=outcome["rows"], seconds=outcome["seconds"])
        return (time.perf_counter() - started) / len(units) * 1000


def main() -> dict[str, object]:
    pools = {count: Pool(Place(workers=count, threads=1)) for count in (1, 2)}
    try:
        for pool in pools.values():
            seconds(pool, OPTIONS | {"repeat": 1, "seconds": 0.3})  # every worker imports torch and builds the model
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for count, pool in pools.items():
                times[count].append(seconds(pool, OPTIONS))
        medians = {count: statistics.median(found) for count, found in times.items()}
        return {
            "cores": os.cpu_count(),
            "one worker, s": medians[1],
            "two workers, s": medians[2],
            "ratio": medians[1] / medians[2],
            "overhead of a unit, ms": overhead(pools[1]),
        }
    finally:
        for pool in pools.values():
            pool.end()
