"""A study that cannot run with its checkpoint is refused before it starts."""

import json

import pytest

from core.errors import InputError
from core.jobs import api
from core.store.database import Database
from core.store.jobs import jobs
from core.studies.contract import Need
from core.studies.lookup import find_study, study_modules
from core.studies.preflight import check_runnable

NEED_LABELS = [name for name in study_modules() if Need.LABELS in find_study(name).needs]
CLASSIFIER = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}


@pytest.fixture
def tuned(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CLASSIFIER))
    (tmp_path / "training.json").write_text(json.dumps({"task": "sst2"}))
    return str(tmp_path)


def test_a_classifier_of_the_task_fits(tuned):
    check_runnable(find_study("disable"), {"checkpoint": tuned, "task": "SST-2"})
    check_runnable(find_study("statistics"), {"checkpoint": "atlas-encoder"})
    on_the_hub = {"checkpoint": "somebody/on-the-hub", "task": "mrpc"}
    check_runnable(find_study("disable"), on_the_hub)  # known when it is opened
    with pytest.raises(InputError, match="not on MRPC"):  # as of a folder it is now
        check_runnable(find_study("disable"), on_the_hub | {"checkpoint": tuned})


def test_sentences_of_ones_own_are_judged_where_they_say_the_same_labels(tuned, tmp_path):
    config = CLASSIFIER | {"id2label": {"0": "negative", "1": "positive"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    own = tmp_path / "own.csv"
    own.write_text("sentence,label,split\nGood.,positive,dev\nBad.,negative,dev\n")
    check_runnable(find_study("disable"), {"checkpoint": tuned, "task": str(own)})
    own.write_text("sentence,label,split\nGood.,spam,dev\nBad!,ham,dev\n")
    with pytest.raises(InputError, match=r"was fine-tuned on SST-2, not on own\.csv"):
        check_runnable(find_study("disable"), {"checkpoint": tuned, "task": str(own)})


@pytest.mark.parametrize("study", NEED_LABELS)
def test_sentences_without_labels_are_refused_where_labels_are_needed(tuned, tmp_path, study):
    (tmp_path / "own.csv").write_text("sentence\nGood.\n")
    task = str(tmp_path / "own.csv")
    with pytest.raises(InputError, match=r'own\.csv has no column "label"'):
        check_runnable(find_study(study), {"checkpoint": tuned, "task": task, "tasks": [task]})


@pytest.mark.parametrize(
    ("study", "checkpoint", "task", "why"),
    [
        ("disable", None, "mrpc", "was fine-tuned on SST-2, not on MRPC"),
        ("prune", "atlas-encoder", "sst2", "must be a classifier"),
        ("statistics", "data/runs/finetuned/gone", None, "must be stored on this machine"),
    ],
)
def test_what_cannot_run_is_refused_in_a_sentence(tuned, study, checkpoint, task, why):
    with pytest.raises(InputError, match=why):
        check_runnable(find_study(study), {"checkpoint": checkpoint or tuned, "task": task})


def test_what_judges_or_learns_needs_labels():
    assert {"disable", "cross-fitted", "seeds", "fixed-pattern", "transfer", "finetune"} <= set(NEED_LABELS)
    assert not {"statistics", "features", "change"} & set(NEED_LABELS)
    judging = [name for name in study_modules() if Need.CLASSIFIER in find_study(name).needs]
    assert set(judging) <= set(NEED_LABELS)


@pytest.mark.parametrize("study", ["seeds", "cross-fitted", "fixed-pattern"])
def test_a_job_is_refused_before_it_is_queued(tmp_path, study):
    (tmp_path / "own.csv").write_text("sentence\nGood.\n")
    task = str(tmp_path / "own.csv")
    with Database(tmp_path / "atlas.duckdb") as db:
        with pytest.raises(InputError, match=r'own\.csv has no column "label"'):
            api.start(db, study, {"checkpoint": "atlas-encoder", "task": task, "tasks": [task]})
        assert jobs(db).empty
