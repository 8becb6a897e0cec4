"""Evaluation of predicted classes on held-out maps.

The input of each map was not in the training data of the classifier. Intervals resample inputs, because maps of one
input are similar. Classes are in the order of their class set.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Float64, Int

# ---------------------------------------------------------------- bootstrap intervals


def ends(drawn: Float[np.ndarray, " sample *rest"], groups: int, *, tail: float = 0.025) -> np.ndarray:
    """Return the ends of a 95 % bootstrap interval as an array [2, *rest]. `drawn` has the value in each bootstrap
    sample.

    Percentiles are expanded for few groups (Hesterberg 2015), to 1.6 % for 20 groups; for one group, the interval is
    the range.
    """
    farther = scipy.special.stdtrit(groups - 1, tail) * np.sqrt(groups / (groups - 1)) if groups > 1 else -np.inf
    level = float(scipy.special.ndtr(farther))
    return np.asarray(np.nanquantile(drawn, [level, 1 - level], axis=0))


RESAMPLES = 2000
BINS = 10  # equal-count bins for the calibration error
FEWEST_MAPS = 10  # least maps of a class to count in macro F1
CONFIDENT = 0.8  # probability above which a wrong first choice is a confident error
ECE_SAMPLES = 500  # resamples of heads
Numbers = Int[np.ndarray, " map"]


@dataclass(frozen=True, eq=False)
class Scores:
    """The evaluation scores of a pattern classifier on held-out attention maps, from 0 to 1.

    Attributes:
        macro_f1, low, high: mean F1 of the classes with at least FEWEST_MAPS maps (`enough_maps`), with 95 % CI over
            groups.
        per_class: precision, recall, f1 (None without maps) and support for each class.
        macro_f1_all: macro F1 of all classes with a map.
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
    """Return which classes are included in macro F1. These are the classes with at least FEWEST_MAPS maps or, if there
    are fewer than two of these classes, all classes that occur."""
    support = confusion.sum(1)
    often = support >= FEWEST_MAPS
    return often if often.sum() > 1 else support > 0


def scores(truth: Numbers, predicted: Numbers, groups: Sequence[str], names: Sequence[str], *, seed: int = 0) -> Scores:
    """Return macro F1 with its 95 % CI, and the F1 of each class. The CI comes from a bootstrap over groups of maps
    (for example, all maps of one input)."""
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support  # 1 s at start

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
    """Predict the class of each held-out map without looking at the map. The prediction is the most frequent class
    among the training maps of its head, otherwise of its layer, otherwise of all training maps. In a tie, the class
    that was labelled first is predicted."""
    counts: dict[tuple[str | int, ...], Counter[str]] = defaultdict(Counter)
    for label, (checkpoint, layer, head) in zip(labels, heads, strict=True):
        for key in ((checkpoint, layer, head), (checkpoint, layer), ()):
            counts[key][label] += 1
    if not labels:
        raise ValueError("labels must not be empty")
    most = {key: counter.most_common(1)[0][0] for key, counter in counts.items()}
    return [most.get(identity) or most.get(identity[:2]) or most[()] for identity in identities]


def macro_f1(
    confusion: Float[np.ndarray, "sample class class"] | Int[np.ndarray, "sample class class"],
    among: Bool[np.ndarray, " class"] | None = None,
) -> Float64[np.ndarray, " sample"]:
    """Return the macro F1 of each confusion matrix. Macro F1 is the mean F1 of the classes that occur. `among` is an
    optional mask of the classes to include."""
    rows = confusion.sum(2)
    present = rows > 0 if among is None else (rows > 0) & among
    return (class_f1(confusion) * present).sum(1) / np.maximum(present.sum(1), 1)


def class_f1(confusion: np.ndarray) -> Float64[np.ndarray, "*sample class"]:
    """Return the F1 of each class from confusion counts [..., true, predicted]. For a class that never occurs, F1 is
    0."""
    hits = np.diagonal(confusion, axis1=-2, axis2=-1).astype(np.float64)
    return 2 * hits / np.maximum(confusion.sum(-1) + confusion.sum(-2), 1)


def by_group(
    truth: Numbers,
    predicted: Numbers,
    groups: Sequence[str],
    classes: int,
) -> Int[np.ndarray, "group class class"]:
    """Return one confusion matrix for each group of attention maps. Groups are in order of first appearance."""
    numbers = group_numbers(groups)
    counts = np.zeros((len(set(groups)), classes, classes), dtype=np.int64)
    np.add.at(counts, (numbers, truth, predicted), 1)
    return counts


def group_numbers(groups: Sequence[str]) -> Numbers:
    """For each map, return the number of its group. Groups are numbered from 0 in order of first appearance."""
    order = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    return np.array([order[name] for name in groups], dtype=np.int64)


def resampled(counts: Int[np.ndarray, " group *rest"], *, seed: int, samples: int = RESAMPLES) -> np.ndarray:
    """Draw bootstrap samples of groups, and sum the counts over the groups in each sample; shape [sample, *rest]."""
    groups = len(counts)
    drawn = np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), size=samples)
    return np.tensordot(drawn, counts, axes=1)


def resampled_maps(numbers: Numbers, *, seed: int, samples: int) -> Iterator[Numbers]:
    """Draw bootstrap samples of groups of maps. `numbers` has the group of each map. Yields, for each sample, the
    indices of the maps in the drawn groups."""
    members = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    rng = np.random.default_rng(seed)
    for _ in range(samples):
        yield np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))])


def macro_f1_interval(
    truth: Numbers, predicted: Numbers, groups: Sequence[str], classes: int, *, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % CI of macro F1 from a bootstrap over groups of maps."""
    counts = by_group(truth, predicted, groups, classes)
    drawn = macro_f1(resampled(counts, seed=seed), enough_maps(counts.sum(0)))
    low, high = ends(drawn, len(counts))
    return float(low), float(high)


def accuracy_interval(right: Bool[np.ndarray, " map"], groups: Sequence[str], *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % CI of accuracy from a bootstrap over groups of maps."""
    counts = by_group(np.zeros(len(right), dtype=int), right.astype(int), groups, 2)[:, 0]
    drawn = resampled(counts, seed=seed).astype(float)
    low, high = ends(drawn[:, 1] / drawn.sum(1), len(counts))
    return float(low), float(high)


def calibration(
    probabilities: Float[np.ndarray, "map class"],
    truth: Numbers,
) -> tuple[list[dict[str, float]], float]:
    """Return a reliability table and the expected calibration error. Each row of the table has the mean confidence, the
    accuracy and the number of predictions (n) in a confidence bin.

    Bins have equal counts (Nixon et al. 2019).
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
    """Compute the expected calibration error from the confidence and the correctness of each prediction."""
    bins = [part for part in np.array_split(np.argsort(confidence, kind="stable"), BINS) if len(part)]
    error = sum(len(part) * abs(float(confidence[part].mean() - right[part].mean())) for part in bins)
    return error / max(len(right), 1)


def calibration_interval(
    probabilities: Float[np.ndarray, "map class"], truth: Numbers, heads: Sequence[str], *, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % CI of the expected calibration error from a bootstrap over the groups in `heads`.

    It is biased upwards, because resampled bins are noisier.
    """
    drawn = resampled_maps(group_numbers(heads), seed=seed, samples=ECE_SAMPLES)
    errors = np.array([calibration(probabilities[maps], truth[maps])[1] for maps in drawn])
    low, high = ends(errors, len(set(heads)))
    return float(low), float(high)


def sure_errors(probabilities: Float[np.ndarray, "map class"], truth: Numbers) -> float:
    """Return the fraction of attention maps for which the classifier predicts a wrong class with a probability above
    CONFIDENT."""
    wrong = probabilities.argmax(1) != truth
    return float((wrong & (probabilities.max(1) > CONFIDENT)).mean())


def calibration_figures(
    probabilities: Float[np.ndarray, "map class"], truth: Numbers, heads: Sequence[str]
) -> dict[str, float]:
    """Return the expected calibration error (`ece`), its 95 % CI over heads (`ece_low`, `ece_high`), and the fraction
    of confident errors (`sure_errors`)."""
    low, high = calibration_interval(probabilities, truth, heads)
    return {
        "ece": calibration(probabilities, truth)[1],
        "ece_low": low,
        "ece_high": high,
        "sure_errors": sure_errors(probabilities, truth),
    }
