"""The Jobs page in a real browser, on an app that was killed in the middle of a job."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.jobs import api
from core.store import jobs as store
from core.store import runs
from core.store.database import Database
from tests.pages import forked
from tests.pages.browsing import answers, free_port, until

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.browser


class App:
    """The app on a database of its own, with workers of its own."""

    def __init__(self, database: Path, port: int):
        self.url = f"http://127.0.0.1:{port}"
        words = ["run", "app.py", "--server.port", str(port), "--", "--db", str(database)]
        settings = {**os.environ, "ATLAS_WORKERS": "1", "OMP_NUM_THREADS": "1"}
        self.process = forked.serve(
            words, settings, database.parent / "server.log", warm=False, unprivileged=False, processes=True
        )
        until(lambda: answers(self.url))

    def end(self, how: signal.Signals) -> float:
        """Send `how`; seconds until the process was gone."""
        started = time.monotonic()
        self.process.send_signal(how)
        self.process.wait(timeout=30)
        return time.monotonic() - started


def queued(database: Path, folder: Path, count: int) -> str:
    """A job that the app finds interrupted when it starts."""
    folder.mkdir()
    db = Database(database)
    job = store.add_job(db, "tests.jobs.tiny", "Slow squares", {"count": count, "seconds": 0.3, "folder": str(folder)})
    db.close()
    return job


def ran(folder: Path) -> list[str]:
    return [mark.name for mark in folder.glob("ran-*") for _ in mark.read_text().split()]


def resume_in(page, url: str) -> None:
    page.goto(url + "/results?view=jobs")
    main = page.get_by_test_id("stMain")  # Streamlit has a Stop of its own in the header
    main.get_by_role("button", name="Resume").first.click()
    main.get_by_role("button", name="Stop").wait_for()


@pytest.mark.slow  # 8 CPU seconds; tests/jobs kills workers and resumes jobs, this one the app in a browser
def test_an_app_killed_during_a_job_resumes_it_and_a_stored_unit_is_not_run_again(tmp_path, browser):
    database, folder = tmp_path / "atlas.duckdb", tmp_path / "marks"
    queued(database, folder, count=12)
    page = browser.new_page()

    first = App(database, free_port())
    try:
        resume_in(page, first.url)
        page.get_by_text("1 job running").wait_for()
        page.get_by_text(re.compile(r"[2-9] of 12 units")).first.wait_for()
    finally:
        first.end(signal.SIGKILL)
    before = len(ran(folder))

    second = App(database, free_port())
    try:
        resume_in(page, second.url)
        page.get_by_text("12 of 12 units").first.wait_for(timeout=60_000)
    finally:
        assert second.end(signal.SIGTERM) < 5  # an app told to end does not wait for its workers
    assert 12 <= len(ran(folder)) <= 12 + 2  # at most the units that were in the middle ran twice
    assert before < 12
    db = Database(database)
    (state,) = store.jobs(db)["state"]
    assert state == "done"
    outcomes = store.unit_outcomes(db, store.jobs(db)["job"].iloc[0])
    assert outcomes["state"].tolist() == ["done"] * 12
    db.close()


@pytest.mark.slow  # 6 CPU seconds; a killed app is the test above
def test_ending_the_app_leaves_a_running_job_to_be_resumed_and_no_worker_behind(tmp_path, browser):
    database, folder = tmp_path / "atlas.duckdb", tmp_path / "marks"
    queued(database, folder, count=100)
    app = App(database, free_port())
    try:
        resume_in(browser.new_page(), app.url)
        end = time.monotonic() + 30
        while not ran(folder):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        assert app.end(signal.SIGTERM) < 10
    worker = int(next(folder.glob("ran-*")).read_text().split()[0])
    end = time.monotonic() + 3
    while Path(f"/proc/{worker}").exists():
        assert time.monotonic() < end, "the worker outlived the app"
        time.sleep(0.05)
    db = Database(database)
    keeper = api.runner(db)  # as the next start does
    assert store.jobs(db)["state"].tolist() == ["interrupted"]
    keeper.close()
    db.close()


@pytest.mark.slow  # a command of its own beside the app; how its rows come in is in test_jobs.py
def test_rows_of_a_command_given_while_the_app_runs_are_imported_by_one_click(tmp_path, browser):
    database = tmp_path / "atlas.duckdb"
    app = App(database, free_port())
    try:
        page = browser.new_page()
        page.goto(app.url + "/results?view=jobs")
        page.get_by_text("No job has been started yet").wait_for()  # the app holds the file now
        words = ["jobs", "start", "tests.jobs.tiny", "--set", "count=3", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "core", *words],
            cwd=ROOT,
            env={**os.environ, "ATLAS_DB": str(database), "ATLAS_WORKERS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        printed = json.loads(done.stdout)
        assert printed["rows"] == [{"n": 3, "total": 5, "thirds": 1.0}]
        page.reload()
        page.get_by_role("button", name="Import").click()
        page.get_by_text("Imported.").wait_for()
        page.get_by_text("From the terminal").wait_for(state="detached")
    finally:
        app.end(signal.SIGTERM)
    with Database(database) as db:
        assert runs.run_rows(db, printed["provenance"]["run"]) == printed["rows"]
