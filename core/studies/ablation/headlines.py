"""Sentences that several studies of this subject share."""

from collections.abc import Sequence

from core.store.rows import Row
from core.studies.ablation.records import Changed, SweptVariant, Untouched
from core.studies.headline import SURE, Headline, defined, percent, plural


def sweep_headline(rows: Sequence[Row]) -> Headline:
    """Of a sweep: the variant that moves the metric furthest down, and how many changes are beyond luck."""
    untouched, variants = Untouched.among(rows)[0], SweptVariant.among(rows)
    changes = [(variant, variant.metrics.first.change) for variant in variants]
    worst, change = min(((variant, change) for variant, change in changes if change), key=lambda pair: pair[1].value)
    sure = sum((variant.p or 1) < SURE for variant in variants)
    return Headline(
        f"Without {worst.name} {worst.metrics.first.name} changes most, by {100 * change.value:+.1f} points; "
        f"{plural(sure, len(variants), 'changes')} are beyond luck after correction.",
        untouched.n, "rows", percent(change.low, change.high), score_of(untouched),
    )  # fmt: skip


def score_of(untouched: Untouched) -> str:
    """The untouched model's score, as a baseline."""
    return f"untouched {100 * defined(untouched.metrics.first.value):.1f}"


def cut_headline(rows: Sequence[Row], cuts: Sequence[tuple[str, Changed]]) -> Headline:
    """Of cuts, each with what was cut: which moves the metric furthest."""
    untouched = Untouched.among(rows)[0]
    changes = [(name, cut.metrics.first.change) for name, cut in cuts]
    name, most = max(((name, change) for name, change in changes if change), key=lambda pair: abs(pair[1].value))
    return Headline(
        f"Without {name} {untouched.metrics.first.name} changes most, by {100 * most.value:+.1f} points.",
        untouched.n, "rows", percent(most.low, most.high), score_of(untouched),
    )  # fmt: skip
