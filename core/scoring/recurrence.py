"""Which heads recur over runs: shares of runs in which each was found again, with intervals over runs, and whether more
are found in all runs than runs that choose heads at random would have in common."""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from .intervals import wilson_interval

LEVEL = 0.95


@dataclass(frozen=True)
class Recurring:
    """How often heads were found again over runs.

    Attributes:
        low, high: 95 % interval of the share of runs (Wilson 1927). *Range:* 0 to 1.
        everywhere, nowhere: how many heads were found in all runs, in none.
        share: mean over runs of the share of heads that a run has again. *Range:* 0 to 1.
        share_low, share_high: its 95 % t interval over runs, cut to 0 and 1; NaN of a single run.
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
    """How often each head was found again over runs, and how many heads were in all runs or in none.

    Source: methods of stability over seeds, arXiv 2602.16740.

    Args:
        matched: whether each head has a counterpart in each run. At least one run.

    Returns:
        Counts and shares of runs; the mean share of heads has no interval (NaN) of a single run.
    """
    runs, matches = len(matched), matched.sum(0)
    below, above = np.clip(wilson_interval(matches, runs), 0, 1)
    shares = matched.mean(1)
    reach = stdtrit(runs - 1, (1 + LEVEL) / 2) * shares.std(ddof=1) / runs**0.5 if runs > 1 else np.nan
    mean = float(shares.mean())
    low, high = np.clip([mean - reach, mean + reach], 0, 1).tolist()
    return Recurring(
        matches, below, above,
        int((matches == runs).sum()), int((matches == 0).sum()), mean, low, high,
    )  # fmt: skip


def recurs_by_chance(in_circuit: Bool[np.ndarray, "run head"]) -> float:
    """How often runs that choose as many heads at random have as many heads in common.

    Source: the hypergeometric law, run after run: of m heads in common so far, those that the next k of H hit.

    Args:
        in_circuit: whether each head was found in each run. At least one run, one head.

    Returns:
        p, exact: the upper tail of how many heads are in all runs. *Range:* 0 to 1; 1 of a single run.
    """
    heads, sizes = in_circuit.shape[1], in_circuit.sum(1)
    common = np.zeros(heads + 1)
    common[sizes[0]] = 1.0
    counts = np.arange(heads + 1)
    for size in sizes[1:]:
        hits = [scipy.stats.hypergeom.pmf(counts, heads, so_far, size) for so_far in counts]
        common = common @ np.array(hits)
    return float(min(1.0, common[int(in_circuit.all(0).sum()) :].sum()))
