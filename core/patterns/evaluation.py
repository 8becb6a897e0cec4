"""How well labels were predicted (`class_shares` has what the classifier's errors do to shares of classes).

All scores are on maps whose input the classifier never saw. Intervals resample inputs, not maps, because the maps
of one input are alike. Classes are numbered in the order of their class set.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Float64, Int
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

# ---------------------------------------------------------------- bootstrap intervals


def ends(drawn: Float[np.ndarray, " sample *rest"], groups: int, *, tail: float = 0.025) -> np.ndarray:
    """The interval that resamples of groups give.

    Percentiles are too narrow for few inputs: their spread is sqrt((n - 1) / n) of what it should be, and normal where
    Student's is meant. So they are read farther out (Hesterberg 2015, "expanded percentiles"): at 1.6 % for 20 inputs.

    Args:
        drawn: a figure in each resample; NaN is left out.
        groups: how many groups were resampled; of one, the interval goes from the least to the largest.

    Returns:
        Low and high. *Shape:* (2, *rest).
    """
    farther = scipy.special.stdtrit(groups - 1, tail) * np.sqrt(groups / (groups - 1)) if groups > 1 else -np.inf
    level = float(scipy.special.ndtr(farther))
    return np.asarray(np.nanquantile(drawn, [level, 1 - level], axis=0))


RESAMPLES = 2000
BINS = 10  # of equal counts, for the calibration error
FEWEST_MAPS = 10  # of a class that macro F1 is over: the F1 of fewer maps is chance
SURE = 0.8  # probability from which a wrong first choice counts as a sure error
ECE_SAMPLES = 500  # resamples of heads
Numbers = Int[np.ndarray, " map"]


@dataclass(frozen=True)
class Scores:
    """Quality on maps whose input the classifier never saw; rates are 0 to 1.

    Attributes:
        macro_f1: unweighted mean of the F1 of the classes of at least FEWEST_MAPS maps (`enough_maps`).
        low, high: its 95 % interval over groups.
        accuracy: share of maps that were predicted right.
        per_class: a row for each class with precision, recall, f1 and support (maps); None for the first three without
            maps.
        macro_f1_all: macro F1 of every class with a map.
    """

    macro_f1: float
    low: float
    high: float
    accuracy: float
    per_class: list[dict[str, Any]]
    confusion: Int[np.ndarray, "class class"]
    maps: int
    inputs: int
    macro_f1_all: float


def enough_maps(confusion: Int[np.ndarray, "class class"]) -> Bool[np.ndarray, " class"]:
    """Which classes macro F1 is over.

    Returns:
        True for classes of at least FEWEST_MAPS maps; where fewer than two are, for all with a map.
    """
    support = confusion.sum(1)
    often = support >= FEWEST_MAPS
    return often if often.sum() > 1 else support > 0


def scores(truth: Numbers, predicted: Numbers, groups: Sequence[str], names: Sequence[str], *, seed: int = 0) -> Scores:
    """Macro and per-class F1 (scikit-learn) with a 95 % bootstrap interval over groups.

    Args:
        groups: name of each map's group: its input, or its head.
    """
    everything = list(range(len(names)))
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, predicted, labels=everything, zero_division=0.0
    )
    rows = [
        {"class": name, "precision": float(p), "recall": float(r), "f1": float(f), "support": int(n)}
        if n
        else {"class": name, "precision": None, "recall": None, "f1": None, "support": 0}
        for name, p, r, f, n in zip(names, precision, recall, f1, support, strict=True)
    ]
    confusion = confusion_matrix(truth, predicted, labels=everything)
    low, high = macro_f1_interval(truth, predicted, groups, len(names), seed=seed)
    return Scores(
        float(macro_f1(confusion[None], enough_maps(confusion))[0]),
        low,
        high,
        float((truth == predicted).mean()),
        rows,
        confusion,
        len(truth),
        len(set(groups)),
        float(macro_f1(confusion[None])[0]),
    )


def by_identity(
    labels: Sequence[str], heads: Sequence[tuple[str, int, int]], identities: Sequence[tuple[str, int, int]]
) -> list[str]:
    """The baseline that never looks at a map: the class most often given to this head among the training maps.

    A head without labels takes its layer's most frequent class, in a layer without any the most frequent of all; ties
    go to the class labelled first.

    Returns:
        A class for each of `identities`.

    Raises:
        ValueError: there are no labels.
    """
    counts: dict[tuple[str | int, ...], Counter[str]] = defaultdict(Counter)
    for label, (checkpoint, layer, head) in zip(labels, heads, strict=True):
        for key in ((checkpoint, layer, head), (checkpoint, layer), ()):
            counts[key][label] += 1
    if not labels:
        raise ValueError("a guess from the head needs at least one label")
    most = {key: counter.most_common(1)[0][0] for key, counter in counts.items()}
    return [most.get(identity) or most.get(identity[:2]) or most[()] for identity in identities]


def macro_f1(
    confusion: Float[np.ndarray, "sample class class"] | Int[np.ndarray, "sample class class"],
    among: Bool[np.ndarray, " class"] | None = None,
) -> Float64[np.ndarray, " sample"]:
    """Mean F1 of the classes of each confusion, over classes with a true map.

    Args:
        among: the classes it is over; None: all.

    Returns:
        *Range:* 0 to 1; 0 where no such class has a true map.
    """
    rows = confusion.sum(2)
    present = rows > 0 if among is None else (rows > 0) & among
    return (class_f1(confusion) * present).sum(1) / np.maximum(present.sum(1), 1)


def class_f1(confusion: np.ndarray) -> Float64[np.ndarray, "*sample class"]:
    """F1 = 2 TP / (row + column) of each class of each confusion.

    Args:
        confusion: counts. *Shape:* (..., true, predicted).

    Returns:
        *Range:* 0 to 1; 0 for a class without a true or predicted map.
    """
    hits = np.diagonal(confusion, axis1=-2, axis2=-1).astype(np.float64)
    return 2 * hits / np.maximum(confusion.sum(-1) + confusion.sum(-2), 1)


def by_group(
    truth: Numbers,
    predicted: Numbers,
    groups: Sequence[str],
    classes: int,
) -> Int[np.ndarray, "group class class"]:
    """The confusion of each group of maps (inputs, or heads).

    Returns:
        Counts by true class, then predicted class; groups in order of first appearance.
    """
    order = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    counts = np.zeros((len(order), classes, classes), dtype=np.int64)
    np.add.at(counts, ([order[name] for name in groups], truth, predicted), 1)  # type: ignore[arg-type]
    return counts


def resampled(counts: Int[np.ndarray, " group *rest"], *, seed: int, samples: int = RESAMPLES) -> np.ndarray:
    """Sums of counts over groups drawn with replacement.

    Returns:
        *Shape:* (sample, *rest).
    """
    groups = len(counts)
    drawn = np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), size=samples)
    return np.tensordot(drawn, counts, axes=1)


def macro_f1_interval(
    truth: Numbers, predicted: Numbers, groups: Sequence[str], classes: int, *, seed: int = 0
) -> tuple[float, float]:
    """Expanded percentile bootstrap (95 %) of macro F1 over groups.

    Args:
        groups: name of each map's group: its input, or its head.

    Returns:
        Low and high, 0 to 1, over the classes of `enough_maps`.
    """
    counts = by_group(truth, predicted, groups, classes)
    drawn = macro_f1(resampled(counts, seed=seed), enough_maps(counts.sum(0)))
    low, high = ends(drawn, len(counts))
    return float(low), float(high)


def accuracy_interval(right: Bool[np.ndarray, " map"], groups: Sequence[str], *, seed: int = 0) -> tuple[float, float]:
    """Expanded percentile bootstrap (95 %) of the share of right maps over groups.

    Args:
        right: whether each map was predicted right.

    Returns:
        Low and high, 0 to 1.
    """
    counts = by_group(np.zeros(len(right), dtype=int), right.astype(int), groups, 2)[:, 0]
    drawn = resampled(counts, seed=seed).astype(float)
    low, high = ends(drawn[:, 1] / drawn.sum(1), len(counts))
    return float(low), float(high)


def calibration(
    probabilities: Float[np.ndarray, "map class"],
    truth: Numbers,
) -> tuple[list[dict[str, float]], float]:
    """Reliability rows and the expected calibration error.

    The bins are BINS of equal counts by confidence (Nixon et al. 2019), so none is of a handful of maps.

    Args:
        probabilities: rows sum to 1.

    Returns:
        A row for each bin that has a map: mean confidence, accuracy and n; and the error, 0 to 1.
    """
    confidence = probabilities.max(1)
    right = probabilities.argmax(1) == truth
    bins = [part for part in np.array_split(np.argsort(confidence, kind="stable"), BINS) if len(part)]
    rows = [
        {"confidence": float(confidence[part].mean()), "accuracy": float(right[part].mean()), "n": len(part)}
        for part in bins
    ]
    error = sum(row["n"] * abs(row["confidence"] - row["accuracy"]) for row in rows) / max(len(truth), 1)
    return rows, float(error)


def calibration_error(confidence: Float[np.ndarray, " map"], right: Bool[np.ndarray, " map"]) -> float:
    """The expected calibration error alone; bins as in `calibration`.

    Args:
        confidence: probability of each map's first choice.
        right: whether it is right.

    Returns:
        *Range:* 0 to 1.
    """
    bins = [part for part in np.array_split(np.argsort(confidence, kind="stable"), BINS) if len(part)]
    error = sum(len(part) * abs(float(confidence[part].mean() - right[part].mean())) for part in bins)
    return error / max(len(right), 1)


def calibration_interval(
    probabilities: Float[np.ndarray, "map class"], truth: Numbers, heads: Sequence[str], *, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap (95 %) of the calibration error over heads, whose maps are alike.

    It lies high: resampled bins are noisier than the maps' own.

    Args:
        probabilities: rows sum to 1.

    Returns:
        Low and high, 0 to 1.
    """
    order = {name: number for number, name in enumerate(dict.fromkeys(heads))}
    members = np.split(
        np.argsort([order[name] for name in heads], kind="stable"),
        np.cumsum(np.bincount([order[name] for name in heads]))[:-1],
    )
    rng = np.random.default_rng(seed)
    drawn = (
        np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))]) for _ in range(ECE_SAMPLES)
    )
    low, high = ends(np.array([calibration(probabilities[maps], truth[maps])[1] for maps in drawn]), len(members))
    return float(low), float(high)


def sure_errors(probabilities: Float[np.ndarray, "map class"], truth: Numbers) -> float:
    """Share of all maps whose first choice is wrong and has more than SURE.

    Args:
        probabilities: rows sum to 1.

    Returns:
        *Range:* 0 to 1.
    """
    wrong = probabilities.argmax(1) != truth
    return float((wrong & (probabilities.max(1) > SURE)).mean())


def calibration_figures(
    probabilities: Float[np.ndarray, "map class"], truth: Numbers, heads: Sequence[str]
) -> dict[str, float]:
    """The calibration error with its interval over heads, and the share of sure errors.

    Args:
        probabilities: rows sum to 1.

    Returns:
        ece, ece_low, ece_high and sure_errors, each 0 to 1.
    """
    low, high = calibration_interval(probabilities, truth, heads)
    return {
        "ece": calibration(probabilities, truth)[1],
        "ece_low": low,
        "ece_high": high,
        "sure_errors": sure_errors(probabilities, truth),
    }
