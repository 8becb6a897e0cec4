"""Circuits as sets of edges: how often each edge is selected, how stable that is, and how faithful circuits are."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int

from ..errors import InputError

# ---------------------------------------------------------------- interactions and Shapley values


def interactions(
    alone: Float[np.ndarray, "head row"], together: Float[np.ndarray, "pair row"], pairs: Int[np.ndarray, "pair two"]
) -> Float[np.ndarray, "pair row"]:
    """effect({i, j}) - effect(i) - effect(j) of each pair on each row.

    Args:
        alone: what is lost without each head: m untouched less m without it.
        together: what is lost without both heads of each pair.

    Returns:
        In the unit of m. Above 0: each stands in for the other (redundant). Below 0: they work together. 0: they only
            add.
    """
    return together - alone[pairs[:, 0]] - alone[pairs[:, 1]]


def antithetic_orders(heads: int, count: int, generator: np.random.Generator) -> Int[np.ndarray, "order head"]:
    """Orders of all heads at random, each followed by its reverse.

    Args:
        count: how many orders, reverses among them.

    Returns:
        Numbers of heads, from 0.

    Raises:
        InputError: `count` is odd, or below 2.
    """
    if count < 2 or count % 2:
        raise InputError(f"Orders come with their reverse, so their number is even and above 0; seen {count}.")
    drawn = np.stack([generator.permutation(heads) for _ in range(count // 2)])
    return np.stack([drawn, drawn[:, ::-1]], 1).reshape(count, heads)


def sets_along(orders: Int[np.ndarray, "order head"]) -> list[list[frozenset[int]]]:
    """Which heads are off at each step of each order: after 1, 2, ..., all heads were taken out.

    Returns:
        Of each order one set a step.
    """
    return [[frozenset(int(head) for head in order[: k + 1]) for k in range(len(order))] for order in orders]


def shapley_values(
    with_all: float, values: Float[np.ndarray, "order step"], orders: Int[np.ndarray, "order head"]
) -> Float[np.ndarray, " head"]:
    """What each head adds, mean over orders: the fall of m when it is taken out after those before it.

    They add up to m with all heads less m without any, whatever the orders.

    Args:
        values: m after 1, 2, ..., all heads were taken out, of each order.
        orders: numbers of heads in the order in which they were taken out.

    Returns:
        In the unit of m.
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
CLAIMED = 0.95  # share of the fits in which a class must come


def class_shares(
    up: Float[np.ndarray, "fit head"], down: Float[np.ndarray, "fit head"]
) -> Float[np.ndarray, "head three"]:
    """In which share of the fits each head is facilitating, interfering or irrelevant.

    High (above 1/2) under both pushes: facilitating. Low under both: interfering. High only with the push up:
    irrelevant. Low only with the push up, which no loss asks for: none of them, so shares add to at most 1.

    Args:
        up: gates that were fitted with a push up. *Range:* 0 to 1.
        down: gates that were fitted with a push down, in as many fits. *Range:* 0 to 1.

    Returns:
        In the order of CLASSES, without "undecided". *Range:* 0 to 1.

    Raises:
        InputError: there is no fit.
    """
    if not len(up):
        raise InputError(f"Gates are fitted with a push up and one down each; seen {len(up)} and {len(down)} fits.")
    high, stays = up > 0.5, down > 0.5
    parts: list[Bool[np.ndarray, "fit head"]] = [high & stays, ~high & ~stays, high & ~stays]
    return np.stack([part.mean(0) for part in parts], 1)


def classes_of(shares: Float[np.ndarray, "head three"], claimed: float = CLAIMED) -> list[GateClass]:
    """The class of each head.

    Args:
        shares: as `class_shares` gives them.
        claimed: the least share of the fits in which a class must come.

    Returns:
        One a head; "undecided" where no class comes in so many fits.
    """
    return [CLASSES[int(row.argmax())] if row.max() >= claimed - 1e-12 else "undecided" for row in shares]


THRESHOLD = 0.9  # of the selection probability, from which an edge belongs to the stable set
SPLITS = 50  # of the pairs into two halves
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of all edges: sizes of circuits on a curve


def half_level(edges: int, threshold: float = THRESHOLD) -> float:
    """The level at which an edge's mean is tested on half of the pairs, so that at most one edge without an effect is
    expected to be stable: sqrt((2 threshold - 1) / edges).

    Of an edge without an effect two halves that share no pair both find one with a chance of level^2. If a share of
    `threshold` of all halves finds one, at least a share of 2 threshold - 1 of such splits does in both halves; so by
    Markov's inequality an edge is stable with a chance of at most level^2 / (2 threshold - 1) = 1 / edges. No more is
    asked of the edges: they may have any variances and depend on each other (Shah and Samworth 2013, complementary
    pairs; Meinshausen and Buehlmann 2010 ask for noise that is exchangeable between edges).
    """
    if not 0.5 < threshold <= 1:
        raise InputError(f"A threshold of selection must be above 0.5, up to 1; got {threshold:g}. Choose 0.9.")
    return float(np.sqrt((2 * threshold - 1) / edges))


def selection_probabilities(
    effects: Float[np.ndarray, "edge pair"], level: float, *, splits: int = SPLITS, seed: int = 0
) -> Float[np.ndarray, " edge"]:
    """In which share of random halves of the pairs each edge's mean effect differs from 0 (Student's t, two-sided).

    Args:
        effects: of each edge on each pair. An edge with NaN (it was raced out) counts as not selected.
        splits: of the pairs into two halves that share none; one pair is left out where their number is odd.

    Returns:
        *Range:* 0 to 1.

    Raises:
        InputError: fewer than four pairs.
    """
    pairs = effects.shape[1]
    if pairs < 4:
        raise InputError(f"Half-samples need at least four pairs; got {pairs}. Bring more pairs.")
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
    """How many edges the circuits of a curve have, smallest first."""
    return sorted({min(edges, max(1, round(share * edges))) for share in SHARES})


def curve_areas(sizes: Sequence[int], faithfulness: Sequence[float], edges: int) -> tuple[float, float]:
    """Areas of a curve of faithfulness over the share of edges: CPR, under it, and CMD, between it and 1.

    MIB, arXiv 2504.13151. Trapezoids, from a circuit without edges, whose faithfulness is 0, to the whole model.

    Args:
        sizes: how many edges each circuit has, smallest first, the whole model last.
        faithfulness: of each circuit, 1 as faithful as the whole model.
    """
    shares = np.concatenate([[0.0], np.asarray(sizes) / edges])
    values = np.concatenate([[0.0], np.asarray(faithfulness, dtype=float)])
    return float(np.trapezoid(values, shares)), float(np.trapezoid(np.abs(1 - values), shares))
