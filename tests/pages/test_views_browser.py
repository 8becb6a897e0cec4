"""Every view in a browser: it opens with its title, says no defect, and the console stays empty."""

from urllib.parse import urlsplit

import pytest

from tests.pages.browsing import serving, visit
from tests.pages.first_screen import COUNTED, MOST_CONTROLS, MOST_WORDS, SCREEN
from tests.pages.opening import VIEWS, address_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]  # 3 s a view; .ci/newest runs them with the newest packages


MOST = 2500  # pixels of a view, 1440 pixels wide
LONG = {"annotate/codebook", "results/all"}  # lists that are read from top to bottom
HEIGHT = "document.querySelector('[data-testid=stMain]').scrollHeight"
STILL = f"""() => {{
  const height = {HEIGHT}, now = performance.now();
  if (window.seenHeight !== height) [window.seenHeight, window.seenSince] = [height, now];
  return now - window.seenSince > 1000;
}}"""  # charts come after the script


@pytest.fixture(scope="module")
def recorded_address(tmp_path_factory):
    """The address of an app with the results that ship, as users open it."""
    with serving(tmp_path_factory.mktemp("views"), ATLAS_RECORD="", fresh=True) as found:
        yield found


def probe(said):
    """Whether a line of the console is a question of Streamlit's own script: does the app live below this page?"""
    path = urlsplit(said.location["url"]).path
    return path.count("/") == 3 and path.endswith(("/_stcore/health", "/_stcore/host-config"))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_opens_without_a_fault(name, recorded_address, page):
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" and not probe(said) else None)
    page.set_viewport_size(SCREEN)
    visit(page, f"{recorded_address}/{address_of(name)}")
    assert page.locator("[data-testid=stMain] h1").first.inner_text()
    troubles = page.locator("[data-testid=stException], [data-testid=stAlertContentError]").all_inner_texts()
    assert (errors, troubles) == ([], [])
    page.wait_for_function(STILL)
    assert name in LONG or page.evaluate(HEIGHT) <= MOST
    first = page.evaluate(COUNTED)
    assert first["words"] <= MOST_WORDS, first["said"]
    assert len(first["controls"]) <= MOST_CONTROLS, first["controls"]
