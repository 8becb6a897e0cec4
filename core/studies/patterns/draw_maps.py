"""Random sampling of attention maps to label, with every head equally often.

Kovaleva et al. sampled about 400 maps from inputs of several tasks. By default, at most four maps per input are
sampled, because maps of the same input are similar.
"""

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pydantic.dataclasses

from ... import capture, studies
from ...attention import Head
from ...errors import InputError, check_range
from ...models.encoding import Encoding
from ...store import labels
from ...store.database import Database
from ...store.rows import Row
from ...tasks.glue import read_rows, task_of
from ..attention.inputs import PASTED, Tasks
from ..contract import Done, ExampleUnit, Finished, Study, Unit
from ..options import Checkpoint, Data, InputSplit, Seed
from .records import DrawnMaps

ROWS_A_UNIT = 32


@pydantic.dataclasses.dataclass(frozen=True)
class DrawMapsOptions:
    """Options for sampling attention maps: the checkpoint, the inputs, and the number of maps."""

    checkpoint: Checkpoint = "atlas-encoder"
    tasks: Tasks = ("mrpc",)
    split: InputSplit = "dev"
    data: Data = None
    texts: tuple[str, ...] = ()
    count: int = 96
    per_input: int = 4
    seed: Seed = 0
    longest: int = 64
    dtype: str = "float32"


@dataclass(frozen=True)
class DrawnMap:
    """A sampled attention map as it is stored. `weights` is a float16 array [query, key]."""

    map_id: str
    checkpoint: str
    weights_hash: str
    task: str
    split: str
    row_id: str
    layer: int
    head: int
    length: int
    tokens: list[str]
    separators: list[int]
    causal: bool
    maximum: float
    seed: int
    weights: np.ndarray

    def row(self) -> Row:
        return asdict(self) | {"weights": self.weights.tobytes()}


@dataclass(frozen=True)
class MapBatch:
    """Sampled attention maps from one or more units of work."""

    maps: tuple[DrawnMap, ...]


class DrawMapsStudy(Study[DrawMapsOptions, MapBatch]):
    """Draw attention maps to label."""

    name, options, partial, arguments = "draw-maps", DrawMapsOptions, MapBatch, ExampleUnit
    typed_after = None
    kinds = (DrawnMaps,)
    counts = "inputs"

    def units(self, options: DrawMapsOptions) -> list[Unit]:
        check_range("The number of maps", options.count, 1)
        check_range("The number of maps per input", options.per_input, 1)
        by_task: dict[str, list[int]] = {}
        for number, source in enumerate(sources(options)):
            by_task.setdefault(source.task, []).append(number)
        chance = random.Random(options.seed)  # noqa: S311
        decks = [chance.sample(numbers, len(numbers)) for numbers in by_task.values()]
        turns = [deck[k] for k in range(max(map(len, decks))) for deck in decks if k < len(deck)]
        needed = -(-options.count // options.per_input)
        chosen = turns[: 2 * needed + ROWS_A_UNIT]  # some are too long and are passed over
        return [Unit("all", ExampleUnit(tuple(chosen)), size=needed)]

    def run(self, options: DrawMapsOptions, unit: Unit) -> Done[MapBatch]:
        checkpoint = studies.worker_cache.get_checkpoint(options.checkpoint, dtype=options.dtype)
        return Done(MapBatch(tuple(drawn(checkpoint, options, unit.arguments.positions))))

    def results(self, options: DrawMapsOptions, merged: MapBatch) -> list[DrawnMaps]:
        results = []
        for task in sorted({drawn_map.task for drawn_map in merged.maps}):
            mine = [drawn_map for drawn_map in merged.maps if drawn_map.task == task]
            inputs = len({drawn_map.row_id for drawn_map in mine})
            results.append(DrawnMaps(task=task, maps=len(mine), inputs=inputs))
        return results

    def keep(self, db: Database, run: Finished[DrawMapsOptions, MapBatch]) -> None:
        partials = list(run.partials())
        if not partials:
            raise InputError(
                "Drawn maps cannot be imported from a result file. Draw the maps again while no other process has "
                "the database open."
            )
        for part in partials:
            labels.store_maps(db, [drawn_map.row() for drawn_map in part.maps])


STUDY = DrawMapsStudy()


@dataclass(frozen=True)
class MapInput:
    """An input from which attention maps may be sampled."""

    task: str
    split: str
    row_id: str
    text: str
    pair: str | None


def sources(options: DrawMapsOptions) -> list[MapInput]:
    """Return the examples of the tasks, or the texts that the user typed, in order."""
    if options.texts:
        return [MapInput(PASTED, "", _digest(text), text, None) for text in options.texts]
    return [
        MapInput(
            task_of(task).key,
            options.split,
            (row.id if options.data is None else f"{row.id}-{_digest(row.text, row.pair or '')}"),
            row.text,
            row.pair,
        )
        for task in options.tasks
        for row in read_rows(task, options.split, folder=options.data)
    ]


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def plan(
    inputs: Sequence[int], heads: Sequence[Head], *, count: int, per_input: int, seed: int
) -> list[tuple[int, Head]]:
    """Choose up to `count` pairs (input, head) whose attention maps are sampled. All heads are used equally often."""
    chance = random.Random(seed)  # noqa: S311
    order = chance.sample(list(inputs), len(inputs))
    taken: list[tuple[int, Head]] = []
    used = dict.fromkeys(heads, 0)
    for number in order:
        least_used = sorted(chance.sample(list(heads), len(heads)), key=used.__getitem__)
        for head in least_used[: min(per_input, count - len(taken))]:
            taken.append((number, head))
            used[head] += 1
    return taken


def map_id(weights_hash: str, source: MapInput, head: Head) -> str:
    """Return the ID of an attention map. The same map of the same weights always has the same ID."""
    text = "\n".join([weights_hash, source.task, source.split, source.row_id, str(head)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def drawn(checkpoint: Any, options: DrawMapsOptions, inputs: Sequence[int]) -> Iterator[DrawnMap]:
    """Capture the attention maps that are planned for these inputs, one input at a time."""
    capture.running.refuse_sinks(checkpoint)  # a class is of a square of tokens
    known = sources(options)
    encodings = {k: checkpoint.encode(known[k].text, known[k].pair) for k in inputs}
    needed = -(-options.count // options.per_input)
    fitting = [k for k in inputs if not encodings[k].cut and len(encodings[k]) <= options.longest][:needed]
    if not fitting:
        raise InputError(
            f"Maps must be drawn from inputs of at most {options.longest} tokens that fit the checkpoint; all "
            f"{len(encodings)} inputs are longer. Raise the limit on tokens (longest), or choose another task."
        )
    planned = plan(fitting, checkpoint.all_heads, count=options.count, per_input=options.per_input, seed=options.seed)
    for number, head, weights in captured(checkpoint, encodings, planned):
        source, encoding = known[number], encodings[number]
        yield DrawnMap(
            map_id=map_id(checkpoint.weights_hash, source, head),
            checkpoint=checkpoint.name,
            weights_hash=checkpoint.weights_hash,
            task=source.task,
            split=source.split,
            row_id=source.row_id,
            layer=head.layer,
            head=head.head,
            length=len(encoding),
            tokens=list(encoding.tokens),
            separators=list(encoding.separators),
            causal=checkpoint.causal,
            maximum=round(largest(weights, causal=checkpoint.causal), 4),
            seed=options.seed,
            weights=np.ascontiguousarray(weights, dtype="<f2"),
        )


def captured(
    checkpoint: Any, encodings: Mapping[int, Encoding], planned: Iterable[tuple[int, Head]]
) -> Iterator[tuple[int, Head, np.ndarray]]:
    """Yield (input, head, map [query, key]) for each planned map. Consecutive maps of an input share a forward pass."""
    for number, pairs in groupby(planned, key=lambda pair: pair[0]):
        maps = capture.running.capture(checkpoint, encodings[number])
        for _, head in pairs:
            yield number, head, maps.of(head)


def largest(weights: np.ndarray, *, causal: bool) -> float:
    """Return the largest weight of a map. In causal maps, the first query is ignored because it has only one key."""
    return float(weights[1:].max() if causal and len(weights) > 1 else weights.max())
