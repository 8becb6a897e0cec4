"""Script in sentences, labels, notes and names is text: on no page does it run, or become an element."""

import json
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from core.codebook.registry import BERT
from core.store import exchange, labels, runs
from core.store import jobs as job_store
from core.store.database import Database
from core.store.runs import Provenance
from pages.parts.shell import shell
from tests.pages.browsing import PATIENCE, serving, settled
from tests.pages.opening import VIEWS, address_of
from tests.pages.test_label_browser import all_saved, open_sheet
from tests.store.labelling import a_map, event

pytestmark = pytest.mark.browser
EVIL = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>[a](javascript:window.owned=1)'
EVIL_FILE = "<img src=x onerror=window.owned=1>"
FIELDS = ("text", "pair", "checkpoint", "beside", "task", "class_set", "study", "run")
SHOWN = ("maps",)  # the page that shows most of texts; the others, 2 CPU seconds each, are with the slow tests
PAGES = [one.name if one.name in SHOWN else pytest.param(one.name, marks=pytest.mark.slow) for one in shell.PAGES]
AFTER_THE_CHECKPOINT = ("text", "pair", "task", "class_set", "study")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    db = Database(folder / "atlas.duckdb")
    labels.store_maps(db, [a_map("m1", tokens=[EVIL[:40]] * 6, checkpoint=EVIL, task=EVIL, row_id=EVIL)])
    labels.change_class(
        db,
        "bert",
        labels.ClassChange("add", EVIL, eye=EVIL, title=EVIL, colour="#123456", key="6"),
        annotator=EVIL,
        taken=BERT.names,
    )
    labels.record_events(db, [event(1, cls=EVIL, annotator=EVIL[:90]), event(2, kind="note", note=EVIL)])
    run = runs.record_run(db, "heads", {"text": EVIL}, Provenance(checkpoint=EVIL, task=EVIL), title=EVIL)
    runs.store_rows(db, run, [{"statistic": EVIL, "feature": EVIL, "layer": 0, "head": 0, "value": 0.5}])
    job = job_store.add_job(db, EVIL, EVIL, {"text": EVIL})
    job_store.set_state(db, job, "failed", error=EVIL)
    db.close()
    (folder / "runs").mkdir()
    (folder / "runs" / f"{EVIL_FILE}.jsonl").write_text("no run")
    exchange.write_run(folder / "runs" / "run.jsonl", EVIL, EVIL, {"run": "r", "options": {}}, [{EVIL: EVIL}])
    tuned = folder / "runs" / "finetuned" / EVIL_FILE
    tuned.mkdir(parents=True)
    (tuned / "config.json").write_text('{"model_type": "bert"}')
    (tuned / "training.json").write_text(json.dumps({"kind": "fine-tuned", "task": EVIL, "initialisation": EVIL}))
    with serving(folder) as found:
        yield found


def nothing_ran(page) -> None:
    assert page.evaluate("window.owned") is None
    expect(page.locator("img[src='x'], [onerror], a[href^='javascript']")).to_have_count(0)


def open_evil(page, address: str, name: str, query: str) -> None:
    page.goto(f"{address}/{name}{query}")
    settled(page)
    page.locator('[data-testid="stMain"] h1').first.wait_for(timeout=PATIENCE)


def stays_text(page, address: str, name: str, *fields: str) -> None:
    """A page by a link whose fields hold script, over a store that does."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    open_evil(page, address, address_of(name), f"&{urlencode(dict.fromkeys(fields, EVIL))}")
    nothing_ran(page)
    assert not dialogs


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAGES)
def test_script_is_text(address, page, name):
    """No field of these ends a page before it shows what is stored; one that does is tried on the page of maps."""
    stays_text(page, address, name, *(FIELDS if name == "maps" else AFTER_THE_CHECKPOINT))


@pytest.mark.slow  # two more visits of each view in a browser
@pytest.mark.parametrize("name", VIEWS)
def test_script_is_text_in_a_bare_link_and_in_every_field(address, page, name):
    stays_text(page, address, name)
    stays_text(page, address, name, *FIELDS)


@pytest.mark.slow  # 4 CPU seconds; the pages over the same store are above
def test_names_of_files_and_folders_are_text(address, page):
    open_evil(page, address, "results", "?view=jobs")
    page.get_by_text(f"{EVIL_FILE}.jsonl").first.wait_for(timeout=PATIENCE)
    nothing_ran(page)
    open_evil(page, address, "maps", "?text=Hello")
    page.get_by_role("combobox", name="Checkpoint").first.click()
    page.get_by_text(EVIL_FILE).first.wait_for(timeout=PATIENCE)
    nothing_ran(page)


@pytest.mark.slow  # 8 CPU seconds; the pages over the same store are above
@pytest.mark.parametrize(("name", "query"), [("annotate", ""), ("linguistics", "?view=frames&mode=A+set+of+sentences")])
def test_the_name_of_an_upload_is_text(address, page, name, query):
    open_evil(page, address, name, query)
    if name == "annotate":
        page.get_by_role("button", name="Maps and files").click()
        page.get_by_role("radio", name="Files", exact=True).click()
    else:
        page.get_by_role("combobox", name="Sentences").click()
        page.get_by_role("option", name="a file").click()
    page.locator("input[type=file]").set_input_files(
        {"name": f"{EVIL_FILE}.jsonl", "mimeType": "text/plain", "buffer": json.dumps({"text": EVIL}).encode()}
    )
    page.get_by_test_id("stFileChipName").wait_for(timeout=PATIENCE)
    settled(page)
    if name == "annotate":
        page.get_by_role("button", name="Import", exact=True).click()
        settled(page)
    nothing_ran(page)


@pytest.mark.slow  # 7 CPU seconds; the label page over the same store is above
def test_classes_notes_and_the_name_of_who_labels_are_text(address, page):
    root = open_sheet(page, address, EVIL_FILE)
    page.keyboard.press("6")  # the class with the evil name
    page.keyboard.press("n")
    root.locator("input.note").fill(EVIL)
    root.locator("input.note").press("Enter")
    all_saved(root, 2)
    page.get_by_text("Codebook", exact=True).last.click()  # the first is a view
    page.get_by_text("<script>window.owned=1</script>").first.wait_for(timeout=PATIENCE)
    nothing_ran(page)
    open_evil(page, address, "projects", "?view=agreement")
    nothing_ran(page)


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
