"""What a stored run says, in one sentence: with its n, an interval and what it stands beside."""

from collections.abc import Callable, Sequence

from core.errors import StoreError
from core.report.probe_headlines import PROBE_HEADLINES
from core.report.readings import class_shares, picked, sweep, tuning
from core.report.records import records_of
from core.report.rendering.words import task_name
from core.report.sentences import Headline, defined, percent
from core.scoring.few_inputs import FEWEST
from core.store.rows import Row
from core.studies.ablation.pruning_records import ImportantHead, PruneStep
from core.studies.ablation.records import (
    Changed,
    EdgeCut,
    OperatorEffect,
    Patched,
    Perturbation,
    RaceSummary,
    RaceVerdict,
    SeparatorLayer,
    Untouched,
)
from core.studies.ablation.seed_records import HeadOverlap, SeedSource, SeedSpread
from core.studies.attention.records import ChangeScore, DependencyScore, PlaceScore, Score
from core.studies.frames.records import FrameHead, FrameSummary
from core.studies.tuning.records import HeldChange, TunedScore
from core.tasks.glue import task_of

SURE = 0.05


def headline(study: str, rows: Sequence[Row]) -> Headline:
    """The headline of a run's rows; of a study that has none of its own, how many rows there are."""
    made = HEADLINES.get(study)
    try:
        said = made(rows) if made and rows else None
    except (StoreError, KeyError, StopIteration, ValueError, TypeError, IndexError):  # rows of an earlier version
        said = None
    return said or Headline(f"{len(rows)} rows")


def _plural(count: int, of: int, what: str) -> str:
    return f"{count} of {of} {what}"


# ---------------------------------------------------------------- one a study


def _disable(rows: Sequence[Row]) -> Headline:
    untouched, swept = Untouched.among(rows)[0], sweep(rows)
    worst, change = min(swept.known, key=lambda pair: pair[1].value)
    sure = sum((variant.p or 1) < SURE for variant in swept.variants)
    return Headline(
        f"Without {worst.name} {swept.metric} changes most, by {100 * change.value:+.1f} points; "
        f"{_plural(sure, len(swept.variants), 'changes')} are beyond luck after correction.",
        untouched.n, "rows", percent(change.low, change.high), _score_of(untouched),
    )  # fmt: skip


def _score_of(untouched: Untouched) -> str:
    return f"untouched {100 * defined(untouched.metrics.first.value):.1f}"


def _race(rows: Sequence[Row]) -> Headline:
    race, verdicts = RaceSummary.among(rows)[0], RaceVerdict.among(rows)
    named = [verdict.name for verdict in verdicts if verdict.verdict == "matters"][:5]
    return Headline(
        f"{race.matters} of {len(verdicts)} matter beyond the margin"
        + (f" ({', '.join(named)})" if named else "")
        + f", {race.does_not_matter} do not, {race.open} are open.",
        race.n, "rows", f"all verdicts hold together with {100 * (1 - race.alpha):.0f} %",
        f"margin {race.margin:.4f} in the task's loss",
    )  # fmt: skip


def _operators(rows: Sequence[Row]) -> Headline:
    untouched, effects = Untouched.among(rows)[0], OperatorEffect.among(rows)
    most = max(effects, key=lambda effect: abs(effect.value))
    sure = sum(effect.p < SURE for effect in effects)
    return Headline(
        f"{most.name} under {most.operator} moves the loss most, by {most.value:+.3f}; "
        f"{_plural(sure, len(effects), 'effects')} are beyond luck.",
        untouched.n, "rows", percent(most.low, most.high, "{:+.3f}", 1), f"loss {untouched.loss:.3f}",
    )  # fmt: skip


def _importance(rows: Sequence[Row]) -> Headline:
    heads = ImportantHead.among(rows)
    first, last = heads[0], heads[-1]
    return Headline(
        f"The loss depends most on {first.name} (importance {first.value:.2f}) and least on {last.name} "
        f"({last.value:.2f}).", first.n, "rows",
    )  # fmt: skip


def _prune(rows: Sequence[Row]) -> Headline:
    steps = PruneStep.among(rows)
    order = steps[0].order
    half = min(picked(steps, order=order), key=lambda step: abs(step.share - 0.5))
    chance = [defined(step.score) for step in steps if step.order.startswith("random") and step.share == half.share]
    beside = f", {100 * sum(chance) / len(chance):.1f} in random order" if chance else ""
    return Headline(
        f"With {half.share:.0%} of the heads removed by {order}, {half.metric} is "
        f"{100 * defined(half.score):.1f}{beside}.",
        half.n, "rows", percent(half.low, half.high, "{:.1f}"), f"all heads {100 * half.baseline:.1f}",
    )  # fmt: skip


def _change(rows: Sequence[Row]) -> Headline:
    cosines = [score for score in ChangeScore.among(rows) if score.statistic == "cosine" and score.value is not None]
    least = min(picked(cosines, kind="head"), key=lambda score: defined(score.value))
    of_layers = picked(cosines, kind="layer", after=least.after)
    layers = [score.value for score in sorted(of_layers, key=lambda score: score.layer)]
    return Headline(
        f"{least.name} changed most with fine-tuning on {task_of(least.task).name}: cosine {least.value:.2f}; "
        f"layer means go from {layers[0]:.2f} (first) to {layers[-1]:.2f} (last).",
        least.n, "rows", percent(least.low, least.high, "{:.2f}", 1), "1 is no change",
    )  # fmt: skip


def _finetune(rows: Sequence[Row]) -> Headline:
    tuned = tuning(rows)
    best = tuned.mean("pretrained") or tuned.means[0]
    metric, task = best.metric, best.task
    beside = [(mean.initialisation, mean.of_metric(metric)) for mean in picked(tuned.means, task=task) if mean != best]
    others = [f"{initialisation} {100 * score:.1f}" for initialisation, score in beside if score is not None]
    floor, spread = _constant_of(rows, task, metric), best.spread(metric)
    return Headline(
        f"{task_of(task).name}: {metric} {100 * defined(best.of_metric(metric)):.1f} after fine-tuning"
        + (f" ({'; '.join(others)})." if others else "."),
        tuned.runs[0].dev_rows, "dev rows", f"± {100 * spread:.1f} over {best.n} seeds" if spread else "",
        "" if floor is None else f"constant label {100 * floor:.1f}",
    )  # fmt: skip


def _constant_of(rows: Sequence[Row], task: str, metric: str) -> float | None:
    """The score of a task's constant predictor, if there is one."""
    constant = next(iter(picked(TunedScore.among(rows), kind="baseline", task=task)), None)
    return None if constant is None else constant.of_metric(metric)


def _held(rows: Sequence[Row]) -> Headline:
    change, score = next((known, known.score) for known in HeldChange.among(rows) if known.score is not None)
    return Headline(
        f"{task_of(change.task).name}: with {change.held_heads} heads held at fixed patterns {change.metric} "
        f"changes by {100 * score:+.1f} points.",
        change.n, "rows", percent(change.low, change.high), "the same training with all heads free",
    )  # fmt: skip


def _seeds(rows: Sequence[Row]) -> Headline:
    """Which seed has most of the spread, and how many of the most important heads two runs share."""
    spread, shared = SeedSpread.among(rows)[0], HeadOverlap.among(rows)[0]
    sources = [source for source in SeedSource.among(rows) if source.p is not None]
    most = max(sources, key=lambda source: defined(source.share))
    sure = "beyond luck" if defined(most.p) < SURE else "not beyond luck"
    return Headline(
        f"{task_of(spread.task).name}: {spread.metric} {100 * spread.least:.1f} to {100 * spread.most:.1f} over "
        f"{spread.n} runs; the seed of the {SEED_WORDS[most.name]} has {most.share:.0%} of that spread ({sure}). Two "
        f"runs share {shared.value * shared.top:.1f} of their {shared.top} most important heads.",
        spread.n, "runs", percent(shared.low, shared.high, "{:.0f}"), f"by chance {shared.by_chance * shared.top:.1f}",
    )  # fmt: skip


SEED_WORDS = {"head": "head's first weights", "rows": "sample of rows", "order": "order of batches", "rest": "rest"}


def _shares(rows: Sequence[Row]) -> Headline:
    shares = class_shares(rows)
    mine = picked(shares, checkpoint=shares[0].checkpoint)
    most = max(mine, key=lambda share: share.share)
    return Headline(
        f"{most.name.capitalize()} is the most frequent class on {task_of(most.task or '').name}: "
        f"{most.share:.0%} of the maps.",
        most.inputs, "inputs", percent(most.low, most.high, "{:.0f}"), f"one in {len(mine)} classes",
    )  # fmt: skip


def _above(scores: Sequence[Score], what: str, look: Callable[[Score], str]) -> Headline:
    """Of heads beside a null: the one furthest above it, and how many are."""
    known = [(score, score.effect) for score in scores if score.layer is not None and score.effect is not None]
    sure = [(score, effect) for score, effect in known if (score.q or 1) < SURE and effect > 0]
    best, _ = max(sure or known, key=lambda pair: pair[1])
    return Headline(
        f"{best.name} {look(best)}: {best.value:.2f} against {best.baseline:.2f}; "
        f"{_plural(len(sure), len(known), what)} are above their null.",
        best.n, "inputs", percent(best.low, best.high, "{:.2f}", 1), f"null {best.baseline:.2f}",
    )  # fmt: skip


def _features(rows: Sequence[Row]) -> Headline:
    scores = Score.among(rows)
    kept = [score for score in picked(scores, statistic=scores[0].statistic) if score.checkpoint != "difference"]
    return _above(kept, "heads and features", lambda score: f"looks at {score.feature} most beyond random tokens")


def _relations(rows: Sequence[Row]) -> Headline:
    return _above(
        Score.among(rows), "heads and links", lambda score: f"looks along {score.feature} ({score.statistic}) most"
    )


def _statistics(rows: Sequence[Row]) -> Headline:
    places = picked(PlaceScore.among(rows), statistic="place")
    mine = picked(places, checkpoint=places[0].checkpoint, task=places[0].task)
    kinds = [place.kind for place in mine]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    others = picked(Score.of_heads(rows), checkpoint=places[0].checkpoint, task=places[0].task)
    inputs = max((int(score.n or 0) for score in others if score.statistic != "place"), default=mine[0].n)
    return Headline(f"What {len(mine)} heads mostly do on {task_name(places[0].task)}: {said}.", inputs, "inputs")


def _effective(rows: Sequence[Row]) -> Headline:
    heads = [score for score in Score.of_heads(rows) if score.statistic == "correlation"]
    least = min(heads, key=lambda score: defined(score.value))
    mean = sum(defined(score.value) for score in heads) / len(heads)
    return Headline(
        f"Raw and effective attention correlate with r = {mean:.2f} on average, least in {least.name} "
        f"({least.value:.2f}).",
        least.n, "inputs", percent(least.low, least.high, "{:.2f}", 1), "r = 1: nothing is lost",
    )  # fmt: skip


def _frame_heads(rows: Sequence[Row]) -> Headline:
    summary, heads = FrameSummary.of(rows[0]), FrameHead.among(rows)
    kept, best = summary.survivors, heads[0]
    if summary.n < FEWEST:
        return Headline(
            f"{summary.n} {summary.average} are too few to test heads on, which takes {FEWEST}; the largest mean "
            f"weight has {best.name}.",
            summary.n, summary.average, percent(best.low, best.high, "{:.2f}", 1),
            f"{best.name} {best.value:.2f}, same distance elsewhere {best.baseline:.2f}",
        )  # fmt: skip
    return Headline(
        f"{len(kept)} of {len(heads)} heads carry frame relations beyond all four nulls"
        + (f": {', '.join(kept[:6])}." if kept else f"; the largest mean weight has {best.name}."),
        summary.n, summary.average, percent(best.low, best.high, "{:.2f}", 1),
        f"{best.name} {best.value:.2f}, same distance elsewhere {best.baseline:.2f}",
    )  # fmt: skip


def _dependencies(rows: Sequence[Row]) -> Headline:
    known = [score for score in DependencyScore.of_heads(rows) if score.chosen]
    best = max(known, key=lambda score: defined(score.value) - defined(score.baseline))
    return Headline(
        f"{best.name} finds {best.feature} with accuracy {best.value:.2f}, where a fixed distance has "
        f"{best.baseline:.2f}.",
        best.n, "links", percent(best.low, best.high, "{:.2f}", 1), f"fixed distance {best.baseline:.2f}",
    )  # fmt: skip


def _perturb(rows: Sequence[Row]) -> Headline:
    rates = [(kind.changed_rate, kind) for kind in Perturbation.among(rows)
             if kind.kind == "perturbation" and kind.changed_rate is not None]  # fmt: skip
    (high, most), (low, least) = max(rates, key=lambda pair: pair[0]), min(rates, key=lambda pair: pair[0])
    return Headline(
        f"Predictions change most under {most.name} ({high:.0%}) and least under {least.name} ({low:.0%}).",
        most.n, "rows", percent(most.changed_low, most.changed_high, "{:.0f}"), "0 %: no change",
    )  # fmt: skip


def _patch(rows: Sequence[Row]) -> Headline:
    components = Patched.among(rows)
    best = max(components, key=lambda component: component.recovered)
    sure = sum(component.p is not None and component.p < SURE for component in components)
    return Headline(
        f"Patched alone, {best.name} brings back most of the first answer ({best.recovered:.0%}); "
        f"{_plural(sure, len(components), 'components')} are beyond luck.",
        best.n, "pairs", percent(best.low, best.high, "{:.0f}"), "0 %: nothing comes back",
    )  # fmt: skip


def _knockout(rows: Sequence[Row]) -> Headline:
    return _cut(rows, [(f"{cut.edges} ({cut.name})", cut) for cut in EdgeCut.among(rows)])


def _separators(rows: Sequence[Row]) -> Headline:
    return _cut(rows, [(f"attention to separators ({cut.name})", cut) for cut in SeparatorLayer.among(rows)])


def _cut(rows: Sequence[Row], cuts: Sequence[tuple[str, Changed]]) -> Headline:
    untouched = Untouched.among(rows)[0]
    changes = [(name, cut.metrics.first.change) for name, cut in cuts]
    name, most = max(((name, change) for name, change in changes if change), key=lambda pair: abs(pair[1].value))
    return Headline(
        f"Without {name} {untouched.metrics.first.name} changes most, by {100 * most.value:+.1f} points.",
        untouched.n, "rows", percent(most.low, most.high), _score_of(untouched),
    )  # fmt: skip


def _report(rows: Sequence[Row]) -> Headline:
    records = records_of(rows)
    outcomes = [claim.outcome for claim in records.claims]
    said = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes))
    return Headline(f"Of {len(outcomes)} tests of the papers' sentences: {said}.", len(records.steps), "studies")


HEADLINES: dict[str, Callable[[Sequence[Row]], Headline]] = PROBE_HEADLINES | {
    "disable": _disable,
    "crossed": _disable,
    "seeds": _seeds,
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
    "knockout": _knockout,
    "separators": _separators,
    "reproduce": _report,
}
