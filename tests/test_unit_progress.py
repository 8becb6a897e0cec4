"""A unit that runs for long shows how far it is."""

import os

import pytest

from core import unit_progress
from core.jobs import api, worker


@pytest.fixture(autouse=True)
def every_write(monkeypatch):
    monkeypatch.setattr(unit_progress, "EVERY", 0.0)


def test_tokens_are_counted_while_a_unit_runs_and_the_count_goes_with_it(tmp_path):
    folder = tmp_path / "progress"
    with unit_progress.counting(folder):
        unit_progress.advance(100)
        unit_progress.within(50)
        assert unit_progress.tokens_under_way(folder) == 150
        unit_progress.advance(80)
        assert unit_progress.tokens_under_way(folder) == 180
        (folder / str(os.getpid() + 1)).write_text("20", encoding="utf-8")  # another worker
        assert unit_progress.tokens_under_way(folder) == 200
        (folder / str(os.getpid() + 1)).unlink()
    assert unit_progress.tokens_under_way(folder) == 0
    assert not folder.exists()


def test_a_unit_is_counted_after_another_worker_has_removed_the_folder(tmp_path):
    folder = tmp_path / "progress"
    with unit_progress.counting(folder):
        unit_progress.advance(100)
        (folder / str(os.getpid())).unlink()
        folder.rmdir()  # what the last worker with a file does
        unit_progress.advance(50)
        assert unit_progress.tokens_under_way(folder) == 150
    assert not folder.exists()


def test_nothing_is_counted_outside_a_unit_and_a_file_that_is_no_number_counts_as_nothing(tmp_path):
    unit_progress.advance(100)
    (tmp_path / "1").write_text("many", encoding="utf-8")
    assert unit_progress.tokens_under_way(tmp_path) == 0


def test_a_folder_that_cannot_be_written_stops_no_unit(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with unit_progress.counting(tmp_path / "file" / "progress"):
        unit_progress.advance(1)
    assert unit_progress.tokens_under_way(tmp_path / "file" / "progress") == 0


@pytest.mark.slow  # 10 CPU seconds
def test_a_sweep_of_one_unit_moves_before_it_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    options = {"checkpoint": "atlas-encoder-sst2", "task": "sst2", "limit": 8}
    divided = worker.divide("disable", options)
    folder, seen = worker.progress_folder("disable", divided["options"]), []
    write = unit_progress.Count.write
    monkeypatch.setattr(
        unit_progress.Count,
        "write",
        lambda count, tokens: (write(count, tokens), seen.append(unit_progress.tokens_under_way(folder))),
    )
    unit = divided["units"][0] | {"position": 0, "attempts": 0}
    worker.run_unit("disable", divided["options"], unit)
    assert len(set(seen)) > 8
    assert 0 < min(seen) < unit["size"]
    assert not list((tmp_path / "runs").glob("**/progress*"))


def test_a_job_counts_what_its_unfinished_units_have_run():
    known = {"job": "j", "study": "disable", "title": "t", "error": None, "run": None, "created": None, "seconds": 0.0}
    at_work = api.JobStatus(
        **known, state="running", units=1, done=0, failed=0, size=1000, size_done=0, rate=None, under_way=400.0
    )
    assert at_work.share == 0.4
    over = api.JobStatus(
        **known, state="running", units=1, done=0, failed=0, size=1000, size_done=0, rate=None, under_way=4000.0
    )
    assert over.share == 0.99
