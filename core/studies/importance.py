"""How much every head matters to the loss: I_h = E|dL/dxi_h| (Michel et al. 2019), one backward pass for all heads.

With `sweep` the same rows are swept too, and the rank correlation of importance with each head's measured effect
(share of predictions it changes, and loss of the metric) is part of the result.
"""

from collections.abc import Sequence

import numpy as np

from core.attention import Head
from core.errors import InputError
from core.scoring import effects
from core.studies import disabling
from core.studies.disable import metrics_of, outcomes
from core.studies.study import Options, Row, Study, Unit

READINGS = ("example", "token")
DEFAULTS: Options = disabling.DEFAULTS | {
    "split": "train",
    "reading": "example",
    "normalize": True,
    "sweep": "zero",  # the operator to compare with; None: no sweep
}


def units(options: Options) -> list[Unit]:
    """Slices of the task's rows."""
    if options["reading"] not in READINGS:
        raise InputError(
            f'Importance is read per {" or per ".join(READINGS)}; "{options["reading"]}" is neither: choose one.'
        )
    return disabling.units_of_rows(options)


def run(options: Options, unit: Unit) -> list[Row]:
    """Gradient sums of these rows, and with `sweep` their predictions without each head."""
    from core.capture.importance import gradients
    from core.capture.sweeping import every_head, sweep

    checkpoint, task, order = disabling.opened(options)
    every = disabling.rows_of(options)
    rows = [every[k] for k in unit.arguments["rows"]]
    encodings = disabling.encoded(checkpoint, rows)
    sums = gradients(checkpoint, encodings, disabling.outputs_of(task, order, rows))
    row = {
        "rows": unit.arguments["rows"],
        "example": sums.example.tolist(),
        "token": sums.token.tolist(),
        "inputs": sums.inputs,
        "tokens": sums.tokens,
        "gold": [one.label for one in rows],
    }
    if options["sweep"]:
        heads = every_head(checkpoint.layers, checkpoint.heads)
        found = sweep(checkpoint, encodings, heads, options["sweep"], dtype=options["dtype"])
        row |= {
            "plain": disabling.predicted(task, order, found.plain),
            "changed": disabling.predicted(task, order, found.changed),
            "moved": (found.changed - found.plain).abs().mean(-1).tolist(),
        }
    return [row, disabling.provenance(checkpoint, [one.id for one in rows])]


def summarize(options: Options, rows: Sequence[Row]) -> list[Row]:
    """A row per head, most important first, then the rank correlations with the sweep."""
    import torch

    from core.capture.importance import Gradients, importance

    if not rows:
        return []
    parts = [
        Gradients(torch.tensor(r["example"]).double(), torch.tensor(r["token"]).double(), r["inputs"], r["tokens"])
        for r in sorted(rows, key=lambda row: row["rows"])  # sums in floating point depend on the order
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    scores = importance(total, reading=options["reading"], normalize=options["normalize"])
    raw = importance(total, reading=options["reading"], normalize=False)
    ranked = sorted(np.ndindex(*scores.shape), key=lambda place: (-float(scores[place]), place))
    about = {"task": options["task"], "n": total.inputs, "statistic": "importance", "feature": options["task"]}
    heads = [
        {"kind": "head", "name": str(Head(*place)), "layer": place[0], "head": place[1], "rank": rank + 1,
         "value": float(scores[place]), "gradient": float(raw[place]), **about}
        for rank, place in enumerate(ranked)
    ]  # fmt: skip
    return heads + (_beside_the_sweep(options, rows, scores.flatten().numpy()) if options["sweep"] else [])


def _beside_the_sweep(options: Options, rows: Sequence[Row], scores: np.ndarray) -> list[Row]:
    from core.tasks.glue import task_of

    task, found = task_of(options["task"]), disabling.in_order(rows, ("gold", "plain", "changed", "moved"))
    gold, plain, changed = found["gold"], found["plain"], found["changed"]
    lost = outcomes(task, gold, plain).mean() - outcomes(task, gold, changed).mean(1)
    measured = {f"loss of {metrics_of(task)[0]}": lost, "mean change of logits": found["moved"].mean(1)}
    if not task.is_score:
        measured["predictions changed"] = effects.flips(plain, changed).astype(float)
    compared = []
    for name, values in measured.items():
        agreement = effects.rank_agreement(scores, values)
        fields = {name: getattr(agreement, name) for name in ("spearman", "kendall", "p", "n")}
        compared.append({"kind": "correlation", "name": name, "operator": options["sweep"], **fields})
    return compared


STUDY = Study("importance", DEFAULTS, units, run, summarize)
