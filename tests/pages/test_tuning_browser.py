"""Fine-tuning and change in a real browser: start, watch, cancel, go on, and open what came out."""

import re

import pytest
from playwright.sync_api import expect

from tests.capture.conftest import tiny
from tests.pages.browsing import PATIENCE, painted, serving, settled, visit

pytestmark = pytest.mark.browser
LONG = 3 * PATIENCE  # a worker imports torch first
STEP = re.compile(r"step (\d+) of (\d+) · about .* left")


@pytest.fixture
def address(tmp_path) -> str:
    """A server with its own checkpoints, whose one thread a worker leaves the other core to the browser."""
    with serving(tmp_path, processes=True, ATLAS_WORKERS="2") as found:
        yield found


@pytest.fixture
def checkpoint(tmp_path) -> str:
    base = tiny("bert")
    base.model.save_pretrained(tmp_path / "tiny")
    base.tokenizer.save_pretrained(tmp_path / "tiny")
    return str(tmp_path / "tiny")


def fill(page, label: str, value: int) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(str(value))
    box.press("Enter")
    settled(page)


def step(page, beyond: int) -> int:
    """Wait until a run under way is seen to be further than a step; the step seen."""
    page.wait_for_function(
        "beyond => [...document.querySelectorAll('[data-testid=stMarkdown]')].some(one => "
        "Number((one.innerText.match(/step (\\d+) of \\d+ · about .* left/) || [])[1]) > beyond)",
        arg=beyond,
        timeout=LONG,
    )
    return int(STEP.search(page.locator('[data-testid="stMain"]').inner_text())[1])


@pytest.mark.slow
def test_a_run_is_watched_cancelled_resumed_and_its_checkpoint_opens(address, page, checkpoint):
    page.set_default_timeout(LONG)
    visit(page, f"{address}/finetuning?checkpoint={checkpoint}")
    page.get_by_text("Data and settings").click()
    for label, value in {
        "Seeds": 2,
        "Epochs": 100,
        "Dev examples, at most": 16,
        "Tokens per example, at most": 24,
    }.items():
        fill(page, label, value)
    start = page.get_by_role("button", name="Fine-tune", exact=True)
    start.click()
    seen = step(page, beyond=0)
    page.get_by_text("of 2 units").wait_for()
    page.get_by_test_id("stVegaLiteChart").nth(1).wait_for()  # training loss, and the metric on dev, of each run
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Resume").click()
    step(page, beyond=seen + 63)  # an epoch further
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Resume").wait_for()
    settled(page)

    fill(page, "Epochs", 1)
    fill(page, "Train examples, at most", 32)
    start.click()
    page.get_by_role(
        "heading", name="Scores compared with Table 1 of Kovaleva et al. and of the GPT-2 replication"
    ).wait_for()
    page.get_by_role("button", name="Show how attention changed").click()  # begins the comparison, and opens its view
    page.get_by_text("Details", exact=True).click()
    settled(page)
    change_is_read_and_leads_to_maps(page)


def change_is_read_and_leads_to_maps(page) -> None:
    """A click on a head's cell chooses it; its link opens both maps of the row where it changed most."""
    picture = page.get_by_test_id("stVegaLiteChart").first
    for layer, head in ((1, 1), (3, 4)):
        picture.locator(f'path[aria-label^="head: {head}; layer: {layer};"]').click()
        page.get_by_role("link", name=f"L{layer}H{head} before and after").first.wait_for()
    page.get_by_role("link", name="L3H4 before and after").first.click()
    page.get_by_role("heading", name="Attention maps").wait_for()
    expect(painted(page).locator(".column")).to_have_count(3)  # before, after, and their difference
    assert "runs/finetuned/tiny-sst2-pretrained-s0" in page.url.replace("%2F", "/")
