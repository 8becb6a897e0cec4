"""By what each claim's test decides: its margin and its correction, declared once, before rows are looked at."""

from dataclasses import dataclass
from enum import StrEnum


class Correction(StrEnum):
    """What is done about many heads, layers or classes."""

    ONE = "none: one number a task"
    GAIN = "none: one number a task; a gain that is surely smaller than a point is none"
    SEEDS = "the difference: rows of both added, seeds by pairs where they began as the same, else by Welch"
    ALL = "every part must hold by itself; that one fails is corrected over the parts (Bonferroni)"
    APART = "every pair must have intervals that do not touch"
    MAX_T = "max-T over heads or layers"
    BONFERRONI = "Bonferroni over heads"
    NAMED = "Bonferroni over layers; that a named layer does not help needs none"
    LABELS = "Bonferroni over dependencies"
    JOINT = "joint interval over classes"
    COUNTED = "none over heads: each counts only where its own interval is clear"
    AMONG = "Bonferroni over heads, which are then counted"
    NULLS = "Benjamini-Hochberg over heads, of the largest p of four nulls"
    ANY = "none: one change decides it"
    DATA = "no test: data or arithmetic decide it"
    ARITHMETIC = "no test: it is so for any rows"


@dataclass(frozen=True)
class Rule:
    """margin: what the statistic is held against (of two numbers that are compared, their difference), None of what is
    no test or has a floor of its own on each task; correction: see there; tuned: whether the sentence is about what
    fine-tuning changes, so that its seeds are said."""

    correction: Correction
    margin: float | None = None
    tuned: bool = False


ONE, GAIN, SEEDS, ALL, APART, MAX_T, BONFERRONI, NAMED, LABELS, JOINT, COUNTED, AMONG, NULLS, ANY, DATA, ARITHMETIC = (
    Correction
)
OF_COUNTS = (COUNTED, AMONG, LABELS, NULLS, ANY, DATA, ARITHMETIC)  # decided by counting, not by one interval
POINT = -0.01  # a loss of one point
RULES = {
    "last-two-layers": Rule(APART, 0.0, tuned=True),
    "gpt2-changes": Rule(APART, 0.0, tuned=True),
    "99th-percentile": Rule(DATA),
    "frame-heads": Rule(NULLS, 0.0),
    "element-first": Rule(DATA),
    "all-heads-carry": Rule(COUNTED, 0.5),
    "harmless": Rule(ALL, POINT),
    "cls-early": Rule(ALL, 0.0),
    "not-linguistic": Rule(AMONG, 0.0),
    "one-separator": Rule(APART, 0.0),
    "more-to-nouns": Rule(BONFERRONI, 0.0, tuned=True),
    "noun-pronoun": Rule(BONFERRONI, 0.0),
    "cls-row": Rule(APART, 0.0),
    "shares-stay": Rule(JOINT, 0.05, tuned=True),
    "pretraining": Rule(SEEDS, 0.0),
    "random-learns": Rule(GAIN),
    "constant-cells": Rule(DATA),
    "random-head": Rule(GAIN, 0.0),
    "some-head": Rule(MAX_T, 0.0),
    "first-layer": Rule(GAIN, 0.0),
    "shared-heads": Rule(AMONG, 0.5),
    "nothing-changes": Rule(ANY, 0.0),
    "prunable": Rule(ONE, POINT),
    "one-is-enough": Rule(COUNTED, 0.5),
    "neighbours": Rule(BONFERRONI, 0.5),
    "separators": Rule(ONE, 0.5),
    "separator-gradients": Rule(ONE, 0.5),
    "separator-origin": Rule(ONE, 0.1),
    "dependencies": Rule(LABELS, 0.5),
    "effective-drops": Rule(ONE, 0.99),
    "dominance": Rule(APART, 0.0),
    "special-tokens": Rule(COUNTED, 1 / 3),
    "few-meaningful": Rule(COUNTED, 0.5),
    "more-vertical": Rule(GAIN, 0.0, tuned=True),
    "no-stripes": Rule(BONFERRONI, 0.1),
    "rise-and-fall": Rule(ALL, 0.0, tuned=True),
    "negation-qnli": Rule(ONE, 0.0, tuned=True),
    "layer-costs": Rule(MAX_T, 0.0),
    "tuned-beats-untuned": Rule(SEEDS, 0.0),
    "keeps-its-role": Rule(ONE, 0.5),
    "no-whole-tree": Rule(ONE, 0.0),
    "attention-syntax": Rule(APART, 0.0),
    "hierarchical": Rule(ALL, 0.0),
    "middle-transfers": Rule(APART, 0.0),
    "a-third-can-go": Rule(ONE, POINT),
    "good-and-bad": Rule(ONE, 0.0),
    "random-below-untuned": Rule(SEEDS, 0.0),
    "keeps-its-heads": Rule(ONE, 0.5, tuned=True),
    "mean-gain": Rule(DATA),
    "sixteen-layers": Rule(DATA),
    "fifth-layer": Rule(NAMED, 0.0),
    "little-change": Rule(COUNTED, 0.5, tuned=True),
    "late-stripes": Rule(APART, 0.0),
    "classified-by-separator": Rule(SEEDS, POINT),
    "fresh-last-layers": Rule(SEEDS, POINT),
    "gradient-and-effect": Rule(ONE, 0.5),
    "gradient-and-shapley": Rule(ONE, 0.5),
    "gradient-and-gate": Rule(ONE, 0.5),
    "greedy-by-gradient": Rule(ONE, -0.05),
    "all-combinations": Rule(ARITHMETIC),
    "first-and-last": Rule(ALL, 0.0, tuned=True),
    "words-of-both": Rule(AMONG, 0.5),
    "repeated-patterns": Rule(AMONG, 0.5),
    "adjectives-matter": Rule(ONE, 0.0),
    "frames-help": Rule(DATA),
}
_SHARE = (
    "so many surely are, each by its own interval, that their share lies beyond {margin}",
    "so many surely are not that the share cannot be reached",
    "the open ones would decide it",
)
MEANINGS = {  # of holds, does not hold, undecided
    ONE: (
        "the interval lies wholly on the sentence's side of {margin}",
        "it lies wholly on the other side",
        "it reaches over {margin}",
    ),
    GAIN: (
        "the interval lies wholly above {margin}",
        "it ends before {margin} and a point",
        "it reaches over both",
    ),
    SEEDS: (
        "the interval of the difference, with rows and seeds in it, lies wholly above {margin}",
        "it lies wholly below it",
        "it reaches over {margin}",
    ),
    ALL: (
        "each part's interval lies wholly on the sentence's side of {margin}",
        "one part's interval, widened for so many parts, lies wholly on the other side",
        "neither",
    ),
    APART: (
        "the intervals that are compared do not touch and stand as the sentence says",
        "two of them do not touch and stand the other way round",
        "some touch",
    ),
    MAX_T: (
        "p corrected over all heads or layers is at most .05 for one of them",
        "each one's interval ends before what would count as an effect",
        "neither",
    ),
    BONFERRONI: (
        "the intervals that decide, widened for so many, lie on the sentence's side of {margin}",
        "they lie on the other side",
        "one of them reaches over {margin}",
    ),
    NAMED: (
        "the named layer's interval, widened for so many, lies above {margin}, and the first's does not",
        "the named layer's interval lies below {margin}, or the first's, widened, above it and not the named one's",
        "neither, or both help",
    ),
    LABELS: _SHARE,
    COUNTED: _SHARE,
    AMONG: _SHARE,
    JOINT: ("all classes' joint intervals lie within {margin}", "one lies wholly beyond", "one reaches over {margin}"),
    NULLS: (
        "a head survives all four nulls, q at most .05",
        "each head's interval ends below a tenth of all weight beyond its highest null",
        "neither",
    ),
    ANY: ("nothing changes", "something changes", "never"),
    ARITHMETIC: ("always, where there are rows to say what is known instead", "never", "never"),
    DATA: ("never", "never", "never: it is a known error, or there are no rows"),
}


def meanings(rule: Rule) -> tuple[str, ...]:
    """What holds, does not hold and undecided mean under a rule."""
    margin = "its floor" if rule.margin is None else f"{rule.margin:.3g}"
    return tuple(meaning.format(margin=margin) for meaning in MEANINGS[rule.correction])
