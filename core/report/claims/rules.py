"""By what each claim's test decides: its margin and its correction, declared once, before rows are looked at."""

from dataclasses import dataclass
from enum import StrEnum


class Correction(StrEnum):
    """What is done about many heads, layers or classes."""

    ONE = "none: one number a task"
    ALL = "none: every part must hold by itself"
    MAX_T = "max-T over heads or layers"
    BONFERRONI = "Bonferroni over heads"
    LABELS = "Bonferroni over dependencies"
    JOINT = "joint interval over classes"
    COUNTED = "none over heads: each counts only where its own interval is clear"
    NULLS = "over heads, in each of four nulls, by the study"
    DATA = "no test: data or arithmetic decide it"


@dataclass(frozen=True)
class Rule:
    """margin: what the statistic is held against, None where two numbers are compared with each other; correction: see
    there; tuned: whether the sentence is about what fine-tuning changes, and one seed of it was looked at."""

    correction: Correction
    margin: float | None = None
    tuned: bool = False


ONE, ALL, MAX_T, BONFERRONI, LABELS, JOINT, COUNTED, NULLS, DATA = Correction
POINT = -0.01  # a loss of one point
RULES = {
    "last-two-layers": Rule(ALL, tuned=True),
    "gpt2-changes": Rule(ALL, tuned=True),
    "99th-percentile": Rule(DATA),
    "frame-heads": Rule(NULLS),
    "element-first": Rule(DATA),
    "all-heads-carry": Rule(COUNTED, 0.4),
    "harmless": Rule(ALL, POINT),
    "cls-early": Rule(ALL),
    "not-linguistic": Rule(ALL),
    "one-separator": Rule(ALL),
    "more-to-nouns": Rule(BONFERRONI, 0.0, tuned=True),
    "noun-pronoun": Rule(BONFERRONI),
    "cls-row": Rule(ONE),
    "shares-stay": Rule(JOINT, 0.05, tuned=True),
    "pretraining": Rule(ONE),
    "random-learns": Rule(ONE),
    "constant-cells": Rule(DATA),
    "random-head": Rule(ONE, 0.0),
    "some-head": Rule(MAX_T, 0.0),
    "first-layer": Rule(ONE, 0.0),
    "shared-heads": Rule(ONE, 0.0),
    "nothing-changes": Rule(ALL, 0.0),
    "prunable": Rule(ONE, POINT),
    "one-is-enough": Rule(COUNTED, POINT),
    "neighbours": Rule(BONFERRONI, 0.5),
    "separators": Rule(ONE, 0.5),
    "separator-gradients": Rule(ONE, 0.5),
    "separator-origin": Rule(ONE, 0.1),
    "dependencies": Rule(LABELS),
    "effective-drops": Rule(ONE),
    "dominance": Rule(ONE),
    "special-tokens": Rule(COUNTED, 0.5),
    "few-meaningful": Rule(ONE, 0.5),
    "more-vertical": Rule(ONE, 0.0, tuned=True),
    "no-stripes": Rule(BONFERRONI, 0.1),
    "rise-and-fall": Rule(ALL, 0.0, tuned=True),
    "negation-qnli": Rule(ONE, 0.0, tuned=True),
    "layer-costs": Rule(MAX_T, 0.0),
    "tuned-beats-untuned": Rule(ONE),
    "keeps-its-role": Rule(ONE, 0.5),
    "no-whole-tree": Rule(ONE, 0.0),
    "attention-syntax": Rule(ALL),
    "hierarchical": Rule(ALL),
    "middle-transfers": Rule(ALL),
    "a-third-can-go": Rule(ONE, POINT),
    "good-and-bad": Rule(ONE),
}
