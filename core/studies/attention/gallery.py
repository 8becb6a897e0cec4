"""Gallery of a head: the inputs with the highest, the lowest and the decile values of a score.

One forward pass computes the score for all heads and inputs. Only the maps of the chosen inputs are computed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ...capture.norms import run_norms
from ...capture.running import run
from ...errors import InputError
from ...models.checkpoint import Checkpoint
from ...models.encoding import Encoding
from ...scoring.heads import MapBatch
from ...scoring.registry import HeadScore
from .measures import special_places

ENDS, DECILES = 3, range(10, 100, 10)


@dataclass(frozen=True)
class Chosen:
    """An input in the gallery of a head, with its score and rank. A rank is a name such as "highest 1" or "90 %"."""

    input: int
    where: str
    value: float


class InputScores:
    """Observer that scores every head on every input, as float32 [input, layer, head]. Undefined scores are NaN."""

    def __init__(self, checkpoint: Checkpoint, encodings: Sequence[Encoding], score: HeadScore):
        if score.of is None:
            raise InputError(
                f"A gallery can only show scores of single maps; {score.label} is computed from several "
                "maps. Choose another score."
            )
        self.of, self.causal = score.of, checkpoint.causal
        self.places = special_places(encodings, causal=checkpoint.causal)
        shape = (len(encodings), checkpoint.layers, checkpoint.heads)
        self.values = np.full(shape, np.nan, dtype=np.float32)

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        maps = MapBatch(weights, [self.places[k] for k in inputs], self.causal)
        self.values[inputs, layer] = self.of(maps).float().cpu().numpy()


def input_scores(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], score: HeadScore, *, by_norms: bool = False
) -> Float[np.ndarray, "input layer head"]:
    """Compute a score for every input and head. Undefined scores are NaN. Raises InputError for a score that is not
    computed from maps alone."""
    scores = InputScores(checkpoint, encodings, score)
    if by_norms:
        run_norms(checkpoint, encodings, [scores])
    else:
        run(checkpoint, encodings, [scores])
    return scores.values


def chosen(values: Float[np.ndarray, " input"]) -> list[Chosen]:
    """Choose the inputs with the highest and lowest values, and one input per decile. Sort them by value."""
    defined = np.flatnonzero(~np.isnan(values))
    order = defined[np.argsort(-values[defined], kind="stable")]
    count, places = len(order), {}
    for k in range(min(ENDS, count)):
        places[k] = f"highest {k + 1}"
    for k in range(min(ENDS, count)):
        places.setdefault(count - 1 - k, f"lowest {k + 1}")
    for decile in DECILES:
        if count:
            places.setdefault(round((1 - decile / 100) * (count - 1)), f"{decile} %")
    return [Chosen(int(order[rank]), places[rank], float(values[order[rank]])) for rank in sorted(places)]
