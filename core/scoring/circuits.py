"""Interactions, Shapley values and gate classes of heads; stability and faithfulness of circuits; heads found again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int

from ..errors import InputError
from .corrections import CONFIDENCE
from .intervals import wilson_interval

# ---------------------------------------------------------------- interactions and Shapley values


def interactions(
    alone: Float[np.ndarray, "head row"], together: Float[np.ndarray, "pair row"], pairs: Int[np.ndarray, "pair two"]
) -> Float[np.ndarray, "pair row"]:
    """Return the interaction of each pair of heads, effect({i, j}) - effect(i) - effect(j), in units of the metric.

    An effect is m of the unmodified model minus m with the ablation. Positive: redundant heads; negative: cooperating
    heads.
    """
    return together - alone[pairs[:, 0]] - alone[pairs[:, 1]]


def antithetic_orders(heads: int, count: int, generator: np.random.Generator) -> Int[np.ndarray, "order head"]:
    """Return `count` random orders of the heads, in which every second order is the reverse of the one before it.
    Raises InputError if `count` is odd or below 2."""
    if count < 2 or count % 2:
        raise InputError(
            "The number of random orders must be a positive even number, because every order is also used in reverse; "
            f"got {count}. Choose an even number."
        )
    drawn = np.stack([generator.permutation(heads) for _ in range(count // 2)])
    return np.stack([drawn, drawn[:, ::-1]], 1).reshape(count, heads)


def sets_along(orders: Int[np.ndarray, "order head"]) -> list[list[frozenset[int]]]:
    """For each order of the heads, return the set of ablated heads after each step."""
    return [[frozenset(int(head) for head in order[: k + 1]) for k in range(len(order))] for order in orders]


def shapley_values(
    with_all: float, values: Float[np.ndarray, "order step"], orders: Int[np.ndarray, "order head"]
) -> Float[np.ndarray, " head"]:
    """Return the Shapley value of each head. It is the decrease in a metric when the head is ablated, averaged over
    orders of ablation.

    The Shapley values add up to the metric with all heads minus the metric without heads. `values` is the metric after
    ablating 1, 2, ..., all heads of an order.
    """
    before = np.concatenate([np.full((len(orders), 1), with_all), values[:, :-1]], 1)
    falls = before - values
    added = np.zeros(orders.shape[1])
    for order, fall in zip(orders, falls, strict=True):
        added[order] += fall
    return added / len(orders)


# ---------------------------------------------------------------- classes of gates


GateClass = Literal["facilitating", "interfering", "irrelevant", "undecided"]
CLASSES: tuple[GateClass, ...] = get_args(GateClass)
CLAIMED = 0.95  # fraction of the fits in which a class must appear; otherwise the head is undecided


def class_shares(
    up: Float[np.ndarray, "fit head"], down: Float[np.ndarray, "fit head"]
) -> Float[np.ndarray, "head three"]:
    """Return the fractions of gate fits in which each head is facilitating, interfering and irrelevant.

    Facilitating: gate above 1/2 at both prices. Interfering: below at both. Irrelevant: above only if the price pushes
    gates up (`up`). The remaining case has no class. Raises InputError without fits.
    """
    if not len(up):
        raise InputError(
            "Gates must be fitted at least once with a reward and at least once with a penalty for open gates; got "
            f"{len(up)} fits with a reward and {len(down)} with a penalty. Fit the gates with both."
        )
    high, stays = up > 0.5, down > 0.5
    parts: list[Bool[np.ndarray, "fit head"]] = [high & stays, ~high & ~stays, high & ~stays]
    return np.stack([part.mean(0) for part in parts], 1)


def classes_of(shares: Float[np.ndarray, "head three"]) -> list[GateClass]:
    """Return the most frequent class of each head over gate fits; "undecided" if its frequency is below CLAIMED."""
    return [CLASSES[int(row.argmax())] if row.max() >= CLAIMED - 1e-12 else "undecided" for row in shares]


THRESHOLD = 0.9  # selection probability from which an edge belongs to the stable set
SPLITS = 50  # random splits of the pairs into halves
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # fractions of all edges


def half_level(edges: int, threshold: float = THRESHOLD) -> float:
    """Return the significance level at which stability selection tests each edge on half of the input pairs. The level
    is sqrt((2 threshold - 1) / edges).

    At this level, at most one edge without an effect is expected to be stable. Two halves without common pairs both
    select such an edge with probability level^2. If a fraction `threshold` of all halves selects an edge, at least a
    fraction 2 threshold - 1 of these splits does so in both halves. By Markov's inequality, an edge without an effect
    is therefore stable with probability at most level^2 / (2 threshold - 1) = 1 / edges. Edges may have any variances
    and dependence (Shah and Samworth 2013, complementary pairs; Meinshausen and Buehlmann 2010 require exchangeable
    noise).
    """
    if not 0.5 < threshold <= 1:
        raise InputError(
            f"The threshold of stability selection must be above 0.5 and at most 1; got {threshold:g}. Choose a "
            "value such as 0.9."
        )
    return float(np.sqrt((2 * threshold - 1) / edges))


def selection_probabilities(
    effects: Float[np.ndarray, "edge pair"], level: float, *, splits: int = SPLITS, seed: int = 0
) -> Float[np.ndarray, " edge"]:
    """Return how often each edge is selected, as a fraction of random halves of the input pairs. An edge is selected if
    its mean effect differs significantly from 0 (two-sided t test).

    Edges with a NaN effect, dropped by the sequential test, count as not selected. Each of the `splits` gives two
    disjoint halves. Raises InputError for fewer than four pairs.
    """
    pairs = effects.shape[1]
    if pairs < 4:
        raise InputError(
            f"Stability selection on half-samples needs at least four pairs of inputs; got {pairs}. Add pairs."
        )
    is_finite, size = np.isfinite(effects).all(1), pairs // 2
    values = np.where(is_finite[:, None], effects, 0.0)
    generator, chosen = np.random.default_rng(seed), np.zeros((2 * splits, pairs))
    for split in range(splits):
        order = generator.permutation(pairs)
        chosen[2 * split, order[:size]] = chosen[2 * split + 1, order[size : 2 * size]] = 1 / size
    means = values @ chosen.T
    scales = np.abs(values).max(1, keepdims=True)  # below a millionth of these a spread is rounding
    squares = np.maximum((values**2) @ chosen.T - means**2, 1e-12 * scales**2)
    errors = np.sqrt(squares / (size - 1))
    return (np.abs(means) > scipy.special.stdtrit(size - 1, 1 - level / 2) * errors).mean(1)


def circuit_sizes(edges: int) -> list[int]:
    """Return the numbers of edges for which a faithfulness curve is computed, in ascending order."""
    return sorted({min(edges, max(1, round(share * edges))) for share in SHARES})


def curve_areas(sizes: Sequence[int], faithfulness: Sequence[float], edges: int) -> tuple[float, float]:
    """Return CPR, the area under a faithfulness curve, and CMD, the area between the curve and 1. The x axis is the
    fraction of edges in the circuit (MIB, arXiv 2504.13151).

    Trapezoids from the empty circuit (faithfulness 0) to the whole model, which is last in `sizes` (ascending).
    """
    shares = np.concatenate([[0.0], np.asarray(sizes) / edges])
    values = np.concatenate([[0.0], np.asarray(faithfulness, dtype=float)])
    return float(np.trapezoid(values, shares)), float(np.trapezoid(np.abs(1 - values), shares))


# ---------------------------------------------------------------- heads found again in other training runs


@dataclass(frozen=True)
class Recurring:
    """For each head, the number of other training runs in which the head has a counterpart, with summary statistics.

    Attributes:
        low, high: 95 % interval of the fraction of runs (Wilson 1927).
        everywhere, nowhere: number of heads found in all runs, and in no run.
        share: mean over runs of the fraction of heads found again.
        share_low, share_high: its 95 % t interval over runs, clipped to 0 and 1; NaN for a single run.
    """

    found: Int[np.ndarray, " head"]
    low: Float[np.ndarray, " head"]
    high: Float[np.ndarray, " head"]
    everywhere: int
    nowhere: int
    share: float
    share_low: float
    share_high: float


def recurring(matched: Bool[np.ndarray, "run head"]) -> Recurring:
    """Return, for each head, the number of other training runs in which the head has a counterpart. This measures
    stability over seeds (arXiv 2602.16740)."""
    runs, matches = len(matched), matched.sum(0)
    below, above = np.clip(wilson_interval(matches, runs), 0, 1)
    shares = matched.mean(1)
    reach = (
        scipy.special.stdtrit(runs - 1, (1 + CONFIDENCE) / 2) * shares.std(ddof=1) / runs**0.5 if runs > 1 else np.nan
    )
    mean = float(shares.mean())
    low, high = np.clip([mean - reach, mean + reach], 0, 1).tolist()
    return Recurring(
        matches, below, above,
        int((matches == runs).sum()), int((matches == 0).sum()), mean, low, high,
    )  # fmt: skip


def recurs_by_chance(in_circuit: Bool[np.ndarray, "run head"]) -> float:
    """Return the p value of the number of heads that the circuits of all runs share. Under the null hypothesis,
    circuits are random sets of the same sizes.

    Exact (hypergeometric, run by run); 1 for a single run.
    """
    heads, sizes = in_circuit.shape[1], in_circuit.sum(1)
    common = np.zeros(heads + 1)
    common[sizes[0]] = 1.0
    counts = np.arange(heads + 1)
    for size in sizes[1:]:
        hits = [scipy.stats.hypergeom.pmf(counts, heads, so_far, size) for so_far in counts]
        common = common @ np.array(hits)
    return float(min(1.0, common[int(in_circuit.all(0).sum()) :].sum()))
