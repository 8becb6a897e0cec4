"""Krippendorff's alpha with its interval: how far many people agree where nobody labelled everything."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .agreement import RESAMPLES, inputs_of, opinions
from .percentiles import ends


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's nominal alpha with its 95 % bootstrap interval; NaN where it is undefined: one class only.

    Attributes:
        alpha: at most 1, 0 at chance.
        low, high: ends of the interval; NaN below two maps, or two inputs where these are resampled.
        maps: those with two opinions or more, the only ones that count.
    """

    alpha: float
    low: float
    high: float
    maps: int
    raters: int


def alpha_with_interval(labels: pd.DataFrame, *, by_input: bool = False) -> Alpha:
    """Alpha over all raters (`agreement.opinions`), resampling maps; by_input: whole inputs, whose maps are alike."""
    labelled = opinions(labels)
    shared = labelled[labelled.notna().sum(axis=1) > 1].dropna(axis=1, how="all")
    if shared.empty:
        return Alpha(float("nan"), float("nan"), float("nan"), 0, 0)
    classes = np.unique(shared.stack().dropna().to_numpy(dtype=str))
    counts = np.stack([(shared == name).sum(axis=1) for name in classes], axis=1).astype(float)  # [map, class]
    groups = np.arange(len(shared))
    if by_input:
        groups = pd.factorize(inputs_of(labels).groupby(labels["map_id"]).first().loc[shared.index])[0]
    low, high = _interval(counts, groups)
    return Alpha(float(_alphas(counts, np.ones((1, len(counts))))[0]), low, high, len(shared), shared.shape[1])


def alpha_of_people(labels: pd.DataFrame) -> Alpha:
    """Alpha of different people: their first passes without adjudications, resampling whole inputs.

    Every page shows this alpha of the same labels; a second pass is no other person.
    """
    return alpha_with_interval(labels[labels["pass"] == 1], by_input=True)


def alpha_of_counts(counts: np.ndarray) -> float:
    """Krippendorff's nominal alpha of opinions that are counted.

    Args:
        counts: how many opinions of each map are of each class; maps with fewer than two count for nothing.
            *Shape:* (map, class), float.

    Returns:
        At most 1, 0 at chance; NaN where it is undefined: no map with two opinions, or one class only.
    """
    shared = counts[counts.sum(axis=1) > 1]
    return float(_alphas(shared, np.ones((1, len(shared))))[0]) if len(shared) else float("nan")


def _alphas(counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Alpha of each resample: 1 - (n - 1) * observed / expected pairs of unlike classes (Krippendorff 2011).

    counts [map, class]: opinions; weights [resample, map]: how often a map was drawn.
    """
    given = counts.sum(axis=1)
    unlike = (given**2 - (counts**2).sum(axis=1)) / (given - 1)  # [map]
    totals = weights @ counts  # [resample, class]
    n = totals.sum(axis=1)
    expected = n**2 - (totals**2).sum(axis=1)
    return 1 - np.divide((n - 1) * (weights @ unlike), expected, out=np.full(len(n), np.nan), where=expected > 0)


def _interval(counts: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """Expanded percentiles over groups [map]; NaN with fewer than two groups, or where every resample is undefined."""
    size = int(groups.max()) + 1
    if size < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    drawn = (rng.multinomial(size, np.full(size, 1 / size))[groups] for _ in range(RESAMPLES))
    alphas = np.concatenate([_alphas(counts, weights[None].astype(float)) for weights in drawn])
    if np.isnan(alphas).all():
        return float("nan"), float("nan")
    low, high = ends(alphas, size)
    return float(low), float(high)
