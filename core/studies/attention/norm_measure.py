"""Norm-based attention |alpha f(x)| (Kobayashi et al. 2020) by the measurements of weights, and |f(x)| itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...capture.norms import Contributions, contributions, normalised
from ...models.checkpoint import Checkpoint
from ...scoring.definitions import TYPES
from ...scoring.intervals import Means
from .inputs import SourceText
from .measures import FeatureMeasure, StatisticsMeasure, token_types
from .partials import InputOffset, NormSums
from .passes import ROWS_A_CHUNK, prepare


class NormMeasure:
    """Everything about norms on one checkpoint."""

    tags = True

    def __init__(self, checkpoint: Checkpoint, features: Sequence[str], *, seed: int):
        self.checkpoint = checkpoint
        self.features = FeatureMeasure(checkpoint, features, seed=seed)
        self.statistics = StatisticsMeasure(checkpoint, queries=1, seed=seed)
        self.means = Means(checkpoint.layers, checkpoint.heads, len(TYPES))

    def observe(self, pipeline: Any, inputs: Sequence[SourceText]) -> None:
        """One forward pass over all inputs. Raises InputError where the family hands over no values."""
        for start in range(0, len(inputs), ROWS_A_CHUNK):
            prepared = prepare(self.checkpoint, pipeline, inputs[start : start + ROWS_A_CHUNK])
            observers = [*self.features.take(prepared), self.statistics.statistics_of(prepared)]
            types = [list(token_types(ready.encoding).values()) for ready in prepared]
            numbers = [ready.number for ready in prepared]

            def take(layer: int, taken: Contributions, chosen: list[int], observers: Any = observers,
                     types: Any = types, numbers: Any = numbers) -> None:  # fmt: skip
                maps = normalised(taken.norms())
                for observer in observers:
                    observer.update(layer, maps, chosen)
                self._lengths(layer, taken, [types[k] for k in chosen], [numbers[k] for k in chosen])

            contributions(self.checkpoint, [ready.encoding for ready in prepared], take)

    def _lengths(self, layer: int, taken: Contributions, types: Sequence[Any], numbers: list[int]) -> None:
        lengths = taken.lengths().double().cpu().numpy()  # [batch, head, key]
        lengths = lengths / np.maximum(lengths.mean(-1, keepdims=True), 1e-30)
        sums = np.stack(
            [
                np.stack([length[:, list(keys)].mean(-1) if keys else np.zeros(len(length)) for keys in mine], -1)
                for length, mine in zip(lengths, types, strict=True)
            ]
        )
        counts = np.array([[float(bool(keys)) for keys in mine] for mine in types])
        self.means.update(layer, sums, counts, numbers)

    def sums(self, at: InputOffset) -> NormSums:
        """The sums over all inputs so far; at: which inputs they are of."""
        shape = (self.checkpoint.layers, self.checkpoint.heads)
        return NormSums(
            at, *shape, self.checkpoint.causal, self.means, self.features.sums(at), self.statistics.sums(at)
        )
