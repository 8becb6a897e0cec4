"""A study that cannot run with its checkpoint is refused before it starts."""

import json

import pytest

from core.errors import InputError
from core.measuring.fitting import must_fit


@pytest.fixture
def tuned(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertForSequenceClassification"]}))
    (tmp_path / "training.json").write_text(json.dumps({"task": "sst2"}))
    return str(tmp_path)


def test_a_classifier_of_the_task_fits(tuned):
    must_fit("disable", {"checkpoint": tuned, "task": "SST-2"})
    must_fit("statistics", {"checkpoint": "atlas-encoder"})
    must_fit("disable", {"checkpoint": "somebody/on-the-hub", "task": "mrpc"})  # known when it is opened


@pytest.mark.parametrize(
    ("study", "checkpoint", "task", "why"),
    [
        ("disable", None, "mrpc", "fine-tuned on SST-2 and cannot be judged on rows of MRPC"),
        ("prune", "atlas-encoder", "sst2", "needs a checkpoint with a classifier"),
        ("statistics", "data/runs/finetuned/gone", None, "is not on this machine"),
    ],
)
def test_what_cannot_run_is_refused_in_a_sentence(tuned, study, checkpoint, task, why):
    with pytest.raises(InputError, match=why):
        must_fit(study, {"checkpoint": checkpoint or tuned, "task": task})
