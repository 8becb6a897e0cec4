"""Shares of pattern classes among maps, their changes, and corrections for classifier errors.

Intervals resample inputs, because maps of one input are similar. Classes are in the order of their class set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float, Int

from .evaluation import ends, resampled

MOVED_SAMPLES = 10_000  # resamples of inputs
MISFIT_LEVEL = 0.05  # p of the fit below which a corrected share has no interval
RISE = 3.841459  # 95 % quantile of chi-square with one degree of freedom
REWEIGHTED, HALVED = 4, 12  # iterations of reweighting; bisections of an interval end (1 / 4096)
DRAWN, FITS = 199, 1e-6  # parametric bootstrap draws; chi-square of a perfect fit
HEAVY, TINY = 1e4, 1e-9  # weight of the constraint that shares sum to 1; ridge for constant values


@dataclass(frozen=True)
class Share:
    """The fraction of attention maps that belong to a pattern class, with a 95 % CI over inputs."""

    name: str
    share: float
    low: float
    high: float
    count: int


def shares(counts: Int[np.ndarray, "input class"], names: Sequence[str], *, seed: int = 0) -> list[Share]:
    """Return the fraction of attention maps in each pattern class, with CIs from a bootstrap over inputs."""
    total = counts.sum(0)
    drawn = resampled(counts, seed=seed).astype(np.float64)
    value = total / total.sum()
    low, high = ends(drawn / drawn.sum(1, keepdims=True), len(counts))
    return [Share(name, float(value[k]), float(low[k]), float(high[k]), int(total[k])) for k, name in enumerate(names)]


@dataclass(frozen=True)
class MovedShare:
    """The change (after minus before) in the fraction of attention maps that belong to a pattern class, with a 95 % CI.

    `low_all` and `high_all` hold jointly for all classes (Bonferroni).
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
    """Return the change in the fraction of attention maps in each pattern class between two checkpoints on the same
    inputs.

    Each resampled input keeps both of its counts (paired). The joint interval is valid after selecting the class that
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
    """The fraction of attention maps in a pattern class, corrected for classification errors. `low` and `high` are NaN
    if the correction does not fit the data.

    `misfit` is p of a chi-square test (parametric bootstrap, all classes together) that some shares, confused as on the
    held-out maps, explain the observed counts.
    """

    misfit: float


def corrected_shares(
    counts: Int[np.ndarray, "input class"],
    held_out: Int[np.ndarray, "group class class"],
    names: Sequence[str],
    *,
    seed: int = 0,
) -> list[CorrectedShare]:
    """Return the fraction of attention maps in each pattern class, corrected for the classifier's errors on held-out
    maps.

    With C[t, p] = P(predicted p | true t) on held-out maps, the observed shares f equal C^T s. s is the non-negative
    solution with sum 1 that minimises the chi-square (f - C^T s)^T V^-1 (f - C^T s), where V combines the errors of f
    over inputs and of C over groups of labelled maps, scaled by s. An interval contains all values for which the
    chi-square rises by at most the 95 % quantile with one degree of freedom (Anderson and Rubin 1949; valid if C comes
    from few maps). If the best s does not fit, the classifier makes other errors than on its labelled maps, and there
    is no interval.

    Args:
        counts: maps of each input by predicted class.
        held_out: confusions of held-out maps by group (`by_group`). A class without maps is assumed to be predicted
            right.
    """
    fit = Fit.of(counts, confusion_errors(held_out))
    shares, least = fit.best()
    misfit = fit.misfit(shares, least, seed)
    ends = [
        fit.interval(one_class, shares, least) if misfit >= MISFIT_LEVEL else (np.nan, np.nan)
        for one_class in np.eye(len(names), dtype=bool)
    ]
    total = counts.sum(0)
    return [
        CorrectedShare(name, float(share), *own_ends, int(count), misfit)
        for name, share, own_ends, count in zip(names, shares, ends, total, strict=True)
    ]


@dataclass(frozen=True)
class ConfusionErrors:
    """How often a pattern classifier predicts each class for each true class, as probabilities with covariances of
    their errors. Both are estimated from held-out maps.

    Attributes:
        chance: rows sum to 1. *Shape:* (true class, predicted class).
        errors: covariance of each row over the labelled maps. *Shape:* (true class, predicted class, predicted class).
    """

    chance: np.ndarray
    errors: np.ndarray


def confusion_errors(held_out: Int[np.ndarray, "group class class"]) -> ConfusionErrors:
    """Estimate the confusion probabilities of a classifier, and the covariances of their errors, from held-out maps.

    A class without maps is assumed to be predicted right.
    """
    confusions, groups = held_out.sum(0).astype(float), held_out.sum(2)
    labelled = confusions.sum(1)
    chance = np.where(labelled[:, None] > 0, confusions / np.maximum(labelled, 1)[:, None], np.eye(len(confusions)))
    prior = (confusions.sum(0) + 0.5) / (confusions.sum() + 0.5 * len(confusions))
    row_errors = np.zeros((len(chance), *chance.shape))
    for true in np.flatnonzero(labelled):
        # add one map with average errors: twelve maps without an error do not prove zero errors
        smooth = (confusions[true] + prior) / (labelled[true] + 1)
        of_maps = (np.diag(smooth) - np.outer(smooth, smooth)) / labelled[true]
        apart = held_out[:, true] - groups[:, true, None] * chance[true]
        used = (groups[:, true] > 0).sum()
        of_groups = (apart**2).sum() / labelled[true] ** 2 * used / max(1, used - 1)
        alone = (1 - (chance[true] ** 2).sum()) / labelled[true]
        row_errors[true] = of_maps * max(1.0, of_groups / alone if alone > 0 else 1.0)  # maps of a group are alike
    return ConfusionErrors(chance, row_errors)


@dataclass(frozen=True)
class Fit:
    """A minimum chi-square fit of the true class shares of attention maps. It corrects the predicted class shares with
    the confusion probabilities of the classifier."""

    observed: np.ndarray
    observed_errors: np.ndarray
    confusions: ConfusionErrors

    @classmethod
    def of(cls, counts: Int[np.ndarray, "input class"], confusions: ConfusionErrors) -> "Fit":
        """Create a fit from `counts`, the number of attention maps in each predicted class for each input. The
        covariances of errors come from the differences between inputs."""
        total, inputs = counts.sum(), len(counts)
        observed = counts.sum(0) / total
        apart = counts - counts.sum(1, keepdims=True) * observed
        return cls(observed, apart.T @ apart / total**2 * inputs / max(1, inputs - 1), confusions)

    @classmethod
    def of_head(cls, counts: Int[np.ndarray, " class"], confusions: ConfusionErrors) -> "Fit":
        """Fit the class shares of one head. `counts` is the number of maps in each predicted class. All maps must be
        from different inputs.

        Errors are computed with one more map that is spread over all classes.
        """
        smooth = (counts + 1 / len(counts)) / (counts.sum() + 1)
        return cls(counts / counts.sum(), (np.diag(smooth) - np.outer(smooth, smooth)) / counts.sum(), confusions)

    def best(self, chosen: np.ndarray | None = None, value: float = 0.0) -> tuple[np.ndarray, float]:
        """Return the class proportions with the smallest chi-square, and this chi-square. If `chosen` is given, the
        proportions of these classes must add up to `value`."""
        classes = len(self.observed)
        groups = np.ones((1, classes)) if chosen is None else np.stack([chosen, ~chosen]).astype(float)
        sums = [1.0] if chosen is None else [value, 1 - value]
        shares = np.full(classes, 1 / classes)
        for _ in range(REWEIGHTED):
            errors = self._errors(shares)
            # Shares add to 1
            whitening = np.linalg.inv(np.linalg.cholesky(errors[:-1, :-1] + TINY * np.eye(classes - 1)))
            matrix, target = whitening @ self.confusions.chance.T[:-1], whitening @ self.observed[:-1]
            constrained = np.concatenate([target, HEAVY * np.array(sums)])
            shares = scipy.optimize.nnls(np.vstack([matrix, HEAVY * groups]), constrained)[0]
            least = float(((matrix @ shares - target) ** 2).sum())
        return shares, least

    def misfit(self, shares: np.ndarray, least: float, seed: int) -> float:
        """Return the p value of a goodness-of-fit test for the estimated class shares, from a parametric bootstrap."""
        if least < FITS:
            return 1.0
        drawn = np.random.default_rng(seed).multivariate_normal(
            self.confusions.chance.T @ shares, self._errors(shares), size=DRAWN, check_valid="ignore"
        )
        return float(1 + sum(replace(self, observed=one).best()[1] >= least for one in drawn)) / (DRAWN + 1)

    def _errors(self, shares: np.ndarray) -> np.ndarray:
        return self.observed_errors + np.einsum("t,tij->ij", shares**2, self.confusions.errors)

    def interval(self, chosen: np.ndarray, shares: np.ndarray, least: float) -> tuple[float, float]:
        """Return the 95 % confidence interval for the total proportion of the classes `chosen`. It contains the
        proportions for which chi-square exceeds its minimum by at most RISE."""
        share = float(shares[chosen].sum())

        def end(outside: float) -> float:
            if self.best(chosen, outside)[1] - least <= RISE:
                return outside
            inside = share
            for _ in range(HALVED):
                middle = (inside + outside) / 2
                inside, outside = (
                    (middle, outside) if self.best(chosen, middle)[1] - least <= RISE else (inside, middle)
                )
            return outside

        return end(0.0), end(1.0)


# ---------------------------------------------------------------- without the classifier's confusions

# With C[t, p] = P(predicted p | true t) of held-out maps, counted shares c are C^T s. Of two counts by one classifier
# its errors are the same: a change of c is C^T times the change of s, whose error comes from the change alone, not
# from either count. Source: Rogan and Gladen 1978, "Estimating prevalence from the results of a screening test".


def true_changes(
    change: Float[np.ndarray, " class"],
    halves: Float[np.ndarray, " class"],
    held_out: Int[np.ndarray, "group class class"],
    *,
    several: int = 1,
) -> Float[np.ndarray, "three class"]:
    """Return the change in the proportion of each class, corrected for classification errors. The three rows are the
    estimate and the lower and upper bounds of its interval.

    A change always fits; misfits are detected in the shares before and after (`CorrectedShare.misfit`). Errors of
    inputs and of confusions are independent, so the squares of their half-widths are added.

    Args:
        change, halves: change of each observed share, and half the width of its interval over inputs; those of all
            classes are added, whatever their dependence.
        held_out: confusions of held-out maps by group. A class without maps is assumed to be predicted right.
        several: number of classes for which the interval holds jointly (Bonferroni).
    """
    confusions = confusion_errors(held_out)
    inverse = np.linalg.pinv(confusions.chance.T)
    value = inverse @ change
    spread = inverse @ np.einsum("t,tij->ij", value**2, confusions.errors) @ inverse.T
    reach = scipy.special.ndtri(1 - 0.025 / several) * np.sqrt(np.diagonal(spread))
    half = np.hypot(reach, np.abs(inverse) @ halves)
    return np.stack([value, value - half, value + half])


def true_shares(
    counts: Int[np.ndarray, "head class"],
    chosen: Bool[np.ndarray, " class"],
    held_out: Int[np.ndarray, "group class class"],
) -> Float[np.ndarray, "three head"]:
    """Return, for each head, the total proportion of the classes `chosen`, corrected for classification errors. The
    three rows are the estimate and the lower and upper bounds of its interval.

    Misfit is tested by chi-square with as many degrees of freedom as shares are 0 in the fit (Susko 2013, "Likelihood
    ratio tests with boundary constraints using data-dependent degrees of freedom"); bounds are NaN for heads that do
    not fit. `counts` are the maps of each head by predicted class, one per input; every head has maps.
    """
    confusions = confusion_errors(held_out)
    made = []
    for count in counts:
        fit = Fit.of_head(count, confusions)
        shares, least = fit.best()
        fits = least < FITS or scipy.special.chdtrc((shares == 0).sum(), least) >= MISFIT_LEVEL
        ends = fit.interval(chosen, shares, least) if fits else (np.nan, np.nan)
        made.append((float(shares[chosen].sum()), *ends))
    return np.array(made).T
