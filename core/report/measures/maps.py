"""Our number for every printed one: from the rows of the studies to items, each with interval, n and its run.

Items carry the names that `published.Figure` uses. One function an exhibit; all pure.
"""

from collections.abc import Iterable

from core.attention import Head
from core.report.evidence import (
    Estimate,
    Evidence,
    Found,
    by_layer,
    mean_over,
    picked,
)
from core.report.verdicts import Ours
from core.scoring.definitions import PAPER_LAYERS
from core.studies.study import Row

LOOKED_AT = ("start", "separator", "noun", "verb", "pronoun", "subject", "object", "negation", "punctuation")
TOP = 2  # best heads named beside the paper's


def name_of(row: Row) -> str:
    """ "L1H2" of a row with layer and head."""
    return str(Head(int(row["layer"]), int(row["head"])))


def estimate_of(row: Row, prefix: str = "") -> Estimate:
    """value, low and high of a row; with a prefix, `prefix`_change, `prefix`_low and `prefix`_high."""
    names = (f"{prefix}_change", f"{prefix}_low", f"{prefix}_high") if prefix else ("value", "low", "high")
    value, low, high = (row.get(name) for name in names)
    return Estimate(float(value), low, high)  # type: ignore[arg-type]


def layers_of(
    found: Iterable[Estimate | None],
    exhibit: str,
    task: str | None,
    condition: str,
    n: int,
    of: str,
    run: str | None,
    before: str = "",
) -> list[Ours]:
    """One item a layer, "layer 3 of 6", with its depth in the model."""  # fmt: skip
    known = list(found)
    last = max(1, len(known) - 1)
    return [
        Ours(exhibit, task, f"{before}layer {k + 1} of {len(known)}", condition, one, n, of, run, position=k / last)
        for k, one in enumerate(known)
        if one is not None
    ]


# ---------------------------------------------------------------- attention of the checkpoint


def shares(evidence: Evidence) -> list[Ours]:
    """Share of maps of each class, before and after fine-tuning (Fig 2)."""
    found = []
    for one in evidence.of("shares"):
        for row in picked(one.rows, part="share"):
            condition = "pre-trained" if row["checkpoint"] == evidence.checkpoint else "fine-tuned"
            note = f"{row['maps']:,} maps, classifier {row['classifier']}"
            args = (one.step.task, row["class"], condition, Estimate(row["share"], row["low"], row["high"]))
            found.append(Ours("shares", *args, row["inputs"], "inputs", one.run, note))
    return found


def _frames(one: Found, exhibit: str) -> list[Ours]:
    heads, summary = picked(one.rows, kind="head"), one.rows[0]
    ranked = sorted(heads, key=lambda row: -row["value"])
    named = {"L1H2", "L7H6", "L1H9", "L1H7", "L5H2", "L5H1"} | {name_of(row) for row in ranked[:TOP]}
    n, of, run = summary["n"], summary["average"], one.run
    found = [
        Ours(exhibit, None, name_of(row), "pre-trained", estimate_of(row), n, of, run, _nulls(row))
        for row in ranked
        if name_of(row) in named
    ]
    whole = {"99th percentile of the heads": Estimate(summary["line_99"]), "mean over heads": mean_over(heads)}
    best = Ours(exhibit, None, "best head", "pre-trained", estimate_of(ranked[0]), n, of, run, name_of(ranked[0]))
    found.append(best)
    return found + [
        Ours(exhibit, None, item, "pre-trained", number, n, of, run)
        for item, number in whole.items()
        if number is not None
    ]


def _nulls(row: Row) -> str:
    """What the permutation nulls say of a head."""
    return f"{'survives' if row['survives'] else 'does not survive'} both nulls, baseline {row['baseline']:.3f}"


def frames(evidence: Evidence) -> list[Ours]:
    """Heads on the links of frames (Fig 3)."""
    return [row for one in evidence.of("frames") for row in _frames(one, "frames")]


def sink(evidence: Evidence) -> list[Ours]:
    """The replication's links with the first position (the sink), and without it."""
    found = [row for one in evidence.of("sink") for row in _frames(one, "sink")]
    for one in evidence.of("sinkless"):
        rows = _frames(one, "sink")
        found += [Ours(**(vars(row) | {"condition": "first position left out"})) for row in rows]
    return found


def features(evidence: Evidence) -> list[Ours]:
    """Attention to linguistic features: layer means of [SEP] and [CLS], means over heads of the others (Fig 6)."""
    found = []
    for one in evidence.of("features"):
        for checkpoint in dict.fromkeys(row["checkpoint"] for row in picked(one.rows, statistic="max")):
            if checkpoint == "difference":
                continue
            condition = "pre-trained" if checkpoint == evidence.checkpoint else "fine-tuned"
            for feature in LOOKED_AT:
                rows = picked(one.rows, statistic="max", checkpoint=checkpoint, feature=feature)
                found += _feature(one, rows, feature, condition)
    return found


def _feature(one: Found, rows: list[Row], feature: str, condition: str) -> list[Ours]:
    mean = mean_over(rows)
    if mean is None:
        return []
    n, of = int(rows[0]["n"]), "inputs that have it"
    found = [Ours("features", one.step.task, f"{feature}, mean over heads", condition, mean, n, of, one.run)]
    if feature in PAPER_LAYERS:
        found += layers_of(by_layer(rows), "features", one.step.task, condition, n, of, one.run, f"{feature}, ")
    return found


def classifying(evidence: Evidence) -> list[Ours]:
    """What the classifying token of the last layer looks at, mean over its heads (Fig 7, right)."""
    found = []
    for one in evidence.of("features"):
        for feature in LOOKED_AT:
            rows = last_layer(one.rows, feature, evidence.checkpoint)
            mean = mean_over(rows)
            if mean is not None:
                item = f"[CLS] of the last layer to {feature}" if not evidence.causal else f"last token to {feature}"
                n, condition = int(rows[0]["n"]), tuned_condition(one, evidence)
                found.append(Ours("tokens", one.step.task, item, condition, mean, n, "inputs that have it", one.run))
    return found


def tuned_condition(one: Found, evidence: Evidence) -> str:
    """Whether a features step looked at a fine-tuned checkpoint too."""
    return "fine-tuned" if one.step.options.get("compare") else "pre-trained"


def last_layer(rows: Iterable[Row], feature: str, checkpoint: str) -> list[Row]:
    """Last layer's "classifying" rows of a feature, of the fine-tuned checkpoint where there is one."""
    mine = [row for row in picked(rows, statistic="classifying", feature=feature) if row["checkpoint"] != "difference"]
    tuned = [row for row in mine if row["checkpoint"] != checkpoint] or mine
    last = max((row["layer"] for row in tuned if row.get("layer") is not None), default=None)
    return [row for row in tuned if last is not None and row.get("layer") == last]


def relations(evidence: Evidence) -> list[Ours]:
    """Best head of each relation and direction, with the same head's weight at the same distance (Fig 7, left)."""
    found = []
    for one in evidence.of("relations"):
        keys = dict.fromkeys((row["task"], row["feature"], row["statistic"]) for row in one.rows)
        for task, feature, direction in keys:
            rows = [row for row in picked(one.rows, task=task, feature=feature, statistic=direction) if row["n"]]
            if not rows:
                continue
            best = max(rows, key=lambda row: row["value"])
            item = f"{feature} {direction}, best head"
            note = f"{name_of(best)}; at the same distance elsewhere {best['baseline']:.3f}"
            about = (int(best["n"]), "links", one.run, note)
            found.append(Ours("tokens", task, item, "pre-trained", estimate_of(best), *about))
    return found


def tokens(evidence: Evidence) -> list[Ours]:
    """Both halves of Fig 7."""
    return [*relations(evidence), *classifying(evidence)]


# ---------------------------------------------------------------- the other papers


def statistics(evidence: Evidence) -> list[Ours]:
    """Counts of heads on their neighbours, and the last layer's entropy from the classifying token (Clark et al.)."""
    found = []
    for one in evidence.of("statistics"):
        for task in dict.fromkeys(row["task"] for row in one.rows):
            mine = picked(one.rows, task=task)
            found += [*_counted(one, mine, task), *_last_entropy(one, mine, task)]
    return found


def _counted(one: Found, rows: list[Row], task: str) -> list[Ours]:
    found = []
    for name in ("previous", "next"):
        known = [row for row in picked(rows, statistic=name) if row.get("value") is not None]
        if known:
            ends = [sum(row[end] > 0.5 for row in known) for end in ("value", "low", "high")]
            item, n = f"heads with more than half on the {name} token", known[0]["n"]
            estimate = Estimate(*map(float, ends))
            about = (n, f"inputs, {len(known)} heads", one.run, task)
            found.append(Ours("statistics", None, item, "pre-trained", estimate, *about))
    return found


def _last_entropy(one: Found, rows: list[Row], task: str) -> list[Ours]:
    known = [row for row in picked(rows, statistic="classifying entropy") if row.get("value") is not None]
    layers = by_layer(known)
    if not layers or layers[-1] is None:
        return []
    item, n = "entropy of the [CLS] row in the last layer, nats", known[0]["n"]
    return [Ours("statistics", None, item, "pre-trained", layers[-1], n, "inputs", one.run, task)]


def dependencies(evidence: Evidence) -> list[Ours]:
    """Best head of each dependency on gold trees, beside the best fixed distance (Clark et al., Table 1)."""
    found = []
    for one in evidence.of("dependencies"):
        for label in dict.fromkeys(row["feature"] for row in one.rows):
            rows = [row for row in picked(one.rows, feature=label) if row.get("value") is not None]
            if not rows:
                continue
            best = max(rows, key=lambda row: row["dev"])  # the direction too is chosen on dev
            about = (int(best["n"]), "links", one.run)
            note = f"{name_of(best)} {best['statistic']}, chosen on dev"
            found.append(
                Ours("dependencies", None, f"{label}, best head", "pre-trained", estimate_of(best), *about, note)
            )
            if best["baseline"] is not None:
                fixed = Estimate(float(best["baseline"]))
                item = f"{label}, fixed distance"
                found.append(Ours("dependencies", None, item, "pre-trained", fixed, *about, f"{best['distance']:+d}"))
    return found


def effective(evidence: Evidence) -> list[Ours]:
    """Correlation of raw and effective attention by length, and both by token type (Brunner et al.)."""
    found = []
    for one in evidence.of("effective"):
        for row in picked(one.rows, statistic="correlation by length"):
            item, n = f"r at {row['length_from']} to {row['length_to']} pieces", row["n"]
            found.append(
                Ours(
                    "effective",
                    row["task"],
                    item,
                    "",
                    Estimate(row["mean"]),
                    n,
                    "inputs",
                    one.run,
                    position=float(row["length_to"]),
                )
            )
        for kind in ("raw", "effective"):
            for token_type in ("start", "separator", "punctuation", "other"):
                for task in dict.fromkeys(row["task"] for row in one.rows):
                    rows = picked(one.rows, statistic=kind, feature=token_type, task=task)
                    mean = mean_over(rows)
                    if mean:
                        n = int(rows[0]["n"])
                        found.append(Ours("effective", task, f"to {token_type}", kind, mean, n, "inputs", one.run))
    return found
