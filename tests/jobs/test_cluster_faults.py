"""What a cluster can do wrong: another service at its address, other code on its workers, a scheduler that goes."""

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from core.errors import JobError
from core.jobs import api, executors
from core.jobs.executors import Place, Pool
from tests.pages.browsing import PROJECT, free_port, until
from tests.robustness.doors import one_sentence

TINY = "tests.jobs.tiny"


def says(content, *, first=False):
    """A service that sends this, after it heard something or at once, and then nothing."""

    def behave(connection):
        if not first:
            connection.recv(1000)
        connection.sendall(content)
        ended.wait()

    ended = threading.Event()
    return behave


SERVICES = {
    "a web server": says(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "a database": says(b"J\0\0\0\x0a8.0.36\0" + b"x" * 60, first=True),
    "one that never answers": says(b""),
    "one that hangs up": lambda connection: connection.close(),
    "noise": says(b"\xff" * 4096, first=True),
    "zeros": says(b"\0" * 4096, first=True),
    "a message of a terabyte": says(struct.pack("<QQ", 2**40, 1) + b"x" * 100, first=True),
    "a million frames": says(struct.pack("<QQ", 8 * (2**20 + 1), 2**20) + b"x" * 100, first=True),
}


@pytest.fixture
def address():
    with contextlib.ExitStack() as open_:

        def serve(behave):
            listener = open_.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=_accept, args=(listener, behave), daemon=True).start()
            return f"tcp://127.0.0.1:{listener.getsockname()[1]}"

        yield serve


def _accept(listener, behave):
    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=behave, args=(listener.accept()[0],), daemon=True).start()


@pytest.mark.parametrize("name", SERVICES)
def test_another_service_at_the_schedulers_address_is_a_sentence_within_seconds(monkeypatch, address, name):
    monkeypatch.setattr(executors, "ANSWERS_SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(JobError, match="must answer at") as error:
        Pool(Place(cluster=address(SERVICES[name])))
    one_sentence(str(error.value))
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "name", ["", "processes", "a b", "tcp://", "http://127.0.0.1:1", "tls://127.0.0.1:1", "ucx://1", "inproc://x", "é"]
)
def test_an_address_that_is_none_is_a_sentence(monkeypatch, name):
    monkeypatch.setattr(executors, "ANSWERS_SECONDS", 1.0)
    with pytest.raises(JobError, match="must answer at") as error:
        executors._cluster(name)
    one_sentence(str(error.value))


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
def cluster():
    """A scheduler and a worker in processes of their own: (the scheduler, its address, the worker's address)."""
    port, worker_port = free_port(), free_port()
    address = f"tcp://127.0.0.1:{port}"
    at_worker = ["--host", "127.0.0.1", "--worker-port", str(worker_port), "--nthreads", "1", "--no-nanny"]
    with dask("scheduler", "--host", "127.0.0.1", "--port", str(port)) as scheduler:
        until(lambda: listens(port))
        with dask("worker", address, *at_worker):
            until(lambda: listens(worker_port))
            yield scheduler, address, f"tcp://127.0.0.1:{worker_port}"


def test_a_real_cluster_that_goes_wrong_says_so_and_the_job_goes_on_elsewhere(db, monkeypatch):
    with cluster() as (scheduler, address, worker):
        with pytest.raises(JobError, match="must answer at"):
            Pool(Place(cluster=worker))  # a worker is no scheduler
        with monkeypatch.context() as other:
            other.setattr(executors, "code_version", lambda: "0.0+other")
            api.runner(db, Place(cluster=address))
            refused = api.wait(db, api.start(db, TINY, {}), 120)
        assert refused.state == "failed"
        assert "Workers must run the same code" in refused.error
        one_sentence(refused.error)
        api.runner(db, Place(cluster=address))
        job = api.start(db, TINY, {"count": 6, "seconds": 0.5})
        until(lambda: api.status(db, job).done >= 1)
        scheduler.kill()
        gone = api.wait(db, job, 120)
    assert gone.state == "interrupted"
    one_sentence(gone.error)
    assert "resume" in gone.error
    done_there = api.status(db, job).done
    assert 1 <= done_there < 6
    api.runner(db, Place(workers=1))
    api.resume(db, job)
    assert api.wait(db, job, 120).state == "done"
