"""Twelve tasks of four kinds of users in a real browser, counted in clicks: `python -m tests.tasks --json`.

A click is a click; filling or choosing a field is one; keys of labelling are counted apart. Each task begins on *Start*
of a server with the results that ship, and ends on what it was for, which is checked.
"""

import argparse
import json
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, expect

from tests.pages.browsing import PATIENCE, browsing, painted, serving, visit
from tests.tasks.hands import Hands, Task
from tests.tasks.labelling import label_and_retrain, lead_a_project, stored_maps
from tests.tasks.tuning import tuned_change

SENTENCE = "He was becoming agitated about the noise."


def previous_token_head(hands: Hands) -> None:
    page = hands.page
    hands.fill(page.get_by_label("Sentence", exact=True), SENTENCE)
    page.wait_for_url("**/maps?**")
    root = painted(page)
    assert page.get_by_label("Second sentence").input_value() == ""
    root.get_by_label("Order by").select_option("previous")
    hands.clicks += 1
    expect(root.get_by_label("Show")).to_have_value("highest")
    expect(page).to_have_url(re.compile("score="))
    with page.expect_download() as sent:
        hands.click(page.get_by_role("button", name="Page (HTML)"))
    assert "agitated" in sent.value.path().read_text(encoding="utf-8")


def frame_heads(hands: Hands) -> None:
    page = hands.page
    hands.go("Linguistics")
    hands.view("Frame relations")
    hands.fill(page.get_by_label("Sentence", exact=True), SENTENCE)
    page.get_by_role("option", name="agitated, target").wait_for()
    page.get_by_role("option", name="He, element").wait_for()
    hands.choose("Compare with", "atlas-decoder")
    expect(page.get_by_test_id("stMain").get_by_text("attends from", exact=False)).to_have_count(2)


def heads_that_matter(hands: Hands) -> None:
    hands.go("Interventions")
    hands.view("On a task")
    expect(hands.page.get_by_text("significant").first).to_be_visible()


def own_folder(hands: Hands) -> None:
    from core.config import BUNDLED_MODELS, ENCODER

    hands.go("Attention maps")
    box = hands.page.get_by_role("combobox", name="Checkpoint").first
    box.click()
    box.fill(str(BUNDLED_MODELS / ENCODER))
    box.press("Enter")
    hands.clicks += 1
    painted(hands.page)
    expect(hands.page).to_have_url(re.compile("checkpoint="))
    expect(hands.page.get_by_test_id("stException")).to_have_count(0)


def one_head_in_two(hands: Hands) -> None:
    hands.go("Attention maps")
    painted(hands.page)
    hands.choose("Compare with", "atlas-decoder")
    painted(hands.page)
    expect(hands.page.locator(".root canvas")).not_to_have_count(0)
    expect(hands.page).to_have_url(re.compile("beside=atlas-decoder"))


def figure_and_citation(hands: Hands) -> None:
    page = hands.page
    hands.go("Statistics")
    hands.click(page.get_by_role("button", name="Save or cite").first)
    expect(page.get_by_test_id("stCode").filter(has_text="@software").first).to_be_visible()
    with page.expect_download() as kept:
        hands.click(page.get_by_role("button", name="SVG", exact=True).first)
    assert kept.value.path().read_text(encoding="utf-8").startswith("<svg")


def delete_earlier(hands: Hands) -> None:
    page = hands.page
    hands.go("Results")
    hands.fill(page.get_by_role("textbox", name="Search"), "of mine")
    expect(page.get_by_text(re.compile(r"^1 of \d+ results"))).to_be_visible()
    hands.click(page.get_by_role("button", name="Delete"))
    expect(page.get_by_text("Deleted: Statistics of mine")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()


def own_sentences(hands: Hands) -> None:
    page = hands.page
    hands.go("Linguistics")
    hands.view("Your sentences")
    sentences = "\n".join(f"The old dog number {k} saw the cat." for k in range(200))
    hands.fill(page.get_by_role("textbox", name="Sentences, one on each line"), sentences, enter="Control+Enter")
    hands.click(page.get_by_text("Measure these sentences").first)
    page.get_by_text("200 inputs").first.wait_for(timeout=4 * PATIENCE)


def stop_and_resume(hands: Hands) -> None:
    page = hands.page
    visit(page, page.url.split("?")[0].rstrip("/") + "/results?view=jobs")
    hands.click(page.get_by_role("button", name="Resume").first)  # the stopped job goes on
    hands.click(page.get_by_test_id("stMain").get_by_role("button", name="Stop").first)
    page.get_by_role("button", name="Resume").first.wait_for(timeout=PATIENCE)


TASKS = {
    "a": Task("all heads on my sentence, the previous-token head, send it", 6, previous_token_head),
    "b": Task("label 30, undo 3, leave, come back, retrain, see what changed", 4, label_and_retrain),
    "c": Task("which heads attend between two words, in two checkpoints", 4, frame_heads),
    "d": Task("fine-tune, see the change", 4, tuned_change),
    "e": Task("which heads matter, and is it luck", 2, heads_that_matter),
    "f": Task("open a folder of my own", 2, own_folder),
    "g": Task("a project: three people, gold, assigned, adjudicated, exported", 15, lead_a_project),
    "h": Task("one head in two checkpoints", 2, one_head_in_two),
    "i": Task("a figure as SVG, and a citation", 3, figure_and_citation),
    "j": Task("find an earlier result, delete it", 3, delete_earlier),
    "k": Task("200 sentences of mine, feature statistics", 4, own_sentences),
    "l": Task("stop a long job, resume it", 2, stop_and_resume),
}


def fill(folder: Path) -> None:
    """A result of one's own, and a long job that was stopped."""
    from core.store import jobs, runs
    from core.store.database import Database

    with Database(folder / "atlas.duckdb") as db:
        run = runs.record_run(
            db, "statistics", {}, runs.Provenance("atlas-encoder", task="sst2"), title="Statistics of mine"
        )
        runs.store_rows(db, run, [{"statistic": "entropy", "layer": 0, "head": 1, "value": 0.5, "task": "sst2"}])
        job = jobs.add_job(db, "statistics", "A long job", {"tasks": ["qqp"], "limit": 300})
        jobs.set_state(db, job, "cancelled")
        stored_maps(db)


def done(task: Task, browser: Any, address: str, folder: Path) -> dict[str, Any]:
    """One task from Start: how many clicks, and whether it ended right within them."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    hands, trouble = Hands(page, folder, address), ""
    visit(page, address)
    painted(page)
    try:
        task.do(hands)
    except (AssertionError, Error) as error:
        trouble = (str(error).splitlines() or [repr(error)])[0][:300]
        with suppress(Error):
            page.screenshot(path=folder / "failed.png")
    context.close()
    found = {
        "what": task.what,
        "clicks": hands.clicks,
        "most": task.most,
        "keys": hands.keys,
        "done": not trouble and hands.clicks <= task.most,
    }
    return found | ({"trouble": trouble} if trouble else {})


def run(names: list[str]) -> dict[str, dict[str, Any]]:
    """These tasks, each on its own page of one server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        with serving(folder, ATLAS_RECORD="") as address, browsing() as browser:
            return {letter: done(TASKS[letter], browser, address, folder) for letter in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=list(TASKS), help=f"some of {' '.join(TASKS)}")
    parser.add_argument("--json", action="store_true", help="one object instead of lines")
    options = parser.parse_args()
    found = run(options.tasks)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for letter, one in found.items():
        print(
            f"{letter}  {'done' if one['done'] else 'NOT '}  {one['clicks']} of {one['most']}  {one['what']}"
            + (f": {one['trouble']}" if "trouble" in one else "")
        )


if __name__ == "__main__":
    main()
