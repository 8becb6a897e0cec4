"""Classify maps fast: probabilities of every class, and how sure the classifier is of its first choice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32

from ..codebook.classes import TOO_SMALL as TOO_SMALL
from ..errors import InputError
from ..models.arithmetic import arithmetic
from .baseline import features
from .forest import forest_probabilities
from .raster import rasterize
from .training import BASELINE, FOREST, Classifier

BATCH = 256  # maps of 64 x 64; larger ones go in smaller batches so that memory stays the same
DTYPES = ("float32", "bfloat16")
UNSURE = 0.5  # a first choice below it is a guess: the classifier holds all others together as likely
Map = Float[np.ndarray, "_query _key"]  # square; one length each, so the axes are not bound across a sequence


@dataclass(frozen=True)
class Suggestion:
    """What a classifier thinks of one map.

    Attributes:
        name: the most probable class.
        margin: first less second probability, 0 (unsure) to 1.
    """

    name: str
    probability: float
    margin: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a classifier thinks of maps.

    Attributes:
        probabilities: rows sum to 1.
        outside: True where a map lies beyond what was trained on; all False of a classifier that cannot tell.
    """

    probabilities: Float32[np.ndarray, "map class"]
    outside: Bool[np.ndarray, " map"]
    cropped: int

    @property
    def unsure(self) -> Bool[np.ndarray, " map"]:
        """True where no class has a probability of UNSURE."""
        return self.probabilities.max(1) < UNSURE


def judged(
    classifier: Classifier, maps: Sequence[Map], *, dtype: str = "float32", measured: np.ndarray | None = None
) -> Judgement:
    """The `probabilities` of maps, and which of them the classifier should not be asked about.

    Args:
        maps: of any lengths, rows sum to 1.
        measured: the maps' `shapes`, which trees look at, where they were measured before. *Shape:* (map, statistic).

    Returns:
        A judgement of every map, in their order.
    """
    if classifier.recipe.kind == "trees" and len(maps):
        arrays = {k.removeprefix(FOREST): v.numpy() for k, v in classifier.tensors.items() if k.startswith(FOREST)}
        of_trees, outside = forest_probabilities(arrays, maps, measured)
        return Judgement(of_trees.astype(np.float32), outside, 0)
    distributions, cropped = probabilities(classifier, maps, dtype=dtype)
    return Judgement(distributions, np.zeros(len(maps), dtype=bool), cropped)


def probabilities(
    classifier: Classifier, maps: Sequence[Map], *, dtype: str = "float32"
) -> tuple[Float32[np.ndarray, "map class"], int]:
    """Class probabilities of each map.

    Args:
        maps: of any lengths, rows sum to 1.
        dtype: of a network's arithmetic. "bfloat16" is faster where the CPU has it, and gives the same class for nearly
            every map (the benchmark states how many); elsewhere float32 is used.

    Returns:
        Probabilities, rows sum to 1; and how many maps were cropped.

    Raises:
        InputError: dtype is none of DTYPES.
    """
    if dtype not in DTYPES:
        raise InputError(f'Maps are classified in {" or ".join(DTYPES)}; "{dtype}" was asked for.')
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
    """The most probable class of each map.

    Args:
        classifier: that is asked, of at least two classes.
        maps: of any lengths, rows sum to 1.

    Returns:
        A suggestion for each map, in their order.
    """
    rows, _ = probabilities(classifier, maps, dtype=dtype)
    ordered = np.sort(rows, axis=1)
    return [
        Suggestion(classifier.classes[int(row.argmax())], float(high[-1]), float(high[-1] - high[-2]))
        for row, high in zip(rows, ordered, strict=True)
    ]
