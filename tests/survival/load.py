"""Viewers who browse every page while a job runs; and one who browses for long, with the server's memory watched."""

import tempfile
import time
from pathlib import Path

import numpy as np

from pages.parts import shell
from tests.pages.browsing import PATIENCE, browsing, process_of, serving, visit
from tests.pages.test_label_browser import fill

PAGES = [page.name for page in shell.PAGES]
TEXT = "The keys to the old cabinet were on the table."


def memory_of(address: str) -> float:
    """MB that the server at `address` keeps in memory (Linux)."""
    lines = Path(f"/proc/{process_of(address)}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


BROWSE = """
([start, visits, pause]) => {
  const links = () => [...document.querySelectorAll('[data-testid="stSidebarNavLink"]')];
  const title = () => document.querySelector('[data-testid="stMain"] h1')?.textContent;
  const taken = [], found = { taken, errors: [] };
  window.atlasVisits = found;
  const next = () => {
    if (taken.length >= visits) return;
    const before = title(), all = links(), began = performance.now();
    let ran = false;
    const watch = new MutationObserver(() => {
      const state = document.querySelector('[data-testid="stApp"]').dataset.testScriptState;
      ran = ran || state === "running";
      if (!ran || state !== "notRunning" || !title() || title() === before) return;
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
    """Start studies of the bundled checkpoint on their pages, as a user does: one runs, the others wait for it."""
    page = browser.new_page()
    for study in ("statistics", "features", "relations"):
        visit(page, f"{address}/{study}?inputs=task+rows")
        page.get_by_role("button", name="Run", exact=True).first.click()
        page.get_by_text("running").first.wait_for(timeout=PATIENCE)
    page.context.close()


def main(viewers: int = 20, visits: int = 7, pause: float = 10.0) -> dict[str, object]:
    """`viewers` go from page to page by the sidebar, one in `pause` seconds each, while jobs run.

    Seconds from the click until the page of that name has settled; memory of the server before and after.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        serving(Path(name), ATLAS_WORKERS="1") as address,
        browsing() as browser,
    ):
        pages = [browser.new_context().new_page() for _ in range(viewers)]
        for page in pages:  # a first visit downloads the front end; it is not what is measured
            visit(page, f"{address}/maps?text={TEXT}")
        start_jobs(browser, address)
        before = memory_of(address)
        for number, page in enumerate(pages):
            page.evaluate(BROWSE, [number, visits, pause * 1000])
        for page in pages:
            page.wait_for_function(
                f"window.atlasVisits.taken.length >= {visits}", timeout=PATIENCE + 3000 * visits * pause
            )
        seen = [page.evaluate("window.atlasVisits") for page in pages]
        running = pages[0].get_by_text(" running").count() > 0
        after = memory_of(address)
    taken, errors = ([value for one in seen for value in one[name]] for name in ("taken", "errors"))
    return {
        "viewers": viewers,
        "a job ran all the time": running,
        "pages opened": len(taken),
        "errors": len(errors),
        "what they said": "; ".join(sorted(set(errors)))[:2000],
        "p50 s": float(np.median(taken)),
        "p95 s": float(np.quantile(taken, 0.95)),
        "slowest s": max(taken),
        "memory before, MB": before,
        "memory after, MB": after,
        "passed": not errors and running and float(np.quantile(taken, 0.95)) <= 1.0 and after - before < 500,
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
