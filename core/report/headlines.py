"""What a stored run says, in one sentence: with its n, an interval and what it stands beside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.attention import Head
from core.store.rows import Row
from core.tasks.glue import task_of

SURE = 0.05


@dataclass(frozen=True)
class Headline:
    """sentence: what was found. n: of what it was measured on, None where the rows do not say; of: what n counts.

    interval, baseline: in words, empty where there is none.
    """

    sentence: str
    n: int | None = None
    of: str = "rows"
    interval: str = ""
    baseline: str = ""


def headline(study: str, rows: Sequence[Row]) -> Headline:
    """The headline of a run's rows; of a study that has none of its own, how many rows there are."""
    made = HEADLINES.get(study)
    try:
        found = made(rows) if made and rows else None
    except (KeyError, StopIteration, ValueError, TypeError, IndexError):  # rows of an earlier version
        found = None
    return found or Headline(f"{len(rows)} rows")


def _of(rows: Sequence[Row], **where: Any) -> list[Row]:
    return [row for row in rows if all(row.get(name) == value for name, value in where.items())]


def _head(row: Row) -> str:
    return str(Head(int(row["layer"]), int(row["head"])))


def _percent(low: Any, high: Any, form: str = "{:+.1f}", times: int = 100) -> str:
    if low is None or high is None:
        return ""
    return f"95 % interval {form.format(times * low)} to {form.format(times * high)}"


def _metric(row: Row) -> str:
    return next(name for name in ("accuracy", "f1", "pearson") if row.get(name) is not None)


def _plural(count: int, of: int, what: str) -> str:
    return f"{count} of {of} {what}"


# ---------------------------------------------------------------- one a study


def _disable(rows: Sequence[Row]) -> Headline:
    baseline, variants = _of(rows, kind="baseline")[0], _of(rows, kind="variant")
    metric = _metric(baseline)
    worst = min(variants, key=lambda row: row[f"{metric}_change"])
    sure = sum((row.get("p") or 1) < SURE for row in variants)
    ends = _percent(worst.get(f"{metric}_low"), worst.get(f"{metric}_high"))
    return Headline(
        f"Without {worst['name']} {metric} changes most, by {100 * worst[f'{metric}_change']:+.1f} points; "
        f"{_plural(sure, len(variants), 'changes')} are beyond luck after correction.",
        baseline["n"], "rows", ends, f"untouched {100 * baseline[metric]:.1f}",
    )  # fmt: skip


def _race(rows: Sequence[Row]) -> Headline:
    race, body = rows[0], _of(rows, kind="verdict")
    counts = [int(race[name]) for name in ("matters", "does not matter", "open")]
    named = [row["name"] for row in body if row.get("verdict") == "matters"][:5]
    return Headline(
        f"{counts[0]} of {len(body)} matter beyond the margin"
        + (f" ({', '.join(named)})" if named else "")
        + f", {counts[1]} do not, {counts[2]} are open.",
        int(race["n"]), "rows", f"all verdicts hold together with {100 * (1 - race['alpha']):.0f} %",
        f"margin {race['margin']:.4f} in the task's loss",
    )  # fmt: skip


def _operators(rows: Sequence[Row]) -> Headline:
    baseline, effects = _of(rows, kind="baseline")[0], _of(rows, kind="effect")
    most = max(effects, key=lambda row: abs(row["value"]))
    sure = sum(row["p"] < SURE for row in effects)
    return Headline(
        f"{most['name']} under {most['operator']} moves the loss most, by {most['value']:+.3f}; "
        f"{_plural(sure, len(effects), 'effects')} are beyond luck.",
        int(baseline["n"]), "rows", _percent(most["low"], most["high"], "{:+.3f}", 1), f"loss {baseline['loss']:.3f}",
    )  # fmt: skip


def _importance(rows: Sequence[Row]) -> Headline:
    heads = _of(rows, kind="head")
    first, last = heads[0], heads[-1]
    return Headline(
        f"The loss depends most on {first['name']} (importance {first['value']:.2f}) and least on {last['name']} "
        f"({last['value']:.2f}).", int(first["n"]), "rows",
    )  # fmt: skip


def _prune(rows: Sequence[Row]) -> Headline:
    order = rows[0]["order"]
    half = min(_of(rows, order=order), key=lambda row: abs(row["share"] - 0.5))
    chance = [row["score"] for row in rows if row["order"].startswith("random") and row["share"] == half["share"]]
    beside = f", {100 * sum(chance) / len(chance):.1f} in random order" if chance else ""
    return Headline(
        f"With {half['share']:.0%} of the heads removed by {order}, {half['metric']} is "
        f"{100 * half['score']:.1f}{beside}.",
        int(half["n"]), "rows", _percent(half.get("low"), half.get("high"), "{:.1f}"),
        f"all heads {100 * half['baseline']:.1f}",
    )  # fmt: skip


def _change(rows: Sequence[Row]) -> Headline:
    heads = _of(rows, kind="head", statistic="cosine")
    least = min(heads, key=lambda row: row["value"])
    layers = sorted(_of(rows, kind="layer", statistic="cosine", after=least["after"]), key=lambda row: row["layer"])
    return Headline(
        f"{_head(least)} changed most with fine-tuning on {task_of(least['task']).name}: cosine {least['value']:.2f}; "
        f"layer means go from {layers[0]['value']:.2f} (first) to {layers[-1]['value']:.2f} (last).",
        int(least["n"]), "rows", _percent(least.get("low"), least.get("high"), "{:.2f}", 1), "1 is no change",
    )  # fmt: skip


def _finetune(rows: Sequence[Row]) -> Headline:
    means = _of(rows, kind="mean")
    best = next((row for row in means if row["initialisation"] == "pretrained"), means[0])
    metric = best["metric"]
    others = [f"{row['initialisation']} {100 * row[metric]:.1f}" for row in means
              if row["task"] == best["task"] and row is not best and row.get(metric) is not None]  # fmt: skip
    constant = next((row for row in rows if row["kind"] == "baseline" and row["task"] == best["task"]), {})
    beside = f"constant label {100 * constant[metric]:.1f}" if constant.get(metric) is not None else ""
    first = next(row for row in rows if row["kind"] == "run")
    spread = best.get(f"{metric}_sd")
    return Headline(
        f"{task_of(best['task']).name}: {metric} {100 * best[metric]:.1f} after fine-tuning"
        + (f" ({'; '.join(others)})." if others else "."),
        int(first["dev_rows"]), "dev rows", f"± {100 * spread:.1f} over {best['n']} seeds" if spread else "", beside,
    )  # fmt: skip


def _held(rows: Sequence[Row]) -> Headline:
    change = next(row for row in rows if row["kind"] == "change" and row["score"] is not None)
    return Headline(
        f"{task_of(change['task']).name}: with {change['held_heads']} heads held at fixed patterns {change['metric']} "
        f"changes by {100 * change['score']:+.1f} points.",
        int(change["n"]), "rows", _percent(change["low"], change["high"]), "the same training with all heads free",
    )  # fmt: skip


def _shares(rows: Sequence[Row]) -> Headline:
    shares = _of(rows, part="share")
    most = max(_of(shares, checkpoint=shares[0]["checkpoint"]), key=lambda row: row["share"])
    return Headline(
        f"{most['class'].capitalize()} is the most frequent class on {task_of(most['task']).name}: "
        f"{most['share']:.0%} of the maps.",
        int(most["inputs"]), "inputs", _percent(most.get("low"), most.get("high"), "{:.0f}"),
        f"one in {len(_of(shares, checkpoint=most['checkpoint']))} classes",
    )  # fmt: skip


def _above(rows: Sequence[Row], what: str, look: Callable[[Row], str]) -> Headline:
    """Of heads beside a null: the one furthest above it, and how many are."""
    known = [row for row in rows if row.get("layer") is not None and row.get("effect") is not None]
    sure = [row for row in known if (row.get("q") or 1) < SURE and row["effect"] > 0]
    best = max(sure or known, key=lambda row: row["effect"])
    return Headline(
        f"{_head(best)} {look(best)}: {best['value']:.2f} against {best['baseline']:.2f}; "
        f"{_plural(len(sure), len(known), what)} are above their null.",
        int(best["n"]), "inputs", _percent(best.get("low"), best.get("high"), "{:.2f}", 1),
        f"null {best['baseline']:.2f}",
    )  # fmt: skip


def _features(rows: Sequence[Row]) -> Headline:
    kept = [row for row in rows if row.get("checkpoint") != "difference" and row["statistic"] == rows[0]["statistic"]]
    return _above(kept, "heads and features", lambda row: f"looks at {row['feature']} most beyond random tokens")


def _relations(rows: Sequence[Row]) -> Headline:
    return _above(rows, "heads and links", lambda row: f"looks along {row['feature']} ({row['statistic']}) most")


def _statistics(rows: Sequence[Row]) -> Headline:
    places = _of(rows, statistic="place")
    mine = [row for row in places if (row["checkpoint"], row["task"]) == (places[0]["checkpoint"], places[0]["task"])]
    counts = {kind: sum(row["kind"] == kind for row in mine) for kind in dict.fromkeys(row["kind"] for row in mine)}
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda item: -item[1]))
    return Headline(f"What {len(mine)} heads mostly do on {places[0]['task']}: {said}.", int(mine[0]["n"]), "inputs")


def _effective(rows: Sequence[Row]) -> Headline:
    heads = [row for row in _of(rows, statistic="correlation") if row.get("layer") is not None]
    least = min(heads, key=lambda row: row["value"])
    mean = sum(row["value"] for row in heads) / len(heads)
    return Headline(
        f"Raw and effective attention correlate with r = {mean:.2f} on average, least in {_head(least)} "
        f"({least['value']:.2f}).",
        int(least["n"]), "inputs", _percent(least.get("low"), least.get("high"), "{:.2f}", 1), "r = 1: nothing is lost",
    )  # fmt: skip


def _frame_heads(rows: Sequence[Row]) -> Headline:
    summary, heads = rows[0], _of(rows, kind="head")
    kept = summary["survivors"]
    best = heads[0]
    return Headline(
        f"{len(kept)} of {len(heads)} heads carry frame relations beyond all four nulls"
        + (f": {', '.join(kept[:6])}." if kept else f"; the largest mean weight has {best['name']}."),
        int(summary["n"]), str(summary["average"]), _percent(best.get("low"), best.get("high"), "{:.2f}", 1),
        f"{best['name']} {best['value']:.2f}, same distance elsewhere {best['baseline']:.2f}",
    )  # fmt: skip


def _dependencies(rows: Sequence[Row]) -> Headline:
    known = [row for row in rows if row.get("chosen") and row.get("layer") is not None]
    best = max(known, key=lambda row: row["value"] - row["baseline"])
    return Headline(
        f"{_head(best)} finds {best['feature']} with accuracy {best['value']:.2f}, where a fixed distance has "
        f"{best['baseline']:.2f}.",
        int(best["n"]), "links", _percent(best.get("low"), best.get("high"), "{:.2f}", 1),
        f"fixed distance {best['baseline']:.2f}",
    )  # fmt: skip


def _perturb(rows: Sequence[Row]) -> Headline:
    body = [row for row in rows if row["kind"] == "perturbation" and row.get("changed_rate") is not None]
    most = max(body, key=lambda row: row["changed_rate"])
    least = min(body, key=lambda row: row["changed_rate"])
    return Headline(
        f"Predictions change most under {most['name']} ({most['changed_rate']:.0%}) and least under {least['name']} "
        f"({least['changed_rate']:.0%}).",
        int(most["n"]), "rows", _percent(most.get("changed_low"), most.get("changed_high"), "{:.0f}"), "0 %: no change",
    )  # fmt: skip


def _patch(rows: Sequence[Row]) -> Headline:
    best = max(rows, key=lambda row: row["recovered"])
    sure = sum(row["p"] < SURE for row in rows)
    return Headline(
        f"Patched alone, {best['name']} brings back most of the first answer ({best['recovered']:.0%}); "
        f"{_plural(sure, len(rows), 'components')} are beyond luck.",
        int(best["n"]), "pairs", _percent(best.get("low"), best.get("high"), "{:.0f}"), "0 %: nothing comes back",
    )  # fmt: skip


def _cut(rows: Sequence[Row]) -> Headline:
    baseline = _of(rows, kind="baseline")[0]
    metric = _metric(baseline)
    body = [row for row in rows if row["kind"] != "baseline" and row.get(f"{metric}_change") is not None]
    most = max(body, key=lambda row: abs(row[f"{metric}_change"]))
    return Headline(
        f"Without {most.get('edges', 'attention to separators')} ({most['name']}) {metric} changes most, by "
        f"{100 * most[f'{metric}_change']:+.1f} points.",
        int(baseline["n"]), "rows", _percent(most.get(f"{metric}_low"), most.get(f"{metric}_high")),
        f"untouched {100 * baseline[metric]:.1f}",
    )  # fmt: skip


def _report(rows: Sequence[Row]) -> Headline:
    outcomes = [row["outcome"] for row in _of(rows, kind="claim")]
    said = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes))
    return Headline(
        f"Of {len(outcomes)} tests of the papers' sentences: {said}.", len(_of(rows, kind="step")), "studies"
    )


HEADLINES: dict[str, Callable[[Sequence[Row]], Headline]] = {
    "disable": _disable,
    "race": _race,
    "operators": _operators,
    "importance": _importance,
    "prune": _prune,
    "change": _change,
    "finetune": _finetune,
    "held": _held,
    "classify-maps": _shares,
    "features": _features,
    "relations": _relations,
    "statistics": _statistics,
    "effective": _effective,
    "frame-heads": _frame_heads,
    "dependencies": _dependencies,
    "perturb": _perturb,
    "patch": _patch,
    "knockout": _cut,
    "separators": _cut,
    "reproduce": _report,
}
