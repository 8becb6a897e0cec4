import numpy as np
import pytest
from sklearn.metrics import f1_score

from core.patterns import class_shares, evaluation
from core.patterns.evaluation import ends

NAMES = ("a", "b", "c")


def example(seed=0, n=60):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    predicted = np.where(rng.random(n) < 0.7, truth, rng.integers(0, 3, n))
    return truth, predicted, [f"input {k // 4}" for k in range(n)]


def test_scores_are_scikit_learns():
    truth, predicted, groups = example()
    found = evaluation.scores(truth, predicted, groups, NAMES)
    assert found.macro_f1 == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert [row["f1"] for row in found.per_class] == pytest.approx(f1_score(truth, predicted, average=None))
    assert found.low < found.macro_f1 < found.high
    assert found.accuracy == pytest.approx(np.mean(truth == predicted))
    assert (found.maps, found.inputs, found.confusion.sum()) == (60, 15, 60)


def test_the_interval_resamples_inputs_not_maps():
    """Copies of an input add no information: four maps of one input that stand or fall together widen it."""
    truth, predicted, _ = example(n=40)
    together = np.repeat(truth, 4), np.repeat(predicted, 4)
    by_input = evaluation.macro_f1_interval(*together, [f"{k // 4}" for k in range(160)], 3)
    by_map = evaluation.macro_f1_interval(*together, [str(k) for k in range(160)], 3)
    assert by_input[1] - by_input[0] > 1.5 * (by_map[1] - by_map[0])


def test_resampling_by_a_loop():
    counts = np.arange(12).reshape(3, 4)
    drawn = np.random.default_rng(5).multinomial(3, [1 / 3] * 3, size=7)
    loop = np.array([sum((times * row for times, row in zip(one, counts, strict=True)), np.zeros(4)) for one in drawn])
    assert np.array_equal(evaluation.resampled(counts, seed=5, samples=7), loop)


def test_absent_classes_do_not_pull_macro_f1_down():
    truth = np.array([0, 0, 1, 1])
    assert evaluation.scores(truth, truth, list("wxyz"), NAMES).macro_f1 == 1


def test_macro_f1_is_over_classes_of_ten_maps_and_over_all_beside_it():
    truth = np.repeat([0, 1, 2], [20, 10, 9])
    predicted = np.where(np.arange(39) % 4 == 0, (truth + 1) % 3, truth)
    found = evaluation.scores(truth, predicted, [str(k) for k in range(39)], NAMES)
    assert found.macro_f1 == pytest.approx(f1_score(truth, predicted, labels=[0, 1], average="macro"))
    assert found.macro_f1_all == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert found.low < found.macro_f1 < found.high
    few = evaluation.scores(truth[18:22], predicted[18:22], list("wxyz"), NAMES)
    assert few.macro_f1 == few.macro_f1_all


def test_calibration_bins_hold_equal_counts_and_the_error_is_their_weighted_gap():
    rng = np.random.default_rng(3)
    probabilities = rng.dirichlet([0.4, 0.4, 0.4], size=103)
    truth = rng.integers(0, 3, 103)
    rows, error = evaluation.calibration(probabilities, truth)
    assert [row["n"] for row in rows] == [11, 11, 11] + [10] * 7
    ranked = sorted(zip(probabilities.max(1), probabilities.argmax(1) == truth, strict=True))
    gaps, start = 0.0, 0
    for row in rows:
        part = ranked[start : start + row["n"]]
        gaps += abs(sum(sure - right for sure, right in part))
        start += row["n"]
    assert error == pytest.approx(gaps / 103)


def test_the_interval_of_the_calibration_error_resamples_heads():
    rng = np.random.default_rng(1)
    sure = rng.uniform(0.5, 1, 300)
    heads = [str(k // 30) for k in range(300)]
    truth = np.array([int(head) % 3 == 0 for head in heads]).astype(int)  # a head's maps are right or wrong together
    probabilities = np.stack([sure, 1 - sure], 1)
    wide = np.diff(evaluation.calibration_interval(probabilities, truth, heads))
    narrow = np.diff(evaluation.calibration_interval(probabilities, truth, [str(k) for k in range(300)]))
    assert wide > 2 * narrow


def test_sure_errors_and_the_interval_of_accuracy():
    probabilities = np.array([[0.9, 0.1], [0.81, 0.19], [0.79, 0.21], [0.1, 0.9]])
    assert evaluation.sure_errors(probabilities, np.array([1, 0, 1, 1])) == 0.25
    right = np.arange(40) % 4 > 0
    low, high = evaluation.accuracy_interval(right, [str(k) for k in range(40)])
    assert low < right.mean() < high
    assert 0.2 < high - low < 0.35  # 1.96 x 2 x sqrt(.75 x .25 / 40) = .27


def test_calibration_of_a_classifier_that_is_right_as_often_as_it_says():
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 20_000)
    truth = (rng.random(20_000) > sure).astype(int)
    rows, error = evaluation.calibration(np.stack([sure, 1 - sure], 1), truth)
    assert error < 0.02
    assert sum(row["n"] for row in rows) == 20_000
    _, off = evaluation.calibration(np.stack([sure, 1 - sure], 1), 1 - truth)
    assert off > 0.4


def test_shares_sum_to_one_and_the_interval_holds_the_share():
    counts = np.random.default_rng(0).multinomial(144, [0.5, 0.3, 0.2], size=30)
    found = class_shares.shares(counts, NAMES)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert sum(one.count for one in found) == 30 * 144
    assert all(one.low <= one.share <= one.high for one in found)


def test_correction_recovers_the_true_shares_from_a_known_confusion():
    rng = np.random.default_rng(0)
    true = np.array([0.6, 0.3, 0.1])
    confusion = np.array([[0.8, 0.15, 0.05], [0.1, 0.9, 0.0], [0.3, 0.1, 0.6]])
    counts = rng.multinomial(144, true @ confusion, size=200)
    held_out = np.stack([np.stack([rng.multinomial(20, row) for row in confusion]) for _ in range(100)])
    found = [one.share for one in class_shares.corrected_shares(counts, held_out, NAMES)]
    raw = [one.share for one in class_shares.shares(counts, NAMES)]
    assert np.abs(found - true).max() < 0.02
    assert np.abs(raw - true).max() > 0.05


def test_counts_that_no_shares_give_have_a_misfit_and_no_interval():
    """A tenth of the others' labelled maps was called by the third name; of 200 inputs' maps none is, so no share of it
    was foretold: least squares said .000 (.000 to .000)."""
    held_out = np.zeros((50, 3, 3), dtype=int)
    held_out[:, 0], held_out[:, 1], held_out[:, 2] = [18, 0, 2], [0, 18, 2], [0, 0, 4]
    rng = np.random.default_rng(1)
    counts = np.concatenate([rng.multinomial(36, [0.6, 0.4], size=200), np.zeros((200, 1), dtype=int)], 1)
    found = class_shares.corrected_shares(counts, held_out, NAMES)
    assert found[2].share == pytest.approx(0, abs=1e-6)
    assert found[2].misfit <= 0.01
    assert all(np.isnan([one.low, one.high]).all() for one in found)
    fitting = class_shares.corrected_shares(rng.multinomial(36, [0.54, 0.36, 0.1], size=200), held_out, NAMES)
    assert fitting[2].misfit > 0.05
    assert fitting[2].low == 0 < fitting[2].high < 0.05


def test_few_labelled_maps_without_an_error_do_not_make_a_share_certain():
    """Twelve maps of a class, all of them called right: up to a fifth may not be."""
    held_out = np.zeros((60, 3, 3), dtype=int)
    held_out[:, 0, 0], held_out[:, 1, 1], held_out[:12, 2, 2] = 10, 10, 1
    counts = np.random.default_rng(2).multinomial(36, [0.5, 0.3, 0.2], size=300)
    third = class_shares.corrected_shares(counts, held_out, NAMES)[2]
    plain = class_shares.shares(counts, NAMES)[2]
    assert third.low < plain.low
    assert third.high > plain.high + 0.01


def test_a_class_nobody_labelled_is_not_corrected():
    counts = np.array([[5, 5, 10], [5, 5, 10]])
    held_out = np.zeros((2, 3, 3), dtype=int)
    held_out[:, [0, 1], [0, 1]] = 4
    assert class_shares.corrected_shares(counts, held_out, NAMES)[2].share == pytest.approx(0.5)


def test_a_class_nobody_labelled_has_no_score():
    truth = np.array([0, 0, 1, 1])
    (_, _, absent) = evaluation.scores(truth, truth, list("wxyz"), NAMES).per_class
    assert absent == {"class": NAMES[2], "precision": None, "recall": None, "f1": None, "support": 0}


def test_moved_shares_are_paired_by_input():
    """Inputs differ much, and each moves by the same: the interval of the change is that of the changes alone."""
    rng = np.random.default_rng(5)
    first = rng.integers(10, 100, 80)
    moved = rng.integers(4, 9, 80)
    before = np.stack([first, 144 - first, np.zeros(80, dtype=int)], 1)
    after = np.stack([first + moved, 144 - first - moved, np.zeros(80, dtype=int)], 1)
    found = class_shares.moved_shares(before, after, NAMES)
    changes = moved / 144
    half = 1.959964 * changes.std(ddof=1) / 80**0.5
    assert found[0].change == pytest.approx(changes.mean())
    assert (found[0].low, found[0].high) == pytest.approx((changes.mean() - half, changes.mean() + half), rel=0.02)
    wide = 2.393980 * changes.std(ddof=1) / 80**0.5  # the normal quantile of 1 - .05 / 6
    assert (found[0].low_all, found[0].high_all) == pytest.approx(
        (changes.mean() - wide, changes.mean() + wide), rel=0.03
    )
    unpaired = [shares[0] for shares in (class_shares.shares(after, NAMES), class_shares.shares(before, NAMES))]
    assert unpaired[0].low < unpaired[1].high  # apart only when paired
    assert sum(one.change for one in found) == pytest.approx(0)
    assert (found[2].change, found[2].low, found[2].high) == (0, 0, 0)


def test_a_guess_from_the_head_takes_its_own_class_then_its_layers_then_the_most_frequent():
    labels = ["block", "vertical", "vertical", "diagonal", "diagonal", "diagonal", "diagonal"]
    heads = [("a", 0, 0), ("a", 0, 1), ("a", 0, 1), *[("a", 1, 2)] * 3, ("b", 0, 0)]
    asked = [("a", 0, 0), ("a", 0, 1), ("a", 0, 7), ("a", 1, 0), ("b", 0, 0), ("c", 0, 0)]
    guesses = evaluation.by_identity(labels, heads, asked)
    assert guesses == [
        "block",
        "vertical",
        "vertical",
        "diagonal",
        "diagonal",
        "diagonal",
    ]
    with pytest.raises(ValueError, match="labels must not be empty"):
        evaluation.by_identity([], [], asked)


def test_few_inputs_have_expanded_percentiles():
    """Hesterberg 2015: 1.6 % of 20 inputs, 2.5 % of very many; of one input all that was drawn."""
    drawn = np.arange(10_001.0)
    assert ends(drawn, 20) == pytest.approx([159, 9841], abs=1)
    assert ends(drawn, 10**6) == pytest.approx([250, 9750], abs=1)
    assert ends(drawn, 1).tolist() == [0, 10_000]
