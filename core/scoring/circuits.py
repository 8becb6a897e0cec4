"""Circuits as sets of edges: how often each edge is selected, how stable that is, and how faithful circuits are."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from core.errors import InputError

THRESHOLD = 0.9  # of the selection probability, from which an edge belongs to the stable set
HALVES = 100
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of all edges: sizes of circuits on a curve


def most_selected(edges: int, threshold: float = THRESHOLD) -> int:
    """q: how many edges each half may select, so that at most one edge of the stable set is expected to be false.

    The expected number is at most q^2 / ((2 threshold - 1) edges) (Meinshausen and Buehlmann 2010, theorem 1).
    """
    if not 0.5 < threshold <= 1:
        raise InputError(f"A threshold of selection lies above 0.5, up to 1; seen {threshold:g}: choose 0.9.")
    return max(1, int(np.sqrt((2 * threshold - 1) * edges)))


def false_bound(edges: int, threshold: float = THRESHOLD) -> float:
    """At most how many edges of the stable set are expected to be false, where each half selects `most_selected`."""
    return most_selected(edges, threshold) ** 2 / ((2 * threshold - 1) * edges)


def selection_probabilities(
    effects: Float[np.ndarray, "edge pair"], strongest: int, *, halves: int = HALVES, seed: int = 0
) -> Float[np.ndarray, " edge"]:
    """In which share of random half-samples of the pairs each edge is among those of the largest |mean effects|.

    Args:
        effects: of each edge on each pair. An edge without effects on every pair (NaN: it was raced out) counts as not
            selected, and so does one whose mean is 0.
        strongest: how many edges each half-sample selects at most.
        halves: how many half-samples are drawn.
        seed: of the half-samples.

    Returns:
        *Range:* 0 to 1.

    Raises:
        InputError: fewer than four pairs.
    """
    is_finite = np.isfinite(effects).all(1)
    values, counts = np.where(is_finite[:, None], effects, 0.0), np.zeros(len(effects))
    generator, pairs = np.random.default_rng(seed), effects.shape[1]
    if pairs < 4:
        raise InputError(f"Half-samples need at least four pairs; seen {pairs}: bring more pairs.")
    for _ in range(halves):
        half = generator.permutation(pairs)[: pairs // 2]
        size = np.abs(values[:, half].mean(1))
        counts[_largest(size, strongest)] += 1
    return counts / halves


def _largest(size: Float[np.ndarray, " edge"], count: int) -> Bool[np.ndarray, " edge"]:
    order = np.argsort(-size, kind="stable")[:count]
    chosen = np.zeros(len(size), dtype=bool)
    chosen[order] = True
    return chosen & (size > 0)


def circuit_sizes(edges: int) -> list[int]:
    """How many edges the circuits of a curve have, smallest first."""
    return sorted({min(edges, max(1, round(share * edges))) for share in SHARES})


def curve_areas(sizes: Sequence[int], faithfulness: Sequence[float], edges: int) -> tuple[float, float]:
    """Areas of a curve of faithfulness over the share of edges: CPR, under it, and CMD, between it and 1.

    MIB, arXiv 2504.13151. Trapezoids, from a circuit without edges, whose faithfulness is 0, to the whole model.

    Args:
        sizes: how many edges each circuit has, smallest first, the whole model last.
        faithfulness: of each circuit, 1 as faithful as the whole model.
        edges: of the whole model.

    Returns:
        CPR and CMD.
    """
    shares = np.concatenate([[0.0], np.asarray(sizes) / edges])
    values = np.concatenate([[0.0], np.asarray(faithfulness, dtype=float)])
    return float(np.trapezoid(values, shares)), float(np.trapezoid(np.abs(1 - values), shares))
