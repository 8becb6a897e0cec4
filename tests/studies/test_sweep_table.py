"""What a sweep says of predictions that are known: flips, McNemar's p and the change, by the arithmetic it rests on."""

import numpy as np
import pytest
from scipy.stats import binomtest

from core.studies.ablation.disable import STUDY, Ablations, Recomputed
from core.studies.ablation.records import AblatedTarget, Unmodified

GOLD = np.array([0, 1] * 10)
PLAIN = np.where(np.arange(20) < 2, 1 - GOLD, GOLD)  # wrong in the first two rows


def flipped_in(*rows):
    return np.where(np.isin(np.arange(20), rows), 1 - PLAIN, PLAIN)


def results(*changed, in_float32=(), **more):
    swept = Ablations(np.arange(20), 1, 2, GOLD, PLAIN, np.stack(changed), (), in_float32, **more)
    return STUDY.results(STUDY.read({"checkpoint": "any", "task": "sst2"}), swept)


def records(*in_float32):
    found = results(flipped_in(0, 5, 6, 7, 8, 9), flipped_in(1), in_float32=in_float32)
    (untouched,) = (one for one in found if isinstance(one, Unmodified))
    return untouched, [one for one in found if isinstance(one, AblatedTarget)]


def test_flips_and_mcnemars_p_are_of_rows_lost_and_won():
    untouched, (first, second) = records()
    assert untouched.metrics.first.value == pytest.approx(0.9)
    assert (first.flipped, second.flipped) == (6, 1)
    assert first.mcnemar == pytest.approx(binomtest(1, 6).pvalue)  # one won, five lost
    assert second.mcnemar == 1.0
    assert first.metrics.first.change.value == pytest.approx(-4 / 20)
    assert first.metrics.first.value == pytest.approx(0.9 - 0.2)
    assert (first.float32, second.float32) == (None, None)


def test_a_head_that_float32_was_asked_about_rests_on_its_predictions():
    untouched, (first, second) = records(Recomputed((1,), np.arange(20), PLAIN, flipped_in(2, 3, 4)[None]))
    assert untouched.in_float32 == 1
    assert (first.float32, second.float32) == (False, True)
    assert (first.flipped, second.flipped) == (6, 3)
    assert second.mcnemar == pytest.approx(binomtest(0, 3).pvalue)
    assert second.metrics.first.change.value == pytest.approx(-3 / 20)


@pytest.mark.parametrize(
    ("rows", "moved", "said"),
    [
        ((), 0.171, "No ablation changes a prediction, although logits change by up to 0.17, so all 2 changes of "
         "accuracy are 0."),
        ((), None, "No ablation changes a prediction, so all 2 changes of accuracy are 0."),
        ((0, 5), 0.171, "No ablation changes accuracy: all 2 changes are 0."),  # one lost, one won
    ],
)  # fmt: skip
def test_a_sweep_whose_changes_are_all_0_says_why(rows, moved, said):
    found = [one.as_row() for one in results(flipped_in(), flipped_in(*rows), moved=moved)]
    assert STUDY.headline(found).sentence == said
