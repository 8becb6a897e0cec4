"""Draw attention maps to label: few of each input, all heads alike, with the seed that drew them.

Kovaleva et al. drew about 400 maps at random from inputs of several tasks. At most four maps of an input are
drawn by default, because maps of one input are alike and labels should cover many inputs.
"""

import base64
import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.attention import Head
from core.errors import InputError
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.tasks.glue import TaskRow

PASTED = "text"  # the "task" of sentences a person typed
ROWS_A_UNIT = 32
DEFAULTS: Options = {
    "checkpoint": "atlas-encoder",
    "tasks": ["mrpc"],
    "split": "dev",
    "folder": None,
    "texts": [],
    "count": 96,
    "per_input": 4,
    "seed": 0,
    "longest": 64,
    "dtype": "float32",
}


@dataclass(frozen=True)
class Source:
    """One input that maps may come from."""

    task: str
    split: str
    row_id: str
    text: str
    pair: str | None


def sources(options: Options) -> list[Source]:
    """Rows of the tasks, or the pasted texts, in their own order."""
    from core.tasks.glue import read_rows, task_of

    if options["texts"]:
        return [Source(PASTED, "", _digest(text), text, None) for text in options["texts"]]
    folder = options["folder"]
    return [
        Source(task_of(task).key, options["split"], _named(row, folder), row.text, row.pair)
        for task in options["tasks"]
        for row in read_rows(task, options["split"], folder=folder)
    ]


def _named(row: "TaskRow", folder: str | None) -> str:
    """A row of a folder is told by its text from the row of the samples (or of another folder) at the same place."""
    return row.id if folder is None else f"{row.id}-{_digest(row.text, row.pair or '')}"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def plan(
    inputs: Sequence[int], heads: Sequence[Head], *, count: int, per_input: int, seed: int
) -> list[tuple[int, Head]]:
    """`count` pairs (input, head): inputs in random order, `per_input` heads each; every head is used equally often.

    Fewer when inputs times `per_input` do not suffice. No pair comes twice.
    """
    chance = random.Random(seed)  # noqa: S311
    order = chance.sample(list(inputs), len(inputs))
    taken: list[tuple[int, Head]] = []
    used = dict.fromkeys(heads, 0)
    for one in order:
        least_used = sorted(chance.sample(list(heads), len(heads)), key=used.__getitem__)
        for head in least_used[: min(per_input, count - len(taken))]:
            taken.append((one, head))
            used[head] += 1
    return taken


def map_id(weights_hash: str, source: Source, head: Head) -> str:
    """The same map of the same weights has the same name wherever it is drawn."""
    text = "\n".join([weights_hash, source.task, source.split, source.row_id, str(head)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def units(options: Options) -> list[Unit]:
    """Rounds of inputs, the tasks taken in turn, so that early maps cover every task."""
    if options["count"] < 1 or options["per_input"] < 1:
        raise InputError(
            f"At least one map of at least one input must be drawn; {options['count']} maps with "
            f"{options['per_input']} an input were asked for."
        )
    by_task: dict[str, list[int]] = {}
    for number, source in enumerate(sources(options)):
        by_task.setdefault(source.task, []).append(number)
    chance = random.Random(options["seed"])  # noqa: S311
    decks = [chance.sample(one, len(one)) for one in by_task.values()]
    turns = [deck[k] for k in range(max(map(len, decks))) for deck in decks if k < len(deck)]
    needed = -(-options["count"] // options["per_input"])
    chosen = turns[: 2 * needed + ROWS_A_UNIT]  # some are too long and are passed over
    return [Unit("all", {"inputs": chosen}, size=needed)]


def run(options: Options, unit: Unit) -> list[Row]:
    """Draw, capture, and return one row a map; its weights are float16 in base64."""
    from core.models.opening import open_checkpoint

    checkpoint = open_checkpoint(options["checkpoint"], dtype=options["dtype"])
    return [
        row | {"weights": base64.b64encode(weights).decode()}
        for row, weights in drawn(checkpoint, options, unit.arguments["inputs"])
    ]


def drawn(checkpoint: Any, options: Options, inputs: Sequence[int]) -> Iterator[tuple[Row, bytes]]:
    """(facts, float16 weights) of each planned map, input by input."""
    from core.capture.running import capture

    known = sources(options)
    encodings = {k: checkpoint.encode(known[k].text, known[k].pair) for k in inputs}
    needed = -(-options["count"] // options["per_input"])
    fitting = [k for k in inputs if not encodings[k].cut and len(encodings[k]) <= options["longest"]][:needed]
    if not fitting:
        raise InputError(
            f"Maps are drawn from inputs of at most {options['longest']} pieces; none of "
            f"{len(encodings)} is that short: raise the limit or choose another task."
        )
    heads = [Head(layer, head) for layer in range(checkpoint.layers) for head in range(checkpoint.heads)]
    chosen: dict[int, list[Head]] = {}
    for number, head in plan(
        fitting, heads, count=options["count"], per_input=options["per_input"], seed=options["seed"]
    ):
        chosen.setdefault(number, []).append(head)
    for number, mine in chosen.items():
        maps = capture(checkpoint, encodings[number])
        for head in mine:
            yield _row(checkpoint, known[number], encodings[number], head, maps.of(head), options["seed"])


def _row(
    checkpoint: Any, source: Source, encoding: Any, head: Head, weights: np.ndarray, seed: int
) -> tuple[Row, bytes]:
    facts = {
        "map_id": map_id(checkpoint.weights_hash, source, head),
        "checkpoint": checkpoint.name,
        "weights_hash": checkpoint.weights_hash,
        "task": source.task,
        "split": source.split,
        "row_id": source.row_id,
        "layer": head.layer,
        "head": head.head,
        "length": len(encoding),
        "tokens": list(encoding.tokens),
        "separators": list(encoding.separators),
        "causal": checkpoint.causal,
        "maximum": round(largest(weights, causal=checkpoint.causal), 4),
        "seed": seed,
    }
    return facts, np.ascontiguousarray(weights, dtype="<f2").tobytes()


def largest(weights: np.ndarray, *, causal: bool) -> float:
    """Largest weight of a map [query, key]; of a causal one without query 0, whose only weight is 1."""
    return float(weights[1:].max() if causal and len(weights) > 1 else weights.max())


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """How many maps of how many inputs were drawn, by task."""
    tasks = sorted({row["task"] for row in rows})
    return [
        {
            "task": task,
            "maps": sum(row["task"] == task for row in rows),
            "inputs": len({row["row_id"] for row in rows if row["task"] == task}),
        }
        for task in tasks
    ]


STUDY = Study("draw-maps", DEFAULTS, units, run, summarize)
