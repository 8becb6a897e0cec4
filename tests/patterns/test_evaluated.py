"""Figures of a classifier on maps it is judged on, by scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

from core.codebook.registry import BERT
from core.errors import InputError
from core.patterns.evaluation import calibration
from core.patterns.suggestions import UNSURE, evaluated, judged
from core.patterns.training import ClassifierRecipe, fit
from tests.codebook.drawn_maps import synthetic_maps


@pytest.fixture(scope="module")
def classifier():
    maps, names, _ = synthetic_maps(each=6)
    return fit(maps, names, BERT.names, ClassifierRecipe(kind="baseline"))


@pytest.mark.thorough
def test_every_figure_is_that_of_its_own_predictions(classifier):
    maps, names, groups = synthetic_maps(each=8, seed=9)
    names = [names[0], *names[:-1]]  # some are wrong
    figures = evaluated(classifier, maps, names, groups)
    probabilities = judged(classifier, maps).probabilities
    told = [classifier.classes[k] for k in probabilities.argmax(1)]
    sure = probabilities.max(1) >= UNSURE
    right = np.array([said == name for said, name in zip(told, names, strict=True)])
    assert figures.accuracy == pytest.approx(accuracy_score(names, told))
    assert 0 < figures.accuracy < 1
    assert figures.macro_f1_all == pytest.approx(f1_score(names, told, average="macro"))
    assert figures.low < figures.macro_f1 < figures.high
    assert figures.confusion.tolist() == confusion_matrix(names, told, labels=list(classifier.classes)).tolist()
    assert figures.unsure == pytest.approx(1 - sure.mean())
    assert figures.sure_accuracy == pytest.approx(right[sure].mean())
    truth = np.array([list(classifier.classes).index(name) for name in names])
    assert figures.ece == pytest.approx(calibration(probabilities, truth)[1])
    assert (figures.maps, figures.inputs) == (len(maps), len(set(groups)))
    assert figures.low == evaluated(classifier, maps, names, groups, seed=0).low


def test_a_class_that_the_classifier_does_not_know_is_named(classifier):
    maps, _, groups = synthetic_maps(each=1, seed=9)
    with pytest.raises(InputError, match=r"classes of the classifier \(.*\); got 'zigzag'\. Choose a classifier"):
        evaluated(classifier, maps, ["zigzag"] * len(maps), groups)
