"""What `seeds` says where scores cannot be compared."""

from core.studies.ablation.records import HeadOverlap, SeedSource, SeedSpread
from core.studies.ablation.seeds import STUDY

ABOUT = {"task": "stsb", "metric": "pearson", "n": 9}
SHARED = HeadOverlap(name="all pairs", top=5, value=0.4, low=0.2, high=0.6, pairs=36, by_chance=0.14, **ABOUT).as_row()


def spread(*, least):
    score = {"mean": least, "deviation": least, "least": least, "most": least}
    return SeedSpread(**ABOUT, **score, dev_error=None, dev_rows=300, constant=9).as_row()


def test_a_correlation_that_is_undefined_in_some_run_is_said():
    said = STUDY.headline([spread(least=None), SHARED])
    assert "pearson is undefined in some run over 9 runs. The scores have no variance" in said.sentence
    assert "two runs share 2.0 of their 5" in said.sentence
    assert (said.interval, said.baseline) == (
        "The number of shared heads has a 95 % CI of 1.0 to 3.0.",
        "By chance, two runs would share 0.7 of their 5 most important heads.",
    )  # heads, as in the sentence


def test_sources_without_a_share_are_no_source():
    source = SeedSource(
        name="head", **ABOUT, share=None, by_chance=0.25, deviation=None, variance=None, low=None, high=None, p=None
    )
    assert "The scores have no variance" in STUDY.headline([spread(least=0.5), source.as_row(), SHARED]).sentence
