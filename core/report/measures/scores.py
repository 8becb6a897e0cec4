"""Our number for every printed score: Table 1, change, disabling, importance, pruning; and pictures of every head.

As `measures.maps`, which has what is read off the maps themselves.
"""

from collections.abc import Callable

from core.report.evidence import (
    Estimate,
    Evidence,
    Found,
    correlation_interval,
    f1_interval,
    mean_over,
    metric_of,
    picked,
    share_interval,
)
from core.report.measures import maps
from core.report.measures.maps import estimate_of, layers_of
from core.report.verdicts import Ours
from core.studies.study import Row
from core.tasks.glue import TASKS

# ---------------------------------------------------------------- fine-tuning


def table_one(evidence: Evidence) -> list[Ours]:
    """Means over seeds; the interval is over dev rows."""
    found = []
    for one in evidence.of("tuning"):
        rows = [row["dev_rows"] for row in picked(one.rows, kind="run")]
        for row in picked(one.rows, kind="mean"):
            for metric in ("accuracy", "f1", "pearson", "mse"):
                if row.get(metric) is None:
                    continue
                note = f"{row['n']} seed{'s' * (row['n'] > 1)}" + ("; " + row["note"] if row["note"] else "")
                known = (one.step.task, metric, row["initialisation"], scored(row, metric, min(rows)))
                found.append(Ours("table-1", *known, min(rows), "dev rows", one.run, note))
    return found


def scored(row: Row, metric: str, n: int) -> Estimate:
    """A score of n rows with its interval over them; none for the mean squared error."""
    value = float(row[metric])
    if metric == "accuracy":
        return share_interval(value, n)
    if metric == "f1":
        return f1_interval(value, float(row["accuracy"]), n)
    return correlation_interval(value, n) if metric == "pearson" else Estimate(value)


def constant_score(one: Found) -> float | None:
    """The score of the best constant predictor on the dev rows of a fine-tuning step; 0 where it is undefined.

    Its own baseline is the majority of the train rows; of two labels the other may be more frequent on dev.
    """
    row = next(iter(picked(one.rows, kind="baseline")), None)
    if row is None:
        return None
    score = row.get(one.rows[0]["metric"]) or 0.0
    two_labels = one.rows[0]["metric"] == "accuracy" and len(TASKS[one.step.task or ""].labels) == 2
    return max(score, 1 - score) if two_labels else score


def nothing_to_lose(evidence: Evidence, task: str | None) -> str | None:
    """Why losses of a fine-tuned checkpoint say nothing: its score is not above a constant predictor's.

    None where it is above, or nobody knows.
    """
    one = evidence.one("tuning", task)
    tuned = next(iter(picked(one.rows, kind="mean", initialisation="pretrained")), None) if one else None
    floor = constant_score(one) if one else None
    if one is None or tuned is None or floor is None:
        return None
    metric = one.rows[0]["metric"]
    if tuned.get(metric) is None:
        return "nothing can be lost: the fine-tuned checkpoint predicts the same for every row"
    score = scored(tuned, metric, min(row["dev_rows"] for row in picked(one.rows, kind="run")))
    if score.low is None or score.low > floor:
        return None
    seen = f"{metric} {score.value:.3f} ({score.low:.3f} to {score.high:.3f})"
    return f"nothing can be lost: the fine-tuned checkpoint's {seen} is not above a constant predictor's {floor:.3f}"


def change(evidence: Evidence) -> list[Ours]:
    """Layer means of the cosine before and after (Fig 5)."""
    found = []
    for one in evidence.of("change"):
        rows = sorted(picked(one.rows, kind="layer", statistic="cosine"), key=lambda row: row["layer"])
        if rows:
            estimates = [estimate_of(row) for row in rows]
            found += layers_of(estimates, "change", one.step.task, "", rows[0]["n"], "inputs", one.run)
    return found


# ---------------------------------------------------------------- disabling


def _sweep(one: Found) -> tuple[list[Row], str]:
    return picked(one.rows, kind="variant"), metric_of(one.rows)


def heads(evidence: Evidence) -> list[Ours]:
    """Best, mean and worst change of the score when one head is disabled, and the best one on unseen rows (Fig 8)."""
    found = []
    for one in evidence.of("heads"):
        rows, metric = _sweep(one)
        known = sorted(
            (row for row in rows if row[f"{metric}_change"] is not None), key=lambda r: -r[f"{metric}_change"]
        )
        if not known:
            continue
        about = (known[0]["n"], "dev rows", one.run)
        for item, row in (("best head", known[0]), ("worst head", known[-1])):
            note = f"{row['name']}, {metric}; p {row['p']:.2g} corrected over {len(rows)} heads"
            found.append(Ours("heads", one.step.task, item, "disabled", estimate_of(row, metric), *about, note))
        mean = mean_over(known, *(f"{metric}_{end}" for end in ("change", "low", "high")))
        if mean:
            found.append(Ours("heads", one.step.task, "mean over heads", "disabled", mean, *about, metric))
        for row in picked(one.rows, kind="split half"):
            held = Estimate(row["held_out"], row["low"], row["high"])
            note = f"chosen on the other half, most often {row['name']}; share of rows right, or squared error"
            found.append(
                Ours(
                    "heads", one.step.task, "best head, on rows that did not choose it", "disabled", held, *about, note
                )
            )
    return found


def _by_layers(evidence: Evidence, part: str, condition: str) -> list[Ours]:
    found = []
    for one in evidence.of(part):
        rows, metric = _sweep(one)
        ends = [f"{metric}_{end}" for end in ("change", "low", "high")]
        known = [row for row in rows if row[ends[0]] is not None]
        layers = sorted({row["layer"] for row in known})
        best = [max((row for row in known if row["layer"] == k), key=lambda row: row[ends[0]]) for k in layers]
        estimates = [estimate_of(row, metric) for row in best]
        n = known[0]["n"] if known else 0
        found += layers_of(estimates, part, one.step.task, condition, n, "dev rows", one.run)
    return found


def layers(evidence: Evidence) -> list[Ours]:
    """Change of the score when a layer is disabled (Fig 9)."""
    return _by_layers(evidence, "layers", "disabled")


def alone(evidence: Evidence) -> list[Ours]:
    """Change of the score when a layer keeps its best head alone (Michel et al., Table 2)."""
    return _by_layers(evidence, "alone", "zeroed")


def prune(evidence: Evidence) -> list[Ours]:
    """Largest share of heads that goes, least important first, before the score falls beyond luck (Michel, Fig 3)."""
    found = []
    for one in evidence.of("prune"):
        for order in ("importance", "sweep"):
            steps = sorted(picked(one.rows, order=order), key=lambda row: row["removed"])
            if steps:
                share, following = removable(steps)
                estimate = Estimate(share, share, following)
                about = (steps[0]["n"], "dev rows", one.run, f"{steps[0]['metric']}; from the curve's steps")
                found.append(Ours("prune", one.step.task, "removable share of heads", order, estimate, *about))
    return found


def removable(steps: list[Row]) -> tuple[float, float]:
    """The last share before the change's interval lies below 0 for the first time, and the share where it does."""
    kept = 0.0
    for row in steps:
        if row["high"] is not None and row["high"] < row["baseline"]:
            return kept, float(row["share"])
        kept = float(row["share"])
    return kept, 1.0


def importance(evidence: Evidence) -> list[Ours]:
    """Rank correlation of importance with what zeroing each head does (Michel et al., section 4)."""
    found = []
    for one in evidence.of("importance"):
        for row in picked(one.rows, kind="correlation"):
            if row["spearman"] is not None:
                item, note = f"importance against {row['name']}", f"Spearman, p {row['p']:.2g}"
                estimate = correlation_interval(row["spearman"], row["n"])
                found.append(
                    Ours("importance", one.step.task, item, "zeroed", estimate, row["n"], "heads", one.run, note)
                )
    return found


MEASURES: dict[str, Callable[[Evidence], list[Ours]]] = {
    "shares": maps.shares,
    "frames": maps.frames,
    "sink": maps.sink,
    "table-1": table_one,
    "change": change,
    "features": maps.features,
    "tokens": maps.tokens,
    "heads": heads,
    "layers": layers,
    "alone": alone,
    "importance": importance,
    "prune": prune,
    "statistics": maps.statistics,
    "dependencies": maps.dependencies,
    "effective": maps.effective,
}


# ---------------------------------------------------------------- a picture of every head


def head_maps(evidence: Evidence) -> list[Row]:
    """Rows of kind "head" for the pictures of Figs 3, 5 and 8: one number a head, exhibit and task."""
    found: list[Row] = []
    for one in evidence.of("frames"):
        found += _map(one, "frames", picked(one.rows, kind="head"), "mean largest weight")
    for one in evidence.of("change"):
        found += _map(one, "change", picked(one.rows, kind="head", statistic="cosine"), "cosine")
    for one in evidence.of("heads"):
        rows, metric = _sweep(one)
        renamed = [row | {end: row[f"{metric}_{name}"] for end, name in
                          (("value", "change"), ("low", "low"), ("high", "high"))} for row in rows]  # fmt: skip
        found += _map(one, "heads", renamed, f"change of {metric}")
    return found


def _map(one: Found, exhibit: str, rows: list[Row], label: str) -> list[Row]:
    names = ("layer", "head", "value", "low", "high", "n")
    about = {"kind": "head", "exhibit": exhibit, "checkpoint": one.step.checkpoint, "task": one.step.task}
    return [about | {"label": label, "run": one.run} | {name: row.get(name) for name in names} for row in rows]
