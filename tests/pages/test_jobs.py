"""The Jobs page and the parts that show a job: from the script that app.py serves, on a real file and real workers."""

import time
from datetime import datetime

import pytest
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core.jobs import api
from core.jobs.executors import JobPlacement
from core.patterns.classifier_registry import training_options
from core.patterns.snapshot import snapshot
from core.store import classifiers, exchange, runs, shipped_record
from core.store import jobs as store
from core.store.database import Database
from core.studies.contract import as_json
from pages.parts.shell import resources
from pages.parts.shell.messages import short_titles
from pages.parts.views.jobs import title_beside
from pages.parts.widgets import job_progress
from tests.pages.opening import switched
from tests.studies.test_train_patterns import label_everything, run_all

TINY = "tests.jobs.tiny"


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    database = resources.database()
    keeper = api.runner(database, JobPlacement(workers=1))
    yield database
    keeper.close()
    resources.database.clear()
    database.close()


def opened() -> AppTest:
    page = AppTest.from_file(shell.__file__, default_timeout=30)
    page.run()
    return switched(page, "results/jobs").run()


def text(page: AppTest) -> str:
    shown = [*page.main, *page.sidebar]
    return "\n".join(str(getattr(element, "value", "")) for element in shown)


def test_an_empty_store_says_what_to_do_next(db):
    page = opened()
    assert not page.exception
    assert "No job has been started yet" in page.info[0].value
    assert "python -m core study" in page.info[0].value


@pytest.mark.thorough
def test_a_failed_job_is_listed_with_its_error_and_retried_by_a_click(db, tmp_path):
    job = api.start(db, TINY, {"fail": [1], "folder": str(tmp_path)}, "Squares <b>of</b> four")
    api.wait(db, job, 60)
    page = opened()
    assert r"Squares \<b\>of\</b\> four" in text(page)
    assert "failed · 3 of 4 units · 1 failed" in text(page)
    page.button(key=f"details_{job}").click().run()
    assert "unit 1 is unlucky" in text(page)
    page.button(key=f"resume_line_{job}").click().run()
    assert api.wait(db, job, 60).state == "done"
    page.run()
    page.button(key=f"delete_{job}").click().run()
    assert store.jobs(db).empty
    assert "No job has been started yet" in page.info[0].value


def test_a_running_job_shows_progress_on_its_page_and_a_count_on_every_page(db):
    job = api.start(db, TINY, {"count": 40, "seconds": 0.5}, "Slow squares")
    end = time.monotonic() + 30
    while not api.status(db, job).done:
        assert time.monotonic() < end
        time.sleep(0.05)
    page = opened()
    assert not page.exception
    *_, indicator = page.sidebar.get("page_link")
    assert (indicator.proto.label, indicator.proto.page) == ("1 job running", "results")
    assert "Slow squares" in text(page)
    page.button(key=f"cancel_{job}").click().run()
    assert api.wait(db, job, 10).state == "cancelled"


def test_a_run_that_a_terminal_left_is_imported_by_one_click(db):
    file = exchange.runs_folder(db.path) / "heads-1.jsonl"
    rows = [{"layer": 0, "head": 1, "statistic": "to_next", "value": 0.5}]
    exchange.write_run(file, "heads", "Heads *at* night", {"run": "r1", "options": {}}, rows)
    (file.parent / "broken.jsonl").write_text("<script>")
    page = opened()
    assert not page.exception
    assert r"Heads \*at\* night" in text(page)
    assert "broken" in text(page)
    (button,) = [one for one in page.button if one.label == "Import"]
    button.click().run()
    assert runs.run_rows(db, "r1") == rows
    assert "Heads \\*at" not in text(page)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (42, "42 s"), (89.4, "89 s"), (90, "2 min"), (3540, "59 min"), (7500, "2 h 5 min")],
)
def test_durations_in_words(seconds, words):
    assert job_progress.duration(seconds) == words


@pytest.mark.parametrize(
    ("study", "counted"),
    [("train-patterns", "maps"), ("pattern-shares", "inputs"), ("syntax", "words"), ("disable", "tokens")],
)
def test_work_is_counted_in_what_it_is_of(study, counted):
    now = api.JobStatus(
        created=datetime(2026, 1, 1),
        job="j",
        study=study,
        title="t",
        error=None,
        run=None,
        failed=0,
        state="done",
        units=1,
        done=1,
        size=40,
        size_done=40,
        seconds=2.0,
        rate=None,
    )
    assert job_progress.progress_line(now) == f"1 of 1 unit · 40 of 40 {counted}"


def test_the_progress_line_says_only_what_is_known():
    known = {
        "created": datetime(2026, 1, 1),
        "job": "j",
        "study": "s",
        "title": "t",
        "error": None,
        "run": None,
        "failed": 0,
    }
    at_work = api.JobStatus(
        **known, state="running", units=4, done=1, size=4000, size_done=1000, seconds=2.0, rate=500.0
    )
    assert job_progress.progress_line(at_work) == (
        "1 of 4 units · 1,000 of 4,000 tokens · 500 tokens/s · about 6 s left"
    )
    fresh = api.JobStatus(**known, state="queued", units=0, done=0, size=0, size_done=0, seconds=0.0, rate=None)
    assert job_progress.progress_line(fresh) == "Dividing the work ..."


@pytest.mark.thorough
def test_a_training_that_a_terminal_left_gives_its_classifier_too(db, tmp_path):
    with Database(tmp_path / "other.duckdb") as other:
        label_everything(other)
        options, rows = run_all(training_options(other, snapshot(other, "bert"), kind="baseline", folds=2))
    file = exchange.runs_folder(db.path) / "train-patterns-1.jsonl"
    exchange.write_run(file, "train-patterns", "Trained", {"run": "r1", "options": as_json(options)}, rows)
    page = opened()
    (button,) = [one for one in page.button if one.label == "Import"]
    button.click().run()
    assert not page.exception
    assert classifiers.classifiers(db)["classifier"].tolist() == ["r1"]


@pytest.mark.shipped
def test_titles_of_shipped_results_stand_whole_beside_their_checkpoints():
    """In 50 characters, which a window of 800 pixels shows: what a column beside says is left out, also a path."""
    shown = {
        title_beside(*about)
        for about in (
            ("Knockout of noun-adjective, noun-preposition in /x/runs/encoder-sst2-s0", "/x/runs/encoder-sst2-s0"),
            ("Report: tuning of encoder, sst2", "encoder"),
            ("Report: alone of encoder, sst2", "encoder-sst2-s0"),
        )
    }
    assert shown == {
        "Knockout of noun-adjective, noun-preposition",
        "Report: tuning, sst2",
        "Report: alone of encoder, sst2",
    }
    recorded = shipped_record.runs()
    titles = [title_beside(*about) for about in zip(recorded["title"], recorded["checkpoint"], strict=True)]
    assert max(map(len, short_titles(titles).values()), default=0) <= 50
