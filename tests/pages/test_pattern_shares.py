"""Sentences of the view of pattern shares."""

from core.studies.patterns.records import ClassShare
from pages.parts.views.pattern_shares import misfits


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
    assert sentence.startswith("No intervals for atlas-encoder: ")
    assert "p = 0.005" in sentence
