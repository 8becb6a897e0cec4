"""Every head, layer or group disabled in turn on a task's rows (Kovaleva et al. section 4.6, Figs 8 and 9).

A summary row per variant: the metric and its change with a paired bootstrap interval, how many predictions changed,
McNemar's p for classes, and p corrected over all variants (max-T permutation). Then a split-half row: whether the
gain of the best variant is still there on rows that did not choose it. The operator is
"disable" (uniform attention) in Kovaleva's pictures and "zero" in Michel's. Groups are typed ("groups"), or clusters
of heads with like maps ("duplicates"), which stand beside their heads one at a time and random heads.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.attention import parse_heads
from core.scoring import effects
from core.studies import disabling, duplicates
from core.studies.study import Options, Row, Study, Unit

DEFAULTS: Options = disabling.DEFAULTS | {
    "what": "heads",
    "operator": "disable",
    "heads": "",  # of "groups"
    "within": 0.5,  # of "duplicates": share of the mean distance between heads
}


def units(options: Options) -> list[Unit]:
    """Slices of the task's rows; options that cannot be are refused here."""
    from core.capture.interventions import operator_of

    operator_of(options["operator"], causal=False)
    if options["what"] == "groups":
        disabling.groups_of(options["heads"])
    elif options["what"] == "duplicates":
        duplicates.check(options["within"])
    else:
        disabling.variants_of(options["what"], "", 1, 1)
    return disabling.units_of_rows(options)


def run(options: Options, unit: Unit) -> list[Row]:
    """Predictions of these rows, plain and under every variant."""
    from core.capture.sweeping import sweep

    checkpoint, task, order = disabling.opened(options)
    every = disabling.rows_of(options)
    rows = [every[k] for k in unit.arguments["rows"]]
    grouped = duplicates.variants(options, checkpoint) if options["what"] == "duplicates" else []
    variants = grouped or disabling.variants_of(options["what"], options["heads"], checkpoint.layers, checkpoint.heads)
    heads, encodings = [one["heads"] for one in variants], disabling.encoded(checkpoint, rows)
    found = sweep(checkpoint, encodings, heads, options["operator"], dtype=options["dtype"])
    row = {
        "rows": unit.arguments["rows"],
        "layers": checkpoint.layers,
        "heads": checkpoint.heads,
        "gold": [row.label for row in rows],
        "plain": disabling.predicted(task, order, found.plain),
        "changed": disabling.predicted(task, order, found.changed),
        "fast": found.fast,
        "grouped": [one | {"heads": disabling.group_name(one["heads"])} for one in grouped],
    }
    return [row, disabling.provenance(checkpoint, [one.id for one in rows], found.dtype)]


def summarize(options: Options, rows: Sequence[Row]) -> list[Row]:
    """The baseline, a row per variant in the order of the heads, and the split-half check."""
    from core.tasks.glue import task_of

    if not rows:
        return []
    task, found = task_of(options["task"]), disabling.in_order(rows, ("gold", "plain", "changed"))
    every, changed = _variants(options, rows[0]), found["changed"]
    about = {"operator": options["operator"], "what": options["what"], "task": task.key, "n": len(found["gold"])}
    gold, plain, names = found["gold"], found["plain"], metrics_of(task)
    beside: list[Row] = [{} for _ in every]
    if options["what"] == "duplicates":
        beside = duplicates.beside(names, gold, plain, changed, every, seed=options["seed"])
        every, changed = duplicates.together(every, changed)
    before, after = outcomes(task, gold, plain), outcomes(task, gold, changed)
    whole = {name: effects.counted(name, gold, plain[None], np.ones((1, len(gold))))[0, 0] for name in names}
    baseline = {"kind": "baseline", "name": "untouched", **about, **{name: _known(whole[name]) for name in names}}
    measured = {name: effects.metric_intervals(name, gold, plain, changed, seed=options["seed"]) for name in names}
    corrected = effects.max_t(before, after, seed=options["seed"])
    flipped = effects.flips(plain, changed) if not task.is_score else None
    body = []
    for k, variant in enumerate(every):
        row = {"kind": "variant", **variant, "heads": disabling.group_name(variant["heads"]), **about, **beside[k]}
        for name in names:
            change = measured[name][k]
            row[name] = None if change.value is None else whole[name] + change.value
            row |= {f"{name}_change": change.value, f"{name}_low": change.low, f"{name}_high": change.high}
        row["flipped"] = None if flipped is None else int(flipped[k])
        row["mcnemar"] = None if task.is_score else effects.mcnemar(before.astype(bool), after[k].astype(bool))
        row["p"] = float(corrected[k])
        body.append(row | _score(row, names[0], options, whole[names[0]]))
    return [baseline, *body, *_checked_on_the_other_half(options, about, every, before, after)]


def _variants(options: Options, row: Row) -> list[Row]:
    if options["what"] == "duplicates":
        return [one | {"heads": parse_heads(one["heads"])} for one in row["grouped"]]
    return disabling.variants_of(options["what"], options["heads"], row["layers"], row["heads"])


def shared(one: Sequence[Row], other: Sequence[Row]) -> tuple[list[Row], effects.Agreement]:
    """Which heads do two sweeps share? {name, this, other}: the changes of the first metric of each, and their rank
    correlation over the heads (or layers) that both swept."""
    second = {row["name"]: _change(row) for row in other if row["kind"] == "variant"}
    first = [row for row in one if row["kind"] == "variant" and row["name"] in second]
    pairs = [{"name": row["name"], "this": _change(row), "other": second[row["name"]]} for row in first]
    columns = [np.array([row[side] for row in pairs], dtype=float) for side in ("this", "other")]
    return pairs, effects.rank_agreement(*columns)


def _change(row: Row) -> float | None:
    return row[f"{first_metric(row)}_change"]


def first_metric(row: Row) -> str:
    """The metric that ranks, of a row of a sweep."""
    return next(name for name in ("accuracy", "f1", "pearson") if name in row)


def metrics_of(task: Any) -> tuple[str, ...]:
    """The task's metrics that can be resampled; the first one ranks."""
    return ("pearson",) if task.is_score else tuple(task.metrics)


def outcomes(task: Any, gold: np.ndarray, found: np.ndarray) -> np.ndarray:
    """How right each row is, so that the mean over rows is the metric that ranks: 1 or 0 for classes, the row's share
    of Pearson's r for scores."""
    return effects.row_correlations(gold, found) if task.is_score else (found == gold).astype(float)


def _score(row: Row, metric: str, options: Options, baseline: float) -> Row:
    """The fields that make a row of one head a head score in the store."""
    if options["what"] not in ("heads", "all-but-one"):
        return {}
    return {
        "statistic": f"{options['operator']} {options['what']}",
        "feature": f"{options['task']} {metric}",
        "value": row[f"{metric}_change"],
        "low": row[f"{metric}_low"],
        "high": row[f"{metric}_high"],
        "baseline": _known(baseline),
    }


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _checked_on_the_other_half(
    options: Options, about: Row, variants: Sequence[Row], before: np.ndarray, after: np.ndarray
) -> list[Row]:
    if len(variants) < 2 or len(before) < 4:
        return []
    found = effects.split_half(before, after, seed=options["seed"])
    fields = {name: getattr(found, name) for name in ("chosen", "held_out", "low", "high", "same")}
    return [{"kind": "split half", "name": variants[found.head]["name"], **about, **fields}]


STUDY = Study("disable", DEFAULTS, units, run, summarize)
