"""The time a job will take, and what a stopped one has done."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from core import config
from core.errors import JobError
from core.jobs.duration_estimate import Extent, estimate_duration, foreseen_together, keep_partial
from core.jobs.worker import complete, divide, run_unit
from core.store import jobs, runs
from core.store.database import Database
from core.store.runs import Provenance
from core.studies.hypotheses.measure_heads import ROW_SECONDS
from core.studies.lookup import find_study
from core.studies.tuning.finetune import STUDY as TUNE

TINY = "tests.jobs.tiny"


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setattr("core.config.RECORD", tmp_path / "no-record")
    with Database(tmp_path / "atlas.duckdb") as database:
        yield database


def timed(db, seconds, study="statistics", *, kept=300, **options):
    """kept: the most rows whose ids the run has; None: it has none."""
    ids = None if kept is None else tuple(range(min(kept, options.get("limit", 300))))
    run = runs.record_run(db, study, options, Provenance(row_ids=ids), title="Before")
    job = jobs.add_job(db, study, "Before", options)
    jobs.add_units(db, job, options, [{"key": "a", "size": 10, "arguments": {}}])
    jobs.store_outcome(db, job, 0, jobs.UnitEnd(seconds=seconds))
    jobs.set_state(db, job, "done", run=run)


def test_time_follows_the_rate_of_the_most_similar_run(db):
    assert (
        estimate_duration(db, "statistics", {"checkpoint": "atlas-encoder", "limit": 100}) is None
    )  # nothing was timed
    timed(db, 5.0, checkpoint="atlas-encoder", limit=50)
    timed(db, 90.0, checkpoint="atlas-decoder", limit=50)
    found = estimate_duration(db, "statistics", {"checkpoint": "atlas-encoder", "limit": 100})
    assert (found.seconds, found.rows, found.here) == (pytest.approx(10.0), 100, True)
    newest, oldest = runs.runs(db).to_dict("records")
    assert (found.like, found.made, oldest["created"] < newest["created"]) == ("Before", oldest["created"], True)
    unknown = estimate_duration(db, "statistics", {"checkpoint": "atlas-encoder", "limit": None})
    assert (unknown.seconds, unknown.rows) == (pytest.approx(5.0), None)  # as long as the one that is like it


def test_where_a_run_keeps_no_rows_its_options_say_how_many_it_had(db):
    timed(db, 5.0, kept=None, checkpoint="atlas-encoder", limit=50)
    assert estimate_duration(db, "statistics", {"checkpoint": "atlas-encoder", "limit": 100}).seconds == 10.0
    assert estimate_duration(db, "statistics", {"limit": 50}).seconds == 5.0  # of weights that are not known: as long
    timed(db, 5.0, kept=25, checkpoint="atlas-encoder", limit=50)  # a task of 25 rows
    assert estimate_duration(db, "statistics", {"checkpoint": "atlas-encoder", "limit": 100}).seconds == 20.0


def test_where_rows_are_not_known_tasks_and_repetitions_say_how_much_it_is(db):
    before = {"checkpoint": "atlas-encoder", "data": "hub", "tasks": ["qqp"], "seeds": [0, 1]}
    timed(db, 6.0, kept=None, **before)
    assert estimate_duration(db, "statistics", before | {"tasks": ["qqp", "mnli"]}).seconds == 12.0
    assert estimate_duration(db, "statistics", before | {"seeds": [0]}).seconds == 3.0
    nowhere = estimate_duration(db, "statistics", before | {"checkpoint": "no-such-checkpoint"})
    assert nowhere.seconds == 6.0
    timed(db, 6.0, "operators", kept=None, limit=50, seeds=[0, 1], task="sst2")
    assert estimate_duration(db, "operators", {"limit": 50, "seeds": [0], "task": "sst2"}).seconds == 3.0


def test_rows_are_counted_where_they_can_be(db, tmp_path):
    (tmp_path / "own.csv").write_text("sentence\nOne.\nTwo.\nThree.\n")
    timed(db, 5.0, checkpoint="atlas-encoder", limit=50)
    own = {"checkpoint": "atlas-encoder", "limit": 500, "tasks": [str(tmp_path / "own.csv")]}
    assert estimate_duration(db, "statistics", own).rows == 3  # and not 500
    seeds = Extent.of({"tasks": ["a", "b"], "seeds": [0, 1, 2], "initialisations": ["pretrained", "random"]})
    assert seeds.runs == 6


TUNING = {"checkpoint": "atlas-encoder", "tasks": ["sst2"], "seeds": [0]}


@pytest.mark.parametrize(
    "told",
    [
        TUNING,
        TUNING | {"tasks": ["sst2", "mrpc"], "initialisations": ["pretrained", "untrained"], "seeds": [0, 1, 2]},
        TUNING | {"settings": {"train_limit": 100, "epochs": 9, "dev_limit": 20}},
        TUNING | {"initialisations": ["random", "frozen"], "seeds": [0, 1, 2], "random_seeds": 1},
    ],
)
def test_a_fine_tuning_is_as_much_as_its_units_are(told):
    options = TUNE.read(told)
    assert TUNE.amount(options) == sum(unit.size for unit in TUNE.units(options)) > 0


def test_the_time_of_a_fine_tuning_follows_what_is_trained_and_not_the_rows_of_dev(db):
    timed(db, 10.0, "finetune", **TUNING, settings={"train_limit": 100, "epochs": 1})
    found = estimate_duration(db, "finetune", TUNING | {"settings": {"train_limit": 200, "epochs": 5}})
    assert found.counts == "tokens"
    assert found.seconds > 40.0  # ten times the training, and dev rows after each epoch; the dev rows are the same
    assert found.rows > 40_000
    hub = estimate_duration(db, "finetune", TUNING | {"data": "hub"})
    assert (hub.counts, hub.seconds) == ("rows", pytest.approx(10.0))  # nothing is fetched for an estimate


def checkpoint_of(folder, weights, dtype):
    folder.mkdir()
    save_file({"weight": np.zeros(weights, dtype)}, folder / "model.safetensors")
    return str(folder)


def test_a_small_checkpoint_of_ones_own_takes_no_less_than_its_passes(db, tmp_path):
    bundled = checkpoint_of(tmp_path / "bundled", 4_000_000, np.float16)
    timed(db, 100.0, "finetune", **TUNING | {"checkpoint": bundled})
    for dtype in (np.float16, np.float32):  # what a weight takes on disk is no time
        same = checkpoint_of(tmp_path / f"same-{np.dtype(dtype)}", 4_000_000, dtype)
        assert estimate_duration(db, "finetune", TUNING | {"checkpoint": same}).seconds == pytest.approx(100.0)
    tiny = checkpoint_of(tmp_path / "tiny", 40_000, np.float32)
    assert estimate_duration(db, "finetune", TUNING | {"checkpoint": tiny}).seconds == pytest.approx(10.0)  # and not 1
    (tmp_path / "tiny" / "model.safetensors").write_bytes(b"no weights")
    assert estimate_duration(db, "finetune", TUNING | {"checkpoint": tiny}).seconds == pytest.approx(100.0)


def test_what_a_stopped_job_has_done_is_a_result_with_its_own_n(db):
    options = complete(find_study(TINY), {"count": 3})
    units = divide(TINY, options)["units"]
    job = jobs.add_job(db, TINY, "Squares", options)
    jobs.add_units(db, job, options, units)
    with pytest.raises(JobError, match="queued with 0 of 3 units"):
        keep_partial(db, job)
    for place in (0, 2):
        jobs.store_outcome(db, job, place, jobs.UnitEnd(rows=run_unit(TINY, options, units[place])["rows"]))
    jobs.set_state(db, job, "cancelled")
    run = keep_partial(db, job)
    assert runs.one_run(db, run)["title"] == "Squares (stopped: 2 of 3 units)"
    (row,) = runs.run_rows(db, run)
    assert (row["n"], row["total"]) == (2, 4)
    assert jobs.one_job(db, job)["state"] == "cancelled"  # it can still be resumed


def test_several_studies_as_one_job_take_their_sum_and_as_much_longer_as_one_took_here(db):
    asked = {"statistics": {"tasks": ["sst2"], "limit": 100}, "operators": {"task": "sst2", "limit": 50}}
    usual = foreseen_together(db, config.CLASSIFIER, asked)
    assert usual == pytest.approx(100 * ROW_SECONDS["statistics"] + 50 * ROW_SECONDS["operators"])
    mean = sum(ROW_SECONDS.values()) / len(ROW_SECONDS)  # of a row of a study whose own time is not known
    assert foreseen_together(db, config.CLASSIFIER, {TINY: {"limit": 10}}) == pytest.approx(10 * mean)
    steps = [{"study": "statistics", "given": '{"tasks": ["sst2"], "limit": 100}'}]
    timed(db, 300 * ROW_SECONDS["statistics"], "measure-heads", checkpoint=config.CLASSIFIER, studies=steps)
    assert foreseen_together(db, config.CLASSIFIER, asked) == pytest.approx(3 * usual)
