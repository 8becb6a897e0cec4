"""Use of a classifier: class probabilities, suggestions, and evaluation on labelled maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int

from ..codebook.classes import TOO_SMALL as TOO_SMALL
from ..errors import InputError
from ..models.memory import arithmetic
from .evaluation import Scores, accuracy_interval, calibration, calibration_interval, scores, sure_errors
from .forest import forest_probabilities
from .raster import rasterize
from .training import BASELINE, FOREST, Classifier, features

BATCH = 256  # maps of 64 x 64; batches of larger maps are smaller
DTYPES = ("float32", "bfloat16")
UNSURE = 0.5  # a first choice below this probability is a guess
SET_PROBABILITY = 0.8  # of the classes of a prediction set together
Map = Float[np.ndarray, "_query _key"]  # square; each map has its own length


@dataclass(frozen=True)
class Suggestion:
    """The pattern class that a classifier suggests for an attention map. `margin` is the gap between the two largest
    class probabilities.

    `among` is empty unless no class has a probability of UNSURE; otherwise it is the prediction set: the most probable
    classes that together have a probability of SET_PROBABILITY, most probable first.
    """

    name: str
    probability: float
    margin: float
    among: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Judgement:
    """The class probabilities that a classifier predicts for attention maps.

    Attributes:
        probabilities: rows sum to 1.
        outside: whether a map is outside the training distribution; all False for classifiers without such a test.
    """

    probabilities: Float32[np.ndarray, "map class"]
    outside: Bool[np.ndarray, " map"]
    cropped: int

    @property
    def unsure(self) -> Bool[np.ndarray, " map"]:
        return self.probabilities.max(1) < UNSURE


def judged(
    classifier: Classifier, maps: Sequence[Map], *, dtype: str = "float32", measured: np.ndarray | None = None
) -> Judgement:
    """Return the class probabilities of attention maps, and whether each map is outside the training distribution."""
    if classifier.recipe.kind == "trees" and len(maps):
        arrays = {k.removeprefix(FOREST): v.numpy() for k, v in classifier.tensors.items() if k.startswith(FOREST)}
        of_trees, outside = forest_probabilities(arrays, maps, measured)
        return Judgement(of_trees.astype(np.float32), outside, 0)
    distributions, cropped = probabilities(classifier, maps, dtype=dtype)
    return Judgement(distributions, np.zeros(len(maps), dtype=bool), cropped)


def probabilities(
    classifier: Classifier, maps: Sequence[Map], *, dtype: str = "float32"
) -> tuple[Float32[np.ndarray, "map class"], int]:
    """Return the class probabilities of attention maps, and the number of maps that were cropped.

    `dtype` is that of a network; bfloat16 is faster on CPUs that support it and yields the same class for nearly every
    map. Raises InputError for another dtype.
    """
    if dtype not in DTYPES:
        raise InputError(f'dtype must be {" or ".join(DTYPES)}; got "{dtype}". Choose one of them.')
    if not len(maps):
        return np.zeros((0, len(classifier.classes)), dtype=np.float32), 0
    if classifier.recipe.kind == "trees":
        return judged(classifier, maps).probabilities, 0
    if classifier.recipe.kind == "baseline":
        return _of_baseline(classifier, maps), 0
    kind = arithmetic(torch.device("cpu"), getattr(torch, dtype))
    network = classifier.network(kind)
    batches, cropped = [], 0
    for part in _batches(maps, classifier.size):
        pictures, too_long = rasterize(part, classifier.size)
        inputs = torch.from_numpy(pictures)[:, None].to(kind).to(memory_format=torch.channels_last)
        with torch.inference_mode():
            batches.append(network(inputs).float().softmax(1).numpy())
        cropped += too_long
    together = np.concatenate(batches)
    if classifier.recipe.kind == "both":
        together = (together + _of_baseline(classifier, maps)) / 2
    return together, cropped


def _batches(maps: Sequence[Map], size: int) -> Iterator[Sequence[Map]]:
    count = max(1, BATCH * 64 * 64 // size**2)
    for start in range(0, len(maps), count):
        yield maps[start : start + count]


def _of_baseline(classifier: Classifier, maps: Sequence[Map]) -> np.ndarray:
    part = {name: classifier.tensors[BASELINE + name].numpy() for name in ("mean", "scale", "weight", "bias")}
    raised = (features(maps) - part["mean"]) / part["scale"] @ part["weight"].T + part["bias"]
    return torch.from_numpy(raised).softmax(1).float().numpy()


def suggestions(classifier: Classifier, maps: Sequence[Map], *, dtype: str = "bfloat16") -> list[Suggestion]:
    """Return the most probable pattern class of each attention map, as a suggestion for annotators."""
    rows, _ = probabilities(classifier, maps, dtype=dtype)
    return [suggestion(classifier.classes, row) for row in rows]


def suggestion(classes: Sequence[str], probabilities: Float[np.ndarray, " class"]) -> Suggestion:
    """Return a class suggestion based on the class probabilities of one map. If no single class is likely, the
    suggestion is a set of possible classes."""
    order = np.argsort(-probabilities, kind="stable")
    high, names = probabilities[order], [classes[k] for k in order]
    size = int(np.searchsorted(high.cumsum(), SET_PROBABILITY)) + 1 if high[0] < UNSURE else 0
    return Suggestion(names[0], float(high[0]), float(high[0] - high[1]), tuple(names[:size]))


# ---------------------------------------------------------------- evaluation on labelled maps


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluated(Scores):
    """Evaluation scores of a pattern classifier on labelled maps, from 0 to 1. CIs are computed over heads if the heads
    of the maps are known, otherwise over inputs.

    Attributes:
        ece: expected calibration error in 10 bins of equal counts.
        unsure: fraction of maps with a first choice below 0.5.
        sure_accuracy: accuracy on the other maps; NaN if there are none.
        outside: fraction of maps outside the training distribution.
        sure_errors: fraction of maps that are wrong with a probability above 0.8.
    """

    classes: tuple[str, ...]
    ece: float
    unsure: float
    sure_accuracy: float
    outside: float
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
    """Evaluate a pattern classifier on labelled attention maps that were not used for training.

    `heads` is the head of each map for intervals (None: intervals over inputs). Raises InputError for an unknown class.
    """
    unknown = sorted(set(labels) - set(classifier.classes))
    if unknown:
        raise InputError(
            f"The labels must be classes of the classifier ({', '.join(classifier.classes)}); got {unknown[0][:60]!r}. "
            "Choose a classifier trained on the class set of the labels."
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
    """Compute evaluation scores from predicted class probabilities and true classes."""
    likely = judgement.probabilities
    held_out = scores(truth, likely.argmax(1), groups, classes, seed=seed)
    right, sure = likely.argmax(1) == truth, ~judgement.unsure
    accuracy_low, accuracy_high = accuracy_interval(right, groups, seed=seed)
    ece_low, ece_high = calibration_interval(likely, truth, groups, seed=seed)
    of_inputs: dict[str, Any] = vars(held_out) | {"inputs": len(set(inputs))}
    return Evaluated(
        **of_inputs,
        classes=classes,
        ece=calibration(likely, truth)[1],
        unsure=float(judgement.unsure.mean()),
        sure_accuracy=float(right[sure].mean()) if sure.any() else float("nan"),
        outside=float(judgement.outside.mean()),
        accuracy_low=accuracy_low,
        accuracy_high=accuracy_high,
        ece_low=ece_low,
        ece_high=ece_high,
        sure_errors=sure_errors(likely, truth),
        groups=len(set(groups)),
    )
