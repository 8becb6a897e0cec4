"""The database in trouble, as someone in a browser meets it: one sentence, nothing lost, and on it goes."""

import os
import resource

import pytest
from playwright.sync_api import expect

from core.store.database import Database
from tests.pages.browsing import PATIENCE, process_of, serving, settled, visit
from tests.pages.test_label_browser import all_saved, fill, open_sheet, stored

pytestmark = pytest.mark.browser


def the_one_alert(page) -> str:
    page.get_by_role("alert").first.wait_for(timeout=PATIENCE)
    settled(page)
    expect(page.get_by_role("alert")).to_have_count(1)
    return page.get_by_role("alert").inner_text()


@pytest.mark.slow  # 6 CPU seconds; the outbox and a full disk have tests each of their own
def test_labels_wait_in_the_browser_while_the_disk_is_full(page, tmp_path):
    fill(tmp_path)
    with serving(tmp_path) as address:
        root = open_sheet(page, address)
        page.keyboard.press("1")
        all_saved(root, 1)
        server = process_of(address)
        _, most = resource.prlimit(server, resource.RLIMIT_FSIZE)
        log = max((file.stat().st_size for file in tmp_path.glob("*.wal")), default=0)  # none: it was just folded in
        resource.prlimit(server, resource.RLIMIT_FSIZE, (log, most))  # stands for a disk without one free byte
        for waiting, key in enumerate("23", 1):
            page.keyboard.press(key)
            expect(root.locator(".word")).to_contain_text("its disk is full", timeout=PATIENCE)
            expect(root).to_have_attribute("data-waiting", str(waiting))
        expect(page.get_by_role("button", name="Drop the labels")).to_have_count(0)
        resource.prlimit(server, resource.RLIMIT_FSIZE, (most, most))
        all_saved(root, 3)  # by itself, in the next seconds
        expect(root.locator(".word")).to_be_empty()
        root.locator("canvas").focus()
        page.keyboard.press("4")
        all_saved(root, 4)
    events, decided = stored(tmp_path)
    assert [event["sequence"] for event in events] == [1, 2, 3, 4]
    assert len(decided) == 4


@pytest.mark.slow  # 5 CPU seconds, a server of its own; the sentence and the store's side are in tests/store
def test_a_read_only_file(page, tmp_path):
    fill(tmp_path)
    (tmp_path / "atlas.duckdb").chmod(0o444)
    with serving(tmp_path, unprivileged=True) as address:
        visit(page, f"{address}/annotate")
        assert "read-only" in the_one_alert(page)
        visit(page, f"{address}/maps?text=The cat sat.")  # a page without labels works
        expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.slow  # 5 CPU seconds, a server of its own; the sentence and the store's side are in tests/store
def test_a_file_that_another_process_holds_until_it_ends(page, tmp_path):
    fill(tmp_path)
    holder = Database(tmp_path / "atlas.duckdb")
    with serving(tmp_path) as address:
        visit(page, f"{address}/results?view=jobs")
        assert f"process {os.getpid()} " in the_one_alert(page)
        holder.close()
        visit(page, f"{address}/results?view=jobs")
        page.get_by_text("No job has been started yet").wait_for(timeout=PATIENCE)
        expect(page.get_by_text("has it open")).to_have_count(0)
