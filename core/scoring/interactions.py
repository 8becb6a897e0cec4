"""Heads in pairs and in all sets: interactions, and Shapley values from permutations."""

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError


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
