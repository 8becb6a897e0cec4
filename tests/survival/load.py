"""Viewers who browse every page while a job runs; and one who browses for long, with the server's memory watched."""

import tempfile
import time
from pathlib import Path

import numpy as np

from pages.parts import shell
from tests.pages.browsing import browsing, serving, visit
from tests.pages.test_label_browser import fill

PAGES = [page.name for page in shell.PAGES]
TEXT = "The keys to the old cabinet were on the table."


def memory_of(address: str) -> float:
    """MB that the server at `address` keeps in memory (Linux)."""
    port = address.rsplit(":", 1)[1].encode()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
            if b"streamlit" in words and port in words:
                lines = (file.parent / "status").read_text().splitlines()
                return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
        except (OSError, StopIteration):
            continue
    raise ProcessLookupError(address)


def start_job(browser, address: str) -> None:
    """Start the statistics of the bundled checkpoint on its page, as a user does; a job runs when this returns."""
    page = browser.new_page()
    visit(page, f"{address}/statistics?inputs=task+rows")
    page.get_by_role("button", name="Run", exact=True).first.click()
    page.get_by_text(" running").first.wait_for()


def main(viewers: int = 20, rounds: int = 3) -> dict[str, object]:
    """`viewers` open pages in turn for `rounds` rounds while a job runs; seconds until a page has settled."""
    with (
        tempfile.TemporaryDirectory() as name,
        serving(Path(name), ATLAS_WORKERS="1") as address,
        browsing() as browser,
    ):
        pages = [browser.new_context().new_page() for _ in range(viewers)]
        for page in pages:  # a first visit downloads the front end; it is not what is measured
            visit(page, f"{address}/maps?text={TEXT}")
        job = True
        try:
            start_job(browser, address)
        except Exception as error:  # the table says so; the rest is still worth measuring
            job = type(error).__name__
        before, taken, errors = memory_of(address), [], 0
        for turn in range(rounds):
            for number, page in enumerate(pages):
                begun = time.perf_counter()
                visit(page, f"{address}/{PAGES[(turn + number) % len(PAGES)]}")
                taken.append(time.perf_counter() - begun)
                errors += page.get_by_test_id("stException").count() + page.get_by_text("met a defect").count()
        after = memory_of(address)
    return {
        "viewers": viewers,
        "a job ran": job,
        "pages opened": len(taken),
        "errors": errors,
        "p50 s": float(np.median(taken)),
        "p95 s": float(np.quantile(taken, 0.95)),
        "memory before, MB": before,
        "memory after, MB": after,
        "passed": errors == 0 and job is True and float(np.quantile(taken, 0.95)) <= 1.0,
    }


def soak(minutes: float = 10.0) -> dict[str, object]:
    """One viewer goes round all pages; memory after the first two rounds and at the end."""
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name))
        with serving(Path(name)) as address, browsing() as browser:
            page, seen, opened = browser.new_page(), [], 0
            end = time.monotonic() + minutes * 60
            while len(seen) < 3 or time.monotonic() < end:
                for one in PAGES:
                    visit(page, f"{address}/{one}?text={TEXT} {opened}")
                    opened += 1
                seen.append(memory_of(address))
    settled = seen[1]
    return {
        "minutes": minutes,
        "pages opened": opened,
        "memory after two rounds, MB": settled,
        "memory at the end, MB": seen[-1],
        "growth, MB": seen[-1] - settled,
        "passed": seen[-1] - settled < max(100.0, 0.1 * settled),
    }
