"""Attention at the same distances in other sentences, as a baseline for links whose sentence has no such positions. The
same scoring is used: tokens, pairing, largest weight, with or without the first key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ... import capture, config
from ...frames.rows import read_rows
from ...scoring.links import Links, pairs_of, without_key

if TYPE_CHECKING:
    from ...attention import AttentionMaps
    from ...models.checkpoint import Checkpoint

SENTENCES = config.SAMPLES / "frames" / "sentences.jsonl"


@dataclass(frozen=True)
class DistanceNull:
    """Attention maps of ordinary sentences, from which the attention expected from distance alone is estimated."""

    sentences: tuple[tuple[Float[np.ndarray, "layer head _ _"], tuple[int, ...]], ...]

    def at(
        self, links: Links, how: Mapping[str, Any], *, without_first: bool = False
    ) -> tuple[Float[np.ndarray, "layer head"], int]:
        """Compute the mean score of links that are shifted to every possible position in sentences without frames.

        Also return the number of positions. The result is NaN and 0 if the links fit nowhere. `how` holds arguments of
        `pairs_of`; `without_first` leaves out position 0.
        """
        used = sorted({k for element, target in links for k in (*element, *target)})
        pairs = pairs_of(links, **how)
        total, places = np.zeros(self.sentences[0][0].shape[:2]), 0
        for maps, ordinary in self.sentences:
            steps = _steps(used, ordinary)
            if not steps or not pairs:
                continue
            weights = without_key(maps, 0) if without_first else maps
            query, key = (np.array([pair[side] for pair in pairs]) + np.array(steps)[:, None] for side in (0, 1))
            total += weights[:, :, query, key].max(-1).sum(-1, dtype=np.float64)
            places += len(steps)
        return (total / places if places else np.full_like(total, np.nan)), places


def _steps(used: Sequence[int], ordinary: Sequence[int]) -> list[int]:
    """Return how far the positions may be moved together so that all of them are ordinary tokens."""
    allowed = set(ordinary)
    if not used or not allowed:
        return []
    offsets = range(min(allowed) - used[0], max(allowed) - used[-1] + 1)
    return [step for step in offsets if all(position + step in allowed for position in used)]


def of_maps(captured: Sequence[tuple["AttentionMaps", Sequence[int]]]) -> DistanceNull:
    """Create a distance baseline from the attention maps of sentences and the positions of their tokens."""
    return DistanceNull(tuple((maps.weights, tuple(places)) for maps, places in captured))


def distance_null(checkpoint: "Checkpoint") -> DistanceNull:
    """Create a distance baseline from the attention maps of a checkpoint on the bundled sentences."""
    captured = []
    for row in read_rows(SENTENCES).sentences:
        encoding = checkpoint.encode(row.text)
        captured.append((capture.running.capture(checkpoint, encoding), encoding.ordinary))
    return of_maps(captured)
