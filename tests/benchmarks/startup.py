"""What a user waits for: the first page of a cold server, Enter to painted maps, and one click.

Figures are medians in a real browser on this machine; `rerun_ratio` compares a one-button page in a server that has
torch imported and frozen (as ours has) with the same page in a server that never saw torch.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.pages.browsing import browsing, painted, process_of, serving, settled, visit

COLD_STARTS, CLICKS, SENTENCES = 3, 30, 12
AFTER_PAGE = 2  # seconds in which a user reads and types
ONE_BUTTON = """import gc, sys
import streamlit as st
import altair, duckdb, pandas
{extra}
if "count" not in st.session_state:
    gc.collect(); {freeze}
    st.session_state["count"] = 0
if st.button("Press"):
    st.session_state["count"] += 1
st.title("count " + str(st.session_state["count"]))
"""
CLICK = """() => new Promise((done) => {
  const heading = document.querySelector("h1"), before = heading.textContent, start = performance.now();
  new MutationObserver((_, watcher) => {
    const now = document.querySelector("h1");
    if (now && now.textContent !== before) { watcher.disconnect(); done(performance.now() - start); }
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  [...document.querySelectorAll("button")].find((one) => one.textContent.includes("Press")).click();
})"""
WATCH = """(seen) => { window.waited = new Promise((done) => {
  window.addEventListener("keydown", (event) => { if (event.key === "Enter") window.entered = performance.now(); },
    { capture: true, once: true });
  const look = (event) => {
    if (event.detail === seen) return;
    window.removeEventListener("atlas-painted", look);
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - window.entered)));
  };
  window.addEventListener("atlas-painted", look);
}); }"""


def main() -> dict[str, object]:
    figures: dict[str, Any] = {}
    with browsing() as browser:
        waits, cpu, torch_free = zip(*(cold_start(browser) for _ in range(COLD_STARTS)), strict=True)
        figures["first_page_s"] = statistics.median(waits)
        figures["first_page_server_cpu_s"] = statistics.median(cpu)
        without = statistics.median(streamlit_alone(browser) for _ in range(COLD_STARTS))
        figures["first_page_own_cpu_s"] = figures["first_page_server_cpu_s"] - without
        figures["first_page_without_torch"] = all(torch_free)
        figures |= enter_to_painted(browser)
        figures |= rerun(browser)
    return figures


def cold_start(browser) -> tuple[float, float, bool]:
    """Seconds from starting the server's process to *Start* with its maps painted, CPU seconds of the server until then
    (which a busy machine changes little), and whether torch stayed out."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with serving(Path(folder), ATLAS_RECORD="") as address:
            window = browser.new_page()
            window.route("**/painted", lambda route: route.abort())  # torch comes when the server hears that maps stand
            visit(window, address)
            painted(window)
            waited, cpu = time.perf_counter() - start, cpu_seconds(process_of(address))
            maps = [line.rsplit("/", 1)[-1] for line in server_libraries(address)]
            window.close()
        return waited, cpu, not any(name.startswith("libtorch") for name in maps)


def streamlit_alone(browser) -> float:
    """CPU seconds of a server from its start until a page with only a title stands."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "title.py"
        script.write_text("import streamlit as st\nst.title('Title')\n")
        with serving(Path(folder), str(script)) as address:
            window = browser.new_page()
            visit(window, address)
            used = cpu_seconds(process_of(address))
            window.close()
        return used


def cpu_seconds(process: int) -> float:
    """What a process has used so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def server_libraries(address: str) -> list[str]:
    """Shared libraries that the server's process has loaded (Linux)."""
    port = address.rsplit(":", 1)[-1]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"--server.port\0{port}" in (process / "cmdline").read_text():
                return (process / "maps").read_text().splitlines()
        except OSError:
            continue
    raise LookupError("the server's process was not found")


def enter_to_painted(browser) -> dict[str, float]:
    """From Enter in the sentence field to the painted grid: the server's first sentence, AFTER_PAGE seconds after its
    first page stood, then others.
    """
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address:
        window = browser.new_page(viewport={"width": 1280, "height": 800})
        visit(window, f"{address}/maps")
        seen, times = painted(window).get_attribute("data-painted"), []
        window.wait_for_timeout(AFTER_PAGE * 1000)  # the wait is what is measured, not a wait for something
        for number in range(SENTENCES + 1):
            box = window.get_by_label("Sentence", exact=True)
            box.fill(f"The {number} keys to the old cabinet were lying on the kitchen table all day.")
            settled(window)
            window.evaluate(WATCH, seen)
            box.press("Enter")
            times.append(window.evaluate("window.waited"))
            seen = painted(window).get_attribute("data-painted")
        window.close()
    return {
        "enter_to_painted_cold_ms": times[0],
        "enter_to_painted_warm_ms": statistics.median(times[1:]),
        "enter_to_painted_warm_p90_ms": sorted(times[1:])[int(0.9 * SENTENCES)],
    }


def rerun(browser) -> dict[str, float]:
    """Click to changed page with one button: torch imported and frozen, against a process without torch."""
    found = {}
    for name, extra, freeze in [
        ("torch_free", "", "gc.freeze()"),
        ("torch_frozen", "import torch", "gc.freeze()"),
        ("torch_unfrozen", "import torch", "pass"),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "one_button.py"
            script.write_text(ONE_BUTTON.format(extra=extra, freeze=freeze))
            with serving(Path(folder), str(script)) as address:
                window = browser.new_page()
                visit(window, address)
                times = []
                for _ in range(CLICKS):
                    settled(window)
                    times.append(window.evaluate(CLICK))
                window.close()
        found[f"rerun_{name}_ms"] = statistics.median(times)
    return found | {"rerun_ratio": found["rerun_torch_frozen_ms"] / found["rerun_torch_free_ms"]}
