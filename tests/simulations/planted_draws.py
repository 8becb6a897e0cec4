"""Drawn worlds: planted checkpoints on drawn rows, and what studies' measures sum up of their maps.

The worlds of a seed have the same rows, and rows of few inputs are the first of those of many. So a long run draws all
worlds of a seed as layers of one checkpoint, runs each row once, and adds up (`together`); what is drawn for one world
alone is the same, by test.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from core.capture.running import Observer, run
from core.models.checkpoint import Checkpoint
from core.scoring.intervals import Means
from core.studies.attention import features, relations, roles, statistics
from core.studies.attention.inputs import PASTED
from core.studies.attention.measures import Prepared
from core.studies.attention.partials import InputOffset, RoleSums, Sums
from core.studies.merging import merged
from tests.simulations import planted_attention as planting

AT = InputOffset("planted", PASTED, 0)
FEW, INPUTS, MANY = 20, 100, 250
TOGETHER = tuple(planting.WORLDS)
SEQUENCES = 20  # of words that come twice
STUDIES = {
    "relations": relations.STUDY,
    "features": features.STUDY,
    "roles": roles.STUDY,
    "statistics": statistics.STUDY,
}
_JOINED = [False]


@contextmanager
def together() -> Iterator[None]:
    """All worlds are drawn at once from here on."""
    _JOINED[0] = True
    try:
        yield
    finally:
        _JOINED[0] = False


@dataclass(frozen=True)
class Rows:
    """Which rows of which worlds: those from `start` to `stop` of a seed's order. sequences: of words that come twice,
    for roles."""

    worlds: tuple[str, ...]
    seed: int
    start: int
    stop: int
    task: str = "mrpc"
    relation: str | None = None
    causal: bool = False
    sequences: int = SEQUENCES


@dataclass(frozen=True, eq=False)
class Drawn:
    """maps: [batch, layer and head, query, key] of inputs, as a run hands them over."""

    checkpoint: Checkpoint
    prepared: tuple[Prepared, ...]
    maps: tuple[tuple[torch.Tensor, list[int]], ...]

    def part(self, start: int, stop: int) -> Iterator[tuple[torch.Tensor, list[int]]]:
        """The maps of these inputs, numbered from the first of them."""
        for weights, inputs in self.maps:
            rows = [row for row, number in enumerate(inputs) if start <= number < stop]
            if rows:
                yield weights[rows], [inputs[row] - start for row in rows]


class _Maps:
    def __init__(self, layers: int) -> None:
        self.layers, self.held = layers, list[torch.Tensor]()
        self.maps: list[tuple[torch.Tensor, list[int]]] = []

    def update(self, layer: int, weights: torch.Tensor, inputs: list[int]) -> None:
        """Keep the maps of a batch once its last layer has come."""
        self.held.append(weights)
        if layer == self.layers - 1:
            self.maps.append((torch.cat(self.held, 1), list(inputs)))
            self.held = []


@lru_cache(maxsize=1)
def drawn(rows: Rows) -> Drawn:
    """The maps of the rows up to `stop`. Kept until others are asked for."""
    texts = planting.drawn(rows.task, rows.stop, rows.seed, causal=rows.causal)
    worlds, how = [planting.world_of(name) for name in rows.worlds], {"relation": rows.relation, "causal": rows.causal}
    checkpoint = planting.planted(worlds, texts, rows.seed, **how)
    prepared = tuple(
        Prepared(number, planting.encoded(text, rows.causal), planting.tagged(text))
        for number, text in enumerate(texts)
    )
    maps = _Maps(checkpoint.layers)
    run(checkpoint, [ready.encoding for ready in prepared], [maps])
    return Drawn(checkpoint, prepared, tuple(maps.maps))


@lru_cache(maxsize=32)
def _sums(study: str, rows: Rows) -> Sums | Means:
    """What a study's measure sums up of these rows. Of statistics the means alone: distances between heads claim
    nothing, and are of all pairs."""
    whole = (INPUTS if rows.causal else MANY) if len(rows.worlds) > 1 else 0  # one pass for all numbers of inputs
    now, module = drawn(replace(rows, start=0, stop=max(whole, rows.stop))), STUDIES[study]
    options = roles.RolesOptions(sequences=rows.sequences) if study == "roles" else module.options()
    prepared = now.prepared[rows.start : rows.stop]
    measure = module.measure(options, now.checkpoint)
    of_statistics = study == "statistics"
    observers: list[Observer] = [measure.statistics_of(prepared)] if of_statistics else measure.take(prepared)
    for weights, inputs in now.part(rows.start, rows.stop):
        for observer in observers:
            observer.update_layers(weights, inputs)
    if study == "roles":
        module.after(options, measure, rows.start)
    return measure.statistics.means if of_statistics else measure.sums(AT)


@lru_cache(maxsize=32)
def _sums_to(study: str, rows: Rows) -> Sums | Means:
    """Those of all rows up to `stop`, added up over the numbers of inputs that worlds have."""
    before = [stop for stop in (FEW, INPUTS, MANY) if stop < rows.stop][-1:] if len(rows.worlds) > 1 else []
    if not before:
        return _sums(study, rows)
    sums = copy.deepcopy(_sums_to(study, replace(rows, stop=before[0])))
    more = _sums(study, replace(rows, start=before[0]))
    if isinstance(sums, Means):
        sums.merge(more)
        return sums
    return merged([sums, more])


def sums_of(study: str, world: str, inputs: int, seed: int, **how: object) -> Sums | Means:
    """What a study sums up of one world's heads on so many rows."""
    worlds = worlds_with(world)
    return of_world(_sums_to(study, Rows(worlds, seed, 0, inputs, **how)), world, worlds)


def worlds_with(world: str) -> tuple[str, ...]:
    """The worlds that are drawn with one: all, or where they are not drawn together it alone."""
    return TOGETHER if _JOINED[0] and world in TOGETHER else (world,)


def of_world(sums: Sums | Means, world: str, worlds: tuple[str, ...]) -> Sums | Means:
    """The part of one world's heads in sums of several's."""
    first = worlds.index(world) * planting.LAYERS
    layers = slice(first, first + planting.LAYERS)
    if isinstance(sums, Means):
        part = Means(0, 0, 0)
        part.sums, part.counts, part.inputs = sums.sums[:, layers], sums.counts[:, layers], sums.inputs[layers]
        return part
    more = {"copying": sums.copying[layers]} if isinstance(sums, RoleSums) and sums.copying.size else {}
    return replace(sums, layers=planting.LAYERS, means=of_world(sums.means, world, worlds), **more)
