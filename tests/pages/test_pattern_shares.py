"""Sentences of the view of pattern shares."""

from core.studies.patterns.records import ClassShare, MovedShare
from pages.parts.views.pattern_shares import change_said, misfits


def test_a_checkpoint_whose_corrected_shares_misfit_has_a_sentence_and_others_have_none():
    about = {"task": "sst2", "classifier": "bundled", "class_set": "bert", "inputs": 60, "share": 0.5}
    shares = [
        ClassShare(**about, checkpoint="atlas-encoder", part="corrected", name=name, misfit=0.005)
        for name in ("vertical", "diagonal")
    ]
    shares += [
        ClassShare(**about, checkpoint="other", part="corrected", name="vertical", misfit=0.4),
        ClassShare(**about, checkpoint="earlier", part="corrected", name="vertical"),
    ]
    (sentence,) = misfits(shares)
    assert sentence.startswith("No intervals are shown for atlas-encoder, because")
    assert "p = 0.005" in sentence


def test_the_pattern_that_changes_most_is_said_if_its_joint_interval_excludes_zero():
    about = {"task": "sst2", "classifier": "bundled", "class_set": "bert", "inputs": 60, "checkpoint": "after"}
    ends = {"low": -0.06, "high": -0.02, "low_all": -0.07, "high_all": -0.01}
    fewer = MovedShare(**about, **ends, name="vertical", share=-0.04)
    perhaps = MovedShare(**about, **(ends | {"high_all": 0.01}), name="diagonal", share=-0.09)
    said = (
        "From the first model to the second, the share of vertical changes most: -4.0 "
        "points (95 % CI -6.0 to -2.0), which is significant"
    )
    tested = "The test uses the shares as classified."
    assert change_said([perhaps, fewer], corrected=True) == [f"{said}. {tested}"]
    assert change_said([fewer], corrected=False) == [f"{said}."]
    assert change_said([perhaps], corrected=True) == []
