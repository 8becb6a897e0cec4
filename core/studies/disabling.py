"""What the studies of disabled heads share: rows of a task, an opened classifier, predictions in the task's labels."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from core import config
from core.attention import Head, parse_heads
from core.errors import InputError
from core.studies.study import Options, Row, Unit

if TYPE_CHECKING:
    from torch import Tensor

    from core.models.checkpoint import Checkpoint
    from core.models.encoding import Encoding
    from core.tasks.glue import Task, TaskRow

ROWS_A_UNIT = 64
KINDS = ("heads", "layers", "all-but-one", "groups", "duplicates")
DEFAULTS: Options = {
    "checkpoint": config.ENCODER,
    "task": "sst2",
    "data": None,
    "split": "dev",
    "limit": 500,  # rows; None: all
    "dtype": "float32",
    "device": "auto",
    "seed": 0,
}


def rows_of(options: Options, split: str | None = None, limit: int | None = None) -> "list[TaskRow]":
    """The task's rows that the options name."""
    from core.tasks.glue import read_rows

    limit = options["limit"] if limit is None else limit
    if limit is not None and limit < 2:
        raise InputError(f"Effects are judged on at least two rows; a limit of {limit} was given: raise it.")
    return read_rows(
        options["task"], split or options["split"], folder=options["data"], limit=limit, seed=options["seed"]
    )


def units_of_rows(options: Options) -> list[Unit]:
    """Slices of the rows, similar lengths together: inputs of one length share a batch."""
    rows = rows_of(options)
    sizes = [len(row.text) + len(row.pair or "") for row in rows]
    order = sorted(range(len(rows)), key=lambda k: (sizes[k], k))
    slices = [order[k : k + ROWS_A_UNIT] for k in range(0, len(order), ROWS_A_UNIT)]
    return [
        Unit(f"rows-{number}", {"rows": one}, size=max(1, sum(sizes[k] for k in one) // 4))
        for number, one in enumerate(slices)
    ]


@lru_cache(maxsize=1)
def classifier(name: str, device: str) -> "Checkpoint":
    """A classifier that this worker keeps for its next unit; in float32, a sweep's dtype is that of its own layers."""
    from core.models.opening import open_checkpoint

    return open_checkpoint(name, head="classifier", device=device)


def opened(options: Options) -> "tuple[Checkpoint, Task, tuple[int, ...]]":
    """The classifier, its task, and which label of the task each of its outputs means."""
    from core.tasks.glue import task_of
    from core.tasks.labels import label_order

    found, task = classifier(options["checkpoint"], options["device"]), task_of(options["task"])
    return found, task, label_order(task, found.labels)


def encoded(checkpoint: "Checkpoint", rows: "Sequence[TaskRow]") -> "list[Encoding]":
    """The rows as the checkpoint reads them."""
    return [checkpoint.encode(row.text, row.pair) for row in rows]


def outputs_of(task: "Task", order: Sequence[int], rows: "Sequence[TaskRow]") -> list[int | float]:
    """Gold labels as numbers of the checkpoint's outputs (scores stay)."""
    return [row.label if task.is_score else list(order).index(int(row.label)) for row in rows]


def predicted(task: "Task", order: Sequence[int], logits: "Tensor") -> list:
    """Labels of the task, or scores, from logits [..., input, label]: nested lists [..., input]."""
    import torch

    return logits[..., 0].double().tolist() if task.is_score else torch.tensor(order)[logits.argmax(-1)].tolist()


def provenance(checkpoint: "Checkpoint", ids: Sequence[str], dtype: str | None = None) -> Row:
    """The row that says where a unit's rows come from. dtype: of the arithmetic, if not the checkpoint's."""
    return {
        "provenance": {
            "weights_hash": checkpoint.weights_hash,
            "row_ids": list(ids),
            "device": str(checkpoint.device),
            "dtype": dtype or checkpoint.dtype,
        }
    }


# ---------------------------------------------------------------- sets of heads


def groups_of(text: str) -> list[tuple[Head, ...]]:
    """Read "L1H2,L7H6; L4H1": groups between semicolons, heads between commas."""
    found = [tuple(dict.fromkeys(parse_heads(part))) for part in text.split(";") if part.strip()]
    if not found or not all(found):
        raise InputError(f'Groups are written like "L1H2,L7H6; L4H1"; "{text[:60]}" names none: name heads.')
    return found


def group_name(heads: Sequence[Head]) -> str:
    """The group as it is typed."""
    return ",".join(str(head) for head in heads)


def variants_of(what: str, heads: str, layers: int, width: int) -> list[Row]:
    """What is changed together: {name, layer, head, heads}; layer or head is None where it is no single one."""
    every = [[Head(layer, head) for head in range(width)] for layer in range(layers)]
    if what == "heads":
        return [_variant(str(head), head.layer, head.head, [head]) for row in every for head in row]
    if what == "layers":
        return [_variant(f"L{layer + 1}", layer, None, row) for layer, row in enumerate(every)]
    if what == "all-but-one":
        return [
            _variant(f"all of L{head.layer + 1} but H{head.head + 1}", *head, [other for other in row if other != head])
            for row in every
            for head in row
        ]
    if what == "groups":
        found = [[head.within(layers, width) for head in group] for group in groups_of(heads)]
        return [_variant(group_name(group), None, None, group) for group in found]
    raise InputError(f'What is disabled is one of {", ".join(KINDS)}; "{what}" is none of them: choose one.')


def _variant(name: str, layer: int | None, head: int | None, heads: Sequence[Head]) -> Row:
    return {"name": name, "layer": layer, "head": head, "heads": list(heads)}


# ---------------------------------------------------------------- putting rows together again


def in_order(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any]:
    """Per-row arrays of all units, in the order of the task's rows; names: fields whose last axis is rows."""
    places = np.concatenate([np.asarray(row["rows"]) for row in rows])
    order = np.argsort(places)
    return {name: np.concatenate([np.asarray(row[name]) for row in rows], axis=-1)[..., order] for name in names}
