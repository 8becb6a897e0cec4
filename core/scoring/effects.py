"""Is the effect of an intervention more than luck? Paired intervals, McNemar, and a correction for many heads.

Everything works on per-row outcomes of the same rows before and after: `before` [row], `after` [head, row]. For
accuracy an outcome is 1 where the row is right; for a correlation it is the row's share of it. Intervals come from what
each row adds to the metric (`core.scoring.influence`), and count rows that were not seen. A gain of the best of 144
heads is corrected by the largest statistic under the null (max-T), and checked on rows that did not choose it (split
half).
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float, Int, Shaped

from ..errors import InputError
from . import few_inputs
from .influence import change_ends

Outcomes = Shaped[np.ndarray, " row"]  # booleans, or any numbers
HeadOutcomes = Shaped[np.ndarray, "head row"]
Counts = Shaped[np.ndarray, "draw row"]
PERMUTATIONS = 1000
RARE = 0.02  # smallest share of all rows whose effect a p of losses allows for: nobody knows how large a row's is
FEW_FLIPS = 5  # changed predictions; of fewer an interval is a bound, several times as wide as if their rate was known


@dataclass(frozen=True)
class Interval:
    """A difference in its metric's unit with the ends of its 95 % interval; None where they are undefined."""

    value: float | None
    low: float | None
    high: float | None


def flips(before: Int[np.ndarray, " row"], after: Int[np.ndarray, "head row"]) -> Int[np.ndarray, " head"]:
    """How many predictions each intervention changed.

    Returns:
        *Range:* 0 to rows.
    """
    return (np.asarray(after) != np.asarray(before)[None]).sum(1)


def rows_for_flips(flipped: int, rows: int) -> int:
    """About how many rows have FEW_FLIPS changed predictions; at least so many, where none of these changed."""
    return -(-FEW_FLIPS * rows // max(flipped, 1))


def mcnemar(right_before: Outcomes, right_after: Outcomes) -> float:
    """Exact two-sided McNemar p: were rows lost and rows won equally likely? 1 when neither happened."""
    right_before, right_after = np.asarray(right_before, dtype=bool), np.asarray(right_after, dtype=bool)
    lost = int((right_before & ~right_after).sum())
    won = int((~right_before & right_after).sum())
    return float(min(1.0, 2 * scipy.stats.binom.cdf(min(lost, won), lost + won, 0.5)))


def counted(name: str, gold: Outcomes, predicted: HeadOutcomes, counts: Counts) -> Float[np.ndarray, "draw head"]:
    """A metric of rows that count so many times each, for all heads and draws by matrix products.

    Args:
        name: accuracy, f1 (of class 1), or pearson.
        predicted: label or score of each row under each head's intervention.
        counts: how often each row counts in each draw; not all 0.

    Returns:
        *Range:* 0 to 1, of pearson -1 to 1. NaN where undefined (constant predictions under pearson); f1 is 0 where
            nothing is predicted as 1, as in scikit-learn.

    Raises:
        InputError: another metric.
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
    raise InputError(f'A metric to resample is accuracy, f1 or pearson; "{name}" is none of them.')


def row_correlations(gold: Outcomes, predicted: Shaped[np.ndarray, "*head row"]) -> Float[np.ndarray, "*head row"]:
    """What each row adds to Pearson's r of its prediction: outcomes whose mean is r of all rows.

    r + zx zy - r (zx^2 + zy^2) / 2 with standardised zx, zy: the influence function of r, so the mean over some of the
    rows is about r of these, and its spread that of r.

    Args:
        predicted: predicted score of each row, of one or more heads.

    Returns:
        0 for every row where r is undefined (constant predictions).
    """
    gold, predicted = np.asarray(gold, dtype=float), np.asarray(predicted, dtype=float)
    x, y = gold - gold.mean(), predicted - predicted.mean(-1, keepdims=True)
    spread = np.sqrt((x**2).mean() * (y**2).mean(-1, keepdims=True))
    varies = spread > 1e-12
    together = np.divide(x * y, spread, out=np.zeros_like(y), where=varies)
    squares = np.divide(y**2, (y**2).mean(-1, keepdims=True), out=np.zeros_like(y), where=varies)
    r = together.mean(-1, keepdims=True)
    return np.where(varies, r + together - r * (x**2 / max((x**2).mean(), 1e-300) + squares) / 2, 0.0)


def metric_intervals(name: str, gold: Outcomes, before: Outcomes, after: HeadOutcomes) -> list[Interval]:
    """metric(after) - metric(before), one paired interval a head; of labels or scores, by a name as `counted` takes it.

    None where the metric is undefined; the ends also for a single row.
    """
    return contrast_intervals(name, gold, before, after, np.eye(len(after)))


def contrast_intervals(
    name: str, gold: Outcomes, before: Outcomes, after: HeadOutcomes, contrasts: Float[np.ndarray, "contrast head"]
) -> list[Interval]:
    """Paired intervals of weighted sums of changes of a metric.

    Args:
        name: accuracy, f1 (of class 1), or pearson.
        contrasts: the weight of each head's change: 1 of heads together and -1 of each of them alone say what the group
            does beyond its heads.

    Returns:
        One a contrast, as of `metric_intervals`; None for a contrast of no heads.
    """
    after, intervals = np.asarray(after), []
    for contrast in contrasts:
        heads = np.flatnonzero(contrast)  # a metric that is undefined elsewhere is of no concern
        if not len(heads):
            intervals.append(Interval(None, None, None))
            continue
        intervals.append(_interval(*change_ends(name, gold, before, after[heads], contrast[heads])))
    return intervals


def mean_intervals(before: Outcomes, after: HeadOutcomes, *, most: float | None = 1.0) -> list[Interval]:
    """mean(after) - mean(before), one paired interval a head.

    Args:
        most: what a row may change at most, as shares and right or wrong answers do by 1: one row more and one less of
            that size are counted beside those that were seen. None: nobody knows, as of losses; then rows that did not
            change say nothing, and fewer than two that did have no interval.

    Returns:
        One a head, in the unit of the outcomes; None for ends that are undefined.
    """
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)[None]
    n = difference.shape[1]
    if most is None or n < 2:
        mean = difference.mean(1)
        low, high = few_inputs.mean_interval(difference.T)
        unmoved = (difference == 0).all(1)  # [0, 0] would be surer than anybody can be
        low, high = np.where(unmoved, np.nan, low), np.where(unmoved, np.nan, high)
        return [_interval(float(a), float(b), float(c)) for a, b, c in zip(mean, low, high, strict=True)]
    mean = difference.sum(1) / (n + 2)
    squares = (difference**2).sum(1) + 2 * most**2
    reach = scipy.special.stdtrit(n - 1, 0.975) * np.sqrt((squares / (n + 2) - mean**2) / (n + 2))
    low, high = np.maximum(mean - reach, -most), np.minimum(mean + reach, most)
    return [_interval(float(a), float(b), float(c)) for a, b, c in zip(difference.mean(1), low, high, strict=True)]


def _interval(value: float, low: float, high: float) -> Interval:
    if not np.isfinite(value):
        return Interval(None, None, None)
    ends = (low, high) if np.isfinite(low) and np.isfinite(high) else (None, None)
    return Interval(float(value), *ends)


def max_t(
    before: Outcomes,
    after: HeadOutcomes,
    *,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    slack: float = 0.0,
    rare: float | None = RARE,
) -> Float[np.ndarray, " head"]:
    """Family-wise p of every head that its mean difference is 0, by max-T (Westfall & Young 1993).

    Of right and wrong rows the mean is 0 exactly where a row is lost as often as one is won, so signs flip: a swap of
    the predictions before and after. Of losses, and of what rows add to Pearson's r, a mean of 0 says nothing of
    symmetry: skewed losses that change nothing on the whole would be claimed. There rows are drawn with replacement
    from the differences less their mean, and every draw is measured by its own spread (studentised bootstrap; Hall
    1992). One coin or draw per row serves all heads, which keeps how they hang together.
    t_h = |sum d| / sqrt(sum d^2 + unseen), `t_values`; p_h = (1 + #{max over heads of drawn t >= t_h}) / (1 + draws).
    Of losses p is at least that of the head alone by `few_inputs.p_either`, and 1 where fewer than 12 rows changed (too
    few to say anything), or all by the same.

    Args:
        slack: added to every t_h, for the smallest p that outcomes known to within so much could have; above 0 no
            head's own p counts.
        rare: share of all rows. Of losses p is 1 where heads times rows are fewer than it takes to see an effect on so
            few rows in any (`rows_to_see`): 149 rows for one head. None: of pairs that were chosen for their
            difference, which all show what there is.

    Returns:
        *Range:* 1 / (permutations + 1) to 1; 1 for a head that changed no outcome.

    Raises:
        InputError: there is no head, or no row.
    """
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)[None]
    if difference.ndim != 2 or not difference.size:
        raise InputError(f"A test over heads needs outcomes [head, row]; seen {difference.shape}.")
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
        largest, alone = (np.abs(counts @ centred.T) / spread).max(1), _alone(difference)
    reached = (largest[:, None] >= observed[None] - 1e-12).sum(0)
    p = np.maximum((1 + reached) / (1 + permutations), alone if not slack else 0)
    return np.where(changed, p, 1.0)


def unseen_share(heads: int, rows: int) -> float:
    """What share of all rows may carry an effect of some head and have none among these, with 1 chance in 20.

    (1 - share)^rows = .05 / heads: 1 % of the rows takes 656 of them for 36 heads.
    """
    return float(1 - (0.05 / heads) ** (1 / rows))


def rows_to_see(share: float, heads: int = 1) -> int:
    """How many rows it takes that an effect of some head on such a share of all rows is among them, 19 times in 20.

    Of a mean over fewer rows no test can hold its level against such an effect: 149 for 2 %, 326 for any of 36 heads.
    """
    return int(np.ceil(np.log(0.05 / heads) / np.log1p(-share)))


def t_values(difference: HeadOutcomes) -> Float[np.ndarray, " head"]:
    """sum d / sqrt(sum d^2 + unseen) of every head, a monotone function of Student's t.

    unseen: 0 of rows won and lost, else that of two rows that change as much as any row under any head does.

    Returns:
        Without a unit; 0 where nothing changed.
    """
    return _scaled(np.asarray(difference, dtype=float)).sum(1)


def _is_won_or_lost(difference: HeadOutcomes) -> bool:
    return bool(np.isin(difference, (-1.0, 0.0, 1.0)).all())


def _unseen(difference: HeadOutcomes) -> float:
    return 0.0 if _is_won_or_lost(difference) else float(2 * np.abs(difference).max() ** 2)


def _scaled(difference: Float[np.ndarray, "head row"]) -> Float[np.ndarray, "head row"]:
    spread = np.sqrt((difference**2).sum(1) + _unseen(difference))[:, None]
    return np.divide(difference, spread, out=np.zeros_like(difference), where=spread > 0)


def _alone(difference: Float[np.ndarray, "head row"]) -> Float[np.ndarray, " head"]:
    """p of each head by itself; 1 where too few rows changed for one, and where all changed by the same: so do rows
    among which a rare large change was not seen, and nothing tells how large it is."""
    values = difference.T
    spread = few_inputs.spread_of(values, np.ones(values.shape, dtype=bool), values.mean(0))
    p = few_inputs.p_either(values.mean(0), spread)
    return np.where(np.isfinite(p) & (spread.error > 0), p, 1.0)


@dataclass(frozen=True)
class SplitHalf:
    """What the head that was best on one half does on the other; means over random halves.

    Attributes:
        low, high: 2.5% and 97.5% of the held-out gains over splits of these same rows: how much the split matters, no
            confidence interval for other rows.
        same: share of splits in which it was chosen.
    """

    chosen: float
    held_out: float
    low: float
    high: float
    head: int
    same: float


def split_half(before: Outcomes, after: HeadOutcomes, *, seed: int = 0, splits: int = 500) -> SplitHalf:
    """Choose the best head on a random half of the rows and score it on the other half, many times.

    Raises:
        InputError: fewer than two rows.
    """
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)[None]
    rows = difference.shape[1]
    if rows < 2:
        raise InputError(f"A split needs at least two rows; seen {rows}: take more rows.")
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


@dataclass(frozen=True)
class Agreement:
    """Rank correlation of two scores of n heads, with the p of Spearman's; None where one is constant."""

    spearman: float | None
    kendall: float | None
    p: float | None
    n: int


def rank_agreement(scores: Shaped[np.ndarray, " head"], others: Shaped[np.ndarray, " other"]) -> Agreement:
    """Spearman's rho and Kendall's tau-b between two scores of the same heads.

    Args:
        others: of the same heads; heads with a NaN in either are left out.

    Returns:
        Also the p of rho, and how many heads are left; None for fewer than three of these or a constant score.

    Raises:
        InputError: the two are not of equally many heads.
    """
    first, second = np.asarray(scores, dtype=float), np.asarray(others, dtype=float)
    if first.shape != second.shape:
        raise InputError(f"Scores of the same heads are compared; seen {first.shape} and {second.shape}.")
    is_finite = np.isfinite(first) & np.isfinite(second)
    first, second = first[is_finite], second[is_finite]
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Agreement(None, None, None, len(first))
    rho = scipy.stats.spearmanr(first, second)
    tau = scipy.stats.kendalltau(first, second)
    return Agreement(float(rho.statistic), float(tau.statistic), float(rho.pvalue), len(first))
