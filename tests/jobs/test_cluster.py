"""A real Dask cluster of two worker processes gives the local rows, also when one is killed in the middle."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from core import config
from core.errors import JobError
from core.jobs import api, executors, worker
from core.jobs.executors import JobPlacement, Pool
from core.store import jobs as store
from core.store import labels, runs
from tests.event_loops import finished
from tests.pages.browsing import PROJECT, free_port, until
from tests.robustness.doors import one_sentence
from tests.studies.planted import save_planted, write_rows
from tests.studies.through_json import rows_of as rows_at_once

FORWARD, TINY = "tests.jobs.forward", "tests.jobs.tiny"


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    # dask's own default gives its workers one thread of arithmetic each
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as opened:
        yield opened


def rows_of(db, place, options):
    api.runner(db, place)
    done = api.wait(db, api.start(db, FORWARD, options), 240)
    assert done.state == "done", done.error
    return store.job_rows(db, done.job), runs.run_rows(db, done.run)


@pytest.mark.slow  # 9 CPU seconds; test_large_options_... has a cluster's rows beside the local ones
def test_a_cluster_gives_the_local_rows_bit_for_bit_also_when_a_worker_is_killed(db, folder, cluster):
    here = rows_of(db, JobPlacement(workers=2, threads=1), {})
    there = rows_of(db, JobPlacement(cluster=cluster.scheduler_address), {})
    assert there == here
    assert {row["partial"]["threads"] for row in there[0]} == {1}

    api.runner(db, JobPlacement(cluster=cluster.scheduler_address))
    job = api.start(db, FORWARD, {"folder": str(folder), "seconds": 0.3})
    end = time.monotonic() + 120
    while api.status(db, job).done < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(int(next(iter(sorted(folder.iterdir()))).name.rpartition("-")[2]), signal.SIGKILL)
    done = api.wait(db, job, 240)
    assert done.state == "done", done.error
    assert (store.job_rows(db, job), runs.run_rows(db, done.run)) == here
    assert len({mark.name.rpartition("-")[2] for mark in folder.iterdir()}) >= 2


@pytest.mark.slow  # 7 CPU seconds: torch in two workers; rows of a cluster are compared above
@pytest.mark.skipif(not (config.BUNDLED_MODELS / config.ENCODER).is_dir(), reason="the bundled encoder is missing")
def test_maps_that_a_cluster_drew_are_stored(db, cluster):
    api.runner(db, JobPlacement(cluster=cluster.scheduler_address))
    done = api.wait(db, api.start(db, "draw-maps", {"texts": ["The cat sat.", "A dog ran."], "count": 6}), 240)
    assert done.state == "done", done.error
    assert len(labels.map_facts(db)) == 6


@pytest.mark.thorough
def test_large_options_are_sent_once_and_give_the_local_rows(db, cluster, recwarn):
    """12 MiB of options, which would go with every unit: dask warns of graphs beyond 10."""
    options = {"count": 6, "padding": "x" * (12 << 20)}
    api.runner(db, JobPlacement(cluster=cluster.scheduler_address))
    done = api.wait(db, api.start(db, TINY, options), 120)
    assert done.state == "done", done.error
    assert not [one for one in recwarn if "large graph" in str(one.message)]
    api.runner(db, JobPlacement(workers=1))
    here = api.wait(db, api.start(db, TINY, {"count": 6}), 120)
    assert store.job_rows(db, done.job) == store.job_rows(db, here.job)


@pytest.mark.thorough
def test_errors_and_cancel_are_the_same_on_a_cluster(db, folder, cluster):
    api.runner(db, JobPlacement(cluster=cluster.scheduler_address))
    job = api.start(db, TINY, {"fail": [2], "folder": str(folder)})
    failed = api.wait(db, job, 120)
    assert failed.error == "1 of 4 units of work failed. The first error is: ValueError: unit 2 is unlucky"
    api.resume(db, job)
    assert api.wait(db, job, 120).state == "done"

    job = api.start(db, TINY, {"count": 6, "seconds": 1.5})
    end = time.monotonic() + 60
    while api.status(db, job).state != "running" or not api.status(db, job).units:
        assert time.monotonic() < end
        time.sleep(0.02)
    api.cancel(db, job)
    assert api.wait(db, job, 10).state == "cancelled"


def test_a_cluster_is_reached_from_a_thread_whose_loop_runs_as_a_notebooks_does(cluster):
    async def cell():
        executor = Pool(JobPlacement(cluster=cluster.scheduler_address)).executor
        try:
            return executor.submit(sum, (1, 2)).result(60)
        finally:
            executor.shutdown(wait=False)

    assert finished(cell()) == 3


@pytest.mark.thorough
def test_a_scheduler_that_is_not_there_is_one_sentence_and_the_job_can_be_resumed_here(db):
    api.runner(db, JobPlacement(cluster="tcp://127.0.0.1:9"))
    job = api.start(db, TINY, {})
    failed = api.wait(db, job, 60)
    assert failed.state == "failed"
    assert "A Dask scheduler must answer at tcp://127.0.0.1:9" in failed.error
    api.runner(db, JobPlacement(workers=1))
    api.resume(db, job)
    assert api.wait(db, job, 60).state == "done"


def test_a_worker_with_other_code_is_refused(monkeypatch):
    said = worker.perform("divide", "0.0+other", TINY, {})
    assert "Workers must run the same version of the code" in said["error"]


@pytest.mark.thorough
def test_what_travels_to_a_cluster_names_nothing_of_this_repository_until_it_runs():
    """A scheduler unpickles the graph, in an environment that may lack the repository."""
    from distributed.protocol.pickle import dumps

    from core.jobs.remote import ByValue, perform_there

    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[0]('divide', None, 'tiny', {})['error'])"
    done = subprocess.run(
        [sys.executable, "-c", code], input=dumps((ByValue(perform_there), 1)), cwd="/", capture_output=True, check=True
    )
    assert b"Workers need this program and its requirements" in done.stdout
    assert b"lacks core" in done.stdout


# ---------------------------------------------------------------- a scheduler and a worker that go wrong


@contextlib.contextmanager
def dask(*words):
    command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)


def listens(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def scheduler_and_worker():
    """A scheduler and a worker in processes of their own: (the scheduler, its address, the worker's address)."""
    port, worker_port = free_port(), free_port()
    address = f"tcp://127.0.0.1:{port}"
    at_worker = ["--host", "127.0.0.1", "--worker-port", str(worker_port), "--nthreads", "1", "--no-nanny"]
    with dask("scheduler", "--host", "127.0.0.1", "--port", str(port)) as scheduler:
        until(lambda: listens(port))
        with dask("worker", address, *at_worker):
            until(lambda: listens(worker_port))
            yield scheduler, address, f"tcp://127.0.0.1:{worker_port}"


@pytest.mark.slow  # four processes of dask and ten seconds: what a real scheduler and worker do
def test_a_real_cluster_that_goes_wrong_says_so_and_the_job_goes_on_elsewhere(db, monkeypatch):
    with scheduler_and_worker() as (scheduler, address, worker):
        with pytest.raises(JobError, match="must answer at"):
            Pool(JobPlacement(cluster=worker))  # a worker is no scheduler
        with monkeypatch.context() as other:
            other.setattr(executors, "code_version", lambda: "0.0+other")
            api.runner(db, JobPlacement(cluster=address))
            refused = api.wait(db, api.start(db, TINY, {}), 120)
        assert refused.state == "failed"
        assert "Workers must run the same version of the code" in refused.error
        one_sentence(refused.error)
        api.runner(db, JobPlacement(cluster=address))
        job = api.start(db, TINY, {"count": 6, "seconds": 0.5})
        until(lambda: api.status(db, job).done >= 1)
        scheduler.kill()
        gone = api.wait(db, job, 120)
    assert gone.state == "interrupted"
    one_sentence(gone.error)
    assert "resume" in gone.error
    done_there = api.status(db, job).done
    assert 1 <= done_there < 6
    api.runner(db, JobPlacement(workers=1))
    api.resume(db, job)
    assert api.wait(db, job, 120).state == "done"


@pytest.mark.slow  # a study of some forty units, once on two clusters and once here
def test_a_circuit_that_a_cluster_lost_goes_on_on_another_with_the_same_verdicts(db, cluster, tmp_path):
    options = {
        "checkpoint": str(save_planted(tmp_path / "checkpoint")),
        "data": str(write_rows(tmp_path / "data", 160)),
        "pairs": 40,
        "judging": 10,
        "control": 6,
        "first": 20,
        "margin": 0.15,
        "limit": None,
    }
    with scheduler_and_worker() as (scheduler, address, _):
        api.runner(db, JobPlacement(cluster=address))
        job = api.start(db, "circuit", options)
        until(lambda: api.status(db, job).done >= 5)  # the first look is under way
        scheduler.kill()
        assert api.wait(db, job, 120).state == "interrupted"
    done_there = api.status(db, job).done
    api.runner(db, JobPlacement(cluster=cluster.scheduler_address))
    api.resume(db, job)
    done = api.wait(db, job, 240)
    assert done.state == "done", done.error
    assert 5 <= done_there < done.done
    found, here = (
        {row["name"]: (row["verdict"], row["effect"], row["n"]) for row in rows if row["kind"] == "edge"}
        for rows in (runs.run_rows(db, done.run), rows_at_once("circuit", options))
    )
    assert len(found) == 262  # all edges of 3 layers of 4 heads
    assert found == here
    assert {verdict for verdict, _, _ in found.values()} >= {"matters", "does not matter"}
