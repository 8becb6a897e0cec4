"""What a claim says of rows that cannot bear it: one head, one seed, no numbers."""

from dataclasses import replace

import numpy as np
import pytest

from core.report.claims.outcomes import FAILS, HOLDS, KNOWN_ERROR, UNDECIDED, UNTESTED
from core.report.claims.registry import claim
from core.report.rendering.words import numbers_of
from core.report.report import outcomes
from tests.report.evidence_made import evidence, found, layer_rows
from tests.simulations import claim_worlds

PLANTED = {world.claim: world for world in claim_worlds.PLANTED}
BY_COUNTS = {
    "keeps-its-heads",
    "few-meaningful",
    "nothing-changes",
}  # of maps and of predictions: they have no number that can be NaN
MEASURED = ("value", "low", "high", "effect", "accuracy_", "ratio")
WORDS = (HOLDS, FAILS, UNDECIDED, UNTESTED, KNOWN_ERROR)


def made(name, change):
    """Evidence of a claim's world "twice", each row changed."""
    world = PLANTED[name]
    some = world.plant(world.truth["twice"], np.random.default_rng(0))
    return replace(some, results=tuple(
        replace(result, rows=tuple(row for row in map(change, result.rows) if row is not None))
        for result in some.results
    ))  # fmt: skip


def first_head(row):
    """The row, if it is of the first head or of none."""
    return row if (row.get("layer") or 0) == 0 and (row.get("head") or 0) == 0 else None


def without_numbers(row):
    measured = (*MEASURED, "share") if "part" in row else MEASURED
    return {name: float("nan") if name.startswith(measured) else value for name, value in row.items()}


@pytest.mark.parametrize("name", PLANTED)
def test_a_checkpoint_with_one_head_gets_a_word_and_no_traceback(name):
    for one in claim(name).test(made(name, first_head)):
        assert one.outcome in WORDS
        assert one.said


@pytest.mark.parametrize("name", sorted(set(PLANTED) - BY_COUNTS))
def test_rows_of_nan_decide_nothing(name):
    for one in claim(name).test(made(name, without_numbers)):
        assert one.outcome in (UNDECIDED, UNTESTED), one.said


def test_one_seed_is_said_in_the_verdict():
    (record,) = outcomes(claim("last-two-layers"), evidence(found("change", layer_rows((0.9, 0.9, 0.5, 0.4)), "rte")))
    assert record.seeds == 1
    assert "one seed of fine-tuning" in numbers_of(record)
