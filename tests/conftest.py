"""Fixtures that every part of the tests shares."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import shape_checks

pytest_plugins = [
    "tests.temporary_files",
    "tests.bytecode",
    "tests.cpu_report",
    "tests.failures_at_once",
    "tests.scheduling",
]

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # nohup, or `&` in a script: commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test may reach the hub
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share the cores; tiny products on two threads wait for each other

# jsonschema's grammar of internationalised addresses comes with JupyterLab, takes 1.5 s to build wherever Altair is
# imported, and a user's installation does not have it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

if os.environ.get("SHAPE_CHECKS") != "off":  # off for mutants
    shape_checks.install()  # before anything of core is imported
gc.disable()  # until all is collected: 300 modules of tests make much and drop nothing

# An example's time says how busy the machine is, not whether the property holds: two failed under load for that alone.
settings.register_profile("untimed", settings(deadline=None))
settings.load_profile("untimed")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora that developers have beside the checkout; a user's clone has none."""
    if not SHARED.is_dir():
        pytest.skip("the folder of real corpora (../shared/data) is not beside this checkout")
    return SHARED


def pytest_configure(config: pytest.Config) -> None:
    shape_checks.looking.closely = bool(config.getoption("--jaxtyping-packages", default=None))


def pytest_collection_finish() -> None:
    gc.freeze()  # what the imports made is not worth looking at again
    gc.set_threshold(10_000, 20, 20)  # as usual it takes 3 % of what tests of pages take, and so half of that
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def real_workers() -> Iterator[Callable]:
    """Units of jobs run in a thread here (tests/jobs/in_process.py) from now on; yields what makes worker processes."""
    from core.jobs import executors
    from tests.jobs.in_process import InProcess

    real = executors.worker_processes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executors, "worker_processes", InProcess)
        yield real


@pytest.fixture(scope="session", autouse=True)
def forked_servers() -> None:
    """Servers of tests are forked from a process that has their libraries (tests/pages/forked.py)."""
    from tests.pages import browsing

    browsing.FORKS = True


@pytest.fixture(scope="session", autouse=True)
def scanned_packages() -> None:
    """AppTests do not look through all installed packages each time (tests/pages/scanned.py)."""
    if "streamlit.testing.v1" in sys.modules:
        from tests.pages.scanned import scan_once

        scan_once()


@pytest.fixture(scope="session", autouse=True)
def new_databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A new database begins as a copy of a first one (tests/store/template.py)."""
    from core.store import database
    from tests.store.template import Template

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_connect", Template(tmp_path_factory.mktemp("template") / "atlas.duckdb"))
        yield


@pytest.fixture(autouse=True)
def worker_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, real_workers: Callable) -> None:
    """With the marker `processes` jobs have workers of their own, as a user's do."""
    if request.node.get_closest_marker("processes"):
        monkeypatch.setattr("core.jobs.executors.worker_processes", real_workers)


@pytest.fixture(autouse=True)
def main_module():
    """Streamlit's AppTest leaves the page's script as `__main__`; a worker process that another test spawns would run
    it."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


@pytest.fixture(scope="session")
def browser():
    """One chromium for the whole session: a second one in the same thread cannot be started."""
    from tests.pages import browsing

    with browsing.browsing() as found:
        yield found


@pytest.fixture
def page(browser):
    """A new browser window, 1280 x 900; fails the test if the page's scripts threw."""
    from tests.pages import browsing

    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", accept_downloads=True)
    window = context.new_page()
    window.set_default_timeout(browsing.PATIENCE)
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    yield window
    context.close()
    assert not errors
