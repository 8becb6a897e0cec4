"""One drawn world: a planted checkpoint on drawn rows, run once; every study's measure then sees the same maps."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from core.capture.running import run
from core.models.checkpoint import Checkpoint
from core.studies.attention.inputs import PASTED
from core.studies.attention.partials import InputOffset, Sums
from core.studies.attention.passes import Measure, Prepared
from core.studies.tagging import tag
from tests.simulations import planted_attention as planting

AT = InputOffset("planted", PASTED, 0)


@dataclass(frozen=True, eq=False)
class Drawn:
    """maps: (layer, weights, inputs) as a run hands them over."""

    checkpoint: Checkpoint
    prepared: tuple[Prepared, ...]
    maps: tuple[tuple[int, torch.Tensor, list[int]], ...]

    def sums(self, measure: Measure) -> Sums:
        """What a study's measure sees."""
        observers = measure.take(self.prepared)
        for layer, weights, inputs in self.maps:
            for observer in observers:
                observer.update(layer, weights, inputs)
        return measure.sums(AT)


class _Maps:
    def __init__(self) -> None:
        self.maps: list[tuple[int, torch.Tensor, list[int]]] = []

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        """Keep one layer's maps of a batch."""
        self.maps.append((layer, weights.clone(), list(inputs)))


def captured(checkpoint: Checkpoint, texts: tuple[planting.Text, ...], *, causal: bool = False) -> Drawn:
    """A planted checkpoint run over its texts."""
    prepared = tuple(
        Prepared(number, planting.encoded(text, causal), tuple(tag(_sentences(text), planting.pipeline())))
        for number, text in enumerate(texts)
    )
    maps = _Maps()
    run(checkpoint, [ready.encoding for ready in prepared], [maps])
    return Drawn(checkpoint, prepared, tuple(maps.maps))


@lru_cache(maxsize=1)
def drawn(
    world: str, inputs: int, seed: int, *, task: str = "mrpc", relation: str | None = None, causal: bool = False
) -> Drawn:
    """A world by its name. Kept until another is asked for."""
    texts = planting.drawn(task, inputs, seed, causal=causal)
    checkpoint = planting.planted(planting.world_of(world), texts, seed, relation=relation, causal=causal)
    return captured(checkpoint, texts, causal=causal)


def _sentences(text: planting.Text) -> list[str]:
    return [text] if isinstance(text, str) else list(text)
