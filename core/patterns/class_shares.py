"""Shares of classes over maps, their changes, and what a classifier's errors do to them.

Intervals resample inputs, not maps, because the maps of one input are alike. Classes are numbered in the order of their
class set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int
from scipy.optimize import nnls

from .evaluation import ends, resampled

MOVED_SAMPLES, CORRECTED_SAMPLES = 10_000, 400  # resamples of inputs, and of confusions (core.patterns.unmixing)
LEVEL = 0.05  # of p that observed counts are confused true ones: below it a corrected share has no interval
RISE = 3.841459  # of chi-square with one degree of freedom, at 95 %
REWEIGHTED, HALVED = 4, 12  # errors hang on the shares; an end is known to 1 / 4096
DRAWN, FITS = 199, 1e-6  # draws under the fit; a chi-square of nothing
HEAVY, TINY = 1e4, 1e-9  # weight of the sum of shares in the fit; variance of what never varies


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


@dataclass(frozen=True)
class CorrectedShare(Share):
    """A share freed of the classifier's confusions; low and high are NaN where `misfit` is below LEVEL.

    Attributes:
        misfit: p of a chi-square test, by a parametric bootstrap, that some shares of the classes, confused as the
            held-out maps were, give the observed counts; of all classes together.
    """

    misfit: float


def corrected_shares(
    counts: Int[np.ndarray, "input class"],
    held_out: Int[np.ndarray, "group class class"],
    names: Sequence[str],
    *,
    seed: int = 0,
) -> list[CorrectedShare]:
    """Shares freed of the classifier's own confusions.

    With C[t, p] = P(predicted p | true t) of the held-out maps, the observed shares f are C^T s. s is the non-negative
    solution of sum 1 with the least chi-square, (f - C^T s)^T V^-1 (f - C^T s), where V has the errors of f over inputs
    and those of C over groups of labelled maps, which s scales. An interval is all values of a share at which the least
    chi-square rises by no more than that of one degree of freedom (Anderson and Rubin 1949: it holds where C is known
    from few maps, too). Where even the best s misfits, the classifier errs otherwise here than on its labelled maps,
    and there is no interval.

    Args:
        counts: maps in each input that were classified as each class.
        held_out: confusions of held-out maps by group (`by_group`). A class without any is taken to be predicted right.

    Returns:
        A share for each class, in their order.
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
    """Observed shares and the matrix of confusions, each with the covariance of its errors.

    Attributes:
        observed: share of maps that were classified as each class.
        chance: of each true class how often each class is predicted.
        chance_errors: of each true class the covariance of these over its labelled maps.
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
            # errors of one more map, spread as all are: twelve maps without an error do not show that there is none
            smooth = (confusions[true] + prior) / (labelled[true] + 1)
            of_maps = (np.diag(smooth) - np.outer(smooth, smooth)) / labelled[true]
            apart = held_out[:, true] - groups[:, true, None] * chance[true]
            used = (groups[:, true] > 0).sum()
            of_groups = (apart**2).sum() / labelled[true] ** 2 * used / max(1, used - 1)
            alone = (1 - (chance[true] ** 2).sum()) / labelled[true]
            row_errors[true] = of_maps * max(1.0, of_groups / alone if alone > 0 else 1.0)  # maps of a group are alike
        return cls(observed, errors, chance, row_errors)

    def best(self, fixed: int | None = None, value: float = 0.0) -> tuple[np.ndarray, float]:
        """The shares of least chi-square, and it; one share may be fixed at a value."""
        classes = len(self.observed)
        free = [k for k in range(classes) if k != fixed]
        shares = np.full(classes, 1 / classes)
        for _ in range(REWEIGHTED):
            errors = self._errors(shares)
            whitening = np.linalg.inv(
                np.linalg.cholesky(errors[:-1, :-1] + TINY * np.eye(classes - 1))
            )  # shares add to 1
            matrix, target = whitening @ self.chance.T[:-1], whitening @ self.observed[:-1]
            rest = target if fixed is None else target - matrix[:, fixed] * value
            sums = HEAVY * np.ones((1, len(free))), [HEAVY * (1 - (0.0 if fixed is None else value))]
            shares = np.full(classes, value)
            shares[free] = nnls(np.vstack([matrix[:, free], sums[0]]), np.concatenate([rest, sums[1]]))[0]
            least = float(((matrix @ shares - target) ** 2).sum())
        return shares, least

    def misfit(self, shares: np.ndarray, least: float, seed: int) -> float:
        """p of the least chi-square among those of draws with the errors that the fit has."""
        if least < FITS:
            return 1.0
        drawn = np.random.default_rng(seed).multivariate_normal(
            self.chance.T @ shares, self._errors(shares), size=DRAWN, check_valid="ignore"
        )
        return float(1 + sum(replace(self, observed=one).best()[1] >= least for one in drawn)) / (DRAWN + 1)

    def _errors(self, shares: np.ndarray) -> np.ndarray:
        return self.observed_errors + np.einsum("t,tij->ij", shares**2, self.chance_errors)

    def interval(self, number: int, share: float, least: float) -> tuple[float, float]:
        """All values of a share at which the least chi-square is no more than RISE above its least."""

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
