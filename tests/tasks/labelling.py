"""The tasks of who labels and who leads."""

import re
from typing import Any

from playwright.sync_api import expect

from core.store import labels
from core.store.database import Database
from tests.pages.browsing import PATIENCE, settled, visit
from tests.store.labelling import a_map
from tests.studies.test_train_patterns import label_everything
from tests.tasks.hands import Hands

NAMES = ("ada", "bob", "cyd")


def stored_maps(db: Database) -> None:
    """Maps with labels of an expert, and maps that nobody has seen."""
    label_everything(db, annotator="expert")
    labels.store_maps(
        db,
        [a_map(f"new{k}", length=12, row_id=f"new-{k // 4}", layer=k % 6, head=k % 4, maximum=0.5) for k in range(60)],
    )


def named(page: Any, name: str) -> None:
    box = page.get_by_label("Your name").first
    box.fill(name)
    box.press("Enter")
    page.locator(".root[data-cursor]").wait_for()
    settled(page)


def label_and_retrain(hands: Hands) -> None:
    """By somebody who labelled here before, so that the page has their name."""
    page = hands.page
    visit(page, f"{hands.address}/annotate?view=label")
    named(page, "bob")
    visit(page, hands.address)
    hands.go("Annotate")
    root = page.locator(".root[data-cursor]")
    root.wait_for()
    hands.press("1 2 3 4 5 " * 6)  # where the focus is after a click on a link: nowhere near the sheet
    hands.press("Backspace Backspace Backspace")
    expect(root).to_have_attribute("data-done", "27")
    expect(root).to_have_attribute("data-waiting", "0")
    hands.go("Start")
    hands.go("Annotate")
    expect(root.locator(".status")).to_contain_text("27 saved")
    hands.click(page.get_by_role("button", name=re.compile(r"Retrain with \d+ new label")))
    page.get_by_text(
        # the labels are arbitrary here, so a new classifier may well be worse than the one before
        re.compile(r"The new classifier (now suggests labels|is not used, .*): \d+ of \d+ suggestions changed")
    ).wait_for(timeout=6 * PATIENCE)


def label_to_the_end(hands: Hands, project: str, name: str, key: str) -> None:
    """One person's labels, in a browser of their own."""
    context = hands.page.context.browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    visit(page, f"{hands.address}/annotate?view=label&project={project}")
    named(page, name)
    root = page.locator(".root[data-cursor]")
    for _ in range(20):
        if "hank you" in root.locator(".word").inner_text() or "free for you" in root.locator(".word").inner_text():
            break
        page.keyboard.press(key)
        hands.keys += 1
        expect(root).to_have_attribute("data-waiting", "0")
        page.wait_for_timeout(300)  # the next maps are fetched after the last label of a sheet
    context.close()


def lead_a_project(hands: Hands) -> None:
    page = hands.page
    hands.go("Projects")
    hands.fill(page.get_by_label("Your name").first, "lead")
    hands.click(page.get_by_role("button", name="New project"))
    hands.fill(page.get_by_role("textbox", name="Title").first, "Three of us", enter="Tab")
    hands.fill(page.get_by_role("spinbutton", name="Maps", exact=True), "6", enter="Tab")
    hands.fill(page.get_by_role("textbox", name="Who may label"), ", ".join(NAMES), enter="Tab")
    hands.click(page.get_by_text("Gold maps, exemplars and repeated maps"))
    hands.fill(page.get_by_role("spinbutton", name="Gold maps", exact=True), "1", enter="Tab")
    hands.choose("Gold labels from", "expert")
    hands.click(page.get_by_role("button", name="Create project"))
    project = re.search(r"project=(\w+)", page.get_by_role("link", name="Label in it").get_attribute("href"))[1]
    for name, key in zip(NAMES, "134", strict=True):
        label_to_the_end(hands, project, name, key)
    hands.view("Adjudication")
    hands.choose("Labels of", "Three of us")
    root = page.locator(".root[data-cursor]")
    root.wait_for()
    for _ in range(20):
        done, every = re.search(r"(\d+) of (\d+) maps", root.locator(".status").inner_text()).groups()
        if done == every:
            break
        hands.press("2")
    assert hands.keys
    expect(root).to_have_attribute("data-waiting", "0")
    hands.view("Aggregated labels")
    hands.choose("Labels of", "Three of us")
    with page.expect_download() as sent:
        hands.click(page.get_by_role("button", name=re.compile("CSV")).first)
    table = sent.value.path().read_text(encoding="utf-8")
    decided = [line for line in table.splitlines() if ",True," in line]
    assert decided, table[:300]
    assert all(",diagonal," in line for line in decided), decided
