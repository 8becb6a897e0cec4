"""What a sweep says of predictions that are known: flips, McNemar's p and the change, by the arithmetic it rests on."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from core.scoring.effects import split_half
from core.studies.ablation.disable import STUDY, Ablations, Recomputed
from core.studies.ablation.records import AblatedTarget, MeanOverHeads, SplitHalf, Unmodified
from tests.studies.figures import figures

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


def test_heads_are_scores_with_intervals_where_enough_changes_and_the_best_is_judged_on_the_other_half():
    """200 rows: the first head loses 60 right answers, the second wins two, the third changes nothing."""
    gold = np.tile([0, 1], 100)
    plain = np.where(np.arange(200) < 20, 1 - gold, gold)
    numbers = np.arange(200)
    first = np.where((numbers >= 40) & (numbers < 100), 1 - gold, plain)
    second = np.where(numbers < 2, gold, plain)
    swept = Ablations(numbers, 3, 1, gold, plain, np.stack([first, second, plain]), (), ())
    options = STUDY.read({"checkpoint": "any", "task": "sst2", "operator": "zero", "seed": 4})
    found = STUDY.results(options, swept)
    heads = [one for one in found if isinstance(one, AblatedTarget)]
    changes = np.stack([(row == gold).astype(float) - (plain == gold) for row in (first, second, plain)])
    for one, change in zip(heads, changes, strict=True):
        metric = one.metrics.first
        assert one.value == metric.change.value == pytest.approx(change.mean())
        assert (one.statistic, one.feature, one.baseline) == ("zero heads", "sst2 accuracy", pytest.approx(0.9))
        assert (one.operator, one.what, one.task, one.n) == ("zero", "heads", "sst2", 200)
        if one is heads[0]:
            assert (one.low, one.high) == (metric.change.low, metric.change.high)
            ends = stats.t.interval(0.95, 199, change.mean(), stats.sem(change))
            assert (one.low, one.high) == pytest.approx(ends, abs=0.01)
        else:
            assert (one.low, one.high) == (None, None)
    assert [one.p < 0.05 for one in heads] == [True, False, False]
    (mean,) = (one for one in found if isinstance(one, MeanOverHeads))
    over = changes.mean(0)
    assert (mean.value, mean.heads, mean.n) == (pytest.approx(over.mean()), 3, 200)
    assert (mean.low, mean.high) == pytest.approx(stats.t.interval(0.95, 199, over.mean(), stats.sem(over)), abs=0.005)
    (half,) = (one for one in found if isinstance(one, SplitHalf))
    again = split_half(np.zeros(200), changes, seed=4)
    assert (half.name, half.chosen, half.held_out) == (heads[again.head].name, again.chosen, again.held_out)
    assert (half.low, half.high, half.same) == (again.low, again.high, again.same)
    layers = STUDY.results(STUDY.read({"checkpoint": "any", "task": "sst2", "what": "layers"}), swept)
    assert not [one for one in layers if isinstance(one, MeanOverHeads)]
    assert {one.value for one in layers if isinstance(one, AblatedTarget)} == {None}
    said = STUDY.headline([one.as_row() for one in found])
    assert figures(said.sentence) == figures(
        "Ablating L1H1 changes accuracy most, by -30.0 points. 1 of 3 changes are significant after correction."
    )
    low, high = 100 * heads[0].low, 100 * heads[0].high
    assert said.interval == (f"L1H1 has a 95 % CI of {low:+.1f} to {high:+.1f}, not corrected for the 3 ablations.")
