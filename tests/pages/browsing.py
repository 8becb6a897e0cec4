"""The app as a user has it: a server on a free port, and Debian's chromium in front of it.

Used by the browser tests, the benchmarks and the screenshots. Waiting is for what the page says of itself
(`data-test-script-state`, `data-painted`), never for a time.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest

PROJECT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BLOCK = '[data-testid="stMainBlockContainer"]'
DRESSED = f"getComputedStyle(document.querySelector('{BLOCK}')).paddingRight === '24px'"  # page.css has come
FORKS = False  # whether servers are forked; tests/conftest.py says so
_SERVERS: dict[str, int] = {}  # the process behind each port
PATIENCE = 60_000  # ms; a bound for a machine that is busy with other tests, never waited out when all is well


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def serving(
    folder: Path,
    script: str = "app.py",
    *,
    port: int = 0,
    base: str = "",
    warm: bool = False,
    unprivileged: bool = False,
    processes: bool = False,
    fresh: bool | None = None,
    **environment: str,
) -> Iterator[str]:
    """`streamlit run app.py` with its own database in `folder`, and without the results that ship unless ATLAS_RECORD
    says so, so that forms are not folded away; yields its address once it answers.

    base: the path it lives at, like "/atlas". fresh: an interpreter of its own, as when a user starts it, and the
    default outside of tests; they fork it from a process that has its imports (tests/pages/forked.py, which says what
    warm, unprivileged and processes are).
    """
    port, log = port or free_port(), folder / "server.log"
    words = ["run", script, "--server.port", str(port)]
    if base:
        words += ["--server.baseUrlPath", base.strip("/")]
    settings = {**os.environ, "ATLAS_DB": str(folder / "atlas.duckdb"), "HF_HUB_OFFLINE": "1", "TMPDIR": str(folder)}
    settings = settings | {"ATLAS_RECORD": str(folder / "no-record")} | environment
    if fresh or (fresh is None and not FORKS):
        server = _started(words, settings, log)
    else:
        from tests.pages import forked  # with all that pages are made of, and after what checks shapes

        server = forked.serve(words, settings, log, warm=warm, unprivileged=unprivileged, processes=processes)
    address = f"http://127.0.0.1:{port}{base}"
    _SERVERS[str(port)] = server.pid
    try:
        until(lambda: answers(address) or server.poll() is not None)
        assert server.poll() is None, log.read_text()
        yield address
    finally:
        server.terminate()
        server.wait(PATIENCE / 1000)  # its workers end first; on a busy machine that takes a while


def _started(words: list[str], settings: dict[str, str], log: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "streamlit", *words]
    with log.open("a") as output:
        return subprocess.Popen(command, cwd=PROJECT, env=settings, stdout=output, stderr=subprocess.STDOUT)


def process_of(address: str) -> int:
    """The process that serves `address`."""
    return _SERVERS[address.rsplit(":", 1)[1].split("/")[0]]


def answers(address: str) -> bool:
    return answers_with(f"{address}/_stcore/health")


def answers_with(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=1) as response:  # noqa: S310 - our own server
            return response.status == 200
    except (URLError, OSError):
        return False


def until(holds, seconds: float = PATIENCE / 1000) -> None:
    """Ask again until `holds()`; a process or a file tells nobody when it is ready, so this one asks."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@contextmanager
def browsing(*arguments: str, **options) -> Iterator:
    """A chromium; skips, saying why, where there is none."""
    if not Path(CHROMIUM).is_file():
        pytest.skip("no chromium on this machine: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)  # a field shows its value one paint after it shows itself
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *arguments], **options)
        yield browser
        browser.close()


def settled(page) -> None:
    """Wait until the script has run and the page shows what it made."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=PATIENCE)


def visit(page, address: str) -> None:
    """Open an address and wait for its page."""
    page.goto(address)
    page.locator('[data-testid="stMain"] h1').first.wait_for(timeout=PATIENCE)
    settled(page)  # after the title, because before it no script has run and none is running


def named(page) -> None:
    """Wait until the sidebar has its pages."""
    page.locator(".st-key-pages a").first.wait_for(state="attached", timeout=PATIENCE)


def painted(page, number: int = 0):
    """The map grid's root, once it has painted its data where it stays: the page's style may come after it."""
    root = drawn(page, number)
    settled(page)
    page.wait_for_function(DRESSED, timeout=PATIENCE)
    page.evaluate("document.fonts.ready")  # with another font, text above breaks into other lines
    return root


def drawn(page, number: int = 0):
    """The map grid's root in a page in one file or in a notebook, once it has painted its data."""
    root = page.locator(".root[data-painted]").nth(number)
    root.wait_for(timeout=PATIENCE)
    return root
