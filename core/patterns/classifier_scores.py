"""A classifier judged on labelled maps: how often it is right, how sure it is, and when it should not be asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from .evaluation import accuracy_interval, calibration, calibration_interval, scores, sure_errors
from .suggestions import Judgement, judged
from .training import Classifier

Map = Float[np.ndarray, "_query _key"]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A classifier on maps whose class is known.

    95 % intervals are over heads where the maps say theirs, else over inputs. Rates are 0 to 1.

    Attributes:
        accuracy: share of maps whose first choice is right.
        macro_f1: over classes of at least ten maps.
        low, high: interval of macro_f1.
        ece: expected calibration error in 10 bins of equal counts.
        unsure: share of maps whose first choice has less than a half.
        sure_accuracy: accuracy on the other maps; NaN where there are none.
        outside: share of maps beyond what was trained on.
        per_class: a row for each class, as in `Scores`.
        confusion: counts by true class, then predicted class, in the order of `classes`.
        sure_errors: share of maps that are wrong with more than .8.
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
    macro_f1_all: float
    accuracy_low: float
    accuracy_high: float
    ece_low: float
    ece_high: float
    sure_errors: float
    groups: int


def evaluated(
    classifier: Classifier,
    maps: Sequence[Map],
    labels: Sequence[str],
    inputs: Sequence[str],
    *,
    heads: Sequence[str] | None = None,
    seed: int = 0,
) -> Evaluated:
    """Judge a classifier on maps whose class is known.

    Args:
        maps: that it was not trained on, rows sum to 1.
        heads: name of each map's head, which intervals are over; None: they are over inputs.

    Raises:
        InputError: a class is none of the classifier's.
    """
    unknown = sorted(set(labels) - set(classifier.classes))
    if unknown:
        raise InputError(
            f"A classifier is judged on its own classes ({', '.join(classifier.classes)}); {unknown[0][:60]!r} is "
            "none: choose a classifier of the labels' class set."
        )
    truth = np.array([classifier.classes.index(name) for name in labels])
    return figures_of(judged(classifier, maps), truth, classifier.classes, inputs, heads or inputs, seed=seed)


def figures_of(
    judgement: Judgement,
    truth: Int[np.ndarray, " map"],
    classes: tuple[str, ...],
    inputs: Sequence[str],
    groups: Sequence[str],
    *,
    seed: int = 0,
) -> Evaluated:
    """The figures of a classifier's judgements of maps whose class is known."""
    likely = judgement.probabilities
    held_out = scores(truth, likely.argmax(1), groups, classes, seed=seed)
    right, sure = likely.argmax(1) == truth, ~judgement.unsure
    return Evaluated(
        classes,
        held_out.maps,
        len(set(inputs)),
        held_out.accuracy,
        held_out.macro_f1,
        held_out.low,
        held_out.high,
        calibration(likely, truth)[1],
        float(judgement.unsure.mean()),
        float(right[sure].mean()) if sure.any() else float("nan"),
        float(judgement.outside.mean()),
        held_out.per_class,
        held_out.confusion,
        held_out.macro_f1_all,
        *accuracy_interval(right, groups, seed=seed),
        *calibration_interval(likely, truth, groups, seed=seed),
        sure_errors(likely, truth),
        len(set(groups)),
    )
