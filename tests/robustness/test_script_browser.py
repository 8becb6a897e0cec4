"""Script in sentences, labels, notes and names is text: on no page does it run, or become an element."""

import pytest

from core.patterns.classes import BERT
from core.store import jobs as job_store
from core.store import labels, runs
from core.store.database import Database
from core.store.runs import Provenance
from pages.parts import shell
from tests.pages.browsing import PATIENCE, serving, settled
from tests.store.labelling import a_map, event

pytestmark = pytest.mark.browser
EVIL = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>[a](javascript:window.owned=1)'
FIELDS = ("text", "pair", "sentence", "checkpoint", "beside", "task", "class_set", "study", "run")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    db = Database(folder / "atlas.duckdb")
    labels.store_maps(db, [a_map("m1", tokens=[EVIL[:40]] * 6, checkpoint=EVIL, task=EVIL, row_id=EVIL)])
    labels.change_class(
        db, "bert", "add", EVIL, annotator=EVIL, eye=EVIL, title=EVIL, colour="#123456", key="6", taken=BERT.names
    )
    labels.record_events(db, [event(1, cls=EVIL, annotator=EVIL[:90]), event(2, kind="note", note=EVIL)])
    run = runs.record_run(db, "heads", {"text": EVIL}, Provenance(checkpoint=EVIL, task=EVIL), title=EVIL)
    runs.store_rows(db, run, [{"statistic": EVIL, "feature": EVIL, "layer": 0, "head": 0, "value": 0.5}])
    job = job_store.add_job(db, EVIL, EVIL, {"text": EVIL})
    job_store.set_state(db, job, "failed", error=EVIL)
    db.close()
    with serving(folder) as found:
        yield found


def open_evil(page, address: str, name: str, query: str) -> None:
    page.goto(f"{address}/{name}{query}")
    settled(page)
    page.locator('[data-testid="stMain"] h1').first.wait_for(timeout=PATIENCE)


@pytest.mark.parametrize("name", [one.name for one in shell.PAGES])
def test_script_is_text(address, page, name):
    from urllib.parse import urlencode

    seen: list[str] = []
    page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    for query in ("", "?" + urlencode(dict.fromkeys(FIELDS, EVIL))):
        open_evil(page, address, name, query)
        assert page.evaluate("window.owned") is None
        assert page.locator("img[src='x'], [onerror], a[href^='javascript']").count() == 0
    assert not seen


def test_a_page_of_another_site_gets_no_session(address):
    """A websocket whose origin is another site's is refused, so a browser cannot be turned against its user."""
    import http.client

    host, port = address.removeprefix("http://").split(":")
    for origin, opened in (("http://evil.example", False), (address, True)):
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Origin": origin}
        headers["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
        connection.request("GET", "/_stcore/stream", headers=headers)
        assert (connection.getresponse().status == 101) == opened
        connection.close()
