"""A classifier judged on labelled maps: how often it is right, how sure it is, and when it should not be asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from core.errors import InputError
from core.patterns.evaluation import calibration, scores
from core.patterns.suggestions import judged
from core.patterns.training import Classifier

Map = Float[np.ndarray, "_query _key"]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A classifier on maps whose class is known. macro_f1: over classes with a map, 95 % interval over inputs.

    ece: expected calibration error in 10 bins; unsure: share of maps whose first choice has less than a half;
    sure_accuracy: accuracy on the others, NaN where there are none; outside: share beyond what was trained on.
    confusion: counts [true, predicted] in the order of `classes`.
    """

    classes: tuple[str, ...]
    maps: int
    inputs: int
    accuracy: float
    macro_f1: float
    low: float
    high: float
    ece: float
    unsure: float
    sure_accuracy: float
    outside: float
    per_class: list[dict[str, Any]]
    confusion: Int[np.ndarray, "class class"]


def evaluated(
    classifier: Classifier, maps: Sequence[Map], labels: Sequence[str], groups: Sequence[str], *, seed: int = 0
) -> Evaluated:
    """Judge `classifier` on maps [query, key] and their classes; groups: the input of each map.

    Errors: InputError where a class is none of the classifier's.
    """
    unknown = sorted(set(labels) - set(classifier.classes))
    if unknown:
        raise InputError(
            f"A classifier is judged on its own classes ({', '.join(classifier.classes)}); {unknown[0][:60]!r} is "
            "none: choose a classifier of the labels' class set."
        )
    truth = np.array([classifier.classes.index(name) for name in labels])
    judgement = judged(classifier, maps)
    held_out = scores(truth, judgement.probabilities.argmax(1), groups, classifier.classes, seed=seed)
    right, sure = judgement.probabilities.argmax(1) == truth, ~judgement.unsure
    return Evaluated(
        classifier.classes,
        held_out.maps,
        held_out.inputs,
        held_out.accuracy,
        held_out.macro_f1,
        held_out.low,
        held_out.high,
        calibration(judgement.probabilities, truth)[1],
        float(judgement.unsure.mean()),
        float(right[sure].mean()) if sure.any() else float("nan"),
        float(judgement.outside.mean()),
        held_out.per_class,
        held_out.confusion,
    )
