"""Servers that begin with their libraries imported: a parent of their own forks for each `streamlit run`.

To start an interpreter and to import Streamlit, Altair, DuckDB and torch takes 6 CPU seconds, for each of a hundred
servers. The child is what `python -m streamlit run` is from there on: its own process, settings, working directory and
log; nothing of the app was imported before. Run as a program, this module is that parent.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LIBRARIES = ("streamlit.web.bootstrap", "streamlit.web.server", "altair", "pandas", "duckdb", "pyarrow", "scipy.stats")
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


def serve(words: Sequence[str], environment: Mapping[str, str], log: Path) -> Server:
    """`streamlit` with these words, in a process of its own."""
    parent = _parent()
    assert parent.stdin
    assert parent.stdout
    parent.stdin.write(json.dumps({"words": list(words), "environment": dict(environment), "log": str(log)}) + "\n")
    parent.stdin.flush()
    return Server(int(parent.stdout.readline()))


def _serve_forever() -> None:
    """Fork for every line of standard input."""
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # see tests/conftest.py
    import importlib

    for name in (*LIBRARIES, *MODELS):
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, _gather)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(**asked)
        print(pid, flush=True)


def _gather(*_: object) -> None:
    """Gather the children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _become(words: list[str], environment: dict[str, str], log: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["streamlit", *words]
    from streamlit.web import cli

    try:
        cli.main()
    finally:
        os._exit(0)


if __name__ == "__main__":
    _serve_forever()
