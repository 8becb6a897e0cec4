"""Shares of pattern classes over maps, their changes, and corrections for the classifier's errors.

Intervals resample inputs, because maps of one input are similar. Classes are in the order of their class set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int
from scipy.optimize import nnls

from .evaluation import ends, resampled

MOVED_SAMPLES, CORRECTED_SAMPLES = 10_000, 400  # resamples of inputs; of confusion matrices
LEVEL = 0.05  # p of the fit below which a corrected share has no interval
RISE = 3.841459  # 95 % quantile of chi-square with one degree of freedom
REWEIGHTED, HALVED = 4, 12  # iterations of reweighting; bisections of an interval end (1 / 4096)
DRAWN, FITS = 199, 1e-6  # parametric bootstrap draws; chi-square of a perfect fit
HEAVY, TINY = 1e4, 1e-9  # weight of the constraint that shares sum to 1; ridge for constant values


@dataclass(frozen=True)
class Share:
    """Share of a class over maps, 0 to 1, with its 95 % CI over inputs."""

    name: str
    share: float
    low: float
    high: float
    count: int


def shares(counts: Int[np.ndarray, "input class"], names: Sequence[str], *, seed: int = 0) -> list[Share]:
    """Return the share of each class over all maps (Fig 2), with intervals from resampled inputs."""
    total = counts.sum(0)
    drawn = resampled(counts, seed=seed).astype(np.float64)
    return _rows(names, total / total.sum(), drawn / drawn.sum(1, keepdims=True), total, len(counts))


@dataclass(frozen=True)
class MovedShare:
    """Change of a class's share, after minus before.

    Attributes:
        low, high: 95 % CI.
        low_all, high_all: 95 % CI simultaneous over classes (Bonferroni).
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
    """Return the change of each class's share between two checkpoints on the same inputs (Prasanna et al.).

    Paired resampling: each input keeps both of its counts. The simultaneous interval is valid after selecting the class
    that
    changes most.
    """
    both = np.stack([before, after], axis=1)
    total = both.sum(0)
    change = total[1] / total[1].sum() - total[0] / total[0].sum()
    drawn = resampled(both, seed=seed, samples=MOVED_SAMPLES).astype(np.float64)
    moved = drawn[:, 1] / drawn[:, 1].sum(1, keepdims=True) - drawn[:, 0] / drawn[:, 0].sum(1, keepdims=True)
    both_ends = np.concatenate([ends(moved, len(both)), ends(moved, len(both), tail=0.025 / len(names))])
    return [MovedShare(name, float(change[k]), *map(float, both_ends[:, k])) for k, name in enumerate(names)]


@dataclass(frozen=True)
class CorrectedShare(Share):
    """A share corrected for the classifier's confusions; low and high are NaN if `misfit` is below LEVEL.

    misfit: p of a chi-square test (parametric bootstrap, all classes together) that some shares, confused as on the
    held-out
    maps, explain the observed counts.
    """

    misfit: float


def corrected_shares(
    counts: Int[np.ndarray, "input class"],
    held_out: Int[np.ndarray, "group class class"],
    names: Sequence[str],
    *,
    seed: int = 0,
) -> list[CorrectedShare]:
    """Return shares corrected for the classifier's confusions.

    With C[t, p] = P(predicted p | true t) on held-out maps, the observed shares f equal C^T s. s is the non-negative
    solution
    with sum 1 that minimises the chi-square (f - C^T s)^T V^-1 (f - C^T s), where V combines the errors of f over
    inputs and of
    C over groups of labelled maps, scaled by s. An interval contains all values for which the chi-square rises by at
    most the
    95 % quantile with one degree of freedom (Anderson and Rubin 1949; valid if C comes from few maps). If the best s
    does not
    fit, the classifier makes other errors than on its labelled maps, and there is no interval.

    Args:
        counts: maps of each input by predicted class.
        held_out: confusions of held-out maps by group (`by_group`). A class without maps is assumed to be predicted
            correctly.
    """
    fit = _Fit.of(counts, held_out)
    shares, least = fit.best()
    misfit = fit.misfit(shares, least, seed)
    ends = [
        fit.interval(k, float(shares[k]), least) if misfit >= LEVEL else (np.nan, np.nan) for k in range(len(names))
    ]
    total = counts.sum(0)
    return [
        CorrectedShare(name, float(share), *own_ends, int(count), misfit)
        for name, share, own_ends, count in zip(names, shares, ends, total, strict=True)
    ]


@dataclass(frozen=True)
class _Fit:
    """Observed shares and confusion matrix with the covariances of their errors.

    Attributes:
        observed: fraction of maps by predicted class.
        chance: P(predicted | true), [true, predicted].
        chance_errors: covariance of each row of `chance`.
    """

    observed: np.ndarray
    observed_errors: np.ndarray
    chance: np.ndarray
    chance_errors: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray, held_out: np.ndarray) -> "_Fit":
        total, inputs = counts.sum(), len(counts)
        observed = counts.sum(0) / total
        apart = counts - counts.sum(1, keepdims=True) * observed
        errors = apart.T @ apart / total**2 * inputs / max(1, inputs - 1)
        confusions, groups = held_out.sum(0).astype(float), held_out.sum(2)
        labelled = confusions.sum(1)
        chance = np.where(labelled[:, None] > 0, confusions / np.maximum(labelled, 1)[:, None], np.eye(len(confusions)))
        prior = (confusions.sum(0) + 0.5) / (confusions.sum() + 0.5 * len(confusions))
        row_errors = np.zeros((len(chance), *chance.shape))
        for true in np.flatnonzero(labelled):
            # errors smoothed by one more map: twelve maps without an error do not imply that errors are impossible
            smooth = (confusions[true] + prior) / (labelled[true] + 1)
            of_maps = (np.diag(smooth) - np.outer(smooth, smooth)) / labelled[true]
            apart = held_out[:, true] - groups[:, true, None] * chance[true]
            used = (groups[:, true] > 0).sum()
            of_groups = (apart**2).sum() / labelled[true] ** 2 * used / max(1, used - 1)
            alone = (1 - (chance[true] ** 2).sum()) / labelled[true]
            row_errors[true] = of_maps * max(
                1.0, of_groups / alone if alone > 0 else 1.0
            )  # maps of a group are similar
        return cls(observed, errors, chance, row_errors)

    def best(self, fixed: int | None = None, value: float = 0.0) -> tuple[np.ndarray, float]:
        """Return the shares of least chi-square, and the chi-square; one share may be fixed."""
        classes = len(self.observed)
        free = [k for k in range(classes) if k != fixed]
        shares = np.full(classes, 1 / classes)
        for _ in range(REWEIGHTED):
            errors = self._errors(shares)
            whitening = np.linalg.inv(
                np.linalg.cholesky(errors[:-1, :-1] + TINY * np.eye(classes - 1))
            )  # shares sum to 1
            matrix, target = whitening @ self.chance.T[:-1], whitening @ self.observed[:-1]
            rest = target if fixed is None else target - matrix[:, fixed] * value
            sums = HEAVY * np.ones((1, len(free))), [HEAVY * (1 - (0.0 if fixed is None else value))]
            shares = np.full(classes, value)
            shares[free] = nnls(np.vstack([matrix[:, free], sums[0]]), np.concatenate([rest, sums[1]]))[0]
            least = float(((matrix @ shares - target) ** 2).sum())
        return shares, least

    def misfit(self, shares: np.ndarray, least: float, seed: int) -> float:
        """Return p of the least chi-square by a parametric bootstrap."""
        if least < FITS:
            return 1.0
        drawn = np.random.default_rng(seed).multivariate_normal(
            self.chance.T @ shares, self._errors(shares), size=DRAWN, check_valid="ignore"
        )
        return float(1 + sum(replace(self, observed=one).best()[1] >= least for one in drawn)) / (DRAWN + 1)

    def _errors(self, shares: np.ndarray) -> np.ndarray:
        return self.observed_errors + np.einsum("t,tij->ij", shares**2, self.chance_errors)

    def interval(self, number: int, share: float, least: float) -> tuple[float, float]:
        """Return the range of a share for which the chi-square exceeds its minimum by at most RISE."""

        def end(outside: float) -> float:
            if self.best(number, outside)[1] - least <= RISE:
                return outside
            inside = share
            for _ in range(HALVED):
                middle = (inside + outside) / 2
                inside, outside = (
                    (middle, outside) if self.best(number, middle)[1] - least <= RISE else (inside, middle)
                )
            return outside

        return end(0.0), end(1.0)


def _rows(names: Sequence[str], value: np.ndarray, drawn: np.ndarray, total: np.ndarray, groups: int) -> list[Share]:
    low, high = ends(drawn, groups)
    return [Share(name, float(value[k]), float(low[k]), float(high[k]), int(total[k])) for k, name in enumerate(names)]
