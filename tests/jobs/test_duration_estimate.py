"""The time a job will take, and what a stopped one has done."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

from core import config
from core.errors import JobError
from core.jobs import scheduler
from core.jobs.duration_estimate import (
    EVERY_TOKEN,
    RECORDED_RATE,
    SEEN_WEIGHT,
    Extent,
    estimate_duration,
    foreseen_together,
    keep_partial,
    machine_rate,
)
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


def bert(folder, layers, heads, width, vocabulary=8192):
    """The shapes of a BERT of this size without its weights: a file of headers is as good, and holds nothing."""
    folder.mkdir()
    inner, shapes = 4 * width, {"embeddings.word_embeddings.weight": (vocabulary, width)}
    for layer in range(layers):
        shapes |= {f"encoder.layer.{layer}.{part}.weight": (width, width) for part in ("query", "key", "value", "out")}
        shapes |= {
            f"encoder.layer.{layer}.up.weight": (inner, width),
            f"encoder.layer.{layer}.down.weight": (width, inner),
        }
    header, end = {}, 0
    for name, shape in shapes.items():
        header[name] = {"dtype": "I8", "shape": shape, "data_offsets": [end, end := end + int(np.prod(shape))]}
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        stream.truncate(8 + len(text) + end)  # a hole: no disk is taken
    told = {"model_type": "bert", "num_hidden_layers": layers, "num_attention_heads": heads}
    (folder / "config.json").write_text(json.dumps(told))
    return str(folder)


# layers, heads, width: 5, 33, 110 and 335 million parameters with their own vocabularies
SIZES = [(6, 6, 192), (12, 12, 384), (12, 12, 768), (24, 16, 1024)]


@pytest.mark.parametrize("size", SIZES)
def test_time_scales_with_weights_outside_embeddings_and_with_heads(db, tmp_path, size):
    before, after = bert(tmp_path / "before", 6, 6, 192), bert(tmp_path / "after", *size, vocabulary=50_000)
    texts = ["word " * 27] * 4  # 33 tokens by their letters
    timed(db, 10.0, kept=4, checkpoint=before, texts=texts)

    def work(layers, heads, width):
        return 12 * layers * width**2 + EVERY_TOKEN + SEEN_WEIGHT * layers * heads * 33

    found = estimate_duration(db, "statistics", {"checkpoint": after, "texts": texts})
    assert found.seconds == pytest.approx(10 * work(*size) / work(6, 6, 192))


def test_time_of_long_texts_grows_with_their_square_where_maps_outweigh_weights(db, tmp_path):
    checkpoint = bert(tmp_path / "model", 12, 12, 64)
    timed(db, 1.0, kept=1, checkpoint=checkpoint, texts=["word " * 1800])
    twice = estimate_duration(db, "statistics", {"checkpoint": checkpoint, "texts": ["word " * 3600]})
    assert 3.5 < twice.seconds < 4


def test_a_sweep_takes_a_pass_for_each_head_or_layer(db, tmp_path):
    before, after = bert(tmp_path / "before", 6, 6, 192), bert(tmp_path / "after", 6, 12, 192)
    timed(db, 8.0, "disable", checkpoint=before, task="sst2", limit=50)
    heads, layers = (
        estimate_duration(db, "disable", {"checkpoint": after, "task": "sst2", "limit": 50, "what": what})
        for what in ("heads", "layers")
    )
    assert heads.seconds == pytest.approx(16)  # twice the heads
    assert layers.seconds == pytest.approx(heads.seconds / 12)


def test_seconds_of_the_record_are_scaled_by_the_rate_of_this_machine(db, tmp_path, monkeypatch):
    checkpoint = bert(tmp_path / "model", 6, 6, 192)
    timed(db, 10.0, checkpoint=checkpoint, limit=50)
    known = runs.known_runs(db, "statistics").assign(source="shipped", seconds=10.0)
    monkeypatch.setattr(runs, "known_runs", lambda db, study: known)
    asked = {"checkpoint": checkpoint, "limit": 50}
    slower = estimate_duration(db, "statistics", asked, rate=lambda: RECORDED_RATE / 3)
    assert slower.seconds == pytest.approx(30.0)


def test_the_rate_of_a_machine_is_measured_once():
    machine_rate.cache_clear()
    first = machine_rate()
    assert 1e8 < first < 1e14  # a processor of any make
    assert machine_rate() == first
    assert machine_rate.cache_info().misses == 1


def test_what_a_stopped_job_has_done_is_a_result_with_its_own_n(db):
    options = complete(find_study(TINY), {"count": 3})
    units = divide(TINY, options)["units"]
    job = jobs.add_job(db, TINY, "Squares", options)
    jobs.add_units(db, job, options, units)
    with pytest.raises(JobError, match="only be stored for a stopped job; this job is queued"):
        keep_partial(db, job)
    jobs.set_state(db, job, "cancelled")
    with pytest.raises(JobError, match="has finished none of its 3 units"):
        keep_partial(db, job)
    for place in (0, 2):
        jobs.store_outcome(db, job, place, jobs.UnitEnd(rows=run_unit(TINY, options, units[place])["rows"]))
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


def test_a_job_is_as_fast_as_it_was_since_it_was_started_here(monkeypatch):
    monkeypatch.setattr(scheduler.time, "monotonic", lambda: 110.0)
    lives = {"on": scheduler.Live(started=100.0, before=30), "waiting": scheduler.Live(before=30)}
    keeper = SimpleNamespace(_lives=lives)
    assert scheduler.Runner.rate(keeper, "on", 80) == 5
    for job, done in (("on", 30), ("waiting", 80), ("other", 80)):
        assert scheduler.Runner.rate(keeper, job, done) is None
