"""Fixtures that every part of the tests shares."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test may reach the hub
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share the cores; tiny products on two threads wait for each other

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
