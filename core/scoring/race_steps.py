"""What a race measures next, and whether first-order effects pay (`racing` has its rules and verdicts)."""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Int

from core.scoring.race_estimates import EffectEstimate, HeadRows, PerHead, control_of, estimated, spreads
from core.scoring.racing import Rules, standings, taken


@dataclass(frozen=True)
class Work:
    """What measuring costs, in forward passes of one row.

    Attributes:
        heads: of each head's exact effect, the untouched pass left out.
        backward: of the first-order effects of all heads.
    """

    heads: PerHead
    backward: float


@dataclass(frozen=True)
class FirstOrderChoice:
    """Whether first-order effects of all rows are taken, and what the rest of the race was expected to cost.

    Attributes:
        use: whether they are taken.
        without: forward passes of one row after the first look, without first-order effects.
        with_control: the same with them as a control variate, their own cost included.
    """

    use: bool
    without: float
    with_control: float


def foreseen(
    estimate: EffectEstimate, rules: Rules, spread: PerHead, *, beside: PerHead | None = None
) -> Int[np.ndarray, " head"]:
    """The look at which each head would get its verdict if its mean and spreads stayed.

    Args:
        estimate: of the heads' effects after the first look.
        rules: of the race.
        spread: standard deviation of each head's exact effects over rows.
        beside: the most that each head's control variate is in a row; None: there is no control variate.

    Returns:
        Rows at that look, one of `rules.looks`; all rows where no look would give a verdict.
    """
    distance = np.abs(np.abs(estimate.value) - rules.margin)
    level = rules.alpha / (rules.heads * len(rules.looks))
    needed = np.full(len(distance), rules.rows)
    for n in reversed(rules.looks):
        more = estimate.residual**2 * (1 / n - 1 / rules.rows)
        error = np.sqrt(spread**2 / rules.rows + more) if beside is not None else estimate.residual / np.sqrt(n)
        half = scipy.special.stdtrit(n - 2, 1 - level / 2) * error + rules.unseen(n, 0.0 if beside is None else beside)
        needed = np.where(half <= distance, n, needed)
    return needed


def choose(exact: HeadRows, first_order: HeadRows, rules: Rules, work: Work) -> FirstOrderChoice:
    """Whether first-order effects pay, from the first look alone.

    Args:
        exact: effects of all heads on the rows of the first look.
        first_order: first-order effects of all heads on the same rows.
        rules: of the race.
        work: what measuring costs.

    Returns:
        The choice; first-order effects are used where the race is expected to cost less with them.
    """
    control = control_of(exact, first_order)
    plain = estimated(exact, rules.rows)
    left = spreads(exact - control.slope[:, None] * first_order, 2)
    helped = EffectEstimate(plain.value, plain.error, plain.degrees - 1, left, plain.n)
    costs = []
    for estimate, beside in ((plain, None), (helped, control.beside)):
        looks = foreseen(estimate, rules, plain.residual, beside=beside)
        exact_work = (work.heads * (looks - rules.first)).sum() + looks.max() - rules.first
        costs.append(float(exact_work + (beside is not None) * work.backward * (rules.rows - rules.first)))
    return FirstOrderChoice(costs[1] < costs[0], *costs)


@dataclass(frozen=True)
class RaceStep:
    """What a race measures next.

    Attributes:
        heads: numbers of the heads whose exact effects are measured.
        start, stop: rows of the draw, stop left out; equal: the race is over.
        exact, first_order: which effects of these rows are measured; first-order effects are of all heads.
    """

    heads: Int[np.ndarray, " some"]
    start: int
    stop: int
    exact: bool = True
    first_order: bool = False

    @property
    def over(self) -> bool:
        """Whether the race has ended."""
        return self.start == self.stop


def next_step(exact: HeadRows, first_order: HeadRows, rules: Rules, choice: FirstOrderChoice | None) -> RaceStep:
    """What the race measures next, from all that was measured.

    The first look has both kinds of effects; then come first-order effects of the other rows if they were chosen, then
    the exact effects of the open heads up to the next look.

    Args:
        exact: effects in the order of the draw, NaN where a row was not taken.
        first_order: first-order effects, likewise.
        rules: of the race.
        choice: whether first-order effects are used; None before the first look.

    Returns:
        The step; `over` where no head takes more rows.
    """
    all_heads = np.arange(rules.heads)
    if (taken(exact) < rules.first).any():
        return RaceStep(all_heads, 0, rules.first, first_order=True)
    used = choice is not None and choice.use
    if used and (taken(first_order) < rules.rows).any():
        return RaceStep(all_heads, rules.first, rules.rows, exact=False, first_order=True)
    state = standings(exact, rules, first_order if used else None)
    rows_read = int(state.rows[state.going].max(initial=0))
    later = [look for look in rules.looks if look > rows_read]
    if not len(state.going) or not later:
        return RaceStep(state.going, rows_read, rows_read)
    return RaceStep(state.going, rows_read, later[0])
