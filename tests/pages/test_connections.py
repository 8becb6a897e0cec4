"""Connections that say nothing, or half a request, end; the server goes on for others."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pages.parts.shell import connections
from pages.parts.shell.connections import HEAD_SECONDS, BoundedServer, limits_for, send_at_once
from pages.parts.shell.guard import Guard
from pages.parts.streamlit_internals import bounded_protocol
from tests.event_loops import finished
from tests.pages.browsing import answers as answers_at
from tests.pages.browsing import free_port, until

PROJECT = Path(__file__).resolve().parents[2]
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answers(scope, receive, send):
    await asyncio.sleep(0.3 if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def answers_and_starts(scope, receive, send):
    if scope["type"] != "lifespan":
        await answers(scope, receive, send)
        return
    for step in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{step}.complete"})


def serving(*, most=512, most_waiting=128, seconds=HEAD_SECONDS):
    """A server of uvicorn's in a thread; gives its port."""
    protocol = bounded_protocol(H11Protocol, most=most, most_waiting=most_waiting, seconds=seconds, made=send_at_once)
    return running(uvicorn.Config(answers, lifespan="off", log_level="critical", http=protocol))


@contextlib.contextmanager
def running(settings):
    """A server of uvicorn's with these settings in a thread; gives its port."""
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


def test_the_server_that_starts_the_app_is_bounded_and_sends_at_once(monkeypatch, caplog):
    caplog.set_level("INFO", "atlas")
    monkeypatch.setattr(connections, "limits", lambda: replace(limits_for(1024), connections=2, waiting=3))
    settings = uvicorn.Config(BoundedServer(answers_and_starts), lifespan="on", log_level="critical")
    with running(settings) as port:
        held = [connect(port) for _ in range(2)]
        assert [status(made) for made in held] == [b"204", b"204"]
        assert ended(connect(port))
    assert settings.backlog == connections.BACKLOG
    assert any(
        "Limits of the server: 1024 open files, 2 connections" in record.getMessage() for record in caplog.records
    )


def test_an_answer_leaves_the_server_at_once():
    sent = []

    class Connection(socket.socket):
        def setsockopt(self, *asked):
            sent.append(asked)

    class Transport:
        def get_extra_info(self, name):
            return made if name == "socket" else None

    with Connection(socket.AF_INET) as made:
        send_at_once(Transport())
    assert sent == [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]


def test_a_server_that_does_not_tell_when_it_starts_is_answered_nothing():
    """uvicorn --lifespan off: no limit would hold."""
    with (
        running(uvicorn.Config(BoundedServer(answers), lifespan="off", log_level="critical")) as port,
        connect(port) as made,
    ):
        assert status(made) == b"500"


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 4\r\nContent-Length: 80\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: 4, 80\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b" Transfer-Encoding: chunked\r\n",
        b"X: y\nContent-Length: 0\r\n",
        b"Content-Length: 0x4\r\n",
        b"Content-Length: 4_0\r\n",
        b"Content-Length: 4;q=1\r\n",
        b"Content-Length: \r\n",
        b"Content-Length: -4\r\n",
        b"Content-Length:\x0b4\r\n",
        b"Content-Length: 4\r\n Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\nContent-Length: 4\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"Transfer-Encoding: chunk\r\n",
        b"Transfer_Encoding: chunked\r\nContent-Length: 5\r\n" + b"Transfer-Encoding: gzip, chunked\r\n",
    ],
)
def test_a_second_request_hidden_in_the_body_of_another_is_not_answered(head):
    """Request smuggling: a proxy in front may take such a body for longer or shorter than the app does."""
    reached = []

    async def noted(scope, receive, send):
        reached.append(scope["path"])
        await answers(scope, receive, send)

    with running(uvicorn.Config(Guard(noted), lifespan="off", log_level="critical")) as port:
        with connect(port, b"POST /open HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n0\r\n\r\n" + HIDDEN) as made:
            while made.recv(1000):  # until the connection ends
                pass
        with connect(port) as other:
            assert status(other) == b"204"
    assert "/hidden" not in reached


def test_another_server_does_not_start():
    said = []

    async def send(message):
        said.append(message)

    finished(BoundedServer(answers)({"type": "lifespan"}, None, send))
    assert said[0]["type"] == "lifespan.startup.failed"
    assert "uvicorn" in said[0]["message"]


@pytest.mark.parametrize("files", [64, 256, 1024, 4096, 20_000, 1_048_576])
def test_limits_fit_into_the_open_files(files):
    found = limits_for(files)
    used = found.sessions * connections.FILES_A_SESSION + (found.connections - found.sessions)
    assert used <= max(files - connections.RESERVED_FILES, 24)
    assert 1 <= found.person <= found.sessions
    assert 1 <= found.address <= found.sessions
    assert 1 <= found.strangers <= found.sessions


def test_the_limit_on_open_files_is_raised():
    code = (
        "import resource; from pages.parts.shell.connections import raise_file_limit as up;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 900)); print(up(), up())"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["900", "900"]


FLOOD = """
import asyncio, resource, socket, sys, threading, time, uvicorn
sys.path.insert(0, ".")
from tests.pages.test_connections import answers_and_starts
from pages.parts.shell import connections
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
app = connections.BoundedServer(answers_and_starts)
listener = socket.create_server(("127.0.0.1", 0))
server = uvicorn.Server(uvicorn.Config(app, lifespan="on", log_level="critical"))
threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
while not server.started:
    time.sleep(0.01)
taken = [open("/dev/null") for _ in range(60 - len(__import__("os").listdir("/proc/self/fd")))]
print(listener.getsockname()[1], flush=True)
time.sleep(4)
for file in taken:
    file.close()
time.sleep(30)
"""


def test_a_process_without_open_files_says_so_in_one_line_and_goes_on():
    with subprocess.Popen(
        [sys.executable, "-c", FLOOD], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            port = int(server.stdout.readline())
            with connect(port, GET) as made:
                made.settimeout(20)
                assert b"204" in made.recv(1000)  # as soon as there are files again
        finally:
            server.kill()
        told = server.stderr.read()
    assert told.count("too many open files") == 1
    assert "Traceback" not in told


WAYS = {
    "streamlit run": ["-m", "streamlit", "run", "app.py", "--server.port", "{port}"],
    "App.run": ["-c", "import app; app.app.run(config={{'server.port': {port}}})"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
def test_half_open_connections_end_however_the_app_is_started(way, tmp_path):
    """Of a process with few open files, so that 20 connections that say nothing are too many."""
    port = free_port()
    words, log = [word.format(port=port) for word in WAYS[way]], tmp_path / "log"
    most = limits_for(700).waiting
    assert most == 15
    environment = {**os.environ, "ATLAS_DB": str(tmp_path / "atlas.duckdb"), "ATLAS_RECORD": str(tmp_path / "none")}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-c", FEW_FILES, *words], cwd=PROJECT, env=environment, stdout=output, stderr=output
        ) as server,
    ):
        try:
            until(lambda: answers_at(f"http://127.0.0.1:{port}") or server.poll() is not None)
            held = [connect(port, b"GET / HTTP/1.1\r\nHost: localhost") for _ in range(most + 5)]
            assert all(map(ended, held[:5]))
            with connect(port) as other:
                assert status(other) == b"200"
            held[-1].settimeout(0.1)
            with pytest.raises(TimeoutError):
                held[-1].recv(1)
        finally:
            server.terminate()
    assert f"{most} of them waiting" in log.read_text()


FEW_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (700, 700))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
