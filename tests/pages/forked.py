"""Servers that begin with their imports done: a parent of their own forks for each `streamlit run`.

To start an interpreter and to import Streamlit, Altair, DuckDB, torch and what pages are made of takes 8 CPU seconds,
for each of sixty servers, and what the app loads in the background once a page stands (torch, an encoder, spaCy) as
much again: a server does so where a test says `warm`. The child is what `python -m streamlit run` is from there on: its
own process, settings and log. Run as a program, this module is that parent.

Models are imported by a child of it alone, which the servers are forked from: so views are opened in forks of the
parent where torch is not (tests/pages/opened.py), and its imports are paid once.
"""

import atexit
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from core import config
from core.jobs import executors
from core.store import database
from pages.parts.shell import warming
from tests.jobs.in_process import InProcess
from tests.pages import opened
from tests.store.template import Template

PROJECT = Path(__file__).resolve().parents[2]
LIBRARIES = ("streamlit.web.bootstrap", "streamlit.web.server", "duckdb")
CAPABILITIES, OVERRIDE = 0x20080522, 1  # version of capget's records; the right of root to write what is read-only
MODELS = ("torch", "transformers.modeling_utils", "sklearn")


class Server:
    """A process that was forked for one server, with the words of `subprocess.Popen`."""

    def __init__(self, pid: int):
        self.pid = pid

    def poll(self) -> int | None:
        """None while it runs; how it ended is not told. It has ended when its parent has gathered it, not before: the
        first of its threads may be gone while others hold the database still."""
        return None if Path(f"/proc/{self.pid}").exists() else 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("streamlit", timeout)
            time.sleep(0.02)


@cache
def _parent() -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.pages.forked"]
    settings = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}  # read when torch comes
    parent = subprocess.Popen(
        command, cwd=PROJECT, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(parent.terminate)
    return parent


def _answer(asked: Mapping[str, Any]) -> str:
    """The line that the parent answers to what it is asked."""
    parent = _parent()
    assert parent.stdin
    assert parent.stdout
    parent.stdin.write(json.dumps(asked) + "\n")
    parent.stdin.flush()
    return parent.stdout.readline()


def serve(words: Sequence[str], environment: Mapping[str, str], log: Path, **how: bool) -> Server:
    """`streamlit` with these words, in a process of its own; how: see `_become`."""
    return Server(int(_answer({"words": list(words), "environment": dict(environment), "log": str(log)} | how)))


def look(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """These views as a link opens them where torch is not, each with an empty database, by `opened`."""
    return json.loads(_answer({"folder": str(folder), "names": list(names)}))


def _serve_forever() -> None:
    """For every line of standard input open views in a fork, or let a child that has models fork a server."""
    opened.import_parts()
    for name in LIBRARIES:
        importlib.import_module(name)
    requests, servers = _child_with_models()
    for line in sys.stdin:
        if "names" in (asked := json.loads(line)):
            print(_looked_at(**asked), flush=True)
            continue
        print(line, end="", file=requests, flush=True)
        print(servers.readline(), end="", flush=True)


def _child_with_models() -> tuple[TextIO, TextIO]:
    """A fork that imports models once it is asked for a first server, and forks one for each line; what it is asked by,
    and what it says their processes by."""
    (asked, requests), (servers, said) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(requests)
        os.close(servers)
        with os.fdopen(asked) as lines, os.fdopen(said, "w") as answers:
            _fork_servers(lines, answers)
        os._exit(0)
    os.close(asked)
    os.close(said)
    return os.fdopen(requests, "w"), os.fdopen(servers)


def _fork_servers(lines: TextIO, answers: TextIO) -> None:
    signal.signal(signal.SIGCHLD, _gather)
    for line in lines:
        for name in MODELS:
            importlib.import_module(name)
        pid = os.fork()
        if pid == 0:
            _become(**json.loads(line))
        print(pid, file=answers, flush=True)


def _looked_at(folder: str, names: list[str]) -> str:
    """What a fork that has an environment of its own says of views."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(reader)
        os.environ.clear()
        os.environ.update({"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder})
        tempfile.tempdir = None  # it lies in that folder, which goes with the test
        database._connect = Template(Path(folder) / "template.duckdb")
        try:
            with os.fdopen(writer, "w") as answer:
                print(json.dumps(opened.all_of(names, Path(folder))), end="", file=answer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return said or "{}"


def _gather(*_: object) -> None:
    """Gather the children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _become(
    words: list[str], environment: dict[str, str], log: str, warm: bool, unprivileged: bool, processes: bool
) -> None:
    """Be a server. unprivileged: without root's right to write files that are read-only. processes: its jobs have
    workers, which a test needs that cancels or kills them."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    config.RECORD = Path(environment.get("ATLAS_RECORD") or config.DATA / "record")  # as it is read at import
    if not warm:
        warming.load = lambda: None
    if not processes:
        executors.worker_processes = InProcess  # type: ignore[assignment]
    if unprivileged:
        _give_up_override()
    sys.argv = ["streamlit", *words]
    from streamlit.web import cli

    try:
        cli.main()
    finally:
        os._exit(0)


def _give_up_override() -> None:
    """As somebody who is not root: files that are read-only are so for this process, too (Linux)."""
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None)
    assert libc.capget(header, sets) == 0
    for k in range(2):  # effective, permitted
        sets[k] &= ~(1 << OVERRIDE)
    assert libc.capset(header, sets) == 0


if __name__ == "__main__":
    _serve_forever()
