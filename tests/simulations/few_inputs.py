"""Means of few inputs whose truth is 0: how many null studies claim something, how often intervals hold the truth.

A study is HEADS heads on n inputs; it claims when some head's q (Benjamini-Hochberg) is <= .05. The values go through
the accumulator that the studies use. Both one-sided and two-sided p are counted; skewed values lean to either side.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.scoring.few_inputs import FEWEST
from core.scoring.intervals import Means

HEADS = 24
SIZES = (5, 8, 12, 20, 50, 200)
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def _sparse(draw: Draw) -> Draw:
    """One input in five has a value; the others are 0."""
    return lambda rng, shape: draw(rng, shape) * (rng.random(shape) < 0.2)


LAWS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed to the right": lambda rng, shape: rng.exponential(size=shape) - 1,
    "skewed to the left": lambda rng, shape: 1 - rng.exponential(size=shape),
    "sparse": _sparse(lambda rng, shape: rng.normal(size=shape)),
    "sparse, skewed to the left": _sparse(lambda rng, shape: 1 - rng.exponential(size=shape)),
    "heavy, skewed to the left": lambda rng, shape: np.exp(0.75**2 / 2) - np.exp(0.75 * rng.normal(size=shape)),
}


@dataclass(frozen=True)
class Outcome:
    """Of null studies of one law and size. shown: share of heads with a p. claims, claims_either: how many of the
    studies have some q <= .05, one-sided (above 0) and two-sided. held: share of intervals that hold 0."""

    law: str
    inputs: int
    studies: int
    shown: float
    claims: int
    claims_either: int
    held: float


def simulate(law: str, inputs: int, *, studies: int, heads: int = HEADS, seed: int = 0) -> Outcome:
    """Null studies of one law and size."""
    rng = np.random.default_rng([seed, inputs, list(LAWS).index(law)])
    values = LAWS[law](rng, (inputs, studies * heads))
    means = Means(1, studies * heads, 1)
    means.update(0, values[:, :, None], np.ones((inputs, 1)), range(inputs))
    estimate = means.result()
    above, either = (p[0, :, 0].reshape(studies, heads) for p in (estimate.p_above(), estimate.p_either()))
    known = np.isfinite(estimate.low)
    held = ((estimate.low <= 0) & (estimate.high >= 0))[known].mean() if known.any() else float("nan")
    claims, claims_either = _claims(above), _claims(either)
    return Outcome(law, inputs, studies, float(np.isfinite(above).mean()), claims, claims_either, float(held))


def _claims(p: np.ndarray) -> int:
    """Studies [study, head] with a q <= .05 over the heads that have a p (Benjamini-Hochberg, in its own words)."""
    claims = 0
    for row in p:
        ordered = np.sort(row[np.isfinite(row)])
        claims += bool((ordered <= 0.05 * np.arange(1, len(ordered) + 1) / max(len(ordered), 1)).any())
    return claims


def table(outcomes: list[Outcome]) -> str:
    """Markdown."""
    head = "| values | inputs | heads with p | one-sided claims | two-sided claims | intervals that hold the truth |"
    lines = [head, "|---|---|---|---|---|---|"]
    for one in outcomes:
        claims = (f"{count} of {one.studies}" if one.shown else "too few" for count in (one.claims, one.claims_either))
        lines.append(f"| {one.law} | {one.inputs} | {one.shown:.0%} | {' | '.join(claims)} | {one.held:.1%} |")
    return "\n".join(lines)


def page(*, studies: int, heads: tuple[int, ...], seed: int) -> str:
    """The whole of docs/results/few-inputs.md."""
    parts = [_INTRODUCTION.format(studies=studies, fewest=FEWEST)]
    for width in heads:
        outcomes = [simulate(law, n, studies=studies, heads=width, seed=seed) for law in LAWS for n in SIZES]
        parts += [f"## Studies of {width} heads", table(outcomes)]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """# How few inputs are too few

For people with a handful of sentences: what may be said of them.

Intervals and p of head statistics come from `core/scoring/few_inputs.py`. This page is written by

    python -m tests.simulations > docs/results/few-inputs.md

Every line is {studies} simulated studies in which nothing is there to be found: each head's true mean is 0. A study
makes a claim when some head has q <= .05 (Benjamini-Hochberg over its heads). At 5 % that is 10 studies of 200 on
average, and 19 or fewer in 99.7 % of such simulations. No p is given where fewer than {fewest} inputs have a value that
is not 0; pages then say "too few". Intervals are given from two such inputs on.

*Skewed* values are exponential, their mean taken off (skewness 2); *sparse* ones are 0 on four inputs of five; *heavy*
ones are lognormal (sigma 0.75, skewness 3.3)."""
