import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score

from core.errors import InputError
from core.tasks.glue import TASKS
from core.tasks.metrics import is_constant, majority, metrics, shown
from tests.tasks.constants import constant_baselines


@pytest.mark.thorough
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
def test_classes_equal_scikit_learn(pairs):
    gold, predicted = zip(*pairs, strict=True)
    found = metrics(TASKS["mrpc"], gold, predicted)
    assert found["accuracy"] == accuracy_score(gold, predicted)
    assert found["f1"] == f1_score(gold, predicted, zero_division=0.0)


def test_scores_equal_scipy():
    generator = np.random.default_rng(0)
    gold, predicted = generator.uniform(0, 5, 50), generator.normal(size=50)
    found = metrics(TASKS["stsb"], gold, predicted)
    assert found["pearson"] == pytest.approx(pearsonr(gold, predicted).statistic)
    assert found["spearman"] == pytest.approx(spearmanr(gold, predicted).statistic)
    assert found["mse"] == pytest.approx(((gold - predicted) ** 2).mean())


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_constant_scores_are_undefined_not_nan(noise):
    predicted = np.full(20, 2.7) + noise * np.arange(20)
    found = metrics(TASKS["stsb"], np.linspace(0, 5, 20), predicted)
    assert found["pearson"] is None
    assert found["spearman"] is None
    assert shown(found["pearson"]) == "undefined"
    assert is_constant(predicted)


def test_the_papers_constant_cells():
    gold = [1] * 279 + [0] * 129
    found = constant_baselines(TASKS["mrpc"], gold)
    assert shown(found["equivalent"]["f1"]) == "81.2"
    assert shown(found["equivalent"]["accuracy"]) == "68.4"
    assert (shown(found["not_equivalent"]["f1"]), shown(found["not_equivalent"]["accuracy"])) == ("0.0", "31.6")


def test_majority_is_chosen_on_train():
    name, found = majority(TASKS["sst2"], [1, 1, 0], [0, 0, 1])
    assert (name, found["accuracy"]) == ("positive", pytest.approx(1 / 3))
    name, found = majority(TASKS["stsb"], [1.0, 3.0], [2.0, 4.0])
    assert (name, found["pearson"], found["mse"]) == ("mean", None, 2.0)


def test_as_many_predictions_as_rows():
    with pytest.raises(InputError, match="3 examples and 2"):
        metrics(TASKS["sst2"], [0, 1, 1], [0, 1])
