"""What the maps page saves as one file opens from disk, with the head that was chosen."""

import pytest
from playwright.sync_api import expect

from tests.pages.browsing import painted, visit

pytestmark = pytest.mark.browser


def test_the_page_that_is_saved_opens_from_disk_with_the_same_head(page, address, tmp_path):
    visit(page, f"{address}/maps?head=L2H3")
    expect(painted(page)).to_have_attribute("data-head", "L2H3")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Page (HTML)").click()
    file = tmp_path / "maps.html"
    saved.value.save_as(file)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    root = painted(page)
    expect(root).to_have_attribute("data-head", "L2H3")
    expect(root.get_by_role("gridcell")).to_have_count(36)
    assert [url for url in asked if not url.startswith("file:")] == []
    assert "python -m core maps atlas-encoder" in page.locator("pre").inner_text()
