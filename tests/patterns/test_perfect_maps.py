"""What the classifier that ships says of maps drawn with a ruler: two squares, columns, a diagonal, both, nothing."""

import numpy as np
import pytest

from core import config
from core.patterns.suggestions import judged
from core.patterns.training import Classifier


@pytest.fixture(scope="module")
def classifier():
    return Classifier.from_bytes((config.ANNOTATIONS / "bert" / "classifier.safetensors").read_bytes())


def _squares(length: int, cut: int) -> np.ndarray:
    weights = np.zeros((length, length))
    weights[:cut, :cut], weights[cut:, cut:] = 1 / cut, 1 / (length - cut)
    return weights


@pytest.mark.parametrize("length", [16, 24, 32, 48])
def test_two_perfect_squares_are_a_block(classifier, length):
    """Wherever the sentences meet, but of short inputs: at 12 tokens the classifier holds half of them for it."""
    maps = [_squares(length, cut) for cut in range(length // 3, 2 * length // 3 + 1)]
    judgement = judged(classifier, maps)
    shares = judgement.probabilities
    assert {classifier.classes[k] for k in shares.argmax(1)} == {"block"}
    assert (shares.max(1) > 0.45).all()  # set after the values of docs/explanation/pattern-classifier.md were seen
    assert judgement.outside.all() or length > 24  # nothing so clean was labelled, and it is said


@pytest.mark.parametrize("length", [12, 24, 48])
def test_perfect_maps_of_the_other_classes(classifier, length):
    column, both = np.zeros((length, length)), np.eye(length) / 2
    column[:, 0], both[:, 0] = 1, both[:, 0] + 0.5
    drawn = {
        "vertical": column,
        "diagonal": np.eye(length),
        "vertical+diagonal": both,
        "heterogeneous": np.full((length, length), 1 / length),
    }
    shares = judged(classifier, list(drawn.values())).probabilities
    assert [classifier.classes[k] for k in shares.argmax(1)] == list(drawn)
    assert (shares.max(1) > 0.8).all()  # likewise
