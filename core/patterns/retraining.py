"""Comparison of a retrained classifier with the previous one, on maps that neither was trained on.

Both are evaluated with the labels of the retrained one, on the same maps and the same resamples of inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import patterns
from ..interval import Interval
from ..store import classifiers, labels
from ..store.database import Database
from ..store.rows import Row
from .classifier_registry import open_classifier
from .evaluation import CONFIDENT
from .raster import from_float16
from .snapshot import present_names

ACCURACY, MACRO_F1, ECE = "accuracy", "macro F1", "calibration error"
SURE_ERRORS = f"wrong with p > {CONFIDENT:g}"
CLASS_F1 = "F1 of "  # followed by the class; simultaneous intervals over all classes
LESS_IS_BETTER = (ECE, SURE_ERRORS)
NEW_MAPS = "maps labelled since"  # maps that the previous classifier was not trained on
FEWEST_INPUTS = 5  # fewer inputs give no interval and no verdict
SAMPLES, ECE_SAMPLES = 2000, 300
MOST_NEW = 2000  # maps classified by the previous classifier: a few seconds


@dataclass(frozen=True)
class Answers:
    """The class that a classifier predicts for each attention map, and the probability of this class. `probability` is
    None if probabilities were not stored."""

    predicted: Sequence[str]
    probability: Sequence[float] | None = None


@dataclass(frozen=True)
class RetrainingChange:
    """An evaluation score of the previous and of the retrained classifier, and the change in the score with a CI. If
    there are too few inputs, the bounds of the CI are None.

    `on` is what was held out (checkpoints, heads, inputs), or new maps.
    """

    on: str
    figure: str
    before: Interval
    after: Interval
    change: Interval
    maps: int
    inputs: int

    @property
    def is_worse(self) -> bool:
        return (self.change.low or 0.0) > 0 if self.figure in LESS_IS_BETTER else (self.change.high or 0.0) < 0


@dataclass(frozen=True)
class LabelledMaps:
    """Labelled attention maps for comparing two classifiers: the true class and the input of each map."""

    truth: Sequence[str]
    inputs: Sequence[str]


def differences(
    on: str, judged: LabelledMaps, before: Answers, after: Answers, *, seed: int = 0
) -> list[RetrainingChange]:
    """Return the evaluation scores of two classifiers on the same labelled maps, and the difference in each score.

    Scores are accuracy, macro F1, F1 of each frequent class and, if probabilities are stored, the calibration error and
    the fraction of confident errors. `on` is what was held out.
    """
    names = sorted({*judged.truth, *before.predicted, *after.predicted})
    number = {name: k for k, name in enumerate(names)}
    truth, *answers = (
        np.array([number[name] for name in column]) for column in (judged.truth, before.predicted, after.predicted)
    )
    counts = np.stack(
        [patterns.evaluation.by_group(truth, numbers, judged.inputs, len(names)) for numbers in answers], axis=1
    )
    inputs, total = len(counts), counts.sum(0)
    confusions = np.concatenate([total[None], patterns.evaluation.resampled(counts, seed=seed, samples=SAMPLES)])
    among = patterns.evaluation.enough_maps(total[0])
    right = np.trace(confusions, axis1=2, axis2=3) / confusions.sum((2, 3))
    f1 = np.stack([patterns.evaluation.macro_f1(confusions[:, k], among) for k in range(2)], axis=1)
    figures = {ACCURACY: right, MACRO_F1: f1}
    if before.probability is not None and after.probability is not None:
        likely = np.array([before.probability, after.probability])
        correct = np.stack([numbers == truth for numbers in answers])
        figures[ECE] = _calibration_errors(likely, correct, judged.inputs, seed)
        figures[SURE_ERRORS] = _shares(~correct & (likely > CONFIDENT), judged.inputs, seed)
    found = [_difference(on, figure, drawn, len(truth), inputs) for figure, drawn in figures.items()]
    if among.sum() < 2:
        return found
    each = patterns.evaluation.class_f1(confusions)  # [sample, before and after, class]
    tail = 0.025 / int(among.sum())
    return found + [
        _difference(on, CLASS_F1 + names[k], each[:, :, k], int(total[0, k].sum()), inputs, tail=tail)
        for k in np.flatnonzero(among)
    ]


def _difference(
    on: str, figure: str, drawn: np.ndarray, maps: int, inputs: int, *, tail: float = 0.025
) -> RetrainingChange:
    """Return one score from its draws [sample, before and after], the point estimates first. `tail`: probability beyond
    either end."""

    def interval(column: np.ndarray) -> Interval:
        enough = inputs >= FEWEST_INPUTS
        low, high = patterns.evaluation.ends(column[1:], inputs, tail=tail) if enough else (np.nan, np.nan)
        return Interval.of(column[0], low, high)

    change = interval(drawn[:, 1] - drawn[:, 0])
    return RetrainingChange(on, figure, interval(drawn[:, 0]), interval(drawn[:, 1]), change, maps, inputs)


def _shares(marked: np.ndarray, inputs: Sequence[str], seed: int) -> np.ndarray:
    """Return fractions of marked maps [sample, before/after], estimates first. marked: [before/after, map]."""
    counts = np.zeros((len(set(inputs)), 3), dtype=np.int64)
    np.add.at(
        counts,
        patterns.evaluation.group_numbers(inputs),
        np.column_stack([marked.T, np.ones(marked.shape[1])]).astype(np.int64),
    )
    drawn = np.concatenate([counts.sum(0)[None], patterns.evaluation.resampled(counts, seed=seed, samples=SAMPLES)])
    return drawn[:, :2] / drawn[:, 2:]


def _calibration_errors(likely: np.ndarray, correct: np.ndarray, inputs: Sequence[str], seed: int) -> np.ndarray:
    """Return calibration errors, [sample, before and after], the point estimates first."""
    numbers = patterns.evaluation.group_numbers(inputs)
    drawn = patterns.evaluation.resampled_maps(numbers, seed=seed, samples=ECE_SAMPLES)
    draws = [np.arange(len(numbers)), *drawn]
    return np.array(
        [[patterns.evaluation.calibration_error(likely[k, maps], correct[k, maps]) for k in range(2)] for maps in draws]
    )


# ---------------------------------------------------------------- stored classifiers


def compared(db: Database, before: str, after: str) -> list[RetrainingChange]:
    """Compare two stored classifiers on the maps that were held out from both. Repeat the comparison on new maps: maps
    that were held out from `after` and are not in the training data of `before`."""
    old, new = classifiers.one_classifier(db, before), classifiers.one_classifier(db, after)
    names = present_names(db, new["class_set"])
    there, here = _held_out(old, names), _held_out(new, names)
    # Class and input of every scored map.
    stored: dict[str, Any] = new["scores"].get("held_out") or {"map_ids": [], "truth": [], "groups": []}
    classes = [names.get(name, name) for name in new["classes"]]
    truth = {
        name: (classes[number], group)
        for name, number, group in zip(stored["map_ids"], stored["truth"], stored["groups"], strict=True)
    }
    changes: list[RetrainingChange] = []
    for on in here:
        shared = [name for name in here[on] if name in there.get(on, {}) and name in truth]
        changes += _on_maps(on, shared, truth, there.get(on, {}), here[on])
    least_strict = list(here)[-1] if here else ""
    trained_on = {row[0] for row in old["snapshot"]}
    fresh = [name for name in here.get(least_strict, {}) if name not in trained_on and name in truth][:MOST_NEW]
    return changes + _on_maps(NEW_MAPS, fresh, truth, _asked(db, before, fresh, names), here.get(least_strict, {}))


Answer = tuple[str, float | None]


def _on_maps(
    on: str, maps: Sequence[str], truth: dict[str, tuple[str, str]], before: dict[str, Answer], after: dict[str, Answer]
) -> list[RetrainingChange]:
    maps = [name for name in maps if name in before]
    if not maps:
        return []
    judged = LabelledMaps([truth[name][0] for name in maps], [truth[name][1] for name in maps])
    return differences(on, judged, _answers(before, maps), _answers(after, maps))


def _answers(of: dict[str, Answer], maps: Sequence[str]) -> Answers:
    likely = [of[name][1] for name in maps]
    return Answers([of[name][0] for name in maps], None if None in likely else [p for p in likely if p is not None])


def _held_out(classifier: Row, names: dict[str, str]) -> dict[str, dict[str, Answer]]:
    """Return the held-out predictions of a classifier, by what was held out. Older classifiers have one kind."""
    scores, classes = classifier["scores"], classifier["classes"]
    stored = scores.get("held_out")
    if stored is None:
        maps: dict[str, Answer] = {
            row["map_id"]: (names.get(row["predicted"], row["predicted"]), None) for row in scores.get("maps", [])
        }
        return {scores.get("on", "unseen inputs"): maps} if maps else {}
    present = [names.get(name, name) for name in classes]
    return {
        on: {
            name: (present[number], probability)
            for name, number, probability in zip(stored["map_ids"], part["predicted"], part["probability"], strict=True)
            if number is not None
        }
        for on, part in stored["on"].items()
    }


def _asked(db: Database, classifier: str, maps: Sequence[str], names: dict[str, str]) -> dict[str, Answer]:
    """Return a stored classifier's predictions on stored maps, without maps too small to have a pattern."""
    rows = [row for row in labels.maps_of(db, list(maps)) if row["length"] > patterns.suggestions.TOO_SMALL]
    if not rows:
        return {}
    weights: list[np.ndarray] = [from_float16(row["weights"], row["length"]) for row in rows]
    suggested = patterns.suggestions.suggestions(open_classifier(db, classifier), weights, dtype="float32")
    return {
        row["map_id"]: (names.get(suggestion.name, suggestion.name), suggestion.probability)
        for row, suggestion in zip(rows, suggested, strict=True)
    }
