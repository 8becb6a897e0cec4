"""What the maps page saves as one file opens from disk, with the head that was chosen."""

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import drawn, painted, visit

pytestmark = pytest.mark.browser


def from_disk(page, file):
    """Save the page that is shown and open the file; returns its grid, and the addresses that it asks for."""
    with page.expect_download() as saved:
        page.get_by_role("button", name="Page (HTML)").click()
    saved.value.save_as(file)
    asked = []
    # the page that is left may still tell its server that it was painted: the file's own requests count
    page.on("request", lambda request: asked.append(request.url) if request.frame.url.startswith("file:") else None)
    page.goto(file.as_uri())
    return drawn(page), asked


@pytest.mark.slow  # 3 CPU seconds; saved pages open from disk in tests/drawing
def test_the_page_that_is_saved_opens_from_disk_with_the_same_head(page, address, tmp_path):
    visit(page, f"{address}/maps?head=L2H3")
    expect(painted(page)).to_have_attribute("data-head", "L2H3")
    root, asked = from_disk(page, tmp_path / "maps.html")
    expect(root).to_have_attribute("data-head", "L2H3")
    expect(root.get_by_role("gridcell")).to_have_count(36)
    assert [url for url in asked if not url.startswith("file:")] == []
    assert "python -m core maps atlas-encoder" in page.locator("pre").inner_text()


@pytest.mark.slow  # 11 CPU seconds; the page of a sentence is saved in the test above
def test_a_heads_page_is_saved_with_its_gallery_and_explored_from_disk(page, address, tmp_path):
    visit(page, f"{address}/heads?view=one&head=L2H2&gallery=true")
    expect(page.locator("[class*=st-key-gallery_maps] .root figure canvas")).to_have_count(15)
    page.get_by_role("button", name="Save", exact=False).last.click()
    root, asked = from_disk(page, tmp_path / "head.html")
    expect(root).to_have_attribute("data-head", "L2H2")
    expect(root.get_by_role("gridcell")).to_have_count(36)
    root.get_by_role("button", name="Lines").click()
    page.get_by_role("button", name="highest 1").click()
    expect(root.get_by_role("gridcell")).to_have_count(1)
    expect(root).to_have_attribute("data-head", "L2H2")
    expect(root.locator(".reading")).to_contain_text("What each token receives")
    root.get_by_role("button", name="Matrix").click()
    margin, cell = map(float, root.locator(".oneBox").get_attribute("data-frame").split(","))
    root.locator("canvas.over").hover(position={"x": margin + 0.5 * cell, "y": margin + 1.5 * cell})
    expect(root.locator(".reading")).to_contain_text("L2H2: from “")
    expect(page.get_by_text("next token: 0.92", exact=False).first).to_be_visible()
    assert [url for url in asked if not url.startswith("file:")] == []
