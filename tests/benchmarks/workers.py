"""How much faster two single-threaded workers are than one, on units of real arithmetic, workers warm.

Rounds with one and with two workers alternate in one run; ratios are of the medians. Beside them, in the same rounds,
the same arithmetic in bare processes without jobs: what two cores give on this machine while others use it too. Also:
what a unit costs beside its own work (hand-over, JSON, one row in the database), and a Dask job whose second worker
joins while it runs.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import wait
from pathlib import Path

from core.config import PROJECT
from core.jobs import api, worker
from core.jobs.executors import JobPlacement, Pool
from core.store import jobs as store
from core.store.database import Database

STUDY = "tests.jobs.forward"
OPTIONS = {"inputs": 16, "tokens": 96, "folder": "", "seconds": 0.0, "repeat": 60}
ROUNDS = 5
BARE = """
import time
from core.studies.contract import Unit
from tests.benchmarks.workers import OPTIONS
from tests.jobs.forward import STUDY, Seed
STUDY.run(STUDY.read(OPTIONS | {"repeat": 1}), Unit("warm", Seed(0)))
while True:
    count = int(input())
    started = time.perf_counter()
    for k in range(count):
        STUDY.run(STUDY.read(OPTIONS), Unit(str(k), Seed(k)))
    print(time.perf_counter() - started, flush=True)
"""


def seconds(pool: Pool, options: dict) -> float:
    """Wall time of all units."""
    units = worker.divide(STUDY, options)["units"]
    started = time.perf_counter()
    futures = [pool.submit("unit", STUDY, options, unit) for unit in units]
    wait(futures)
    if errors := [future.result()["error"] for future in futures if "error" in future.result()]:
        raise RuntimeError(errors[0])
    return time.perf_counter() - started


def bare() -> subprocess.Popen:
    """A process that does the units' arithmetic when told how many."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", BARE]
    return subprocess.Popen(command, cwd=PROJECT, env=environment, stdin=-1, stdout=-1, text=True)


def bare_seconds(processes: Sequence[subprocess.Popen], units: int) -> float:
    """Until the last of them has done its part of `units`."""
    for one in processes:
        one.stdin.write(f"{units // len(processes)}\n")  # type: ignore[union-attr]
        one.stdin.flush()  # type: ignore[union-attr]
    return max(float(one.stdout.readline()) for one in processes)  # type: ignore[union-attr]


def overhead(pool: Pool) -> float:
    """Milliseconds a unit of no work takes, through a worker and into the store."""
    options = worker.divide(STUDY, OPTIONS | {"inputs": 100, "tokens": 1, "repeat": 1})["options"]
    units = worker.divide(STUDY, options)["units"]
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "atlas.duckdb") as db:
        job = store.add_job(db, STUDY, "overhead", options)
        store.add_units(db, job, options, units)
        started = time.perf_counter()
        for place, unit in enumerate(units):
            outcome = pool.submit("unit", STUDY, options, unit).result()
            store.store_outcome(db, job, place, store.UnitEnd(rows=outcome["rows"], seconds=outcome["seconds"]))
        return (time.perf_counter() - started) / len(units) * 1000


def joined() -> dict[str, object]:
    """Units a second of one job on a Dask cluster of one worker, and once a second one has joined it."""
    from distributed import LocalCluster

    with (
        tempfile.TemporaryDirectory() as folder,
        Database(Path(folder) / "atlas.duckdb") as db,
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
    ):
        keeper = api.runner(db, JobPlacement(cluster=cluster.scheduler_address))
        job = api.start(db, STUDY, OPTIONS | {"inputs": 120, "repeat": 240})
        alone = _rate(db, job, 3, 11)
        cluster.scale(2)
        cluster.wait_for_workers(2)
        done = api.status(db, job).done
        both = _rate(db, job, done + 10, done + 34)  # its first unit loads torch
        api.cancel(db, job)
        keeper.close()
    return {
        "cluster, one worker, units/s": alone,
        "cluster, second joined, units/s": both,
        "joined ratio": both / alone,
    }


def _rate(db: Database, job: str, first: int, last: int) -> float:
    times = []
    for count in (first, last):
        while api.status(db, job).done < count:
            time.sleep(0.005)
        times.append((time.perf_counter(), api.status(db, job).done))
    return (times[1][1] - times[0][1]) / (times[1][0] - times[0][0])


def main() -> dict[str, object]:
    pools = {count: Pool(JobPlacement(workers=count, threads=1)) for count in (1, 2)}
    processes = [bare(), bare()]
    try:
        for pool in pools.values():
            seconds(pool, OPTIONS | {"repeat": 1, "seconds": 0.3})  # every worker imports torch and builds the model
        bare_seconds(processes, 2)
        jobs: dict[int, list[float]] = {1: [], 2: []}
        plain: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for count, pool in pools.items():
                jobs[count].append(seconds(pool, OPTIONS))
                plain[count].append(bare_seconds(processes[:count], OPTIONS["inputs"]))
        one, two = (statistics.median(jobs[count]) for count in (1, 2))
        ceiling = statistics.median(plain[1]) / statistics.median(plain[2])
        found = {
            "cores": os.cpu_count(),
            "one worker, s": one,
            "two workers, s": two,
            "ratio": one / two,
            "ratio of bare processes": ceiling,
            "of what bare processes gain": one / two / ceiling,
            "overhead of a unit, ms": overhead(pools[1]),
        }
    finally:
        for process in processes:
            process.kill()
        for pool in pools.values():
            pool.end()
    return found | joined()
