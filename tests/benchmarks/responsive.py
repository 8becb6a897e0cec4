"""Whether the app stays quick while a job computes on every core: click to changed page in a browser, idle and busy.

The page has one button, shows the job as every page does, and reads the job's status on each run.
"""

import os
import statistics
import tempfile
from pathlib import Path

from tests.benchmarks.startup import CLICK
from tests.pages.browsing import PATIENCE, PROJECT, browsing, serving, settled, visit

CLICKS = 40
PAGE = f"""import sys; sys.path.insert(0, {str(PROJECT)!r})
import gc
import streamlit as st
from core.jobs import api
from pages.parts.widgets import job_progress
from pages.parts.shell import resources, running
def button():
    db = resources.database()
    if st.button("Press"):
        st.session_state["count"] += 1
    if st.button("Work"):
        st.session_state["job"] = api.start(
            db, "tests.jobs.forward", {{"inputs": 4000, "tokens": 96, "repeat": 40}}, "Busy work")
    st.title("count " + str(st.session_state["count"]))
    if "job" in st.session_state:
        job_progress.show_job(st.session_state["job"])
if "count" not in st.session_state:
    gc.collect(); gc.freeze()
    st.session_state["count"] = 0
page = st.navigation([st.Page(button), st.Page({str(PROJECT / "pages" / "jobs.py")!r}, url_path="jobs")])
with st.sidebar:
    running.running_indicator()
page.run()
"""


def clicks(page) -> list[float]:
    """Milliseconds from each click to its changed heading, sorted."""
    found = []
    for _ in range(CLICKS):
        settled(page)
        found.append(page.evaluate(CLICK))
    return sorted(found)


def main() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        script = Path(name) / "one_button.py"
        script.write_text(PAGE)
        # the workers import the tests' study from the project, whose path the page puts first
        with serving(Path(name), str(script), ATLAS_WORKERS=str(os.cpu_count())) as address:
            page = browser.new_page()
            visit(page, address)
            clicks(page)  # warm
            idle = clicks(page)
            page.get_by_role("button", name="Work").click()
            page.get_by_text("tokens/s").first.wait_for(timeout=2 * PATIENCE)
            busy = clicks(page)
    return {
        "cores at work": os.cpu_count(),
        "idle median, ms": statistics.median(idle),
        "idle p95, ms": idle[int(0.95 * CLICKS)],
        "busy median, ms": statistics.median(busy),
        "busy p95, ms": busy[int(0.95 * CLICKS)],
        "busy / idle, median": statistics.median(busy) / statistics.median(idle),
    }
