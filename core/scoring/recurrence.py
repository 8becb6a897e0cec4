"""Recurrence of heads over training runs: in how many runs each head is found again."""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from .corrections import CONFIDENCE
from .intervals import wilson_interval


@dataclass(frozen=True)
class Recurring:
    """Counts in how many other training runs each head was found again.

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
    """Return how often each head has a counterpart (`matched`) in other training runs (stability over seeds, arXiv
    2602.16740)."""
    runs, matches = len(matched), matched.sum(0)
    below, above = np.clip(wilson_interval(matches, runs), 0, 1)
    shares = matched.mean(1)
    reach = stdtrit(runs - 1, (1 + CONFIDENCE) / 2) * shares.std(ddof=1) / runs**0.5 if runs > 1 else np.nan
    mean = float(shares.mean())
    low, high = np.clip([mean - reach, mean + reach], 0, 1).tolist()
    return Recurring(
        matches, below, above,
        int((matches == runs).sum()), int((matches == 0).sum()), mean, low, high,
    )  # fmt: skip


def recurs_by_chance(in_circuit: Bool[np.ndarray, "run head"]) -> float:
    """Return the probability that random circuits of the same sizes share at least as many heads as the circuits of
    several runs.

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
