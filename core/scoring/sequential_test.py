"""Sequential tests ("races"): which heads' mean effect lies beyond a margin, from as few rows as that takes.

Rows are drawn in a random order. After each look every open head has a confidence interval for its mean effect theta
on the task: entirely outside [-margin, margin] the head *matters*, entirely inside it *does not matter*, otherwise it
stays *open* and more rows are taken. Effects are exact, [head, row] in the order of the draw, NaN where a row was not
taken.

Few rows may carry an effect, and the rows that were drawn may miss them. So the loss is clipped, a row changes it by at
most c, and intervals are those of Waudby-Smith and Ramdas (2024, arXiv 2010.09686) for means of bounded values, by bets
against a mean m that win only if theta is larger:

    K_n(m) = sum over f of w_f prod over rows t of (1 - f + f (x_t + c) / (m + c))

If theta is at most m, K_n is a nonnegative supermartingale from 1, so it ever reaches 2 heads / alpha with a chance of
at most alpha / (2 heads) (Ville). It falls as m grows: the lower end of an interval is where it reaches that, and the
upper end likewise with -x. So intervals of all heads hold at all n together with 1 - alpha, for every distribution of
effects and every dependence between heads. docs/explanation/sequential-tests.md has the proof.

A head that is unlikely to get a verdict on all the rows there are (`chance_left`) takes no more of them and stays open:
stopping early without a verdict makes none wrong.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int

from ..errors import InputError

HeadRows = Float[np.ndarray, "head row"]
PerHead = Float[np.ndarray, " head"]
Growth = Float[np.ndarray, "bet head fraction"]
Verdict = Literal["matters", "does not matter", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FIRST = 64  # rows at the first look
ALPHA = 0.05
LATER = 1.2  # times as many rows at each look, once heads can be found not to matter
FRACTIONS = 2.0 ** -np.arange(7)  # of the largest bet that cannot lose more than all
WEIGHTS = 2.0 ** -np.arange(7) / (2.0 ** -np.arange(7)).sum()  # most on large bets: they win soonest on still heads
TOGETHER = 16  # factors that are multiplied before a logarithm is taken
HALVINGS = 26  # of the span of possible means, 1e-8 of it


@dataclass(frozen=True)
class Rules:
    """What a race is held to.

    Attributes:
        margin: of the mean effect, in its units.
        alpha: the chance of any wrong verdict over all heads and looks.
        hopeless: a head takes no more rows where its chance of a verdict on all of them is smaller; 0: none stops so.
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
            raise InputError(f"A margin must be above 0, in units of the task's loss; seen {self.margin:g}: raise it.")
        if not self.clip > self.margin or not np.isfinite(self.clip):
            raise InputError(
                f"What a row can change at most must be above the margin, {self.margin:g}; seen {self.clip:g}: raise "
                "it, or lower the margin."
            )
        if self.heads < 1:
            raise InputError("A sequential test needs at least one head, layer or group; got none. Name some.")
        if not 0 < self.alpha < 1:
            raise InputError(f"The chance of a wrong verdict must lie between 0 and 1; seen {self.alpha:g}: change it.")
        if self.first < 4 or self.rows < self.first:
            raise InputError(
                f"A race looks first after {self.first} rows (at least 4), and there are {self.rows}: take more rows, "
                "or sweep in full."
            )
        if not 0 <= self.hopeless < 1:
            raise InputError(
                f"The chance of a verdict below which a head takes no more rows must be 0 or more and below 1; seen "
                f"{self.hopeless:g}: change it."
            )

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """Rows at each look: the first, then a fifth more than `fewest`, and a fifth more each time, then all. Where
        heads may be found not to matter at the first look: that, twice, three, four, six, eight times as many, ..."""
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
        """Rows below which no head can be found not to matter, however still it is."""
        won = np.log1p(FRACTIONS * self.margin / (self.clip - self.margin))  # of a row without an effect
        rows = 1
        while log_capital(rows * won) < self.wanted:
            rows += 1
        return rows

    @property
    def wanted(self) -> float:
        """The log of the capital at which a mean is ruled out."""
        return float(np.log(2 * self.heads / self.alpha))


# ---------------------------------------------------------------- bets


def log_growth(effects: HeadRows, clip: float, mean: PerHead | float) -> Float[np.ndarray, "head fraction"]:
    """What bets that the mean is larger won on some rows, as logs; -inf where everything was lost.

    Args:
        effects: at most `clip` in size.
    """
    beyond = (effects - np.reshape(mean, (-1, 1))) / np.reshape(clip + mean, (-1, 1))
    starts = np.arange(0, effects.shape[1], TOGETHER)
    with np.errstate(divide="ignore"):
        won = [np.log(np.multiply.reduceat(1 + share * beyond, starts, axis=1)).sum(1) for share in FRACTIONS]
    return np.stack(won, -1)


def log_capital(growth: Float[np.ndarray, "*some fraction"]) -> Float[np.ndarray, "*some"]:
    """The log of K: what bets at all fractions have together."""
    return np.asarray(scipy.special.logsumexp(growth, axis=-1, b=WEIGHTS))


def lower_ends(effects: HeadRows, clip: float, wanted: float) -> PerHead:
    """The lower end of each head's confidence interval: the largest mean that is ruled out, or -c where none is.

    Args:
        effects: at most `clip` in size.
        wanted: the log of the capital at which a mean is ruled out.

    Returns:
        In units of the effects.
    """
    low, high = np.full(len(effects), -clip), effects.mean(1)
    for _ in range(HALVINGS):
        middle = np.maximum((low + high) / 2, np.nextafter(-clip, 0))
        is_ruled_out = log_capital(log_growth(effects, clip, middle)) >= wanted
        low, high = np.where(is_ruled_out, middle, low), np.where(is_ruled_out, high, middle)
    return low


def four_bets(effects: HeadRows, clip: float, margin: float) -> Growth:
    """What four bets won: that theta lies above margin, above -margin, below margin, below -margin."""
    sides = ((effects, margin), (effects, -margin), (-effects, -margin), (-effects, margin))
    return np.stack([log_growth(side, clip, mean) for side, mean in sides])


def verdicts(growth: Growth, wanted: float) -> list[Verdict]:
    """matters: the interval lies beyond the margin; does not matter: within it; else open.

    Args:
        wanted: the log of the capital at which a mean is ruled out.
    """
    above, above_minus, below, below_minus = log_capital(growth) >= wanted
    beyond, within = above | below_minus, above_minus & below
    return ["matters" if a else "does not matter" if b else "open" for a, b in zip(beyond, within, strict=True)]


def chance_left(growth: Growth, effects: HeadRows, rules: Rules) -> PerHead:
    """The chance that a head has a verdict after all N rows, if rows to come are like the n seen.

    The log of a bet's capital goes on to grow as fast, up to a normal error: of the rows to come, and of how fast it
    grew so far.

    Returns:
        Of each head: the chance of the likelier verdict, by the bets of the likeliest fraction.
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
    """Where a race stands, head by head; estimates are NaN before the first look.

    Attributes:
        rows: how many rows the interval rests on; of a verdict, those of its look.
        hopeless: whether the head is open and takes no more rows.
        effects: up to the clip, in the order of the draw.
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
        """The mean effect on these rows, in units of the effects."""
        return self._estimates[0]

    @property
    def low(self) -> PerHead:
        """The lower end of theta's interval."""
        return self._estimates[1]

    @property
    def high(self) -> PerHead:
        """The upper end."""
        return self._estimates[2]

    @property
    def open(self) -> Int[np.ndarray, " some"]:
        """The heads without a verdict."""
        return np.flatnonzero([verdict == "open" for verdict in self.verdicts])

    @property
    def going(self) -> Int[np.ndarray, " some"]:
        """The open heads that take more rows."""
        return self.open[~self.hopeless[self.open]]


def taken(effects: HeadRows) -> Int[np.ndarray, " head"]:
    """How many rows each head has, from the first of the draw on without a gap.

    Args:
        effects: in the order of the draw, NaN where a row was not taken.

    Returns:
        Rows before the first NaN.
    """
    missing = np.isnan(effects)
    if not effects.shape[1]:
        return np.zeros(len(effects), dtype=int)
    return np.where(missing.any(1), missing.argmax(1), effects.shape[1])


def standings(exact: HeadRows, rules: Rules) -> Standings:
    """Every look at the effects so far, in order: a head is judged until it has a verdict.

    Args:
        exact: e in the order of the draw, of which a row counts up to `rules.clip`; NaN where a row was not taken.

    Returns:
        All heads open without estimates until each has the rows of the first look.
    """
    ready, effects = taken(exact), np.clip(exact, -rules.clip, rules.clip)
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
    """What a race measures next.

    Attributes:
        start, stop: rows of the draw, stop left out; equal: the race is over.
    """

    heads: Int[np.ndarray, " some"]
    start: int
    stop: int

    @property
    def over(self) -> bool:
        """Whether the race has ended."""
        return self.start == self.stop


def next_step(exact: HeadRows, rules: Rules) -> NextStep:
    """What the race measures next: every head's effects up to the first look, then those of the open heads up to the
    next look.

    Args:
        exact: effects in the order of the draw, NaN where a row was not taken.

    Returns:
        The step; `over` where no head takes more rows.
    """
    if (taken(exact) < rules.first).any():
        return NextStep(np.arange(rules.heads), 0, rules.first)
    state = standings(exact, rules)
    rows_read = int(state.rows[state.going].max(initial=0))
    later = [look for look in rules.looks if look > rows_read]
    if not len(state.going) or not later:
        return NextStep(state.going, rows_read, rows_read)
    return NextStep(state.going, rows_read, later[0])
