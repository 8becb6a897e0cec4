"""Viewers who browse every page while a job runs; and one who browses for long, with the server's memory watched."""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from pages.parts.shell import shell
from tests.pages.browsing import PATIENCE, browsing, process_of, serving, settled, visit
from tests.pages.test_label_browser import fill
from tests.survival.viewers import browse_all

PAGES = ["", *(page.name for page in shell.PAGES[1:])]  # the first is at the app's own address
TEXT = "The keys to the old cabinet were on the table."


def memory_of(address: str) -> float:
    """MB that the server at `address` keeps in memory (Linux)."""
    lines = Path(f"/proc/{process_of(address)}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


BROWSE = """
([start, visits, pause]) => {
  const links = () => [...document.querySelectorAll('.st-key-pages a')];
  const title = () => document.querySelector('[data-testid="stMain"] h1')?.textContent;
  const taken = [], found = { taken, errors: [] };
  window.atlasVisits = found;
  const next = () => {
    if (taken.length >= visits) return;
    const before = title(), all = links(), began = performance.now();
    const watch = new MutationObserver(() => {
      const state = document.querySelector('[data-testid="stApp"]').dataset.testScriptState;
      if (state !== "notRunning" || !title() || title() === before) return;  // a title comes with its run, not before
      watch.disconnect();
      taken.push((performance.now() - began) / 1000);
      const said = document.querySelectorAll('[data-testid="stException"], [data-testid="stAlertContentError"]');
      found.errors.push(...[...said].map((one) => `${title()}: ${one.textContent}`));
      setTimeout(next, pause * (0.5 + Math.random()));
    });
    watch.observe(document.body, { subtree: true, childList: true, attributes: true,
      attributeFilter: ["data-test-script-state"] });
    const here = all.findIndex((link) => link.pathname === location.pathname);
    all[(here + 1 + (start % 5)) % all.length].click();
  };
  setTimeout(next, (pause * start) / 10);
}
"""


def start_jobs(browser, address: str) -> None:
    """Start work on its pages, as a user does: a study, and fine-tunings that last longer than the visits."""
    page = browser.new_page()
    visit(page, f"{address}/statistics?inputs=task+rows")
    page.get_by_role("button", name="Run", exact=True).first.click()
    page.get_by_text("running").first.wait_for(timeout=PATIENCE)
    visit(page, f"{address}/finetuning")
    seeds = page.get_by_label("Seeds", exact=True)
    seeds.fill("20")
    seeds.press("Enter")
    settled(page)
    page.get_by_role("button", name="Fine-tune", exact=True).click()
    page.get_by_role("button", name="Stop").first.wait_for(timeout=PATIENCE)
    page.context.close()


def main(viewers: int = 20, visits: int = 12, pause: float = 5.0) -> dict[str, object]:
    """`viewers` go from page to page, one in about `pause` seconds each, while jobs run; one of them in a browser.

    Seconds from asking for a page until its script has finished, and from the browser's click until the page of that
    name has settled; memory of the server before and after.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        serving(Path(name), ATLAS_WORKERS="1") as address,
        browsing() as browser,
        ThreadPoolExecutor(1) as elsewhere,
    ):
        page = browser.new_context().new_page()
        visit(page, f"{address}/maps?text={TEXT}")  # the first visit downloads the front end
        start_jobs(browser, address)
        before = memory_of(address)
        query = urlencode({"text": TEXT})
        others = elsewhere.submit(browse_all, address, viewers - 1, PAGES, query, visits, pause)
        page.evaluate(BROWSE, [1, visits, pause * 1000])
        page.wait_for_function(f"window.atlasVisits.taken.length >= {visits}", timeout=PATIENCE + 3000 * visits * pause)
        seen, opened = page.evaluate("window.atlasVisits"), others.result()
        running = page.get_by_text(" running").count() > 0
        after = memory_of(address)
    taken = [value for one in opened for value in one.seconds]
    errors = [*seen["errors"], *(said for one in opened for said in one.errors)]
    return {
        "viewers": viewers,
        "a job ran all the time": running,
        "pages opened": len(taken) + len(seen["taken"]),
        "errors": len(errors),
        "what they said": "; ".join(sorted(set(errors)))[:2000],
        "script finished, p50 s": float(np.median(taken)),
        "script finished, p95 s": float(np.quantile(taken, 0.95)),
        "slowest s": max(taken),
        "settled in the browser, p50 s": float(np.median(seen["taken"])),
        "settled in the browser, p95 s": float(np.quantile(seen["taken"], 0.95)),
        "memory before, MB": before,
        "memory after, MB": after,
        "passed": not errors
        and running
        and max(float(np.quantile(some, 0.95)) for some in (taken, seen["taken"])) <= 1.0
        and after - before < 500,
    }


def soak(minutes: float = 10.0) -> dict[str, object]:
    """One viewer goes round all pages; memory after the first two rounds, when the caches are full, and at the end."""
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
    settled, half = seen[1], seen[len(seen) // 2]
    return {
        "minutes": minutes,
        "pages opened": opened,
        "memory after two rounds, MB": settled,
        "memory at half time, MB": half,
        "memory at the end, MB": seen[-1],
        "growth in the second half, MB": seen[-1] - half,
        "passed": seen[-1] - settled < max(100.0, 0.1 * settled) and seen[-1] - half < 0.03 * half,
    }
