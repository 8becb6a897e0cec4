"""How far people agree on the classes of the same maps, and one label a map where several were given.

A *rater* is a person in one pass ("ada", "ada, pass 2"), so one person's second, blind pass counts like another
person. Frames have the columns map_id, annotator, pass, class, queue_order, ordinal, task, split, row_id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from .evaluation import ends

# ---------------------------------------------------------------- Krippendorff's alpha


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
    low, high = _alpha_interval(counts, groups)
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


def _alpha_interval(counts: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
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


RESAMPLES = 1000
PASS_WORD = ", pass "


def rater(annotator: str, passing: int) -> str:
    """The name of a person in one pass."""
    return annotator if passing == 1 else f"{annotator}{PASS_WORD}{passing}"


def opinions(labels: pd.DataFrame) -> pd.DataFrame:
    """Class of each map (rows) by each rater (columns); missing where a rater has not labelled a map."""
    named = labels.assign(rater=[rater(a, p) for a, p in zip(labels["annotator"], labels["pass"], strict=True)])
    plain = named[named["queue_order"] != "adjudication"]
    return plain.pivot_table(index="map_id", columns="rater", values="class", aggfunc="last")


def raters_of(labels: pd.DataFrame) -> list[str]:
    """The raters, the two different people with the most maps in common first; in their order where no two have any."""
    labelled = opinions(labels).notna()
    pairs = [
        (int((labelled[first] & labelled[second]).sum()), first, second)
        for first in labelled
        for second in labelled
        if first.split(PASS_WORD)[0] != second.split(PASS_WORD)[0]
    ]
    best = max(pairs, key=lambda pair: pair[0], default=(0, "", ""))
    return sorted(labelled, key=lambda rater: rater not in best[1:]) if best[0] else list(labelled)


def others(raters: Sequence[str], first: str) -> list[str]:
    """Whom a rater can be compared with: other people, then other people's passes, then the rater's own."""
    whose = {rater: rater.split(PASS_WORD)[0] for rater in raters}
    rest = [rater for rater in raters if rater != first]
    return sorted(rest, key=lambda rater: (whose[rater] == whose[first], PASS_WORD in rater))


def inputs_of(labels: pd.DataFrame) -> pd.Series:
    """The input of each label, the unit that splits and intervals resample: task, split and row."""
    return labels["task"] + "/" + labels["split"].fillna("") + "/" + labels["row_id"].astype(str)


def consensus(labels: pd.DataFrame, *, with_ties: bool = False) -> pd.DataFrame:
    """One label a map: its newest adjudication, else the class that most first passes gave.

    The order in which labels were stored decides nothing but between two adjudications of a map.

    Args:
        with_ties: whether maps with a tie have the first of the tied classes by name; else they are left out.

    Returns:
        A row for each map, by its id: a label of that class, one that was given in random order and without a
        suggestion where there is such. The columns of `labels`.
    """
    settled = labels[labels["queue_order"] == "adjudication"].drop_duplicates("map_id", keep="last")
    first = labels[(labels["pass"] == 1) & ~labels["map_id"].isin(settled["map_id"])]
    first = first[first["queue_order"] != "adjudication"]
    votes = first.groupby(["map_id", "class"])["map_id"].transform("size")
    prompted = first["suggestion"].notna() if "suggestion" in first else False
    voted = first.assign(votes=-votes, prompted=prompted | (first["queue_order"] != "random"))
    voted = voted.sort_values(["map_id", "votes", "class", "prompted", "annotator"])
    each = voted.drop_duplicates(["map_id", "class"])
    most = each[each["votes"] == each.groupby("map_id")["votes"].transform("min")]
    chosen = most.drop_duplicates("map_id", keep="first" if with_ties else False)
    return pd.concat([settled, chosen[labels.columns]]).sort_values("map_id").reset_index(drop=True)


def tied(labels: pd.DataFrame) -> list[str]:
    """Maps that have no one class by `consensus`, because as many say one as another."""
    return sorted(set(consensus(labels, with_ties=True)["map_id"]) - set(consensus(labels)["map_id"]))


@dataclass(frozen=True)
class Agreement:
    """Two raters on the maps that both labelled.

    Attributes:
        share: of equal labels, 0 to 1.
        kappa: Cohen's, at most 1; NaN where both gave one and the same class to everything.
        low, high: its 95 % interval over inputs; NaN below two inputs.
    """

    first: str
    second: str
    maps: int
    share: float
    kappa: float
    low: float
    high: float


def agreement(labels: pd.DataFrame, first: str, second: str, *, seed: int = 0) -> Agreement:
    """Cohen's kappa (scikit-learn) of two raters with its interval.

    Raises:
        InputError: one of them has no labels, or no map has labels of both.
    """
    both = opinions(labels)
    if not {first, second} <= set(both.columns):
        raise InputError(
            f'Agreement needs two raters of {", ".join(both.columns) or "nobody"}; "{first}" and '
            f'"{second}" were asked for.'
        )
    both = both[[first, second]].dropna()
    if both.empty:
        raise InputError(
            f"{first} and {second} have not labelled a map in common yet: let one label maps of the other."
        )
    groups = inputs_of(labels).groupby(labels["map_id"]).first().loc[both.index]
    low, high = _interval(both[first].to_numpy(), both[second].to_numpy(), groups.to_numpy(), seed)
    return Agreement(
        first,
        second,
        len(both),
        float((both[first] == both[second]).mean()),
        _kappa(both[first], both[second]),
        low,
        high,
    )


@dataclass(frozen=True)
class PairAgreement:
    """Two raters on the maps that both gave one of two classes.

    Attributes:
        differ: of how many one rater gave one class and the other the other.
        kappa: Cohen's, at most 1; NaN where the raters used one class only.
    """

    classes: tuple[str, str]
    maps: int
    differ: int
    kappa: float


def pair_agreements(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> list[PairAgreement]:
    """Agreement within each pair of classes that somebody used, first the pair on which the raters differ most."""
    both = opinions(labels)[[first, second]].dropna()
    agreements = []
    for a, b in combinations(names, 2):
        within = both[both.isin([a, b]).all(axis=1)]
        if len(within):
            differ = int((within[first] != within[second]).sum())
            agreements.append(PairAgreement((a, b), len(within), differ, _kappa(within[first], within[second])))
    return sorted(agreements, key=lambda pair: (-pair.differ, pair.classes))


@dataclass(frozen=True)
class ClassAgreement:
    """Two raters on one class against all others, over the maps that both labelled.

    Attributes:
        kappa: Cohen's, at most 1; NaN where both gave it to every map.
    """

    name: str
    first: int
    second: int
    both: int
    kappa: float


def class_agreements(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> list[ClassAgreement]:
    """Kappa of each class against the rest, the least agreed on first; without classes that neither gave."""
    labelled = opinions(labels)[[first, second]].dropna()
    agreements = []
    for name in names:
        a, b = (labelled[rater] == name for rater in (first, second))
        if (a | b).any():
            agreements.append(ClassAgreement(name, int(a.sum()), int(b.sum()), int((a & b).sum()), _kappa(a, b)))
    return sorted(agreements, key=lambda agreement: (agreement.kappa, agreement.name))


@dataclass(frozen=True)
class RaterPair:
    """Two raters on the maps both labelled: how many, the share of equal labels, Cohen's kappa."""

    first: str
    second: str
    maps: int
    share: float
    kappa: float


def rater_pairs(labels: pd.DataFrame, *, fewest: int = 5) -> list[RaterPair]:
    """Every two raters with `fewest` maps in common, the least agreed first; intervals are `agreement`'s."""
    labelled = opinions(labels)
    codes = labelled.apply(
        lambda column: column.astype("category").cat.set_categories(sorted(set(labels["class"]))).cat.codes
    )
    agreements = []
    for rater, second in combinations(labelled.columns, 2):
        a, b = (codes[name].to_numpy() for name in (rater, second))
        shared = (a >= 0) & (b >= 0)
        if shared.sum() >= fewest:
            equal = float((a[shared] == b[shared]).mean())
            agreements.append(RaterPair(rater, second, int(shared.sum()), equal, _kappa(a[shared], b[shared])))
    return sorted(agreements, key=lambda pair: (pair.kappa, pair.first, pair.second))


def _kappa(a: Any, b: Any) -> float:
    if len(set(a) | set(b)) < 2:
        return float("nan")
    from sklearn.metrics import cohen_kappa_score  # 1 s of start-up

    return float(cohen_kappa_score(list(a), list(b)))


def _interval(a: np.ndarray, b: np.ndarray, groups: np.ndarray, seed: int) -> tuple[float, float]:
    """Expanded percentile bootstrap of kappa over inputs, from their summed tables; NaN with fewer than two inputs."""
    tables = _tables(a, b, groups)
    if len(tables) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    times = (np.bincount(rng.integers(0, len(tables), len(tables)), minlength=len(tables)) for _ in range(RESAMPLES))
    size = tables.shape[1]
    sums = np.array([drawn.astype(float) @ tables.reshape(len(tables), -1) for drawn in times]).reshape(-1, size, size)
    kappas = _kappas(sums)
    if np.isnan(kappas).all():
        return float("nan"), float("nan")
    low, high = ends(kappas, len(tables))
    return float(low), float(high)


def _tables(a: np.ndarray, b: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """How often each input was given class i by the first and j by the second, float64 [input, i, j]."""
    names, codes = np.unique(np.concatenate([a, b]).astype(str), return_inverse=True)
    inputs, places = np.unique(groups.astype(str), return_inverse=True)
    tables = np.zeros((len(inputs), len(names), len(names)))
    np.add.at(tables, (places, codes[: len(a)], codes[len(a) :]), 1.0)
    return tables


def _kappas(tables: np.ndarray) -> np.ndarray:
    """Cohen's kappa of each table [..., i, j]; NaN where both gave one and the same class to everything."""
    n = tables.sum((-2, -1))
    same = np.diagonal(tables, axis1=-2, axis2=-1)
    equal, chance = same.sum(-1) / n, (tables.sum(-1) * tables.sum(-2)).sum(-1) / n**2
    single = same.max(-1) == n
    return np.where(single, np.nan, (equal - chance) / np.where(single, 1.0, 1.0 - chance))


def confusion(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> pd.DataFrame:
    """Counts in long form: columns `first`, `second` (classes) and n, over maps both raters labelled."""
    both = opinions(labels)[[first, second]].dropna()
    from sklearn.metrics import confusion_matrix  # 1 s of start-up

    counts = confusion_matrix(both[first], both[second], labels=list(names))
    return pd.DataFrame(
        [{"first": a, "second": b, "n": int(counts[i, j])} for i, a in enumerate(names) for j, b in enumerate(names)]
    )


def disputed(labels: pd.DataFrame) -> list[str]:
    """Maps whose raters disagree and that nobody has adjudicated, in a fixed order."""
    settled = set(labels.loc[labels["queue_order"] == "adjudication", "map_id"])
    both = opinions(labels)
    if both.empty:
        return []
    counts = both.stack().dropna().groupby(level="map_id").nunique()
    return [name for name in counts.index[counts > 1] if name not in settled]
