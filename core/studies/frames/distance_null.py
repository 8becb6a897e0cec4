"""How much each head looks over a distance in sentences at large: what stands beside a link whose own sentence has no
other place at its distance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from core import capture, config
from core.attention import AttentionMaps
from core.frames.rows import read_rows

if TYPE_CHECKING:
    from core.models.checkpoint import Checkpoint

SENTENCES = config.SAMPLES / "frames" / "sentences.jsonl"
FURTHEST = 40  # pieces either way; longer links have no null


@dataclass(frozen=True)
class DistanceNull:
    """mean: weight from a query to the key at key - query = distance, over all pairs of text pieces, index distance +
    FURTHEST; NaN at a distance that no sentence has. pairs: how many each is of. sentences: how many were read."""

    mean: Float[np.ndarray, "distance layer head"]
    pairs: Int[np.ndarray, " distance"]
    sentences: int

    def at(self, pairs: Sequence[tuple[int, int]]) -> tuple[Float[np.ndarray, "layer head"], int]:
        """Mean over (query, key) pairs of the mean at each one's distance, and of how many pairs of text the rarest of
        these distances is; NaN and 0 where a distance is beyond FURTHEST or no sentence has it."""
        places = [key - query + FURTHEST for query, key in pairs]
        if not places or any(not 0 <= place < len(self.pairs) for place in places):
            return np.full(self.mean.shape[1:], np.nan), 0
        return self.mean[places].mean(0), int(self.pairs[places].min())


def of_maps(captured: Sequence[tuple[AttentionMaps, Sequence[int]]]) -> DistanceNull:
    """The null of some captured sentences, each with the positions of its text's own pieces."""
    shape = captured[0][0].weights.shape[:2]
    total = np.zeros((2 * FURTHEST + 1, *shape))
    pairs = np.zeros(2 * FURTHEST + 1, dtype=np.int64)
    for maps, places in captured:
        for query in places:
            for key in places:
                if abs(key - query) <= FURTHEST and not (maps.causal and key > query):
                    total[key - query + FURTHEST] += maps.weights[:, :, query, key]
                    pairs[key - query + FURTHEST] += 1
    with np.errstate(invalid="ignore"):
        return DistanceNull(total / pairs[:, None, None], pairs, len(captured))


def distance_null(checkpoint: "Checkpoint") -> DistanceNull:
    """That of the bundled sentences."""
    captured = []
    for row in read_rows(SENTENCES).sentences:
        encoding = checkpoint.encode(row.text)
        captured.append((capture.running.capture(checkpoint, encoding), encoding.ordinary))
    return of_maps(captured)
