"""Shares of classes over maps, their changes, and what a classifier's errors do to them.

Intervals resample inputs, not maps, because the maps of one input are alike. Classes are numbered in the order of their
class set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from scipy.optimize import nnls

from core.patterns.evaluation import resampled
from core.patterns.percentiles import ends

MOVED_SAMPLES, CORRECTED_SAMPLES = 10_000, 400  # resamples of inputs: a least-squares fit for each of the latter


@dataclass(frozen=True)
class Share:
    """How much of the maps a class takes, 0 to 1, with the 95 % interval over inputs; count of maps."""

    name: str
    share: float
    low: float
    high: float
    count: int


def shares(counts: Int[np.ndarray, "input class"], names: Sequence[str], *, seed: int = 0) -> list[Share]:
    """Share of each class over all maps (Fig 2), intervals by resampling inputs.

    Returns:
        A share for each class, in their order.
    """
    total = counts.sum(0)
    drawn = resampled(counts, seed=seed).astype(np.float64)
    return _rows(names, total / total.sum(), drawn / drawn.sum(1, keepdims=True), total, len(counts))


@dataclass(frozen=True)
class MovedShare:
    """The change of a class's share.

    Attributes:
        change: share after less share before, -1 to 1.
        low, high: its 95 % interval.
    """

    name: str
    change: float
    low: float
    high: float
    low_all: float
    high_all: float


def moved_shares(
    before: Int[np.ndarray, "input class"],
    after: Int[np.ndarray, "input class"],
    names: Sequence[str],
    *,
    seed: int = 0,
) -> list[MovedShare]:
    """Change of each class's share between two checkpoints on the same inputs (Prasanna et al.).

    Inputs are resampled with both of their counts, so what they share cancels. The second interval is Bonferroni's over
    the classes: it may be read after looking for the class that moves most.

    Args:
        after: the same of the other checkpoint, inputs in the same order.

    Returns:
        A change for each class, in their order.
    """
    both = np.stack([before, after], axis=1)
    total = both.sum(0)
    change = total[1] / total[1].sum() - total[0] / total[0].sum()
    drawn = resampled(both, seed=seed, samples=MOVED_SAMPLES).astype(np.float64)
    moved = drawn[:, 1] / drawn[:, 1].sum(1, keepdims=True) - drawn[:, 0] / drawn[:, 0].sum(1, keepdims=True)
    both_ends = np.concatenate([ends(moved, len(both)), ends(moved, len(both), tail=0.025 / len(names))])
    return [MovedShare(name, float(change[k]), *map(float, both_ends[:, k])) for k, name in enumerate(names)]


def corrected_shares(
    counts: Int[np.ndarray, "input class"],
    held_out: Int[np.ndarray, "group class class"],
    names: Sequence[str],
    *,
    seed: int = 0,
) -> list[Share]:
    """Shares freed of the classifier's own confusions.

    With C[t, p] = P(predicted p | true t) of the held-out maps, the observed shares are C^T s; s is the non-negative
    least-squares solution, scaled to 1. Both the inputs classified and the labelled inputs are resampled.

    Args:
        counts: maps in each input that were classified as each class.
        held_out: confusions of held-out maps by group (`by_group`). A class without any is taken to be predicted right.

    Returns:
        A share for each class, in their order.
    """
    total = counts.sum(0)
    observed = resampled(counts, seed=seed, samples=CORRECTED_SAMPLES)
    confusions = resampled(held_out, seed=seed + 1, samples=CORRECTED_SAMPLES)
    drawn = np.stack([_unmixed(seen, confusion) for seen, confusion in zip(observed, confusions, strict=True)])
    return _rows(names, _unmixed(total, held_out.sum(0)), drawn, total, min(len(counts), len(held_out)))


def _unmixed(observed: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    rows = confusion.sum(1, keepdims=True)
    chance = np.where(rows > 0, confusion / np.maximum(rows, 1), np.eye(len(confusion)))
    shares, _ = nnls(chance.T, observed / observed.sum())
    return shares / shares.sum()


def _rows(names: Sequence[str], value: np.ndarray, drawn: np.ndarray, total: np.ndarray, groups: int) -> list[Share]:
    low, high = ends(drawn, groups)
    return [Share(name, float(value[k]), float(low[k]), float(high[k]), int(total[k])) for k, name in enumerate(names)]
