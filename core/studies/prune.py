"""Heads removed for good, least important first, and what the task's metric does (Michel et al. 2019, Fig 3).

The order is found on train rows and the curve drawn on dev rows. Orders: by importance (once, or recomputed at
every step), by the sweep's effect on the train rows, and several random ones as the control. One unit is one curve.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.attention import Head
from core.errors import InputError
from core.scoring import effects
from core.studies import disabling
from core.studies.disable import metrics_of
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.models.checkpoint import Checkpoint

ORDERS = ("importance", "recomputed", "sweep", "random")
DEFAULTS: Options = disabling.DEFAULTS | {
    "orders": ["importance", "sweep", "random"],
    "order_rows": 500,  # train rows that find the order
    "steps": 10,
    "random_orders": 5,
    "reading": "example",
    "normalize": True,
    "operator": "zero",
}


def units(options: Options) -> list[Unit]:
    """One unit a curve."""
    if unknown := [one for one in options["orders"] if one not in ORDERS]:
        raise InputError(f"Heads are removed in the order of {', '.join(ORDERS)}; {unknown[0]!r} is none of them.")
    if not options["orders"] or options["steps"] < 1 or options["random_orders"] < 1:
        raise InputError("A pruning curve needs at least one order, one step and one random order: choose them.")
    length = sum(len(row.text) + len(row.pair or "") for row in disabling.rows_of(options)) // 4
    disabling.rows_of(options, "train", options["order_rows"])
    names = [name for name in options["orders"] if name != "random"]
    if "random" in options["orders"]:
        names += [f"random {k + 1}" for k in range(options["random_orders"])]
    return [Unit(name, {"order": name}, size=max(1, options["steps"] * length)) for name in names]


def run(options: Options, unit: Unit) -> list[Row]:
    """One curve: the order, and the dev predictions after every step."""
    from core.capture.sweeping import sweep

    checkpoint, task, order = disabling.opened(options)
    dev = disabling.rows_of(options)
    ranked = order_of(options, unit.arguments["order"], checkpoint)
    cuts = [round(len(ranked) * (k + 1) / options["steps"]) for k in range(options["steps"])]
    removed, encodings = [ranked[:cut] for cut in cuts], disabling.encoded(checkpoint, dev)
    found = sweep(checkpoint, encodings, removed, options["operator"], dtype=options["dtype"])
    row = {
        "order": unit.arguments["order"],
        "heads": [list(head) for head in ranked],
        "removed": cuts,
        "gold": [one.label for one in dev],
        "plain": disabling.predicted(task, order, found.plain),
        "changed": disabling.predicted(task, order, found.changed),
    }
    return [row, disabling.provenance(checkpoint, [one.id for one in dev], found.dtype)]


def order_of(options: Options, name: str, checkpoint: "Checkpoint") -> list[Head]:
    """All heads, the first to go first."""
    every = [Head(layer, head) for layer in range(checkpoint.layers) for head in range(checkpoint.heads)]
    if name.startswith("random"):
        seed = [options["seed"], int(name.split()[1])]
        return [every[k] for k in np.random.default_rng(seed).permutation(len(every))]
    if name == "sweep":
        return _by_sweep(options, checkpoint, every)
    recomputed = options["steps"] if name == "recomputed" else 1
    return _by_importance(options, checkpoint, every, recomputed)


def _by_sweep(options: Options, checkpoint: "Checkpoint", every: Sequence[Head]) -> list[Head]:
    """The head whose removal costs least on the train rows first; ties by how far the logits move."""
    from core.capture.sweeping import sweep
    from core.studies.disable import outcomes
    from core.tasks.glue import task_of
    from core.tasks.labels import label_order

    task, rows = task_of(options["task"]), disabling.rows_of(options, "train", options["order_rows"])
    order = label_order(task, checkpoint.labels)
    encodings, alone = disabling.encoded(checkpoint, rows), [[head] for head in every]
    found = sweep(checkpoint, encodings, alone, options["operator"], dtype=options["dtype"])
    gold = np.array([row.label for row in rows])
    kept = outcomes(task, gold, np.array(disabling.predicted(task, order, found.changed))).mean(1)
    moved = (found.changed - found.plain).abs().mean((1, 2)).numpy()
    return [every[k] for k in sorted(range(len(every)), key=lambda k: (-kept[k], moved[k], k))]


def _by_importance(options: Options, checkpoint: "Checkpoint", every: Sequence[Head], times: int) -> list[Head]:
    """Least important first; with several times, importance is weighed anew among the heads that are left."""
    import torch

    from core.capture.importance import gradients, importance
    from core.tasks.glue import task_of
    from core.tasks.labels import label_order

    task, rows = task_of(options["task"]), disabling.rows_of(options, "train", options["order_rows"])
    encodings = disabling.encoded(checkpoint, rows)
    labels = disabling.outputs_of(task, label_order(task, checkpoint.labels), rows)
    kept, gone = torch.ones(checkpoint.layers, checkpoint.heads), []  # type: ignore[var-annotated]
    for step in range(times):
        sums = gradients(checkpoint, encodings, labels, zeroed=kept)
        scores = importance(sums, reading=options["reading"], normalize=options["normalize"])
        left = sorted((head for head in every if head not in gone), key=lambda head: (float(scores[head]), head))
        now = left[: round(len(every) * (step + 1) / times) - len(gone)]
        gone += now
        for head in now:
            kept[head] = 0
    return gone


def summarize(options: Options, rows: Sequence[Row]) -> list[Row]:
    """A row per curve and step: the metric on dev with its change from the whole model and the interval of that."""
    from core.tasks.glue import task_of

    if not rows:
        return []
    task = task_of(options["task"])
    metric, body = metrics_of(task)[0], []
    for row in rows:
        gold, plain, changed = (np.asarray(row[name]) for name in ("gold", "plain", "changed"))
        ones = np.ones((1, len(gold)))
        whole = float(effects.counted(metric, gold, plain[None], ones)[0, 0])
        found = effects.metric_intervals(metric, gold, plain, changed, seed=options["seed"])
        ranked = [Head(*head) for head in row["heads"]]
        about = {"order": row["order"], "task": task.key, "metric": metric, "n": len(gold), "baseline": whole}
        body.append(_step(about, [], len(ranked), effects.Interval(0.0, 0.0, 0.0)))
        body += [
            _step(about, ranked[:cut], len(ranked), change) for cut, change in zip(row["removed"], found, strict=True)
        ]
    return body


def _step(about: Row, removed: Sequence[Head], heads: int, change: Any) -> Row:
    value = None if change.value is None else about["baseline"] + change.value
    ends = {f"change_{name}": getattr(change, name) for name in ("low", "high")}
    both = {
        name: None if ends[f"change_{name}"] is None else about["baseline"] + ends[f"change_{name}"]
        for name in ("low", "high")
    }
    removed_names = ",".join(str(head) for head in removed)
    share = {"removed": len(removed), "share": len(removed) / heads, "heads": removed_names}
    return {"kind": "step", **about, **share, "score": value, "change": change.value, **both}


STUDY = Study("prune", DEFAULTS, units, run, summarize)
