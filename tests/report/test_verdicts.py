"""A printed number beside ours: the verdict, and the intervals it rests on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score

from core.report.estimates import (
    Estimate,
    correlation_interval,
    f1_interval,
    mean_over,
    share_interval,
)
from core.report.ids import Condition, ExhibitId, Item, Quantity
from core.report.published_values import BERT, GPT2, PAPER, Figure
from core.report.verdicts import AGREES, CANNOT, DIFFERS, Measured, MeasurementContext, is_checkpoint, paired, verdict

BASE = MeasurementContext(BERT, ("rte",))
ITEM, OTHER, THIRD = (Item(Quantity.SCORE, name) for name in ("a", "b", "only ours"))
ABOUT = {"exhibit": ExhibitId.TABLE_1, "task": "rte", "item": ITEM, "condition": Condition.NONE}


def figure(**changes):
    return Figure(**({"source": PAPER, "value": 0.5} | ABOUT | changes))


def ours(value=0.5, low=0.4, high=0.6, **changes):
    about = ABOUT | {"n": 277, "of": "dev rows", "run": "r"}
    return Measured(estimate=Estimate(value, low, high), **(about | changes))


@pytest.mark.parametrize(
    ("printed", "measured", "place", "word", "why"),
    [
        (figure(), ours(), BASE, AGREES, "within our interval, 0.4 to 0.6"),
        (figure(value=0.61), ours(), BASE, DIFFERS, "0.11 below"),
        (figure(value=0.61, error=0.02), ours(), BASE, AGREES, "within"),  # its reading error reaches in
        (figure(value=0.3), ours(), BASE, DIFFERS, "0.2 above"),
        (figure(), ours(low=None, high=None), BASE, CANNOT, "no interval"),
        (figure(), None, BASE, CANNOT, "not measured"),
        (figure(), ours(), MeasurementContext("atlas-encoder", ("rte",)), CANNOT, "the checkpoints differ"),
        (figure(checkpoint=GPT2), ours(), BASE, CANNOT, "published for gpt2"),
        (figure(), ours(), MeasurementContext(BERT), CANNOT, "the examples differ"),
        (
            figure(task=None),
            ours(task=None),
            MeasurementContext(BERT),
            AGREES,
            "within",
        ),  # no rows of a task are asked for
        (figure(flaw="it is wrong"), ours(), BASE, CANNOT, "it is wrong"),
    ],
)
def test_the_verdict(printed, measured, place, word, why):
    found = verdict(printed, measured, place)
    assert found[0] == word
    assert why in found[1]


def test_without_a_printed_number_there_is_no_verdict():
    assert verdict(None, ours(), BASE) == ("", "")


@pytest.mark.parametrize(
    "name", ["bert-base-uncased", "google-bert/bert-base-uncased@v1", "/models/bert-base-uncased/"]
)
def test_a_checkpoint_is_known_by_its_last_name(name):
    assert is_checkpoint(name, BERT)
    assert not is_checkpoint(name, GPT2)
    assert not is_checkpoint("bert-base-uncased-mine", BERT)


def test_numbers_are_paired_by_task_item_and_condition_and_none_is_lost():
    printed = [figure(), figure(item=OTHER), figure(source="another"), figure(task="qqp")]
    values = paired(printed, [ours(), ours(item=THIRD)], BASE, {"qqp": "no rows of QQP"})
    assert [(one.item, one.source, one.published, one.value) for one in values] == [
        ("a", PAPER, 0.5, 0.5),
        ("a", "another", 0.5, 0.5),
        ("only ours", None, None, 0.5),
        ("b", PAPER, 0.5, None),
        ("a", PAPER, 0.5, None),
    ]
    assert [one.verdict for one in values] == [AGREES, AGREES, "", CANNOT, CANNOT]
    assert values[-1].why == "no rows of QQP"
    assert values[0].run == "r"


# ---------------------------------------------------------------- intervals


def f1_of(gold, predicted):
    hits = np.sum(gold & predicted)
    return 2 * hits / (2 * hits + np.sum(gold ^ predicted))


def test_f1_and_accuracy_give_back_the_counts():
    generator = np.random.default_rng(0)
    gold = generator.random(300) < 0.6
    predicted = np.where(generator.random(300) < 0.75, gold, ~gold)
    f1, accuracy = f1_score(gold, predicted), accuracy_score(gold, predicted)
    found = f1_interval(f1, accuracy, 300)
    draws = [generator.integers(0, 300, 300) for _ in range(2000)]
    low, high = np.quantile([f1_of(gold[k], predicted[k]) for k in draws], [0.025, 0.975])
    assert f1_of(gold, predicted) == f1  # scikit-learn's
    assert found.value == f1
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)


def test_f1_of_0_has_an_upper_end_only_above():
    found = f1_interval(0.0, 0.3, 100)
    assert (found.value, found.low) == (0.0, pytest.approx(0.0))
    assert 0.0 < found.high < 0.2


def test_a_correlation_has_fishers_interval():
    generator = np.random.default_rng(1)
    x = generator.normal(size=80)
    test = pearsonr(x, x + generator.normal(size=80))
    found, known = correlation_interval(test.statistic, 80), test.confidence_interval()
    assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-6)
    assert correlation_interval(0.5, 3).low is None


def test_a_share_has_wilsons_interval():
    n, k, z = 50, 20, 1.959964
    share = k / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    found = share_interval(share, n)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-5)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=9))
def test_the_interval_of_a_mean_over_heads_is_never_too_narrow(heads):
    """Standard errors add at most: a mean of normal heads with any correlation has an error of at most their mean."""
    found = mean_over(Estimate(value, value - 1.96 * error, value + 1.96 * error) for value, error in heads)
    independent = np.sqrt(sum(error**2 for _, error in heads)) / len(heads)
    assert found.value == pytest.approx(np.mean([value for value, _ in heads]))
    assert found.high - found.value >= 1.96 * independent - 1e-9
    assert mean_over([]) is None


def test_layers_of_models_of_another_depth_never_join():
    """Ids join, not words: layer 3 of 6 and of 12 are two items, and so are a class and a score called alike."""
    six, twelve = (Item(Quantity.LAYER, "noun", layer=3, layers=layers) for layers in (6, 12))
    assert (six.text, six.position) == ("noun, layer 3 of 6", 0.4)
    rows = paired([figure(item=twelve)], [ours(item=six)], BASE, {})
    assert [one.published for one in rows] == [None, 0.5]
    alike = paired([figure(item=Item(Quantity.CLASS_SHARE, "a"))], [ours(item=ITEM)], BASE, {})
    assert [(one.item, one.published) for one in alike] == [("a", None), ("a", 0.5)]
