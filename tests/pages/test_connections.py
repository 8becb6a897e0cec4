"""Connections that say nothing, or half a request, end; the server goes on for others."""

import asyncio
import contextlib
import socket
import threading
import time

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pages.parts.shell.connections import bound_connections, watched

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answers(scope, receive, send):
    await asyncio.sleep(0.3 if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@contextlib.contextmanager
def serving(**bounds):
    """A server of uvicorn's in a thread; gives its port."""
    settings = uvicorn.Config(answers, lifespan="off", log_level="critical", http=watched(H11Protocol, **bounds))
    server = uvicorn.Server(settings)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


def connect(port, said=b""):
    made = socket.create_connection(("127.0.0.1", port), timeout=5)
    made.sendall(said)
    return made


def ended(made):
    """Whether the server ends this connection without a word, before five seconds are over."""
    try:
        return made.recv(100) == b""
    except ConnectionResetError:
        return True


def status(made, request=GET):
    made.sendall(request)
    return made.recv(1000).split()[1]


@pytest.mark.parametrize("said", [b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\n", GET + b"GET / HTTP/1.1\r\nX: "])
def test_half_a_request_is_waited_for_so_long(said):
    with serving(seconds=0.2) as port:
        made = connect(port, said)
        if said.startswith(GET):
            assert b"204" in made.recv(1000)
        assert ended(made)
        with connect(port) as other:
            assert status(other) == b"204"


def test_a_head_that_comes_byte_by_byte_does_not_last_longer():
    def drip(made):
        began = time.monotonic()
        while time.monotonic() - began < 5:
            made.sendall(b"X")
            time.sleep(0.02)

    with serving(seconds=0.3) as port, connect(port) as made, pytest.raises(OSError, match=r"reset|pipe"):
        drip(made)


def test_an_answer_may_take_longer_than_a_head():
    with serving(seconds=0.1) as port, connect(port) as made:
        assert status(made, b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n") == b"204"
        assert status(made) == b"204"


def test_of_many_that_wait_the_oldest_goes_and_somebody_who_asks_is_answered():
    with serving(most_waiting=3) as port:
        held = [connect(port) for _ in range(6)]
        with connect(port) as other:
            assert status(other) == b"204"
        assert all(map(ended, held[:3]))
        assert status(held[-1]) == b"204"


def test_there_are_so_many_connections():
    with serving(most=2) as port:
        held = [connect(port) for _ in range(2)]
        assert [status(made) for made in held] == [b"204", b"204"]
        assert ended(connect(port))


def test_the_server_that_serves_the_app_is_found():
    settings = uvicorn.Config(answers, lifespan="off", log_level="critical")
    settings.load()
    before = settings.http_protocol_class
    bound_connections()
    assert issubclass(settings.http_protocol_class, before)
    assert settings.http_protocol_class is not before
