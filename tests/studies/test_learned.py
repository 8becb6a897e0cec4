"""What was fine-tuned and is not above a constant says so in its first sentence."""

import pytest

from core.studies.tuning import finetune
from core.studies.tuning.finetune import better_constant, not_shown
from core.studies.tuning.records import TunedScore


def score(kind, task="sst2", *, metric="accuracy", **known):
    return {"kind": kind, "task": task, "metric": metric, "initialisation": "pretrained", **known}


def rows(accuracy, constant=0.483):
    return [
        score("run", accuracy=accuracy, dev_rows=300, seed=0),
        score("mean", accuracy=accuracy, n=1),
        score("baseline", accuracy=constant),
    ]


def said(given):
    scores = TunedScore.among(given)
    return not_shown(scores, next(one for one in scores if one.kind == "mean"))


def test_the_better_constant_of_two_labels_is_the_one_that_dev_rows_have_more_of():
    assert better_constant(TunedScore.among(rows(0.84)), "sst2") == pytest.approx(0.517)
    assert better_constant(TunedScore.among(rows(0.84)), "rte") is None


def test_a_headline_says_where_the_model_is_not_above_a_constant():
    assert said(rows(0.84)) == ""
    above = finetune.STUDY.headline(rows(0.84))
    assert above.sentence == (
        "After fine-tuning on SST-2, accuracy is 84.0. This score is significantly above a constant prediction."
    )
    assert above.baseline == "The best constant prediction scores 51.7.", "of dev, not of train: never below one half"
    assert said(rows(0.54)).startswith(
        "an accuracy of 54.0 (95 % CI 48.3 to 59.6, n = 300 examples) is not significantly above"
    )
    untrained = [row | {"initialisation": "untrained"} for row in rows(0.54)]
    assert finetune.STUDY.headline(untrained).sentence.startswith("Without fine-tuning on SST-2, accuracy is 54.0.")
    assert finetune.STUDY.headline(rows(0.54)).sentence == (
        "After fine-tuning on SST-2, accuracy is 54.0. This score is not significantly above a constant prediction."
    )


@pytest.mark.parametrize(
    ("pearson", "begins"),
    [
        (0.3, ""),
        (0.05, "a correlation of 5.0 (Pearson's r × 100, 95 % CI -6.4 to 16.2, n = 300 examples)"),
        (None, "all predicted scores are the same"),
    ],
)
def test_scores_are_held_against_no_correlation(pearson, begins):
    given = [
        score("run", "stsb", metric="pearson", pearson=pearson, dev_rows=300, seed=0),
        score("mean", "stsb", metric="pearson", pearson=pearson, n=1),
        score("baseline", "stsb", metric="pearson"),
    ]
    assert said(given).startswith(begins)
    assert bool(said(given)) == bool(begins)
    few = [given[0] | {"dev_rows": 3}, *given[1:]]
    assert bool(said(few)) == (pearson is None), "three examples say nothing of a correlation"


def test_the_default_recipe_is_the_one_that_learns():
    """The bundled encoder learns its rows by `bundled`; the other bundled checkpoints by `small`; else the paper's."""
    of = {
        name: finetune.FinetuneOptions(checkpoint=name).preset
        for name in ("atlas-encoder", "atlas-decoder", "org/other")
    }
    assert of == {"atlas-encoder": "bundled", "atlas-decoder": "small", "org/other": "paper"}
    assert finetune.FinetuneOptions(checkpoint="atlas-encoder", preset="paper").preset == "paper"
