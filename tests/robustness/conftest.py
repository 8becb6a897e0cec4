"""The browser of tests/pages, here too."""

from tests.pages.conftest import browser, page

__all__ = ["browser", "page"]
