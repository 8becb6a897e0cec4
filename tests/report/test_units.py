"""The unit of every claim: its statistic and margin have the same, so that no even shares are read as weights."""

import numpy as np
import pytest

from core.report.claims import claims
from tests.simulations.claim_worlds import PLANTED, WORLDS

WEIGHT, RATE, HEADS, COSINE = "attention weight", "share of examples or words", "share of heads", "cosine"
SCORE, RANK, VARIANCE = "score of a task (1: 100 points)", "rank correlation", "share of the scores' variance"
RATIO, R, LOGITS, MAPS = "ratio of gradients", "Pearson's r", "logits", "share of maps"
DIFFERENCE, LABELS, NONE = "share of the logit difference", "share of dependencies", "no test"

LEAST_MOST = {  # what a number of a unit, or a difference of two, can be
    **dict.fromkeys((WEIGHT, RATE, HEADS, SCORE, VARIANCE, MAPS, LABELS, R, RANK), (-1.0, 1.0)),
    COSINE: (-2.0, 2.0),
    **dict.fromkeys((RATIO, LOGITS, DIFFERENCE), (-np.inf, np.inf)),
}

UNITS = {  # of the statistic and of what it is held against, read in each test's code
    "last-two-layers": COSINE,
    "gpt2-changes": COSINE,
    "99th-percentile": NONE,
    "frame-heads": WEIGHT,
    "element-first": NONE,
    "all-heads-carry": HEADS,
    "harmless": SCORE,
    "cls-early": WEIGHT,
    "not-linguistic": HEADS,
    "one-separator": WEIGHT,
    "more-to-nouns": WEIGHT,
    "noun-pronoun": WEIGHT,
    "cls-row": WEIGHT,
    "shares-stay": MAPS,
    "pretraining": SCORE,
    "random-learns": SCORE,
    "constant-cells": NONE,
    "random-head": SCORE,
    "some-head": SCORE,
    "first-layer": SCORE,
    "shared-heads": HEADS,
    "nothing-changes": RATE,
    "prunable": SCORE,
    "one-is-enough": HEADS,  # of layers, each by its best head
    "neighbours": WEIGHT,
    "separators": WEIGHT,
    "separator-gradients": RATIO,
    "separator-effects": HEADS,
    "separator-origin": VARIANCE,
    "dependencies": LABELS,
    "effective-drops": R,
    "dominance": WEIGHT,
    "special-tokens": HEADS,
    "few-meaningful": HEADS,
    "more-vertical": MAPS,
    "no-stripes": WEIGHT,
    "rise-and-fall": WEIGHT,
    "negation-qnli": WEIGHT,
    "layer-costs": SCORE,
    "tuned-beats-untuned": SCORE,
    "keeps-its-role": HEADS,  # of roles of heads
    "no-whole-tree": RATE,
    "attention-syntax": RATE,
    "hierarchical": RATE,
    "middle-transfers": SCORE,
    "a-third-can-go": SCORE,
    "good-and-bad": SCORE,
    "random-below-untuned": SCORE,
    "keeps-its-heads": HEADS,
    "mean-gain": NONE,
    "sixteen-layers": NONE,
    "fifth-layer": SCORE,
    "little-change": HEADS,
    "late-stripes": HEADS,
    "classified-by-separator": SCORE,
    "fresh-last-layers": SCORE,
    "gradient-and-effect": RANK,
    "gradient-and-shapley": RANK,
    "gradient-and-gate": RANK,
    "greedy-by-gradient": DIFFERENCE,
    "all-combinations": NONE,
    "first-and-last": WEIGHT,
    "words-of-both": HEADS,
    "repeated-patterns": HEADS,
    "adjectives-matter": LOGITS,
    "frames-help": NONE,
}
FURTHER = {  # margins that a test holds its statistic against beside its claim's own, in the same unit
    "frame-heads": {0.1},  # a weight that can just be seen
    "no-stripes": {-0.1},  # the same, negated
    "hierarchical": {0.5},  # as many words of one rule as of the other
}


def test_every_claim_has_its_unit_and_what_is_no_test_has_no_margin():
    assert {claim.id for claim in claims()} == set(UNITS)
    assert {claim.id for claim in claims() if claim.margin is None} == {
        id for id, unit in UNITS.items() if unit == NONE
    } | {"random-learns"}  # held against the constant predictor's score


@pytest.mark.thorough
@pytest.mark.parametrize("world", PLANTED, ids=lambda world: world.claim)
def test_statistics_and_margins_are_numbers_of_the_claims_unit(world):
    """In each planted world the margin is the claim's, and both it and the statistic lie where the unit can be."""
    (known,) = (claim for claim in claims() if claim.id == world.claim)
    least, most = LEAST_MOST[UNITS[world.claim]]
    for seed, name in enumerate(WORLDS):
        found = known.test(world.plant(world.truth[name], np.random.default_rng([seed, 1])))[0]
        assert found.statistic is not None
        assert least <= found.statistic.value <= most
        if known.margin is not None:
            allowed = {known.margin, *FURTHER.get(world.claim, ())}
            assert min(abs(found.margin - margin) for margin in allowed) < 1e-5
