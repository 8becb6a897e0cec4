"""What answers at a scheduler's address and is none: a sentence within seconds. test_cluster.py has the real ones."""

import contextlib
import socket
import struct
import threading
import time

import pytest

from core.errors import JobError
from core.jobs import executors
from core.jobs.executors import JobPlacement, Pool
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


@pytest.mark.thorough
@pytest.mark.parametrize("name", SERVICES)
def test_another_service_at_the_schedulers_address_is_a_sentence_within_seconds(monkeypatch, address, name):
    monkeypatch.setattr(executors, "ANSWERS_SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(JobError, match="must answer at") as error:
        Pool(JobPlacement(cluster=address(SERVICES[name])))
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
