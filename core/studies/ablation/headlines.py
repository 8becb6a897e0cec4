"""Sentences that several studies of this subject share."""

from collections.abc import Sequence
from typing import Any

from core.store.rows import Row
from core.studies.ablation.records import Changed, SweptVariant, Untouched, too_few_flips
from core.studies.estimate import Estimate
from core.studies.head_facts import Fact, HeadScores, each, number
from core.studies.headline import SURE, Headline, defined, percent, plural


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
