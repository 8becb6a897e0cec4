"""How attention changes with fine-tuning: cosine and Jensen-Shannon divergence per head (Kovaleva et al. 4.3, Fig 5).

Both checkpoints get the same pieces of the same dev rows. One or several fine-tuned checkpoints are compared with the
checkpoint they came from; a row's task is the fine-tuned one's own unless a task is given for all.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import config
from core.errors import CheckpointError, InputError
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.models.checkpoint import Checkpoint

DEFAULTS: Options = {
    "before": config.ENCODER,
    "after": [],
    "task": None,
    "split": "dev",
    "data": None,
    "limit": 1000,  # the paper draws 1,000 rows of larger dev sets
    "seed": 0,
    "max_length": 128,
    "dtype": "float32",
}
ROWS_A_UNIT = 128
BATCH_TOKENS = 1024  # both models' maps of one batch are held together


def units(options: Options) -> list[Unit]:
    """Chunks of rows for every fine-tuned checkpoint."""
    from core.tasks.glue import task_of

    if not options["after"]:
        raise InputError("A change needs a checkpoint after fine-tuning; none was chosen: choose one or more.")
    found = []
    for after in dict.fromkeys(options["after"]):
        task = task_of(options["task"]).key if options["task"] else task_tuned_on(after)
        rows = _rows(options, task)
        for start in range(0, len(rows), ROWS_A_UNIT):
            some = rows[start : start + ROWS_A_UNIT]
            words = sum(len(f"{one.text} {one.pair or ''}".split()) for one in some)
            arguments = {"after": after, "task": task, "start": start, "stop": start + len(some)}
            found.append(Unit(f"{after}|{task}|{start}", arguments, size=3 * words))
    return found


def task_tuned_on(checkpoint: str) -> str:
    """The task that a checkpoint of ours was fine-tuned on; InputError where its folder does not say."""
    from core.tasks.glue import task_of
    from core.tuning.shelf import LOG

    for folder in filter(config.within, (Path(checkpoint).expanduser(), config.PROJECT / checkpoint)):
        try:
            return task_of(json.loads((folder / LOG).read_text())["task"]).key
        except (OSError, ValueError, KeyError):
            continue
    raise InputError(
        f"The task of a comparison is read from the fine-tuned checkpoint's training.json; {checkpoint} has none that "
        "says it: choose a task."
    )


def _rows(options: Options, task: str) -> list[Any]:
    from core.tasks.glue import read_rows

    return read_rows(task, options["split"], folder=options["data"], limit=options["limit"], seed=options["seed"])


@lru_cache(maxsize=2)
def _opened(name: str, dtype: str) -> "Checkpoint":
    from core.models.opening import open_checkpoint

    return open_checkpoint(name, dtype=dtype, device=config.settings().device)


def run(options: Options, unit: Unit) -> list[Row]:
    """Both models over a chunk of rows; what was seen, packed, and the provenance."""
    before, after = _opened(options["before"], options["dtype"]), _opened(unit.arguments["after"], options["dtype"])
    rows = _rows(options, unit.arguments["task"])[unit.arguments["start"] : unit.arguments["stop"]]
    names = [row.id for row in rows]
    found = compared(
        before,
        after,
        [(row.text, row.pair) for row in rows],
        names,
        first=unit.arguments["start"],
        max_length=options["max_length"],
    )
    provenance = {
        "checkpoint": f"{options['before']} and {unit.arguments['after']}",
        "weights_hash": f"{before.weights_hash} and {after.weights_hash}",
        "task": unit.arguments["task"],
        "dtype": before.dtype,
        "device": str(before.device),
        "row_ids": names,
    }
    key = {"after": unit.arguments["after"], "task": unit.arguments["task"]}
    return [key | found.packed(), {"provenance": provenance}]


def compared(
    before: "Checkpoint",
    after: "Checkpoint",
    texts: list[tuple[str, str | None]],
    names: list[str],
    *,
    first: int = 0,
    max_length: int = 128,
) -> Any:
    """The accumulator over these inputs; `first` is the number of the first one in the study."""
    from core.capture.running import batches, run
    from core.scoring.change import Change

    _refuse_different(before, after)
    encodings = [before.encode(text, pair, max_length=max_length) for text, pair in texts]
    others = [after.encode(text, pair, max_length=max_length) for text, pair in texts]
    for name, one, other in zip(names, encodings, others, strict=True):
        if one.ids != other.ids:
            raise CheckpointError(
                f"Maps can be compared only where both checkpoints split a text alike; row {name} becomes "
                f"{len(one)} and {len(other)} pieces or others: choose a checkpoint tuned from {before.name}."
            )
    found = Change(before.layers, before.heads, causal=before.causal)
    for chosen in batches(encodings, BATCH_TOKENS):
        some, kept = [encodings[k] for k in chosen], _Kept()
        run(before, some, [kept])
        run(after, some, [_Against(kept, found, [first + k for k in chosen], [names[k] for k in chosen])])
    return found


class _Kept:
    """The maps of one batch, until the other model's are compared with them."""

    def __init__(self) -> None:
        self.maps: list[Any] = []

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        self.maps.append(weights.clone())


class _Against:
    """Compares each layer of the second model with the one kept of the first."""

    def __init__(self, kept: _Kept, found: Any, numbers: list[int], names: list[str]) -> None:
        self.kept, self.found, self.numbers, self.names = kept, found, numbers, names

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        numbers, names = [self.numbers[k] for k in inputs], [self.names[k] for k in inputs]
        self.found.update(layer, self.kept.maps[layer], weights, numbers, names)


def _refuse_different(before: "Checkpoint", after: "Checkpoint") -> None:
    shapes = [(one.layers, one.heads, one.family.model_type) for one in (before, after)]
    if shapes[0] != shapes[1]:
        raise CheckpointError(
            f"A checkpoint is compared with one tuned from it; {before.name} has {shapes[0][0]} layers of "
            f"{shapes[0][1]} heads ({shapes[0][2]}), {after.name} {shapes[1][0]} of {shapes[1][1]} ({shapes[1][2]}): "
            "choose a pair of one family and size."
        )


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Per checkpoint and statistic a row a head (kind "head") and a row a layer (kind "layer")."""
    from core.scoring.change import Change

    found: list[Row] = []
    for key in dict.fromkeys((row["after"], row["task"]) for row in rows):
        parts = [Change.unpacked(row) for row in rows if (row["after"], row["task"]) == key]
        for part in parts[1:]:
            parts[0].merge(part)
        found += _summary(parts[0], {"before": options["before"], "after": key[0], "task": key[1]})
    return found


def _summary(change: Any, key: Row) -> list[Row]:
    heads, layers = change.heads.result(), change.layers.result()
    found: list[Row] = []
    for place, statistic in enumerate(change.statistics):
        shared = key | {"statistic": statistic, "n": int(heads.n[place])}
        for layer in range(heads.value.shape[0]):
            for head in range(heads.value.shape[1]):
                row = shared | {"kind": "head", "layer": layer, "head": head} | _ends(heads, (layer, head, place))
                if statistic == "cosine":
                    row["changed_most"] = [
                        {"row": name, "cosine": value} for value, name in change.lowest.get((layer, head), [])
                    ]
                found.append(row | {"feature": key["task"]})
            found.append(shared | {"kind": "layer", "layer": layer} | _ends(layers, (layer, 0, place)))
    return found


def _ends(estimate: Any, place: tuple[int, int, int]) -> Row:
    values = {name: float(getattr(estimate, name)[place]) for name in ("value", "low", "high")}
    return {name: None if value != value else value for name, value in values.items()}


STUDY = Study("change", DEFAULTS, units, run, summarize)
