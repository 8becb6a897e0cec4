"""Do the people who label differ, in how often others agree with them, or in how often they give each class?

What a learned truth can gain over the majority is what people differ in: of people who are alike it learns noise.
Their skill is judged by nobody's truth: a label agrees with a share of the other labels of its map, and is compared
with labels of the same class. The spread beyond chance is that of people's means less what a shuffle of the names
leaves, and its interval that of a variance of normal means (chi-square). People who err alike look skilled here, as
they do to every method: votes cannot show it.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy  # its parts load when they are used

SHUFFLES = 200
LEVEL = 0.95


@dataclass(frozen=True)
class Spread:
    """Standard deviation over people beyond chance with its 95 % interval; NaN where nothing can be compared."""

    value: float
    low: float
    high: float


NOTHING = Spread(float("nan"), float("nan"), float("nan"))


def skill_spread(votes: pd.DataFrame, *, seed: int = 0) -> Spread:
    """How much people differ in the share of others who agree with them, among labels of the same class.

    Returns:
        The spread of shares, 0 to 1; NaN where no map has two votes, or fewer than two people's votes can be compared.
    """
    maps, _ = pd.factorize(votes["task"])
    labels, names = pd.factorize(votes["label"])
    counts = np.zeros((maps.max() + 1, len(names)))
    np.add.at(counts, (maps, labels), 1)
    others = counts[maps].sum(1) - 1
    compared = others > 0
    if not compared.any():
        return NOTHING
    agree = (counts[maps, labels] - 1)[compared] / others[compared]
    of_class = pd.Series(agree).groupby(labels[compared]).transform("mean").to_numpy()
    return _spread(votes["worker"].to_numpy()[compared], (agree - of_class)[:, None], seed)


def class_rate_spread(votes: pd.DataFrame, *, seed: int = 0) -> Spread:
    """How much people differ in how often they give each class: the length of the difference from everybody's shares.

    Returns:
        The spread of vectors of shares; NaN for fewer than two people.
    """
    indicators = pd.get_dummies(votes["label"]).to_numpy(float)
    return _spread(votes["worker"].to_numpy(), indicators - indicators.mean(0), seed)


def _spread(workers: np.ndarray, residuals: np.ndarray, seed: int) -> Spread:
    people, names = pd.factorize(workers)
    if len(names) < 2:
        return NOTHING
    chance = np.random.default_rng(seed)
    by_chance = float(np.mean([_between(chance.permutation(people), residuals) for _ in range(SHUFFLES)]))
    observed, freedom = _between(people, residuals), len(names) - 1
    tails = scipy.stats.chi2.isf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], freedom)  # upper tails: the larger first
    low, high = (math.sqrt(max(0.0, observed * freedom / float(tail) - by_chance)) for tail in tails)
    return Spread(math.sqrt(max(0.0, observed - by_chance)), low, high)


def _between(people: np.ndarray, residuals: np.ndarray) -> float:
    """Mean over labels of the squared mean of their person."""
    counts = np.bincount(people)
    sums = np.stack([np.bincount(people, column) for column in residuals.T])
    return float((sums**2 / np.maximum(counts, 1)).sum() / counts.sum())
