"""Alike maps labelled together in a real browser: one key, unmarked maps, undo of a step or a map, a killed server."""

import numpy as np
import pytest
from playwright.sync_api import expect

from core.store import labels
from core.store.database import Database
from tests.pages.browsing import free_port, serving
from tests.pages.test_label_browser import all_saved, open_sheet, stored
from tests.patterns.test_clusters import planted
from tests.store.labelling import a_map

pytestmark = pytest.mark.browser


def fill(folder, per_class, copies=1):
    """Maps of three patterns to label; equal maps are one group."""
    maps = planted(per_class)[0] * copies
    db = Database(folder / "atlas.duckdb")
    rows = []
    for k, weights in enumerate(maps):
        facts = {"maximum": float(weights.max()), "weights": weights.astype("<f2").tobytes()}
        rows.append(a_map(f"m{k}", length=len(weights), row_id=f"dev-{k}") | facts)
    labels.store_maps(db, rows)
    db.close()


@pytest.mark.slow  # a server of its own
def test_one_key_labels_alike_maps_but_those_unmarked_and_undo_takes_back_a_step_or_a_map(page, tmp_path):
    fill(tmp_path, 67)
    port = free_port()
    with serving(tmp_path, port=port) as address:
        root = open_sheet(page, address, at="annotate?order=clusters")
        expect(root).to_have_attribute("data-mode", "together")
        shown = int(root.get_attribute("data-sheet"))
        assert 2 < shown <= 24
        expect(root).to_have_attribute("data-marked", str(shown))
        page.keyboard.press("x")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("x")
        expect(root).to_have_attribute("data-marked", str(shown - 2))
        tiles = root.locator("canvas").bounding_box()
        page.mouse.click(tiles["x"] + 60, tiles["y"] + 60)  # marks the first map again
        expect(root).to_have_attribute("data-marked", str(shown - 1))
        page.keyboard.press("1")
        expect(root).to_have_attribute("data-done", str(shown - 1))
        expect(root).to_have_attribute("data-place", "1")  # the unmarked map
        page.keyboard.press("2")
        expect(root).to_have_attribute("data-done", str(shown))
        expect(root).to_have_attribute("data-place", str(shown))  # the next group
        page.keyboard.press("Backspace")
        page.keyboard.press("Backspace")
        expect(root).to_have_attribute("data-done", "0")
        page.keyboard.press("1")
        page.mouse.click(tiles["x"] + 60, tiles["y"] + 60)
        done = int(root.get_attribute("data-done"))
        all_saved(root, 0)
    events, decided = stored(tmp_path)
    together = [event for event in events if event["way"] == "together"]
    assert {event["kind"] for event in together} == {"label"}
    assert {event["queue_order"] for event in together} == {"clusters"}
    assert len({event["happened"] for event in together}) == 2  # two keys
    assert [event["way"] for event in events if event["class"] == "diagonal"] == ["single"]
    assert len(decided) == done == shown - 2
    assert max(event["seconds"] for event in together) < 60


@pytest.mark.slow  # a server of its own, twice
def test_200_maps_are_labelled_in_groups_while_the_server_is_killed(page, tmp_path):
    fill(tmp_path, 67)
    port = free_port()
    with serving(tmp_path, port=port) as address:
        root = open_sheet(page, address, at="annotate?order=clusters")
        page.keyboard.press("1")
        all_saved(root, 2)
    keys = 1
    while int(root.get_attribute("data-done")) < 201:
        page.keyboard.press("12345"[keys % 5])
        keys += 1
        assert keys < 100
    with serving(tmp_path, port=port):
        all_saved(root, 201)
    events, decided = stored(tmp_path)
    assert len(events) == len(decided) == 201
    steps = {}
    for event in events:
        steps.setdefault((event["happened"], event["class"]), []).append(event["map_id"])
    assert np.mean([len(step) for step in steps.values()]) > 2
