"""The Label page in a real browser: keys, clicks, undo, a killed server, and suggestions after retraining."""

import pytest
from playwright.sync_api import expect

from core.patterns import snapshot as label_snapshot
from core.patterns.classifier_registry import bundled_classifier, training_options
from core.store import classifiers, labels
from core.store.database import Database
from core.studies.contract import Finished
from core.studies.patterns.train_patterns import STUDY
from tests.pages.browsing import PATIENCE, free_port, serving, settled, visit
from tests.store.labelling import a_map
from tests.studies.test_train_patterns import label_everything, run_all

pytestmark = pytest.mark.browser
MAPS = 60
FILL_STORAGE = """() => {
  let count = 0;
  for (let size = 4e6; size >= 1; size = Math.floor(size / 2)) {
    try { for (;;) localStorage.setItem(`junk${count++}`, "x".repeat(size)); } catch { /* a smaller piece, then */ }
  }
}"""


def fill(folder, count=MAPS):
    """A store with maps to label, as drawing leaves it."""
    db = Database(folder / "atlas.duckdb")
    labels.store_maps(
        db,
        [
            a_map(f"m{k}", length=8 + k % 5, layer=k % 6, head=k % 4, row_id=f"dev-{k // 4}", maximum=0.5)
            for k in range(count)
        ],
    )
    db.close()


def open_sheet(page, address, name="ada", at="annotate"):
    page.set_viewport_size({"width": 1280, "height": 1600})  # the whole sheet is on screen
    visit(page, f"{address}/{at}")
    box = page.get_by_label("Your name")
    box.fill(name)
    box.press("Enter")
    root = page.locator(".root[data-cursor]")
    root.wait_for(timeout=PATIENCE)
    settled(page)
    expect(box).not_to_be_focused()  # the next keys are labels and not more of the name
    root.locator("canvas").focus()
    return root


def all_saved(root, saved):
    root.page.wait_for_function(
        "([root, saved]) => root.dataset.waiting === '0' && Number(root.dataset.saved) >= saved",
        arg=[root.element_handle(), saved],
        timeout=PATIENCE,
    )


def stored(folder):
    db = Database(folder / "atlas.duckdb")
    try:
        return labels.all_events(db), labels.decided(db, "bert", "ada")
    finally:
        db.close()


def test_keys_and_clicks_label_undo_takes_back_and_saved_means_stored(page, tmp_path):
    fill(tmp_path)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        for key in "12345":
            page.keyboard.press(key)
        page.keyboard.press("Space")
        page.keyboard.press("Backspace")
        page.keyboard.press("Control+z")
        page.keyboard.press("f")
        expect(root).to_have_attribute("data-done", "4")
        page.keyboard.press("Shift+Digit3")
        tiles = root.locator("canvas").bounding_box()
        across, down = tiles["x"] + 60, tiles["y"] + 210  # in the second row, whose tiles are 96 to 110 pixels
        page.mouse.move(across, down)
        page.mouse.down()
        for k in range(1, 4):
            page.mouse.move(across + 110 * k, down, steps=4)
        page.mouse.up()
        done = int(root.get_attribute("data-done"))
        assert done >= 7
        all_saved(root, 9 + done - 4)
        page.get_by_role("button", name="More maps").click()
        expect(root).to_have_attribute("data-sheets", "2")  # a queue of what is left, which counts what is done
        expect(root).to_have_attribute("data-done", str(done))
    events, decided = stored(tmp_path)
    assert [event["kind"] for event in events[:9]] == ["label"] * 5 + ["skip", "undo", "undo", "flag"]
    assert [event["class"] for event in events[:4]] == ["vertical", "diagonal", "vertical+diagonal", "block"]
    assert len(decided) == done
    assert {event["scale"] for event in events} == {"absolute"}
    assert all(event["queue_order"] == "random" and event["suggestion"] is None for event in events)


@pytest.mark.slow  # a server of its own; the first test walks over the whole sheet
def test_a_note_in_writing_outlives_a_painting_and_is_kept_for_its_map(page, tmp_path):
    fill(tmp_path)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        page.keyboard.press("n")
        page.keyboard.type("half ")
        sheets = root.get_attribute("data-sheet")
        page.set_viewport_size({"width": 900, "height": 1200})
        expect(root).not_to_have_attribute("data-sheet", sheets)  # painted anew for the window
        page.keyboard.type("a stripe")
        page.keyboard.press("Enter")
        all_saved(root, 2)
        page.keyboard.press("2")  # the keys are the sheet's again
        all_saved(root, 3)
    events, _ = stored(tmp_path)
    assert [(event["kind"], event["note"]) for event in events] == [
        ("label", None),
        ("note", "half a stripe"),
        ("label", None),
    ]
    assert events[1]["map_id"] == events[2]["map_id"] != events[0]["map_id"]


@pytest.mark.slow  # a server of its own; the script by itself is in test_outbox_browser.py
def test_twenty_keys_a_second_lose_nothing_and_a_killed_server_catches_up(page, tmp_path):
    fill(tmp_path)
    port = free_port()
    with serving(tmp_path, port=port) as address:
        root = open_sheet(page, address)
        page.keyboard.press("m")
        for k in range(20):
            page.keyboard.press("12345"[k % 5], delay=1)
            page.wait_for_timeout(50)  # the rate that is tested, not a wait for anything
        all_saved(root, 20)
    for _ in range(5):
        page.keyboard.press("2")  # the server is gone
    expect(root).to_have_attribute("data-waiting", "5")
    with serving(tmp_path, port=port):
        all_saved(root, 25)
    events, decided = stored(tmp_path)
    assert [event["sequence"] for event in events] == list(range(1, 26))
    assert len(decided) == 25
    assert {event["way"] for event in events} == {"single"}


@pytest.mark.slow  # a server of its own; the script by itself is in test_outbox_browser.py
def test_a_new_tab_goes_on_and_undoes_what_the_old_one_did(page, tmp_path):
    fill(tmp_path, 10)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        page.keyboard.press("2")
        all_saved(root, 2)
        root = open_sheet(page, address)
        page.keyboard.press("Backspace")
        all_saved(root, 1)
    events, decided = stored(tmp_path)
    assert events[-1]["kind"] == "undo"
    assert list(decided.values()) == ["vertical"]


@pytest.mark.slow  # a browser that labels 25 maps and waits for the count
def test_new_labels_are_counted_as_they_come_and_the_sheet_stays_where_it_is(page, tmp_path):
    fill(tmp_path)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        page.get_by_role("button", name="Retrain with 0 new labels").wait_for(timeout=PATIENCE)
        place = root.bounding_box()
        for count, more in ((1, 1), (2, 1), (25, 23)):
            for _ in range(more):
                page.keyboard.press("1")
            all_saved(root, count)
            noun = "label" if count == 1 else "labels"
            page.get_by_role("button", name=f"Retrain with {count} new {noun}", exact=False).wait_for(timeout=PATIENCE)
            assert root.bounding_box() == place


@pytest.mark.slow  # 19 CPU seconds: a server and a training
def test_retraining_from_the_page_brings_suggestions_that_enter_accepts(page, tmp_path):
    db = Database(tmp_path / "atlas.duckdb")
    label_everything(db)
    labels.store_maps(db, [a_map(f"new{k}", length=32, row_id=f"new-{k}") for k in range(6)])
    db.close()
    with serving(tmp_path, ATLAS_WORKERS="1") as address:
        visit(page, f"{address}/annotate?view=classifier")
        page.get_by_text("Training options", exact=True).click()
        box = page.get_by_label("Folds", exact=True)
        box.fill("2")
        box.press("Enter")
        settled(page)
        page.get_by_role("button", name="Train", exact=True).click()
        # a worker that gives way to everything else imports torch first: minutes on a machine that is full
        page.get_by_role("button", name="Use for suggestions").click(timeout=6 * PATIENCE)
        page.get_by_role("button", name="Stop suggesting").wait_for(timeout=PATIENCE)
        root = open_sheet(page, address, "bob")
        page.get_by_text("Suggestions", exact=True).click()
        root.get_by_role("button", name="Accept the rest").wait_for(timeout=PATIENCE)
        root.locator("canvas").focus()
        page.keyboard.press("Enter")
        all_saved(root, 1)
        shown = int(root.get_attribute("data-rest"))
        root.get_by_role("button", name=f"Accept the rest ({shown})").click()
        expect(root).to_have_attribute("data-rest", "0")
        page.keyboard.press("Backspace")  # all of them are one batch
        expect(root).to_have_attribute("data-rest", str(shown))
        all_saved(root, 1 + 2 * shown)
    db = Database(tmp_path / "atlas.duckdb")
    (name,) = classifiers.classifiers(db, "bert")["classifier"]
    event, *others = [row for row in labels.all_events(db) if row["annotator"] == "bob"]
    assert [row["kind"] for row in others] == ["label"] * shown + ["undo"] * shown
    assert (event["classifier"], event["class"]) == (name, event["suggestion"])
    assert 0 < event["probability"] <= 1
    db.close()


@pytest.mark.slow  # a server of its own; the first test walks over the whole sheet
def test_accepting_the_rest_takes_only_what_was_on_screen(page, tmp_path):
    fill(tmp_path)
    db = Database(tmp_path / "atlas.duckdb")
    classifiers.choose(db, "bert", bundled_classifier(db, "bert"), annotator="ada")
    db.close()
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        page.set_viewport_size({"width": 1280, "height": 520})
        page.get_by_text("Suggestions", exact=True).click()
        rest = root.get_by_role("button", name="Accept the rest")
        expect(rest).to_be_enabled(timeout=PATIENCE)
        why = root.locator(".why")
        expect(why).to_contain_text("strongest column")
        assert why.evaluate("line => line.scrollHeight <= line.clientHeight"), "a reason is read whole"
        sheet = int(root.get_attribute("data-sheet"))
        assert sheet < MAPS
        rest.click()
        expect(root).to_have_attribute("data-done", str(sheet))
        all_saved(root, sheet)
    events, decided = stored(tmp_path)
    assert len(decided) == sheet
    assert all(event["class"] == event["suggestion"] for event in events)


@pytest.mark.slow  # a server of its own; the script by itself is in test_outbox_browser.py
def test_the_next_tab_sends_what_a_closed_one_could_not(page, tmp_path):
    fill(tmp_path)
    port = free_port()
    with serving(tmp_path, port=port) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        all_saved(root, 1)
    for key in "234":
        page.keyboard.press(key)  # the server is gone
    expect(root).to_have_attribute("data-waiting", "3")
    page.close()
    with serving(tmp_path, port=port) as address, page.context.new_page() as later:
        root = open_sheet(later, address, "bob")  # whoever opens it: the labels carry the name of who made them
        all_saved(root, 0)
    events, decided = stored(tmp_path)
    assert [event["annotator"] for event in events] == ["ada"] * 4
    assert [event["class"] for event in events] == ["vertical", "diagonal", "vertical+diagonal", "block"]
    assert len(decided) == 4


@pytest.mark.slow  # two servers, 14 CPU seconds; the script by itself is in test_outbox_browser.py
def test_a_full_storage_is_said_and_the_browser_asks_before_the_tab_is_closed(page, tmp_path):
    fill(tmp_path)
    port, asked = free_port(), []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    sentence = page.get_by_text("waits in this tab alone. Leave it open until it is saved.")
    with serving(tmp_path, port=port) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        all_saved(root, 1)
        expect(sentence).to_have_count(0)
    page.evaluate(FILL_STORAGE)
    for key in "234":
        page.keyboard.press(key)  # the server is gone, and the browser keeps nothing
    expect(root).to_have_attribute("data-waiting", "3")
    expect(sentence).to_contain_text("This browser's storage takes no more: 3 of what you did waits in this tab alone.")
    page.close(run_before_unload=True)
    page.wait_for_timeout(100)  # the question comes to us between two calls
    assert asked == ["beforeunload"]
    assert not page.is_closed()  # who is asked may stay
    with serving(tmp_path, port=port):
        all_saved(root, 4)
        expect(sentence).to_have_count(0)
    _, decided = stored(tmp_path)
    assert len(decided) == 4
    page.close(run_before_unload=True)
    page.wait_for_event("close") if not page.is_closed() else None
    assert asked == ["beforeunload"]


@pytest.mark.slow  # a server of its own; the first test walks over the whole sheet
def test_a_click_on_a_cell_of_the_confusion_matrix_shows_its_maps(page, tmp_path):
    db = Database(tmp_path / "atlas.duckdb")
    label_everything(db)
    wanted = training_options(db, label_snapshot.snapshot(db, "bert"), kind="baseline", folds=4, beside=False)
    options, rows = run_all(wanted)
    STUDY.keep(db, Finished("first", "Training", options, rows))
    db.close()
    cell = max((row for row in rows if row["part"] == "confusion"), key=lambda row: row["n"])
    with serving(tmp_path) as address:
        visit(page, f"{address}/annotate?view=classifier")
        page.get_by_text("Click a cell of the matrix to see its maps.").wait_for(timeout=PATIENCE)
        said = f"predicted: {cell['predicted']}; truth: {cell['truth']};"
        page.locator(f'.mark-rect path[aria-label^="{said}"]').click(timeout=PATIENCE)
        said = f"{cell['n']} maps with the label {cell['truth']} and the prediction {cell['predicted']}"
        expect(page.get_by_text(said)).to_be_visible(timeout=PATIENCE)
        expect(page.locator("figure img[alt^='Attention map']").first).to_be_visible(timeout=PATIENCE)


def kept_boxes(page):
    return page.evaluate("Object.keys(localStorage).filter((key) => /^atlas-(event|outbox):/.test(key))")


@pytest.mark.slow  # two servers, 11 CPU seconds; the script by itself is in test_outbox_browser.py
def test_labels_of_one_database_never_reach_another_on_the_same_address(page, tmp_path):
    """The server stops with labels waiting; another starts there with another database, then the first again."""
    port, first, second = free_port(), tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        fill(folder, 10)
    with serving(first, port=port) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        all_saved(root, 1)
    for key in "234":
        page.keyboard.press(key)  # the server is gone
    expect(root).to_have_attribute("data-waiting", "3")
    with serving(second, port=port) as address:
        root = open_sheet(page, address)
        page.keyboard.press("5")
        all_saved(root, 1)
    assert [event["class"] for event in stored(second)[0]] == ["heterogeneous"]
    assert len(kept_boxes(page)) == 3
    with serving(first, port=port) as address:
        all_saved(open_sheet(page, address), 0)
    assert [event["class"] for event in stored(first)[0]] == ["vertical", "diagonal", "vertical+diagonal", "block"]


@pytest.mark.slow  # a server of its own; the script by itself is in test_outbox_browser.py
def test_an_outbox_that_cannot_be_read_hides_no_other_and_is_kept(page, tmp_path):
    fill(tmp_path, 10)
    port = free_port()
    with serving(tmp_path, port=port) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        all_saved(root, 1)
    page.keyboard.press("2")
    expect(root).to_have_attribute("data-waiting", "1")
    (own,) = kept_boxes(page)
    place = "atlas-outbox:" + own.split(":")[1]  # where a version before put all events of a tab
    bad = [
        '{"',
        "null",
        "7",
        "[]",
        "[null]",
        '{"sequence": 1}',
        '[{"sequence": "one"}]',
        "\\ud800",
        '[{"sequence": 1e99}]',
    ]
    page.evaluate(
        "([place, bad]) => bad.forEach((text, k) => localStorage.setItem(`${place}:tab-${k}`, text))", [place, bad]
    )
    with serving(tmp_path, port=port) as address:
        all_saved(open_sheet(page, address), 0)
    assert [event["class"] for event in stored(tmp_path)[0]] == ["vertical", "diagonal"]
    assert kept_boxes(page) == []
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('atlas-unreadable:')).length") == 9


@pytest.mark.slow  # a server of its own; the script by itself is in test_outbox_browser.py
def test_what_cannot_be_kept_is_dropped_alone(page, tmp_path):
    """One bad event among good ones: the page says why, and dropping it keeps the others."""
    fill(tmp_path, 10)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        all_saved(root, 1)
        assert page.evaluate("localStorage.getItem('atlas-secret')")
        event = {"kind": "label", "class_set": "bert", "annotator": "ada", "pass": 1, "seconds": 1}
        events = [
            event | {"sequence": 1, "map_id": "m5", "class": "block"},
            event | {"sequence": 2, "map_id": "m6", "class": "wavy"},
            event | {"sequence": 3, "map_id": "m7", "class": "diagonal"},
        ]
        db_id = database_id(page)
        page.evaluate(
            "([key, events]) => localStorage.setItem(key, JSON.stringify(events))",
            [f"atlas-outbox:{db_id}:tab-old", events],
        )
        root = open_sheet(page, address)
        page.get_by_text("must be one of the classes").wait_for(timeout=PATIENCE)
        page.get_by_role("button", name="Drop the labels that cannot be kept").click()
        all_saved(root, 0)
    assert [row["class"] for row in stored(tmp_path)[0]] == ["vertical", "block", "diagonal"]


def database_id(page):
    return page.evaluate(
        """() => {
      const bytes = window.atlasLabels, view = new DataView(bytes.buffer, bytes.byteOffset);
      const size = view.getUint32(0, true);
      return JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size))).database;
    }"""
    )


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


@pytest.mark.slow  # a server of its own; the first test walks over the whole sheet
def test_a_class_labels_the_chosen_map_a_stroke_is_one_undo_and_coming_back_shows_the_work(page, tmp_path):
    fill(tmp_path)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        root.get_by_role("button", name="Block").click()  # no brush: the chosen map gets the class
        expect(root).to_have_attribute("data-done", "1")
        expect(root).to_have_attribute("data-place", "1")
        press(page, "2", "s", "b")
        expect(root).to_have_attribute("data-brush", "diagonal")
        area = root.locator("canvas").bounding_box()
        page.mouse.move(area["x"] + 320, area["y"] + 60)
        page.mouse.down()
        page.mouse.move(area["x"] + 800, area["y"] + 60, steps=12)
        page.mouse.up()
        assert int(root.get_attribute("data-done")) >= 5
        press(page, "Escape")
        expect(root).to_have_attribute("data-brush", "")
        press(page, "Meta+z")  # the stroke as a whole
        expect(root).to_have_attribute("data-done", "2")
        expect(root).to_have_attribute("data-waiting", "0")
        page.get_by_role("link", name="Results").click()
        page.get_by_role("heading", name="Results").wait_for(timeout=PATIENCE)
        page.get_by_role("link", name="Annotate").click()
        expect(root).to_have_attribute("data-done", "2")
        expect(root.locator(".status")).to_contain_text(f"2 of {MAPS} maps done")
        page.reload()
        expect(root).to_have_attribute("data-done", "2")  # the name is remembered as well
        expect(root).to_have_attribute("data-scale", "own")
    _, decided = stored(tmp_path)
    assert sorted(decided.values()) == ["block", "diagonal"]


@pytest.mark.slow  # a server of its own; the first test walks over the whole sheet
def test_a_sheet_is_what_the_window_holds_and_the_cursor_stays_on_it(page, tmp_path):
    fill(tmp_path)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        tall = int(root.get_attribute("data-sheet"))
        page.set_viewport_size({"width": 1280, "height": 800})
        page.wait_for_function("([root, tall]) => Number(root.dataset.sheet) < tall", arg=[root.element_handle(), tall])
        fits = "root => root.querySelector('canvas').getBoundingClientRect().bottom <= innerHeight"
        page.wait_for_function(fits, arg=root.element_handle(), timeout=PATIENCE)
        press(page, *["ArrowDown"] * 12)
        assert int(root.get_attribute("data-place")) > int(root.get_attribute("data-sheet"))
        page.wait_for_function(fits, arg=root.element_handle(), timeout=PATIENCE)
        press(page, "m")
        page.wait_for_function(
            "root => root.querySelector('canvas').getBoundingClientRect().height > 400", arg=root.element_handle()
        )
        filled = "root => innerHeight - root.querySelector('canvas').getBoundingClientRect().bottom < 80"
        page.wait_for_function(filled, arg=root.element_handle(), timeout=PATIENCE)
        page.wait_for_function(fits, arg=root.element_handle(), timeout=PATIENCE)
