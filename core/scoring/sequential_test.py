"""Sequential tests of which heads have a mean effect outside a margin, with as few examples as necessary.

Examples are drawn in random order. At each interim analysis, every undecided head has a confidence interval for its
mean effect theta: entirely outside [-margin, margin] the head *matters*, entirely inside it *does not matter*,
otherwise more examples are drawn. Effects are exact, [head, row] in the order of the draw, NaN for examples that were
not measured.

Rare examples may carry an effect and be missing from the sample. The loss is therefore clipped, so that an example
changes it by at most c. Intervals are those of Waudby-Smith and Ramdas (2024, arXiv 2010.09686) for means of bounded
values, from bets against a mean m that win only if theta is larger:

    K_n(m) = sum over f of w_f prod over rows t of (1 - f + f (x_t + c) / (m + c))

If theta is at most m, K_n is a nonnegative supermartingale starting at 1, so it ever reaches 2 heads / alpha with
probability at most alpha / (2 heads) (Ville). It decreases in m: the lower bound is where it reaches that value, and
the upper bound likewise with -x. The intervals of all heads therefore hold at all n jointly with probability 1 - alpha,
for any distribution and dependence of effects. docs/explanation/sequential-tests.md has the proof.

A head that is unlikely to be decided on all available examples (`chance_left`) is not measured further (futility stop),
which cannot cause a wrong verdict.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int

from ..errors import InputError
from .corrections import ALPHA

HeadRows = Float[np.ndarray, "head row"]
PerHead = Float[np.ndarray, " head"]
Growth = Float[np.ndarray, "bet head fraction"]
Verdict = Literal["matters", "does not matter", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FIRST = 64  # rows at the first look
LATER = 1.2  # growth of rows at each look, once "does not matter" is possible
FRACTIONS = 2.0 ** -np.arange(7)  # of the largest bet that cannot lose everything
WEIGHTS = 2.0 ** -np.arange(7) / (2.0 ** -np.arange(7)).sum()  # large bets decide soonest without an effect
TOGETHER = 16  # factors that are multiplied before a logarithm is taken
HALVINGS = 26  # bisections of the range of means, to 1e-8 of it


@dataclass(frozen=True)
class Rules:
    """Settings for a sequential test of head effects: margin, numbers of examples at interim analyses, error rate.

    Attributes:
        margin: of the mean effect, in its units.
        alpha: probability of any wrong verdict over all heads and interim analyses.
        hopeless: futility limit: a head stops if its probability of a verdict on all examples is smaller; 0: never.
    """

    margin: float
    clip: float
    rows: int
    heads: int
    alpha: float = ALPHA
    first: int = FIRST
    hopeless: float = 0.0

    def __post_init__(self) -> None:
        if not self.margin > 0 or not np.isfinite(self.margin):
            raise InputError(
                "The margin of a sequential test must be a finite number above 0, in units of the task's loss; got "
                f"{self.margin:g}. Choose such a number."
            )
        if not self.clip > self.margin or not np.isfinite(self.clip):
            raise InputError(
                "The upper limit of the loss of one example (clip) must be finite and above the margin of "
                f"{self.margin:g}; got {self.clip:g}. Change the limit, or lower the margin."
            )
        if self.heads < 1:
            raise InputError("A sequential test needs at least one head, layer or group; got none. Choose some.")
        if not 0 < self.alpha < 1:
            raise InputError(
                f"The probability of a wrong verdict (alpha) must be between 0 and 1; got {self.alpha:g}. Choose "
                "a value such as 0.05."
            )
        if self.first < 4:
            raise InputError(
                f"The first interim analysis must be after at least 4 examples; got {self.first}. Choose a "
                "larger number."
            )
        if self.rows < self.first:
            raise InputError(
                f"A sequential test needs at least {self.first} examples for its first interim analysis; got "
                f"{self.rows}. Use more examples, or ablate every head on all examples."
            )
        if not 0 <= self.hopeless < 1:
            raise InputError(
                f"The futility limit must be at least 0 and below 1; got {self.hopeless:g}. Choose a small number: "
                "the test of a head stops if the probability of a verdict is smaller."
            )

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """Return the numbers of examples after which interim analyses take place.

        The first, then 1.2 times `fewest`, and 1.2 times more each time, then all. If heads can be found not to matter
        at the first analysis: that, and 2, 3, 4, 6, 8 ... times as many.
        """
        if self.fewest > self.first:
            after = range(1, 1 + max(0, int(np.log(self.rows / self.fewest) / np.log(LATER))))
            grown = (int(np.ceil(self.fewest * LATER**times)) for times in after)
            return (
                self.first,
                *(look for look in grown if look < self.rows),
                *((self.rows,) * (self.rows > self.first)),
            )
        steps, times = [1], 2
        while times * self.first < self.rows:
            steps += [times, times * 3 // 2]
            times *= 2
        return (*(step * self.first for step in steps if step * self.first < self.rows), self.rows)

    @cached_property
    def fewest(self) -> int:
        """Return the smallest number of examples after which the test can conclude that a head does not matter."""
        won = np.log1p(FRACTIONS * self.margin / (self.clip - self.margin))  # of a row without an effect
        rows = 1
        while log_capital(rows * won) < self.wanted:
            rows += 1
        return rows

    @property
    def wanted(self) -> float:
        """Return the log capital that a bet must reach to succeed."""
        return float(np.log(2 * self.heads / self.alpha))


# ---------------------------------------------------------------- bets


def log_growth(effects: HeadRows, clip: float, mean: PerHead | float) -> Float[np.ndarray, "head fraction"]:
    """Return the log growth of the capital from betting that the mean effect exceeds `mean`, for each betting fraction.
    It is -inf after a total loss. Effects must be at least -`clip`."""
    beyond = (effects - np.reshape(mean, (-1, 1))) / np.reshape(clip + mean, (-1, 1))
    starts = np.arange(0, effects.shape[1], TOGETHER)
    with np.errstate(divide="ignore"):
        won = [np.log(np.multiply.reduceat(1 + share * beyond, starts, axis=1)).sum(1) for share in FRACTIONS]
    return np.stack(won, -1)


def log_capital(growth: Float[np.ndarray, "*some fraction"]) -> Float[np.ndarray, "*some"]:
    """Return the log of the mean capital over betting fractions, weighted by WEIGHTS."""
    return np.asarray(scipy.special.logsumexp(growth, axis=-1, b=WEIGHTS))


def lower_ends(effects: HeadRows, clip: float, wanted: float) -> PerHead:
    """Return a lower confidence bound for the mean effect of each head. The bound is the largest mean that the test
    rejects; -`clip` if no mean is rejected. A mean is rejected if its log capital is at least `wanted`."""
    low, high = np.full(len(effects), -clip), effects.mean(1)
    for _ in range(HALVINGS):
        middle = np.maximum((low + high) / 2, np.nextafter(-clip, 0))
        is_ruled_out = log_capital(log_growth(effects, clip, middle)) >= wanted
        low, high = np.where(is_ruled_out, middle, low), np.where(is_ruled_out, high, middle)
    return low


def four_bets(effects: HeadRows, clip: float, margin: float) -> Growth:
    """Return the log growth of the capital in four bets. The bets are that the mean effect is above `margin`, above
    -`margin`, below `margin`, and below -`margin`."""
    sides = ((effects, margin), (effects, -margin), (-effects, -margin), (-effects, margin))
    return np.stack([log_growth(side, clip, mean) for side, mean in sides])


def verdicts(growth: Growth, wanted: float) -> list[Verdict]:
    """Return the verdict on each head from its four bets. A bet succeeds if its log capital reaches `wanted`."""
    above, above_minus, below, below_minus = log_capital(growth) >= wanted
    beyond, within = above | below_minus, above_minus & below
    return ["matters" if a else "does not matter" if b else "open" for a, b in zip(beyond, within, strict=True)]


def chance_left(growth: Growth, effects: HeadRows, rules: Rules) -> PerHead:
    """Return the probability that the test will reach a decision on each head, if the remaining examples resemble the
    measured ones.

    The log capital is assumed to grow at the same rate, with a normal error from the remaining examples and from the
    estimate of the rate. Uses the more likely verdict and the best fraction.
    """
    n, margin = effects.shape[1], rules.margin
    means, spreads = effects.mean(1)[:, None], effects.std(1)[:, None]
    step = np.sqrt((rules.rows - n) * rules.rows / n) * np.stack([
        FRACTIONS * spreads / (rules.clip + mean + FRACTIONS * (side - mean) + 1e-12)
        for side, mean in ((means, margin), (means, -margin), (-means, -margin), (-means, margin))
    ])  # fmt: skip
    expected = np.maximum(growth, -1e9) * rules.rows / n + np.log(WEIGHTS)
    chances = scipy.special.ndtr((expected - rules.wanted) / np.maximum(step, 1e-12)).max(-1)
    above, above_minus, below, below_minus = chances
    return np.maximum(np.maximum(above, below_minus), np.minimum(above_minus, below))


# ---------------------------------------------------------------- standings


@dataclass(frozen=True)
class Standings:
    """The state of a sequential test for each head. Estimates are NaN before the first interim analysis.

    Attributes:
        rows: number of examples of the interval; for decided heads, at the deciding analysis.
        hopeless: heads that are undecided and stopped for futility.
        effects: clipped, in the order of the draw.
    """

    verdicts: list[Verdict]
    rows: Int[np.ndarray, " head"]
    hopeless: Bool[np.ndarray, " head"]
    effects: HeadRows
    rules: Rules

    @cached_property
    def _estimates(self) -> Float[np.ndarray, "3 head"]:
        found, clip, wanted = np.full((3, len(self.rows)), np.nan), self.rules.clip, self.rules.wanted
        for n in np.unique(self.rows[self.rows > 0]):
            those = np.flatnonzero(self.rows == n)
            some = self.effects[those, :n]
            found[:, those] = some.mean(1), lower_ends(some, clip, wanted), -lower_ends(-some, clip, wanted)
        return found

    @property
    def value(self) -> PerHead:
        return self._estimates[0]

    @property
    def low(self) -> PerHead:
        return self._estimates[1]

    @property
    def high(self) -> PerHead:
        return self._estimates[2]

    @property
    def open(self) -> Int[np.ndarray, " some"]:
        return np.flatnonzero([verdict == "open" for verdict in self.verdicts])

    @property
    def going(self) -> Int[np.ndarray, " some"]:
        """Return the undecided heads that were not stopped for futility. They are measured on remaining examples."""
        return self.open[~self.hopeless[self.open]]


def examples_measured(effects: HeadRows) -> Int[np.ndarray, " head"]:
    """Return the number of examples measured for each head, which is the number of values before its first NaN."""
    missing = np.isnan(effects)
    if not effects.shape[1]:
        return np.zeros(len(effects), dtype=int)
    return np.where(missing.any(1), missing.argmax(1), effects.shape[1])


def standings(exact: HeadRows, rules: Rules) -> Standings:
    """Perform the interim analyses for which enough effects have been measured. Effects that have not been measured are
    NaN. All heads are undecided until every head has been measured on enough examples for the first analysis."""
    ready, effects = examples_measured(exact), np.clip(exact, -rules.clip, rules.clip)
    found: list[Verdict] = ["open"] * rules.heads
    rows, hopeless = np.zeros(rules.heads, dtype=int), np.zeros(rules.heads, dtype=bool)
    state = Standings(found, rows, hopeless, effects, rules)
    if (ready < rules.first).any():
        return state
    growth, start = np.zeros((4, rules.heads, len(FRACTIONS))), 0
    for look in rules.looks:
        judged = state.going[ready[state.going] >= look]
        if not len(judged):
            break
        growth[:, judged] += four_bets(effects[judged, start:look], rules.clip, rules.margin)
        start = rows[judged] = look
        for head, verdict in zip(judged, verdicts(growth[:, judged], rules.wanted), strict=True):
            found[head] = verdict
        if look < rules.rows and rules.hopeless:
            still = judged[[found[k] == "open" for k in judged]]
            hopeless[still] = chance_left(growth[:, still], effects[still, :look], rules) < rules.hopeless
    rows[state.going] = ready[state.going]
    return state


@dataclass(frozen=True)
class NextStep:
    """The next measurement in a sequential test, on the examples from `start` up to but not including `stop`. If the
    test has ended, `start` equals `stop`."""

    heads: Int[np.ndarray, " some"]
    start: int
    stop: int

    @property
    def over(self) -> bool:
        return self.start == self.stop


def next_step(exact: HeadRows, rules: Rules) -> NextStep:
    """Return the heads and examples to measure next. All heads are measured before the first interim analysis, and only
    undecided heads afterwards."""
    if (examples_measured(exact) < rules.first).any():
        return NextStep(np.arange(rules.heads), 0, rules.first)
    state = standings(exact, rules)
    rows_read = int(state.rows[state.going].max(initial=0))
    later = [look for look in rules.looks if look > rows_read]
    if not len(state.going) or not later:
        return NextStep(state.going, rows_read, rows_read)
    return NextStep(state.going, rows_read, later[0])
