"""Classification of attention maps as they are computed, without storing them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...capture.running import run
from ...errors import InputError
from ...models.checkpoint import Checkpoint
from ...models.encoding import Encoding
from ...patterns.suggestions import TOO_SMALL, judged
from ...patterns.training import Classifier


def large_enough(checkpoint: Checkpoint, inputs: Sequence[Any]) -> tuple[list[Any], list[Encoding]]:
    """Return the inputs that have enough tokens (more than TOO_SMALL) to show a pattern, and their encodings."""
    both = [(one, checkpoint.encode(one.text, one.pair)) for one in inputs]
    large = [(one, encoding) for one, encoding in both if len(encoding) > TOO_SMALL]
    return [one for one, _ in large], [encoding for _, encoding in large]


def all_too_small(inputs: int, task: str = "") -> InputError:
    """Return the error that is raised if all inputs are too short to show a pattern."""
    return InputError(
        f"An input must have more than {TOO_SMALL} tokens for its attention maps to be classified; all {inputs} "
        f"inputs{task and f' of {task}'} are shorter. Choose longer inputs."
    )


class ClassCounts:
    """Observer that classifies every attention map, and counts uncertain and out-of-distribution maps."""

    def __init__(self, classifier: Any, inputs: int, layers: int, heads: int, dtype: str) -> None:
        self.classifier, self.dtype = classifier, dtype
        self.classes = np.full((inputs, layers, heads), -1, dtype=np.int16)
        self.unsure = np.zeros(inputs, dtype=np.int64)
        self.outside = np.zeros(inputs, dtype=np.int64)

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        maps = weights.float().cpu().numpy()
        flat = maps.reshape(-1, *maps.shape[2:])
        judgement = judged(self.classifier, list(flat), dtype=self.dtype)
        self.classes[inputs, layer] = judgement.probabilities.argmax(1).reshape(maps.shape[:2])
        self.unsure[inputs] += judgement.unsure.reshape(maps.shape[:2]).sum(1)
        self.outside[inputs] += judgement.outside.reshape(maps.shape[:2]).sum(1)


@dataclass(frozen=True)
class Classified:
    """The predicted pattern class of every attention map on some inputs.

    Attributes:
        size: number of tokens beyond which maps are cropped; None if they are not cropped.
        classes: class numbers. *Shape:* (input, layer, head), int16.
        unsure, outside: number of maps per input with an uncertain class, and outside the training distribution.
    """

    names: tuple[str, ...]
    size: int | None
    classes: np.ndarray
    unsure: np.ndarray
    outside: np.ndarray


def classified(checkpoint: Checkpoint, encodings: Sequence[Encoding], weights: bytes, *, dtype: str) -> Classified:
    """Run a checkpoint on some inputs, and classify all attention maps by pattern."""
    classifier = Classifier.from_bytes(weights)
    counts = ClassCounts(classifier, len(encodings), checkpoint.layers, checkpoint.heads, dtype)
    run(checkpoint, list(encodings), [counts])
    size = classifier.size if classifier.crops else None
    return Classified(tuple(classifier.classes), size, counts.classes, counts.unsure, counts.outside)
