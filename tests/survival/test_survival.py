"""The fast forms of what `python -m tests.survival` runs at length."""

import pytest

from tests.event_loops import finished
from tests.pages.browsing import serving
from tests.survival import kills, viewers


@pytest.mark.thorough
def test_kills_lose_no_acknowledged_label():
    found = kills.main(3)
    assert found["passed"], found


def test_a_viewer_without_a_screen_opens_pages_and_reads_what_is_wrong(tmp_path):
    async def look(address: str) -> viewers.Seen:
        seen = viewers.Seen()
        async with viewers.opened(address, seen) as viewer:
            for page, query in (("results", "view=jobs"), ("maps", "text=Hello.&checkpoint=/none"), ("none", "")):
                assert await viewer.visit(page, query) > 0
        return seen

    with serving(tmp_path) as address:
        errors = finished(look(address)).errors
    assert "/none" in errors[0]
    assert "none: there is no such page" in errors  # the first page is shown then, with what was typed there
