"""Heads in pairs and in all sets: interactions, and Shapley values from permutations."""

import numpy as np
from jaxtyping import Float, Int

from core.errors import InputError


def interactions(
    alone: Float[np.ndarray, "head row"], together: Float[np.ndarray, "pair row"], pairs: Int[np.ndarray, "pair two"]
) -> Float[np.ndarray, "pair row"]:
    """effect({i, j}) - effect(i) - effect(j) of each pair on each row.

    Effects are what is lost: m untouched less m without. Above 0: each stands in for the other (redundant). Below 0:
    they work together. 0: they only add.
    """
    return together - alone[pairs[:, 0]] - alone[pairs[:, 1]]


def antithetic_orders(heads: int, count: int, generator: np.random.Generator) -> Int[np.ndarray, "order head"]:
    """Orders of all heads at random, each followed by its reverse. Raises InputError for an odd number."""
    if count < 2 or count % 2:
        raise InputError(f"Orders come with their reverse, so their number is even and above 0; seen {count}.")
    drawn = np.stack([generator.permutation(heads) for _ in range(count // 2)])
    return np.stack([drawn, drawn[:, ::-1]], 1).reshape(count, heads)


def sets_along(orders: Int[np.ndarray, "order head"]) -> list[list[frozenset[int]]]:
    """Of each order the heads that are off at each step: after 1, 2, ..., all heads were taken out."""
    return [[frozenset(int(head) for head in order[: k + 1]) for k in range(len(order))] for order in orders]


def shapley_values(
    whole: float, values: Float[np.ndarray, "order step"], orders: Int[np.ndarray, "order head"]
) -> Float[np.ndarray, " head"]:
    """What each head adds, mean over orders: the fall of m when it is taken out after those before it.

    whole: m of one row with all heads. values: m after 1, 2, ..., all heads were taken out, of each order. They add up
    to whole less m without any head, whatever the orders.
    """
    before = np.concatenate([np.full((len(orders), 1), whole), values[:, :-1]], 1)
    falls = before - values
    added = np.zeros(orders.shape[1])
    for order, fall in zip(orders, falls, strict=True):
        added[order] += fall
    return added / len(orders)
