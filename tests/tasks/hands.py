"""Whoever does a task in the browser, and what a task is."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import TimeoutError as TooLate
from playwright.sync_api import expect

from tests.pages.browsing import settled

BEGINS = 1000  # ms in which a page that has something to do about a field begins


def answered(page: Any) -> None:
    """Wait until the page has done what a field asked of it; some fields ask for nothing."""
    with suppress(TooLate):
        page.locator('[data-testid="stApp"][data-test-script-state="running"]').wait_for(timeout=BEGINS)
    settled(page)


@dataclass
class Hands:
    """Whoever does a task: a window, the server's folder and address, and what they have clicked so far."""

    page: Any
    folder: Path
    address: str
    clicks: int = 0
    keys: int = 0

    def click(self, what: Any) -> None:
        what.click()
        self.clicks += 1
        settled(self.page)

    def go(self, name: str) -> None:
        """A link of the sidebar."""
        self.click(self.page.locator(".st-key-pages").get_by_role("link", name=name, exact=True))
        self.page.locator('[data-testid="stMain"] h1').filter(has_text=name).wait_for()
        settled(self.page)

    def view(self, name: str) -> None:
        """A view of the page."""
        self.click(self.page.get_by_role("radio", name=name, exact=True).first)
        expect(self.page.get_by_role("radio", name=name, exact=True).first).to_be_checked()
        settled(self.page)

    def press(self, keys: str) -> None:
        """Keys of labelling, one after another."""
        for key in keys.split():
            self.page.keyboard.press(key)
            self.keys += 1

    def fill(self, what: Any, text: str, *, enter: str = "Enter") -> None:
        what.fill(text)
        what.press(enter)
        self.clicks += 1
        answered(self.page)

    def choose(self, label: str, option: str) -> None:
        """One of a select box: a field."""
        self.page.get_by_role("combobox", name=label).first.click()
        self.page.get_by_role("option", name=option).first.click()
        self.clicks += 1
        answered(self.page)


@dataclass(frozen=True)
class Task:
    """What somebody wants, and the most clicks it may take."""

    what: str
    most: int
    do: Callable[[Hands], None]
