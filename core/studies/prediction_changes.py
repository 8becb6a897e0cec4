"""The rows of predictions that changed under variants: the metric's change, flips, McNemar, one correction for all."""

from collections.abc import Sequence

import numpy as np

from core.scoring import effects
from core.store.rows import Row
from core.studies.outcomes import finite, metrics_of, outcomes
from core.tasks.glue import Task


def baseline_row(task: Task, gold: np.ndarray, plain: np.ndarray, about: Row) -> Row:
    """The untouched model's metrics."""
    ones = np.ones((1, len(gold)))
    whole = {name: finite(effects.counted(name, gold, plain[None], ones)[0, 0]) for name in metrics_of(task)}
    return {"kind": "baseline", "name": "untouched", **about, **whole}


def change_rows(
    task: Task, gold: np.ndarray, plain: np.ndarray, changed: np.ndarray, facts: Sequence[Row], *, seed: int
) -> list[Row]:
    """A row a variant: facts, every metric with its change and paired interval; of classes how many
    predictions flipped, their share with Wilson's interval (of none too) and McNemar's
    p; p corrected over the variants (max-T). changed [variant, row]."""
    before, after = outcomes(task, gold, plain), outcomes(task, gold, changed)
    corrected = effects.max_t(before, after, seed=seed)
    flipped = None if task.is_score else effects.flips(plain, changed)
    whole = baseline_row(task, gold, plain, {})
    measured = {name: effects.metric_intervals(name, gold, plain, changed) for name in metrics_of(task)}
    rows = []
    for k, fact in enumerate(facts):
        row = {**fact, "n": len(gold)}
        for name, intervals in measured.items():
            change = intervals[k]
            row[name] = None if change.value is None or whole[name] is None else whole[name] + change.value
            row |= {f"{name}_change": change.value, f"{name}_low": change.low, f"{name}_high": change.high}
        row["flipped"] = None if flipped is None else int(flipped[k])
        if not task.is_score:
            share = share_interval(changed[k] != plain)
            row |= dict(zip(("changed_rate", "changed_low", "changed_high"), share, strict=True))
        row["mcnemar"] = None if task.is_score else effects.mcnemar(before.astype(bool), after[k].astype(bool))
        row["p"] = float(corrected[k])
        rows.append(row)
    return rows


def share_interval(hits: np.ndarray) -> tuple[float, float, float]:
    """A share of rows with its 95% Wilson interval: (value, low, high); NaN for no rows."""
    from statsmodels.stats.proportion import proportion_confint  # 1 s of start-up

    if not len(hits):
        return (float("nan"),) * 3
    low, high = proportion_confint(int(hits.sum()), len(hits), method="wilson")
    share = float(hits.mean())
    return share, float(low) if share > 0 else 0.0, float(high) if share < 1 else 1.0  # not 3e-18
