import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.capture.running import predict
from core.errors import InputError
from core.jobs import api
from core.jobs.executors import JobPlacement
from core.jobs.worker import complete, divide, run_unit, summarize
from core.models.opening import open_checkpoint
from core.store import jobs as store
from core.store.database import Database
from core.studies.contract import Unit
from core.studies.transport import decode
from core.studies.tuning import finetune
from core.studies.tuning.finetune import TunedRuns, live_picture
from core.tasks.glue import TASKS, read_rows
from core.tasks.metrics import metrics
from core.tuning.recipe import Recipe
from core.tuning.saved_checkpoints import training_log
from tests.capture.conftest import tiny

SMALL = {"epochs": 1, "train_limit": 24, "dev_limit": 16, "batch": 8, "max_length": 24}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("checkpoints")
    base = tiny("bert")
    base.model.save_pretrained(place / "tiny")
    base.tokenizer.save_pretrained(place / "tiny")
    return place


def options(folder, **changes):
    asked = {"checkpoint": str(folder / "tiny"), "settings": SMALL, "out": str(folder / "runs"), "seeds": [0, 1]}
    return complete(finetune.STUDY, asked | changes)


def only(outcome):
    """The one run of a unit, as a row."""
    ((run,),) = (decode(TunedRuns, row["partial"]).runs for row in outcome["rows"])
    return run.score.as_row()


@pytest.mark.thorough
def test_runs_tasks_by_initialisations_by_seeds_and_prints_table_1(folder):
    chosen = options(folder, tasks=["SST-2", "stsb"], initialisations=["pretrained", "untrained"])
    divided = divide("finetune", chosen)
    assert len(divided["units"]) == 2 * 2 * 2
    sizes = {unit["arguments"]["source"]: unit["size"] for unit in divided["units"]}
    assert sizes["pretrained"] > sizes["untrained"] > 0
    outcomes = [run_unit("finetune", divided["options"], unit) for unit in divided["units"]]
    assert outcomes[0]["provenance"]["weights_hash"]
    assert len(outcomes[0]["provenance"]["row_ids"]) == 16
    rows = [only(outcome) for outcome in outcomes]
    assert len({row["folder"] for row in rows}) == 8
    table = summarize("finetune", chosen, [row for outcome in outcomes for row in outcome["rows"]])["rows"]
    json.dumps(table, allow_nan=False)
    runs = json.loads(json.dumps([row for row in table if row["kind"] == "run"]))
    assert {(row["kept_epoch"], row["kept_because"]) for row in runs} == {
        (1, "the last (keep=last)"),
        (0, "nothing learned: as it began"),  # of the untrained ones
    }
    means = [row for row in table if row["kind"] == "mean"]
    assert {(row["task"], row["initialisation"], row["n"]) for row in means} == {
        (task, one, 2) for task in ("sst2", "stsb") for one in ("pretrained", "untrained")
    }
    two = [row["accuracy"] for row in rows if row["task"] == "sst2" and row["initialisation"] == "pretrained"]
    assert means[0]["accuracy"] == pytest.approx(sum(two) / 2)
    assert means[0]["accuracy_sd"] == pytest.approx(abs(two[0] - two[1]) / 2**0.5)
    assert any(row["kind"] == "baseline" and row["task"] == "stsb" and row["pearson"] is None for row in table)


def test_a_row_says_why_its_weights_are_those_of_the_epoch_that_was_kept():
    """The untrained epoch 0 counts only where nothing learned."""
    best, task = Recipe(keep="best"), TASKS["sst2"]
    assert finetune._why_kept(best, task, trained=3) == f"best {task.metric} on dev of epochs 1 to 3 (keep=best)"
    assert finetune._why_kept(Recipe(), task, trained=3) == "the last (keep=last)"
    assert finetune._why_kept(best, task, trained=0) == "nothing learned: as it began"


def test_the_saved_checkpoint_scores_what_the_row_says(folder):
    chosen = options(folder, tasks=["qnli"], seeds=[3])
    unit = divide("finetune", chosen)["units"][0]
    row = only(run_unit("finetune", chosen, unit))
    found = open_checkpoint(row["folder"], head="classifier")
    dev = read_rows("qnli", "dev", limit=16)
    logits = predict(found, [found.encode(one.text, one.pair, max_length=24) for one in dev])
    gold = [one.label for one in dev]
    assert metrics(TASKS["qnli"], gold, logits.argmax(1).tolist())["accuracy"] == row["accuracy"]
    assert row["constant"] == (len(set(logits.argmax(1).tolist())) == 1)
    log = training_log(Path(row["folder"]))
    assert (log["task"], log["initialisation"], log["seed"]) == ("qnli", "pretrained", 3)
    assert log["rows"] == {"train": 24, "dev": 16, "cut": row["cut_rows"]}
    assert row["seconds"] == pytest.approx(log["seconds"], abs=0.056)  # to a tenth
    assert not list((folder / "runs").glob("*.state"))
    assert not list((folder / "runs").glob("*.live.json"))


@pytest.mark.slow  # 6 CPU seconds; tests/tuning/test_training.py takes up a cancelled run
def test_a_killed_run_is_taken_up(folder):
    chosen = options(folder, tasks=["rte"], seeds=[0], settings=SMALL | {"epochs": 2, "train_limit": 40})
    unit = divide("finetune", chosen)["units"][0]
    whole = only(run_unit("finetune", chosen, unit))
    script = f"""
import os
from core.tuning import training
from core.store import jobs as store
from core.store.database import Database
from core.studies.tuning import finetune
from core.studies.contract import Unit
from core.studies.transport import decode
save = training.Fit._save
def die(self):
    save(self)
    os._exit(9)
training.Fit._save = die
study = finetune.STUDY
study.run(study.read({chosen!r}), Unit({unit["key"]!r}, decode(study.arguments, {unit["arguments"]!r})))
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    live = finetune.live_runs(finetune.STUDY.read(chosen), [unit["key"]])[unit["key"]]
    assert live["step"] == 5
    assert live["steps"] == 10
    again = only(run_unit("finetune", chosen, unit))
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in whole.items() if k != "seconds"}


@pytest.mark.slow
def test_a_cancelled_job_is_resumed_and_leaves_only_the_checkpoint(folder, tmp_path):
    """Cancelled after some epochs in a worker process; the resumed job gives what an undisturbed run gives."""
    settings = {**SMALL, "epochs": 20, "train_limit": 100}
    chosen = {"tasks": ["sst2"], "seeds": [5], "settings": settings}
    db = Database(tmp_path / "atlas.duckdb")
    keeper = api.runner(db, JobPlacement(workers=1, threads=1))
    try:
        asked = options(folder, **chosen) | {"out": str(tmp_path / "runs")}
        job = api.start(db, "finetune", asked)
        key = divide("finetune", asked)["units"][0]["key"]
        end = time.monotonic() + 60
        while not (tmp_path / "runs" / f"{key}.state").exists():  # written after each epoch
            assert time.monotonic() < end
            time.sleep(0.01)
        api.cancel(db, job)
        assert api.wait(db, job, 20).state == "cancelled"
        assert 0 < finetune.live_runs(finetune.STUDY.read(asked), [key])[key]["step"] < 20 * 13
        assert not (tmp_path / "runs" / key).exists()
        api.resume(db, job)
        assert api.wait(db, job, 120).state == "done"
        row = only({"rows": store.job_rows(db, job)})
        assert [one.name for one in (tmp_path / "runs").iterdir()] == [key]
    finally:
        keeper.close()
        db.close()
    whole = options(folder, **chosen) | {"out": str(tmp_path / "whole")}
    expected = only(run_unit("finetune", whole, divide("finetune", whole)["units"][0]))
    assert (row["last_loss"], row["epochs"]) == (pytest.approx(expected["last_loss"]), expected["epochs"])


def test_live_picture_is_short():
    from core.tuning.training import Log

    picture = live_picture(Log(steps=2000, losses=[1.0] * 1001, seconds=10.0))
    assert len(picture["losses"]) <= 200
    assert picture["left"] == pytest.approx(10 / 1001 * 999)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": []}, "option tasks of fine-tuning must have at least one"),
        ({"seeds": []}, "option seeds of fine-tuning must have at least one"),
        ({"initialisations": ["xavier"]}, "pretrained, random"),
        ({"tasks": ["cola"]}, "A task must be one of"),
        ({"preset": "fast"}, "A preset must be one of"),
        ({"data": "/nowhere"}, "there is no such file in /nowhere"),
    ],
)
def test_mistakes_are_found_before_anything_runs(folder, changes, message):
    with pytest.raises(InputError, match=message):
        finetune.STUDY.units(finetune.STUDY.read(options(folder, **changes)))


def test_names_differ_where_results_may(folder):
    base = options(folder)
    others = [
        options(folder, preset="small"),
        options(folder, settings=SMALL | {"epochs": 9}),
        options(folder, data="x"),
    ]
    names = {finetune.run_name(finetune.STUDY.read(one), "sst2", "random", 0) for one in (base, *others)}
    assert len(names) == 4
    assert Unit(names.pop())


def test_the_work_of_a_job_is_counted_before_it_begins_by_the_words_of_its_rows(folder):
    """Forward and twice as far back on train rows, forward on dev rows after every epoch, before and at the end."""
    limits = {"train_limit": 24, "dev_limit": 16}
    words = {
        split: sum(len(f"{row.text} {row.pair or ''}".split()) for row in read_rows("rte", split, limit=limit))
        for split, limit in (("train", 24), ("dev", 16))
    }

    def amount(epochs=1, **changes):
        settings = SMALL | limits | {"epochs": epochs}
        return finetune.STUDY.amount(finetune.STUDY.read(options(folder, tasks=["rte"], settings=settings, **changes)))

    two, three = amount(2, seeds=[0]), amount(3, seeds=[0])
    assert three - two == pytest.approx(finetune.PIECES_A_WORD * (3 * words["train"] + words["dev"]), abs=1)
    assert amount(2, seeds=[0, 1]) == 2 * two
    assert amount(2, seeds=[0], initialisations=["untrained"]) == int(finetune.PIECES_A_WORD * 2 * words["dev"])
    assert amount(data="hub") is None


def test_a_number_of_seeds_are_those_from_0_and_a_title_names_all_tasks(folder):
    chosen = finetune.STUDY.read(options(folder, seeds=3, tasks=["rte", "sst2"], checkpoint="atlas-encoder"))
    assert chosen.seeds == (0, 1, 2)
    assert finetune.STUDY.title(chosen) == "Fine-tune atlas-encoder on rte, sst2"
    with pytest.raises(InputError, match="seeds"):
        options(folder, seeds=10**12)
