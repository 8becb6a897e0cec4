"""The sources' sentences on attention itself, as tests: change, frames, features, token to token."""

from collections.abc import Sequence

import numpy as np

from core.report.claims.outcomes import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNTESTED,
    Outcome,
    apart,
    decided,
    no_loss,
    number,
    of_each,
    of_each_loss,
    points,
    said,
    untested,
)
from core.report.evidence import Estimate, Evidence, Found, by_layer, mean_over, metric_of, picked
from core.report.measures.maps import LOOKED_AT, last_layer, name_of
from core.studies.study import Row

# ---------------------------------------------------------------- change with fine-tuning


def _layer_cosines(one: Found) -> list[Estimate]:
    rows = sorted(picked(one.rows, kind="layer", statistic="cosine"), key=lambda row: row["layer"])
    return [number(row) for row in rows]


def _changed(one: Found, most: slice, least: slice) -> Outcome | None:
    layers = _layer_cosines(one)
    if len(layers) < 3:
        return None
    outcome = apart(layers[least], layers[most])
    numbers = ", ".join(f"{layer.value:.2f}" for layer in layers)
    n = picked(one.rows, kind="layer", statistic="cosine")[0]["n"]
    return Outcome(outcome, f"cosine of layers 1 to {len(layers)}: {numbers}", one.step.task, n, one.run)


def last_two_layers(evidence: Evidence) -> list[Outcome]:
    """The last two layers have lower cosines than all others (not claimed for QQP)."""
    tasks = [one.step.task or "" for one in evidence.of("change") if one.step.task != "qqp"]
    return of_each(evidence, "change", lambda one: _changed(one, slice(-2, None), slice(None, -2)), tasks)


def all_but_first_two(evidence: Evidence) -> list[Outcome]:
    """The first two layers have higher cosines than all others."""
    return of_each(evidence, "change", lambda one: _changed(one, slice(2, None), slice(None, 2)))


# ---------------------------------------------------------------- frames


def percentile(evidence: Evidence) -> list[Outcome]:
    """Two heads reach the 99th percentile of all heads."""

    def test(one: Found) -> Outcome:
        summary = one.rows[0]
        total = summary["layers"] * summary["heads"]
        always = total - int(np.ceil(0.99 * (total - 1)))
        kept = ", ".join(summary["survivors"]) or "none"
        sentence = (
            f"{summary['above_99']} of {total} heads; the 99th percentile of any {total} different numbers has "
            f"{always} at or above it, so this tests nothing. Beyond both permutation nulls: {kept}"
        )
        return Outcome(HOLDS if summary["above_99"] == 2 else FAILS, sentence, None, summary["n"], one.run)

    return of_each(evidence, "frames", test)


def survivors(evidence: Evidence) -> list[Outcome]:
    """At least one head carries frame links beyond both nulls."""

    def test(one: Found) -> Outcome:
        summary = one.rows[0]
        best = max(picked(one.rows, kind="head"), key=lambda row: row["value"])
        kept = summary["survivors"]
        sentence = f"{len(kept)} heads survive ({', '.join(kept[:6]) or 'none'}); the highest, {name_of(best)}, "
        sentence += f"{said(number(best))} against {best['baseline']:.3f} at the same distance elsewhere"
        return Outcome(HOLDS if kept else FAILS, sentence, None, summary["n"], one.run)

    return of_each(evidence, "frames", test)


def only_the_sink(evidence: Evidence) -> list[Outcome]:
    """Nearly every head of GPT-2 has high weight on frame links."""
    one, other = evidence.one("sink"), evidence.one("sinkless")
    if one is None or other is None:
        return untested(evidence, "sink")
    with_first, without = mean_over(picked(one.rows, kind="head")), mean_over(picked(other.rows, kind="head"))
    high = sum(row["value"] > 0.4 for row in picked(other.rows, kind="head"))
    total = len(picked(other.rows, kind="head"))
    sentence = f"mean over heads {said(with_first)}; with the first position left out {said(without)}, "
    sentence += f"{high} of {total} heads above 0.4"
    return [Outcome(HOLDS if high > total / 2 else FAILS, sentence, None, other.rows[0]["n"], other.run)]


def harmless_frame_heads(evidence: Evidence) -> list[Outcome]:
    """Disabling either of the two best frame heads lowers no task's score by more than a point."""
    frames = evidence.one("frames")
    if frames is None:
        return untested(evidence, "frames")
    best = [name_of(row) for row in sorted(picked(frames.rows, kind="head"), key=lambda row: -row["value"])[:2]]

    def test(one: Found) -> Outcome:
        metric = metric_of(one.rows)
        rows = [row for row in picked(one.rows, kind="variant") if row["name"] in best]
        sentence = "; ".join(f"{row['name']} {points(number(row, metric))}" for row in rows)
        outcome = no_loss([number(row, metric) for row in rows])
        return Outcome(outcome, f"{metric}: {sentence}", one.step.task, rows[0]["n"], one.run)

    return of_each_loss(evidence, "heads", test)


def element_first(evidence: Evidence) -> list[Outcome]:
    """Nearly all frame elements stand before their target."""

    def test(one: Found) -> Outcome:
        summary = one.rows[0]
        share = summary["links_before"] / summary["links"]
        sentence = f"{summary['links_before']} of {summary['links']} links ({share:.0%})"
        return Outcome(HOLDS if share > 0.9 else FAILS, sentence, None, summary["links"], one.run)

    return of_each(evidence, "frames", test)


# ---------------------------------------------------------------- features and tokens


def _layer_means(one: Found, feature: str, checkpoint: str) -> list[Estimate]:
    rows = picked(one.rows, statistic="max", feature=feature, checkpoint=checkpoint)
    return [layer for layer in by_layer(rows) if layer is not None]


def _over(some: Sequence[Estimate]) -> Estimate:
    rows: list[Row] = [vars(one) for one in some]
    return mean_over(rows) or Estimate(float("nan"))


def early_and_late(evidence: Evidence) -> list[Outcome]:
    """The first half of the layers looks more at [CLS] than the second, the second more at [SEP]."""

    def test(one: Found) -> Outcome | None:
        starts, separators = (_layer_means(one, name, evidence.checkpoint) for name in ("start", "separator"))
        if len(starts) < 2 or len(separators) < 2:
            return None
        half = len(starts) // 2
        pairs = [(_over(starts[:half]), _over(starts[-half:])), (_over(separators[-half:]), _over(separators[:half]))]
        outcomes = {apart([more], [less]) for more, less in pairs}
        outcome = HOLDS if outcomes == {HOLDS} else FAILS if FAILS in outcomes else UNDECIDED
        (early, late), (sep_late, sep_early) = pairs
        sentence = f"[CLS] {said(early, 2)} early, {said(late, 2)} late; "
        sentence += f"[SEP] {said(sep_early, 2)} early, {said(sep_late, 2)} late"
        return Outcome(outcome, sentence, one.step.task, one.rows[0]["n"], one.run)

    if evidence.causal:
        return [Outcome(UNTESTED, "a decoder has no [CLS] and no [SEP]")]
    return of_each(evidence, "features", test)


def not_linguistic(evidence: Evidence) -> list[Outcome]:
    """Heads look more at [CLS] or [SEP] than at any linguistic feature."""

    def test(one: Found) -> Outcome | None:
        means = {}
        for feature in LOOKED_AT:
            mean = mean_over(picked(one.rows, statistic="max", feature=feature, checkpoint=evidence.checkpoint))
            if mean is not None:
                means[feature] = mean
        special = [means.pop(name) for name in ("start", "separator") if name in means]
        words = {name: mean for name, mean in means.items() if name != "punctuation"}
        if not special or not words:
            return None
        most = max(words, key=lambda name: words[name].value)
        top = max(special, key=lambda mean: mean.value)
        sentence = f"the higher of [CLS] and [SEP] {said(top, 2)}, the highest linguistic feature ({most}) "
        sentence += said(words[most], 2)
        return Outcome(apart([top], list(words.values())), sentence, one.step.task, one.rows[0]["n"], one.run)

    return of_each(evidence, "features", test)


def single_separator(evidence: Evidence) -> list[Outcome]:
    """Of all tasks, SST-2 has the most weight on its [SEP]."""
    means = {}
    for one in evidence.of("features"):
        mean = mean_over(picked(one.rows, statistic="max", feature="separator", checkpoint=evidence.checkpoint))
        if mean is not None:
            means[one.step.task] = mean
    if "sst2" not in means or len(means) < 2:
        return [
            Outcome(UNTESTED, evidence.missing("features", "sst2") if "sst2" not in means else "one task is not enough")
        ]
    others = [mean for task, mean in means.items() if task != "sst2"]
    sentence = ", ".join(f"{task} {said(mean, 2)}" for task, mean in means.items())
    found = evidence.of("features", "sst2")[0]
    return [Outcome(apart([means["sst2"]], others), sentence, None, found.rows[0]["n"], found.run)]


def more_to_nouns(evidence: Evidence) -> list[Outcome]:
    """Fine-tuning raises attention to nouns and objects."""

    def test(one: Found) -> Outcome | None:
        gains = {}
        for feature in ("noun", "object"):
            rows = picked(one.rows, statistic="max", feature=feature, checkpoint="difference")
            mean = mean_over(rows)
            if mean is not None and mean.low is not None and mean.high is not None:
                gains[feature] = Estimate(-mean.value, -mean.high, -mean.low)  # the difference is before less after
        if not gains:
            return None
        outcomes = {decided(gain) for gain in gains.values()}
        outcome = HOLDS if outcomes == {HOLDS} else FAILS if FAILS in outcomes else UNDECIDED
        sentence = "; ".join(f"{name} {said(gain, 2)}" for name, gain in gains.items())
        return Outcome(
            outcome, f"after less before, mean over heads: {sentence}", one.step.task, one.rows[0]["n"], one.run
        )

    return of_each(evidence, "features", test, ("mrpc", "rte", "qqp"))


def separator_or_punctuation(evidence: Evidence) -> list[Outcome]:
    """In the last layer [CLS] looks most at [SEP], but at punctuation on STS-B, RTE and QNLI."""

    def test(one: Found) -> Outcome | None:
        means = {}
        for feature in ("separator", "punctuation"):
            mean = mean_over(last_layer(one.rows, feature, evidence.checkpoint))
            if mean is not None:
                means[feature] = mean
        if len(means) < 2:
            return None
        pair = [means["separator"], means["punctuation"]]
        upper, lower = reversed(pair) if one.step.task in ("stsb", "rte", "qnli") else pair
        wanted = "punctuation" if one.step.task in ("stsb", "rte", "qnli") else "[SEP]"
        sentence = (
            f"[SEP] {said(means['separator'], 2)}, punctuation {said(means['punctuation'], 2)}; claimed: {wanted}"
        )
        return Outcome(apart([upper], [lower]), sentence, one.step.task, one.rows[0]["n"], one.run)

    if evidence.causal:
        return [Outcome(UNTESTED, "a decoder has no [CLS] and no [SEP]")]
    return of_each(evidence, "features", test)


def diagonal_heads(evidence: Evidence) -> list[Outcome]:
    """The best noun-pronoun heads put more than half of their weight on the previous or next token."""
    relations, statistics = evidence.one("relations"), evidence.one("statistics")
    if relations is None or statistics is None:
        return untested(evidence, "relations" if relations is None else "statistics")
    found = []
    for task in dict.fromkeys(row["task"] for row in relations.rows):
        rows = [row for row in picked(relations.rows, task=task, feature="noun-pronoun") if row["n"]]
        kinds = {name_of(row): row["kind"] for row in picked(statistics.rows, task=task, statistic="place")}
        if not rows or not kinds:
            continue
        best = max(rows, key=lambda row: row["value"])
        kind = kinds.get(name_of(best), "other")
        diagonal = [name for name, one in kinds.items() if one in ("previous", "next")]
        sentence = (
            f"best {name_of(best)} ({best['statistic']}) {said(number(best))}, {best['baseline']:.3f} at the same "
            f"distance elsewhere; it is a head of the kind {kind}; diagonal heads: {', '.join(diagonal) or 'none'}"
        )
        found.append(
            Outcome(HOLDS if kind in ("previous", "next") else FAILS, sentence, task, int(best["n"]), relations.run)
        )
    return found or [Outcome(UNTESTED, "no row has a pronoun after a noun")]
