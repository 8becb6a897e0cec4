"""Sentences that several studies of this subject share."""

from collections.abc import Sequence
from typing import Any

from ...store.rows import Row
from ..estimate import Estimate
from ..head_facts import Fact, HeadScores, each, number
from ..headline import SURE, Headline, defined, percent, plural
from ..metric_columns import Metrics
from .records import Changed, SplitHalf, SweptVariant, Untouched, too_few_flips


def sweep_headline(rows: Sequence[Row]) -> Headline:
    """Of an ablation of each head or layer in turn: the largest change of the metric in either direction, and how many
    changes are significant."""
    untouched, variants = Untouched.among(rows)[0], SweptVariant.among(rows)
    changes = [(variant, variant.metrics.first.change) for variant in variants]
    told = [(variant, change) for variant, change in changes if change]
    largest, change = max(told, key=lambda pair: abs(pair[1].value))
    metric = largest.metrics.first.name
    significant = sum(variant.p < SURE for variant in variants)
    if not change.value:
        sentence = f"No ablation changes {metric}: all {len(told)} changes are 0."
    elif not significant:
        sentence = (
            f"No ablation changes {metric} significantly. "
            f"The largest change is without {largest.name}: {100 * change.value:+.1f} points."
        )
    else:
        sentence = (
            f"Without {largest.name} {metric} changes most, by {100 * change.value:+.1f} points. "
            f"{plural(significant, len(variants), 'changes')} are significant after correction."
        )
    return Headline(
        sentence, untouched.n, "rows", interval_of(change, largest.flipped, untouched.n), score_of(untouched)
    )


def interval_of(change: Estimate, flipped: int | None, n: int) -> str:
    """The interval of a change in words, or why there is none."""
    return too_few_flips(flipped, n) or percent(change.low, change.high)


def score_of(untouched: Untouched) -> str:
    """The untouched model's score, as a baseline."""
    return f"untouched {100 * defined(untouched.metrics.first.value):.1f}"


def cut_headline(rows: Sequence[Row], cuts: Sequence[tuple[str, Changed]]) -> Headline:
    """Of cuts, each with what was cut: which moves the metric furthest."""
    untouched = Untouched.among(rows)[0]
    changes = [(name, cut.metrics.first.change, cut.flipped) for name, cut in cuts]
    told = [(name, change, flipped) for name, change, flipped in changes if change]
    name, most, flipped = max(told, key=lambda one: abs(one[1].value))
    metric = untouched.metrics.first.name
    return Headline(
        f"Without {name} {metric} changes most, by {100 * most.value:+.1f} points."
        if most.value
        else f"None of the {len(told)} ablations changes {metric}.",
        untouched.n,
        "rows",
        interval_of(most, flipped, untouched.n),
        score_of(untouched),
    )


def effect_facts(scores: HeadScores) -> list[Fact]:
    """What happens without a head, by operator and metric, and whether that may be luck."""
    told = []
    for row in each(scores.own[scores.own["score"].str.match(r"\S+ heads")]):
        operator, metric = row["score"].split()[0], row["score"].rpartition("/")[2].split()[-1]
        percent = row.copy()
        percent[["value", "low", "high"]] = row[["value", "low", "high"]].astype(float) * 100
        said = f"{metric} {number(percent, 1)} points when changed ({operator}), {_luck(row)}"
        told.append(Fact("effect", said, row["source"]))
    return told


def _luck(row: Any) -> str:
    q, low, high = row["q"], row["low"], row["high"]
    if q is not None and q == q:  # over all heads
        return "not luck" if q < SURE else "may be luck"
    return "may be luck" if low is None or low != low or low <= 0 <= high else "not luck on its own"


def sweep_table(rows: Sequence[Row]) -> list[Row]:
    """What a terminal's table shows of a sweep: the untouched model, with nothing where only a variant has something,
    and the variants."""
    variants = [_variant_row(variant) for variant in SweptVariant.among(rows)]
    blank = dict.fromkeys(variants[0] if variants else ())
    untouched = [blank | {"name": model.name} | _scores(model.metrics) for model in Untouched.among(rows)]
    return [*untouched, *variants]


def _scores(metrics: Metrics) -> Row:
    return {metric.name: metric.value for metric in metrics.every}


def _variant_row(variant: SweptVariant) -> Row:
    metric, nothing = variant.metrics.first, Estimate(float("nan"))
    shown: Row = {"name": variant.name, **_scores(variant.metrics)}
    shown |= {f"{metric.name}_change": metric.change and metric.change.value, "p corrected": variant.p}  # the claim
    alone = metric.change or nothing
    shown |= {"alone_low": alone.low, "alone_high": alone.high}  # no claim of one of many
    shown |= {"flipped": variant.flipped, "mcnemar": variant.mcnemar}
    if variant.what == "duplicates":
        beyond_apart = metric.beyond_apart or nothing
        shown |= {"heads": variant.heads or None, "distance": variant.distance}
        shown |= {
            f"{metric.name}_apart": metric.apart and metric.apart.value,
            f"{metric.name}_control": metric.control and metric.control.value,
            f"{metric.name}_beyond_apart": metric.beyond_apart and metric.beyond_apart.value,
            f"{metric.name}_beyond_apart_low": beyond_apart.low,
            f"{metric.name}_beyond_apart_high": beyond_apart.high,
        }
    return shown


def sweep_sentence(rows: Sequence[Row]) -> str:
    """What holds after the correction, and what the best variant does on rows that did not choose it."""
    variants = SweptVariant.among(rows)
    significant = [variant.name for variant in variants if variant.p < SURE]
    sentence = f"Beyond luck (p < {SURE}, corrected over all): {', '.join(significant) or 'none'}."
    for untouched in Untouched.among(rows):
        if untouched.effect_within is not None:
            sentence += (
                f" {untouched.in_float32} of {len(variants)}, every claim among them, are computed again in float32; "
                f"the others' effects are within {100 * untouched.effect_within:.2f} points of it."
            )
    for half in SplitHalf.among(rows):
        if half.chosen is None or half.held_out is None:
            continue
        sentence += (
            f" Best of one half of the rows: {100 * half.chosen:+.1f} there, {100 * half.held_out:+.1f} on the "
            f"other half (most often {half.name}, in {half.same:.0%} of the splits)."
        )
    return sentence
