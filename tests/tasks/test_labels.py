import pytest

from core.errors import CheckpointError
from core.tasks.glue import TASKS, label_order


def test_mnli_order_is_read_from_the_checkpoint():
    scripts_of_2019 = {0: "CONTRADICTION", 1: "entailment", 2: "Neutral"}
    assert label_order(TASKS["mnli"], scripts_of_2019) == (2, 0, 1)


def test_names_in_any_spelling():
    assert label_order(TASKS["rte"], {0: "not entailment", 1: "Entailment"}) == (1, 0)
    assert label_order(TASKS["sst2"], {0: "0", 1: "1"}) == (0, 1)
    assert label_order(TASKS["stsb"], {0: "anything"}) == (0,)


def test_generic_names():
    assert label_order(TASKS["mrpc"], {0: "LABEL_0", 1: "LABEL_1"}) == (0, 1)
    with pytest.raises(CheckpointError, match=r"must have label names; .* LABEL_2"):
        label_order(TASKS["mnli"], {k: f"LABEL_{k}" for k in range(3)})


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({0: "negative", 1: "positive"}, "MNLI must have 3 labels; this head has 2"),
        ({0: "negative", 1: "neutral", 2: "positive"}, "must be entailment, neutral, contradiction; got negative"),
        (None, "classification head"),
    ],
)
def test_a_mismatch_is_caught(labels, message):
    with pytest.raises(CheckpointError, match=message):
        label_order(TASKS["mnli"], labels)
