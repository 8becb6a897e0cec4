"""Races: which heads' mean effect lies beyond a margin, from as few rows as that takes.

A race draws rows in a random order and looks after 64, 128, 256 ... rows. At each look every open head gets an
interval for its mean effect theta on the task: outside [-margin, margin] it *matters*, inside it *does not matter*,
else it stays *open* and more rows are taken. Effects are exact, [head, row] in the order of the draw, NaN where a row
was not taken; first-order effects g of the same heads may stand beside them as a control variate. After n of N rows

    theta = c mean_N(g) + mean_n(d),  d = e - c g,  SE^2 = s_e^2 / N + s_d^2 (1/n - 1/N)

The n rows are among the N, so the two means are not independent and their variances may not be added. The N rows are a
sample of the task; the first term is what the task may differ from them by. Everything here is a pure function of the
effects, so whoever measured them, in whatever order, the same effects give the same verdicts.

An effect that few rows carry may have none of them among the n: their spread says nothing of it. So the loss is
clipped, a row changes it by at most c, and every interval reaches farther by

    unseen = c ln(heads / alpha) / n

since rows that make up a share q of the task are all missed with (1 - q)^n <= exp(-q n), whatever they are like. Looks
need no correction here: rows that are missing at a look were missing at all looks before. First-order effects are no
bound, however small; d reaches as far as c and c g together.

A head that would hardly get a verdict on all the rows there are (`chance_left`) takes no more of them and stays open:
stopping early without a verdict makes none wrong.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Int

from core.errors import InputError
from core.scoring.race_estimates import Control, EffectEstimate, HeadRows, PerHead, control_of, estimated

Verdict = Literal["matters", "does not matter", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FIRST = 64  # rows at the first look: fewer, and sparse effects are far from normal
ALPHA = 0.05
LATER = 1.2  # times as many rows at each look, once heads can be found not to matter


@dataclass(frozen=True)
class Rules:
    """What a race is held to.

    Attributes:
        margin: of the mean effect, in its units.
        clip: c, the most that a row's effect can be.
        rows: N, all that may be drawn.
        heads: how many race.
        alpha: the chance of any wrong verdict over all heads and looks.
        first: rows at the first look.
        anytime: intervals hold whenever somebody stops (a confidence sequence), instead of at the looks.
        hopeless: a head takes no more rows where its chance of a verdict on all of them is smaller; 0: none stops so.
    """

    margin: float
    clip: float
    rows: int
    heads: int
    alpha: float = ALPHA
    first: int = FIRST
    anytime: bool = False
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
            raise InputError("A race needs at least one head, layer or group; there is none: name some.")
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

    def unseen(self, n: int, beside: PerHead | float = 0.0) -> PerHead | float:
        """What rows that were missed may add to a mean over n rows.

        Args:
            n: rows that were measured.
            beside: the most that a row's control variate is; 0 without one.

        Returns:
            Units of the effects, above 0; of each head where `beside` is.
        """
        return (self.clip + beside) * np.log(self.heads / self.alpha) / n

    @property
    def fewest(self) -> int:
        """Rows below which no head can be found not to matter, however still it is."""
        return int(np.ceil(self.unseen(1) / self.margin))


# ---------------------------------------------------------------- intervals


def batch_half_widths(estimate: EffectEstimate, rules: Rules, control: Control | None = None) -> PerHead:
    """Half-widths of t-intervals at the looks, which all hold together with 1 - alpha.

    They are two-sided at level alpha / (heads x looks), and wider by what unseen rows may add.

    Args:
        estimate: of the heads' mean effects.
        rules: of the race.
        control: the control variate that the estimate used, or None.

    Returns:
        Of each head, in units of the effects.
    """
    level = rules.alpha / (rules.heads * len(rules.looks))
    unseen = rules.unseen(estimate.n, control.beside if control else 0.0)
    return scipy.special.stdtrit(estimate.degrees, 1 - level / 2) * estimate.error + unseen


def sequence_scale(n: int, alpha: float, tightest: int) -> float:
    """Half-width at n of an asymptotic confidence sequence, in standard deviations of one observation.

    sqrt(2 (n r^2 + 1) / (n^2 r^2) log(sqrt(n r^2 + 1) / alpha)), Waudby-Smith et al. (arXiv 2103.06476, theorem 2.2),
    with r^2 = (-2 log alpha + log(1 - 2 log alpha)) / tightest.

    Args:
        n: observations so far, at least 1.
        alpha: chance that the sequence ever misses the mean, between 0 and 1.
        tightest: at about so many observations the sequence is narrowest.

    Returns:
        Above 0.
    """
    rho = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / tightest
    grown = n * rho + 1
    return float(np.sqrt(2 * grown / (n**2 * rho) * np.log(np.sqrt(grown) / alpha)))


def sequence_half_widths(estimate: EffectEstimate, rules: Rules, control: Control | None = None) -> PerHead:
    """Half-widths of intervals that hold at every n at once, for all heads, with 1 - alpha.

    The sequence is about mean(d). With a control variate half of alpha goes to it and half to mean(g), whose N rows are
    seen once. Narrowest at a quarter of the rows, where most heads that are not clear at once are decided.

    Args:
        estimate: of the heads' mean effects.
        rules: of the race.
        control: the control variate that the estimate used, or None.

    Returns:
        Of each head, in units of the effects.
    """
    alpha, tightest = rules.alpha / rules.heads, max(rules.first, rules.rows // 4)
    if control is None:
        return estimate.residual * sequence_scale(estimate.n, alpha, tightest) + rules.unseen(estimate.n)
    about_g = scipy.special.ndtri(1 - alpha / 4) * np.abs(control.slope) * control.spreads / np.sqrt(rules.rows)
    unseen = rules.unseen(estimate.n, control.beside)
    return estimate.residual * sequence_scale(estimate.n, alpha / 2, tightest) + about_g + unseen


def chance_left(estimate: EffectEstimate, rules: Rules, control: Control | None = None) -> PerHead:
    """The chance that a head has a verdict after all N rows, from what n say.

    theta moves by a normal step whose variance is s_d^2 (1/n - 1/N): rows that are still to come are like those seen,
    and their mean is as unsure as n rows leave it. The interval at N is as wide as spreads of today make it.

    Args:
        estimate: of the heads' mean effects after n rows.
        rules: of the race.
        control: the control variate that the estimate used, or None.

    Returns:
        Of each head. *Range:* 0 to 1.
    """
    moved = estimate.residual**2 * (1 / estimate.n - 1 / rules.rows)
    left = np.sqrt(np.maximum(estimate.error**2 - moved, 0))
    final = EffectEstimate(
        estimate.value, left, estimate.degrees + rules.rows - estimate.n, estimate.residual, rules.rows
    )
    half = (sequence_half_widths if rules.anytime else batch_half_widths)(final, rules, control)
    step, value = np.maximum(np.sqrt(moved), 1e-12), np.abs(estimate.value)

    def below(end: PerHead) -> PerHead:
        return np.asarray(scipy.special.ndtr((end - value) / step))

    within = np.maximum(below(rules.margin - half) - below(half - rules.margin), 0)
    return within + 1 - below(rules.margin + half) + below(-rules.margin - half)


def verdicts(low: PerHead, high: PerHead, margin: float) -> list[Verdict]:
    """matters: the interval lies beyond the margin; does not matter: within it; else open.

    Args:
        low: lower end of each head's interval.
        high: its upper end.
        margin: above 0, in the same units.

    Returns:
        A verdict of each head; "open" where the interval is NaN.
    """
    beyond = (low > margin) | (high < -margin)
    within = (low > -margin) & (high < margin)
    return ["matters" if a else "does not matter" if b else "open" for a, b in zip(beyond, within, strict=True)]


# ---------------------------------------------------------------- standings


@dataclass(frozen=True)
class Standings:
    """Where a race stands, head by head; estimates are NaN before the first look.

    Attributes:
        verdicts: of each head.
        rows: how many rows the interval rests on; of a verdict, those of its look.
        value, low, high: theta and its interval, in units of the effects.
        always_low, always_high: of the confidence sequence, which may be looked at any time.
        hopeless: whether the head is open and takes no more rows.
    """

    verdicts: list[Verdict]
    rows: Int[np.ndarray, " head"]
    value: PerHead
    low: PerHead
    high: PerHead
    always_low: PerHead
    always_high: PerHead
    hopeless: Bool[np.ndarray, " head"]

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


def standings(exact: HeadRows, rules: Rules, first_order: HeadRows | None = None) -> Standings:
    """Every look at the effects so far, in order: a head is judged until it has a verdict.

    Between looks the interval at the last look stands, and the confidence sequence goes on.

    Args:
        exact: e in the order of the draw, NaN where a row was not taken.
        rules: of the race, which verdicts follow.
        first_order: g of all rows as a control variate; None: they are not used.

    Returns:
        All heads open without estimates until each has the rows of the first look.
    """
    ready, state = taken(exact), _before_the_first_look(rules)
    if (ready < rules.first).any():
        return state
    measured = _MeasuredEffects.of(exact, rules, first_order)
    for look in rules.looks:
        judged = np.array([k for k in state.going if ready[k] >= look], dtype=int)
        if len(judged):
            _look(state, judged, look, measured)
    reached = state.rows.copy()
    reached[state.going] = ready[state.going]
    for n in np.unique(reached):
        _go_on(state, np.flatnonzero(reached == n), int(n), measured)
    return state


@dataclass(frozen=True)
class _MeasuredEffects:
    """All effects so far, with the control variate that the first look gives."""

    exact: HeadRows
    rules: Rules
    first_order: HeadRows | None
    control: Control | None

    @classmethod
    def of(cls, exact: HeadRows, rules: Rules, first_order: HeadRows | None) -> "_MeasuredEffects":
        first = exact[:, : rules.first]
        if first_order is None:
            return cls(exact, rules, None, None)
        return cls(exact, rules, first_order, control_of(first, first_order))

    def after(self, n: int, heads: Int[np.ndarray, " some"]) -> tuple[EffectEstimate, Control | None]:
        """The estimate of some heads after n rows, and their part of the control variate."""
        variate, beside = self.control, self.first_order
        control = variate and Control(
            *(values[heads] for values in (variate.slope, variate.means, variate.spreads, variate.largest))
        )
        drawn = None if beside is None else beside[heads, :n]
        exact = self.exact[heads, :n]
        return estimated(exact, self.rules.rows, first_order=drawn, control=control), control


def _before_the_first_look(rules: Rules) -> Standings:
    value, low, high, always_low, always_high = (np.full(rules.heads, np.nan) for _ in range(5))
    nothing = np.zeros(rules.heads, dtype=int)
    verdicts: list[Verdict] = ["open"] * rules.heads
    return Standings(verdicts, nothing, value, low, high, always_low, always_high, nothing.astype(bool))


def _look(state: Standings, heads: Int[np.ndarray, " some"], look: int, measured: _MeasuredEffects) -> None:
    """Judge these heads after `look` rows."""
    rules, (estimate, control) = measured.rules, measured.after(look, heads)
    widths = sequence_half_widths if rules.anytime else batch_half_widths
    half = widths(estimate, rules, control)
    state.rows[heads], state.value[heads] = look, estimate.value
    state.low[heads], state.high[heads] = estimate.value - half, estimate.value + half
    for head, verdict in zip(heads, verdicts(state.low[heads], state.high[heads], rules.margin), strict=True):
        state.verdicts[head] = verdict
    if look < rules.rows and rules.hopeless:
        state.hopeless[heads] = chance_left(estimate, rules, control) < rules.hopeless
        state.hopeless[[k for k in heads if state.verdicts[k] != "open"]] = False


def _go_on(state: Standings, heads: Int[np.ndarray, " some"], n: int, measured: _MeasuredEffects) -> None:
    """Give heads the confidence sequence after n rows: those of the verdict, or all so far where there is none."""
    estimate, control = measured.after(n, heads)
    half = sequence_half_widths(estimate, measured.rules, control)
    state.always_low[heads], state.always_high[heads] = estimate.value - half, estimate.value + half
