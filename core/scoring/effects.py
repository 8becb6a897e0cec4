"""Effects of interventions on metrics: paired intervals, McNemar's test, and corrections for many heads.

All functions take outcomes of the same examples before [row] and after [head, row]. For accuracy, an outcome is 1 if
the example is right; for a correlation, it is the contribution of the example. Intervals use influence functions
(`core.scoring.influence`) and account for unseen examples. p is corrected over heads by max-T, and the best head is
validated on examples that were not used to select it (split half).
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Int, Shaped

from ..errors import InputError
from ..interval import Interval
from . import few_inputs
from .influence import change_ends, influence

Outcomes = Shaped[np.ndarray, " row"]  # booleans, or any numbers
HeadOutcomes = Shaped[np.ndarray, "head row"]
Counts = Shaped[np.ndarray, "draw row"]
PERMUTATIONS = 1000
RARE = 0.02  # p of losses allow for unseen large effects in this fraction of rows
FEW_FLIPS = 5  # with fewer changed predictions, an interval is a much wider bound


def flips(before: Int[np.ndarray, " row"], after: Int[np.ndarray, "head row"]) -> Int[np.ndarray, " head"]:
    """Return how many predictions each intervention changes."""
    return (np.asarray(after) != np.asarray(before)[None]).sum(1)


def rows_for_flips(flipped: int, rows: int) -> int:
    """Estimate how many examples are needed to observe FEW_FLIPS changed predictions. The estimate is a lower bound if
    no prediction has changed."""
    return -(-FEW_FLIPS * rows // max(flipped, 1))


def mcnemar(right_before: Outcomes, right_after: Outcomes) -> float:
    """Return the exact two-sided p value of McNemar's test that compares predictions before and after a change; 1 if no
    prediction changes."""
    right_before, right_after = np.asarray(right_before, dtype=bool), np.asarray(right_after, dtype=bool)
    lost = int((right_before & ~right_after).sum())
    won = int((~right_before & right_after).sum())
    return float(min(1.0, 2 * scipy.stats.binom.cdf(min(lost, won), lost + won, 0.5)))


def counted(name: str, gold: Outcomes, predicted: HeadOutcomes, counts: Counts) -> Float[np.ndarray, "draw head"]:
    """Return a metric (accuracy, F1 of class 1, or Pearson's r) for each head and for each vector of example weights.

    NaN if undefined (constant predictions for pearson); f1 is 0 if class 1 is never predicted, as in scikit-learn.
    Raises InputError for an unknown metric.
    """
    gold, predicted = np.asarray(gold, dtype=float), np.asarray(predicted, dtype=float)
    weights = np.asarray(counts, dtype=float)
    if name == "accuracy":
        return weights @ (predicted == gold).T / weights.sum(1, keepdims=True)
    if name == "f1":
        hits = weights @ ((predicted == 1) & (gold == 1)).T
        named = weights @ (predicted == 1).T + (weights @ (gold == 1))[:, None]
        return np.divide(2 * hits, named, out=np.zeros_like(hits), where=named > 0)
    if name == "pearson":
        shares = weights / weights.sum(1, keepdims=True)
        gold, predicted = gold - gold.mean(), predicted - predicted.mean(1, keepdims=True)
        first, second = shares @ gold, shares @ predicted.T
        spread_gold = shares @ gold**2 - first**2
        spread = shares @ (predicted**2).T - second**2
        together = shares @ (predicted * gold).T - first[:, None] * second
        bottom = np.sqrt(np.clip(spread_gold[:, None] * spread, 0, None))
        return np.divide(together, bottom, out=np.full_like(together, np.nan), where=bottom > 1e-12)
    raise InputError(f'Only the metrics accuracy, f1 and pearson can be resampled; got "{name}". Choose one of them.')


def row_correlations(gold: Outcomes, predicted: Shaped[np.ndarray, "*head row"]) -> Float[np.ndarray, "*head row"]:
    """Return values, one per example, whose mean is Pearson's r between gold and predicted values. All are 0 if r is
    undefined.

    The value is r + zx zy - r (zx^2 + zy^2) / 2 with standardised zx and zy, from the influence function of r.
    """
    pearson = influence("pearson", gold, predicted)
    return np.nan_to_num(pearson.value, nan=0.0)[..., None] + pearson.rows


def metric_intervals(name: str, gold: Outcomes, before: Outcomes, after: HeadOutcomes) -> list[Interval]:
    """Return how much ablating each head changes a metric (accuracy, f1 or pearson), with paired 95 % intervals. The
    change is None if the metric is undefined. The bounds are also None for a single example."""
    return contrast_intervals(name, gold, before, after, np.eye(len(after)))


def contrast_intervals(
    name: str, gold: Outcomes, before: Outcomes, after: HeadOutcomes, contrasts: Float[np.ndarray, "contrast head"]
) -> list[Interval]:
    """Return weighted sums of the metric changes under several ablations, with paired 95 % intervals. For example, a
    group of heads can have weight 1 and each of its heads weight -1. The sum is then the effect of the group minus the
    effects of its heads."""
    after, intervals = np.asarray(after), []
    for contrast in contrasts:
        heads = np.flatnonzero(contrast)  # the metric may be undefined for other heads
        if not len(heads):
            intervals.append(Interval(None))
            continue
        intervals.append(Interval.of(*change_ends(name, gold, before, after[heads], contrast[heads])))
    return intervals


def mean_intervals(before: Outcomes, after: HeadOutcomes, *, most: float | None = 1.0) -> list[Interval]:
    """Return the mean change in outcomes (after minus before) for each head, with a paired 95 % interval.

    `most` is the largest possible change of an example; one unseen example of that size in either direction is added.
    None if unknown, as for losses; bounds are then None for fewer than two changed examples.
    """
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)[None]
    n = difference.shape[1]
    if most is None or n < 2:
        mean = difference.mean(1)
        low, high = few_inputs.mean_interval(difference.T)
        unmoved = (difference == 0).all(1)  # the interval [0, 0] would be too certain
        low, high = np.where(unmoved, np.nan, low), np.where(unmoved, np.nan, high)
        return [Interval.of(a, b, c) for a, b, c in zip(mean, low, high, strict=True)]
    mean = difference.sum(1) / (n + 2)
    squares = (difference**2).sum(1) + 2 * most**2
    reach = scipy.special.stdtrit(n - 1, 0.975) * np.sqrt((squares / (n + 2) - mean**2) / (n + 2))
    low, high = np.maximum(mean - reach, -most), np.minimum(mean + reach, most)
    return [Interval.of(a, b, c) for a, b, c in zip(difference.mean(1), low, high, strict=True)]


def max_t(
    before: Outcomes,
    after: HeadOutcomes,
    *,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    slack: float = 0.0,
    rare: float | None = RARE,
) -> Float[np.ndarray, " head"]:
    """Return p values for the null hypothesis that the mean difference for a head is 0. They are corrected over heads
    by max-T (Westfall & Young 1993).

    For right and wrong outcomes, signs are flipped, which swaps predictions before and after. Losses and contributions
    to Pearson's r may be skewed with mean 0, so examples are drawn with replacement from the centred differences, and
    every draw is divided by its own spread (studentised bootstrap; Hall 1992). One sign or draw per example serves all
    heads, which preserves their dependence. With t of `t_values`, p_h = (1 + #{max over heads of drawn t >= t_h}) / (1
    + draws). For losses, p is at least `few_inputs.p_either` of the head, and 1 if fewer than 12 examples changed, or
    all by the same amount. Raises InputError without heads or examples.

    Args:
        slack: added to every t_h to get the smallest p for outcomes with this error; above 0, `p_either` is not
            applied.
        rare: fraction of all examples. For losses, p is 1 if heads times examples is below `rows_to_see(rare)`: for
            one head, with fewer than 149 examples. None: no such limit, for pairs that were selected for their
            difference.
    """
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)[None]
    if difference.ndim != 2 or not difference.size:
        raise InputError(
            "A test over heads needs outcomes with the axes [head, example], of at least one head and one example; got "
            f"the shape {difference.shape}. Add heads or examples."
        )
    observed, changed = np.abs(t_values(difference)) + slack, (difference != 0).any(1)
    if rare is not None and not _is_won_or_lost(difference) and difference.size < rows_to_see(rare):
        return np.ones(len(difference))
    generator, rows = np.random.default_rng(seed), difference.shape[1]
    if _is_won_or_lost(difference):
        signs = generator.choice([-1.0, 1.0], size=(permutations, rows))
        largest, alone = np.abs(signs @ _scaled(difference).T).max(1), np.zeros(len(difference))
    else:
        counts = generator.multinomial(rows, np.full(rows, 1 / rows), size=permutations).astype(float)
        # The largest t over heads of each draw, from centred differences.
        centred = difference - difference.mean(1, keepdims=True)
        spread = np.sqrt(counts @ (centred**2).T + _unseen(difference))
        # p of each head alone; 1 if too few examples changed, or all by the same amount, because a rare large change
        # may be unseen
        values = difference.T
        changes = few_inputs.spread_of(values, np.ones(values.shape, dtype=bool), values.mean(0))
        chances = few_inputs.p_either(values.mean(0), changes)
        alone = np.where(np.isfinite(chances) & (changes.error > 0), chances, 1.0)
        largest = (np.abs(counts @ centred.T) / spread).max(1)
    reached = (largest[:, None] >= observed[None] - 1e-12).sum(0)
    p = np.maximum((1 + reached) / (1 + permutations), alone if not slack else 0)
    return np.where(changed, p, 1.0)


def unseen_share(heads: int, rows: int) -> float:
    """Return an upper bound for the fraction of all examples that a head without an observed effect can affect. The
    bound holds jointly for all such heads with 95 % confidence.

    (1 - share)^rows = .05 / heads; for 36 heads, 656 examples give 1 %.
    """
    return float(1 - (0.05 / heads) ** (1 / rows))


def rows_to_see(share: float, heads: int = 1) -> int:
    """Return how many examples are needed to observe an effect of every head, with a joint probability of 95 %. Every
    head is assumed to affect at least a fraction `share` of all examples.

    With fewer examples, no test of a mean can hold its level: 149 for 2 %, 326 for any of 36 heads.
    """
    return int(np.ceil(np.log(0.05 / heads) / np.log1p(-share)))


def t_values(difference: HeadOutcomes) -> Float[np.ndarray, " head"]:
    """Return the test statistic of each head, sum d / sqrt(sum d^2 + unseen), for its effects d on the examples.

    `unseen` is 0 for right and wrong outcomes; otherwise two examples with the largest change under any head. The
    statistic increases with Student's t, and is 0 if nothing changes.
    """
    return _scaled(np.asarray(difference, dtype=float)).sum(1)


def _is_won_or_lost(difference: HeadOutcomes) -> bool:
    return bool(np.isin(difference, (-1.0, 0.0, 1.0)).all())


def _unseen(difference: HeadOutcomes) -> float:
    return 0.0 if _is_won_or_lost(difference) else float(2 * np.abs(difference).max() ** 2)


def _scaled(difference: Float[np.ndarray, "head row"]) -> Float[np.ndarray, "head row"]:
    spread = np.sqrt((difference**2).sum(1) + _unseen(difference))[:, None]
    return np.divide(difference, spread, out=np.zeros_like(difference), where=spread > 0)


@dataclass(frozen=True)
class SplitHalf:
    """The gain from ablating the best head, averaged over random splits into halves. The head is chosen on one half of
    the examples, and its gain is measured on the other half.

    Attributes:
        low, high: 2.5 % and 97.5 % quantiles of held-out gains over splits of these examples; not a confidence
            interval.
        same: fraction of splits in which this head was chosen.
    """

    chosen: float
    held_out: float
    low: float
    high: float
    head: int
    same: float


def split_half(before: Outcomes, after: HeadOutcomes, *, seed: int = 0, splits: int = 500) -> SplitHalf:
    """For many random splits, choose the head whose ablation is best on one half of the examples, and measure its gain
    on the other half. Raises InputError for fewer than two examples."""
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)[None]
    rows = difference.shape[1]
    if rows < 2:
        raise InputError(f"A split into halves needs at least two examples; got {rows}. Add examples.")
    generator = np.random.default_rng(seed)
    chosen, gains, held = [], [], []
    for _ in range(splits):
        order = generator.permutation(rows)
        first, second = order[: rows // 2], order[rows // 2 :]
        means = difference[:, first].mean(1)
        best = int(generator.choice(np.flatnonzero(means == means.max())))  # ties are broken by lot
        chosen.append(best)
        gains.append(means[best])
        held.append(difference[best, second].mean())
    counts = np.bincount(chosen)
    low, high = np.quantile(held, [0.025, 0.975])
    head = int(counts.argmax())
    return SplitHalf(float(np.mean(gains)), float(np.mean(held)), float(low), float(high), head, counts[head] / splits)


# ---------------------------------------------------------------- recovered logit differences of patches

# m is a logit difference, and each pair is oriented so that m(A) - m(B) is positive. The share sum(m(B patched) - m(B))
# / sum(m(A) - m(B)) is 0 for nothing and 1 for all. Below 0, a patch acts in the opposite direction; above 1, it
# overshoots.

FLOOR = 0.1  # logits: with a smaller difference in m, a pair is left out and counted


@dataclass(frozen=True)
class Recovered:
    """The fraction of the logit difference that patching each set of components recovers, with interval and p value.

    Attributes:
        share: may be below 0 or above 1.
        low, high: 95 % interval; NaN for fewer than two pairs.
        p: that nothing is recovered, corrected over all variants (max-T over pairs); NaN for fewer than
            `few_inputs.FEWEST` pairs.
    """

    share: Float[np.ndarray, " variant"]
    low: Float[np.ndarray, " variant"]
    high: Float[np.ndarray, " variant"]
    p: Float[np.ndarray, " variant"]
    n: int
    left_out: int


def recovered_share(
    first: Float[np.ndarray, " pair"],
    second: Float[np.ndarray, " pair"],
    patched: Float[np.ndarray, "variant pair"],
    *,
    floor: float = FLOOR,
    seed: int = 0,
) -> Recovered:
    """Return the fraction of the logit difference that patching each set of components recovers, with its p value and
    95 % interval.

    `first` is m(A) of each pair, in logits. Pairs whose m(A) and m(B) differ by less than `floor` logits are left out.
    Raises InputError if no pair remains.
    """
    is_clear = np.abs(first - second) >= floor
    if not is_clear.any():
        raise InputError(
            f"At least one pair must have inputs whose logit differences differ by at least {floor:g}; they differ by "
            f"less in all {len(first)} pairs. Choose pairs with different predictions."
        )
    turn = np.sign(first - second)[is_clear]
    differences = np.abs(first - second)[is_clear]
    brought = (patched - second)[:, is_clear] * turn
    n, unknown = int(is_clear.sum()), np.full(len(patched), np.nan)
    share = brought.sum(1) / differences.sum()
    low = high = unknown
    if n > 1:  # a ratio changes with a pair by (brought - share difference) / mean(difference)
        moves = ((brought - share[:, None] * differences) / differences.mean()).T
        spread = few_inputs.spread_of(moves, np.ones(moves.shape, dtype=bool), np.zeros(len(share)))
        low, high = few_inputs.wider_interval(share, spread.error, spread.lean, np.full(len(share), n - 1.0))
    p = max_t(np.zeros(n), brought, seed=seed, rare=None) if n >= few_inputs.FEWEST else unknown
    return Recovered(share, low, high, p, n, int(len(first) - n))


# ---------------------------------------------------------------- agreement of scores


@dataclass(frozen=True)
class Agreement:
    """Rank correlations between two scores of n heads, and the p value of Spearman's rho; None if a score is
    constant."""

    spearman: float | None
    kendall: float | None
    p: float | None
    n: int


def rank_agreement(scores: Shaped[np.ndarray, " head"], others: Shaped[np.ndarray, " other"]) -> Agreement:
    """Return Spearman's rho and Kendall's tau-b between two scores of the same heads. Heads with NaN are left out.

    None for fewer than three heads or a constant score. Raises InputError if the numbers of heads differ.
    """
    first, second = np.asarray(scores, dtype=float), np.asarray(others, dtype=float)
    if first.shape != second.shape:
        raise InputError(
            f"Only scores for the same heads can be compared; got scores of the shapes {first.shape} and "
            f"{second.shape}. Select the same heads for both scores."
        )
    is_finite = np.isfinite(first) & np.isfinite(second)
    first, second = first[is_finite], second[is_finite]
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Agreement(None, None, None, len(first))
    rho = scipy.stats.spearmanr(first, second)
    tau = scipy.stats.kendalltau(first, second)
    return Agreement(float(rho.statistic), float(tau.statistic), float(rho.pvalue), len(first))
