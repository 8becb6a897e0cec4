"""Agreement between annotators on the classes of maps, and one consensus label per map.

A *rater* is an annotator in one pass ("ada", "ada, pass 2"), so a second, blind pass counts like another annotator.
Data frames have the columns map_id, annotator, pass, class, queue_order, ordinal, task, split, row_id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from ..errors import InputError
from ..store.label_checks import TOGETHER
from .evaluation import ends

# ---------------------------------------------------------------- Krippendorff's alpha


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's nominal alpha for several raters, with a 95 % bootstrap CI. Alpha is NaN if no map has two
    labels, or if the raters used only one class.

    Attributes:
        alpha: at most 1; 0 at chance level.
        low, high: NaN for fewer than two resampled units.
        maps: number of maps with at least two labels; others do not count.
    """

    alpha: float
    low: float
    high: float
    maps: int
    raters: int


def alpha_with_interval(labels: pd.DataFrame, *, by_input: bool = False) -> Alpha:
    """Return Krippendorff's alpha for all raters, with a bootstrap CI. The bootstrap resamples attention maps or, if
    `by_input` is True, inputs with all their maps."""
    given = _given(labels)
    several = (given.codes >= 0).sum(axis=1) > 1
    shared = given.codes[several]
    if not len(shared):
        return Alpha(float("nan"), float("nan"), float("nan"), 0, 0)
    used = [code for code in range(len(given.classes)) if (shared == code).any()]
    counts = np.stack([(shared == code).sum(axis=1) for code in used], axis=1).astype(float)  # [map, class]
    groups = np.arange(len(shared))
    if by_input:
        firsts = labels.drop_duplicates("map_id")
        groups = pd.factorize(inputs_of(firsts).set_axis(firsts["map_id"]).loc[given.maps[several]])[0]
    low, high = _alpha_interval(counts, groups)
    raters = int((shared >= 0).any(axis=0).sum())
    return Alpha(float(_alphas(counts, np.ones((1, len(counts))))[0]), low, high, len(shared), raters)


def alpha_of_people(labels: pd.DataFrame) -> Alpha:
    """Return Krippendorff's alpha between annotators. Only first-pass labels are used, not adjudications. The CI
    resamples inputs.

    All pages show this value for the same labels.
    """
    return alpha_with_interval(labels[labels["pass"] == 1], by_input=True)


def alpha_of_counts(counts: np.ndarray) -> float:
    """Return Krippendorff's nominal alpha from a table [map, class] of label counts, or NaN if alpha is undefined.

    Maps with fewer than two labels do not count.
    """
    shared = counts[counts.sum(axis=1) > 1]
    return float(_alphas(shared, np.ones((1, len(shared))))[0]) if len(shared) else float("nan")


def _alphas(counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return alpha of each resample: 1 - (n - 1) * observed / expected pairs of different classes (Krippendorff 2011).

    `counts` are [map, class]; `weights` are how often a map was drawn, [resample, map].
    """
    return _alphas_of_groups(counts, _unlike(counts), weights)


def _unlike(counts: np.ndarray) -> np.ndarray:
    """Return the pairs of different classes on each map, divided by the number of labels minus 1."""
    given = counts.sum(axis=1)
    return np.asarray((given**2 - (counts**2).sum(axis=1)) / (given - 1))


def _alphas_of_groups(counts: np.ndarray, unlike: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return alpha of each resample of groups of maps, from their sums of `counts` and `_unlike`."""
    totals = weights @ counts  # [resample, class]
    n = totals.sum(axis=1)
    expected = n**2 - (totals**2).sum(axis=1)
    return 1 - np.divide((n - 1) * (weights @ unlike), expected, out=np.full(len(n), np.nan), where=expected > 0)


def _alpha_interval(counts: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """Return expanded percentiles over groups [map]; NaN for fewer than two groups or no defined resample."""
    size = int(groups.max()) + 1
    if size < 2:
        return float("nan"), float("nan")
    rng, sums = np.random.default_rng(0), np.zeros((size, counts.shape[1]))
    np.add.at(sums, groups, counts)
    unlike = np.bincount(groups, _unlike(counts), size)
    drawn = (rng.multinomial(size, np.full(size, 1 / size)) for _ in range(RESAMPLES))
    alphas = np.concatenate([_alphas_of_groups(sums, unlike, weights[None].astype(float)) for weights in drawn])
    if np.isnan(alphas).all():
        return float("nan"), float("nan")
    low, high = ends(alphas, size)
    return float(low), float(high)


RESAMPLES = 1000
PASS_WORD = ", pass "


def rater(annotator: str, passing: int) -> str:
    """Return the name of a rater, which is one annotator in one labelling pass."""
    return annotator if passing == 1 else f"{annotator}{PASS_WORD}{passing}"


@dataclass(frozen=True)
class _Given:
    """The number of the class [map, rater] that each rater gave to each map, -1 without a label; all sorted by name."""

    codes: np.ndarray
    maps: np.ndarray
    raters: list[str]
    classes: list[str]


def _given(labels: pd.DataFrame) -> _Given:
    plain = labels[(labels["queue_order"] != "adjudication") & labels["class"].notna()]
    annotators, names = pd.factorize(plain["annotator"])
    passes, numbers = pd.factorize(plain["pass"])
    people, each = np.unique(annotators * max(1, len(numbers)) + passes, return_inverse=True)
    called = [rater(names[one // len(numbers)], int(numbers[one % len(numbers)])) for one in people]
    order = sorted(range(len(called)), key=called.__getitem__)
    (rows, maps), (codes, classes) = (pd.factorize(plain[name], sort=True) for name in ("map_id", "class"))
    found = np.full((len(maps), len(called)), -1, dtype=np.int16)
    found[rows, np.argsort(order)[each] if len(order) else each] = codes  # the newest label is last
    return _Given(found, np.asarray(maps, dtype=object), [called[k] for k in order], list(classes))


def opinions(labels: pd.DataFrame, raters: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table with the class that each rater (column) assigned to each attention map (row). Classes are missing
    for maps that a rater did not label."""
    given = _given(labels)
    chosen = [k for k, name in enumerate(given.raters) if raters is None or name in raters]
    named = np.array([*given.classes, None], dtype=object)[given.codes[:, chosen]]
    columns = pd.Index([given.raters[k] for k in chosen], name="rater")
    return pd.DataFrame(named, pd.Index(given.maps, name="map_id"), columns).astype(labels["class"].dtype)


def raters_of(labels: pd.DataFrame) -> list[str]:
    """Return the names of all raters. The two annotators with the most maps that both labelled come first."""
    given = _given(labels)
    labelled = (given.codes >= 0).astype(np.float32)
    common, raters = (labelled.T @ labelled).astype(int), given.raters
    pairs = [
        (common[i, j], first, second)
        for i, first in enumerate(raters)
        for j, second in enumerate(raters)
        if first.split(PASS_WORD)[0] != second.split(PASS_WORD)[0]
    ]
    best = max(pairs, key=lambda pair: pair[0], default=(0, "", ""))
    return sorted(raters, key=lambda rater: rater not in best[1:]) if best[0] else raters


def others(raters: Sequence[str], first: str) -> list[str]:
    """Return all raters except `first`: first other annotators, then other labelling passes of the same annotator."""
    whose = {rater: rater.split(PASS_WORD)[0] for rater in raters}
    rest = [rater for rater in raters if rater != first]
    return sorted(rest, key=lambda rater: (whose[rater] == whose[first], PASS_WORD in rater))


def inputs_of(labels: pd.DataFrame) -> pd.Series:
    """For each label, return the ID of the input (task, split and row) whose attention map was labelled."""
    return labels["task"] + "/" + labels["split"].fillna("") + "/" + labels["row_id"].astype(str)


def consensus(labels: pd.DataFrame, *, with_ties: bool = False) -> pd.DataFrame:
    """Return one label per attention map: its newest adjudication or, if it has none, the majority of first-pass
    labels.

    Tied maps are omitted, or have the first tied class by name if `with_ties`. The chosen label is one given in random
    order without a suggestion, if there is one.
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
    """Return the IDs of attention maps for which several classes share the most votes. `consensus` chooses no class for
    these maps."""
    return sorted(set(consensus(labels, with_ties=True)["map_id"]) - set(consensus(labels)["map_id"]))


def by_way(labels: pd.DataFrame) -> pd.DataFrame:
    """Compare the speed and the agreement of two ways of labelling: in groups of similar maps, and one map at a time.

    `labels` has map_id, annotator, class, way and seconds, one label per annotator and map. Columns: way, labels,
    median_seconds, per_hour (a pause of more than a minute counts as one minute), pairs, and same: the fraction of
    pairs with a label of the map by another annotator in which both are the same.
    """
    of_map = labels.groupby("map_id")["map_id"].transform("size") - 1
    alike = labels.groupby(["map_id", "class"])["map_id"].transform("size") - 1
    way = np.where(labels["way"] == TOGETHER, "together", "one by one")
    counted = labels.assign(way=way, pairs=of_map, alike=alike, capped=labels["seconds"].clip(upper=60))
    groups = counted.groupby("way").agg(
        labels=("way", "size"),
        median_seconds=("seconds", "median"),
        capped=("capped", "mean"),
        pairs=("pairs", "sum"),
        alike=("alike", "sum"),
    )
    groups = groups.assign(per_hour=3600 / groups["capped"].replace(0, np.nan), same=groups["alike"] / groups["pairs"])
    return groups.reset_index()[["way", "labels", "median_seconds", "per_hour", "pairs", "same"]]


@dataclass(frozen=True)
class Agreement:
    """The agreement of two raters on the attention maps that both labelled.

    Attributes:
        share: fraction of equal labels.
        kappa: Cohen's kappa; NaN if both used only one class.
        low, high: 95 % CI over inputs; NaN for fewer than two inputs.
    """

    first: str
    second: str
    maps: int
    share: float
    kappa: float
    low: float
    high: float


def agreement(labels: pd.DataFrame, first: str, second: str, *, seed: int = 0) -> Agreement:
    """Return Cohen's kappa between two raters with a 95 % CI. Raises InputError if no map was labelled by both."""
    both = opinions(labels, [first, second])
    if not {first, second} <= set(both.columns):
        raise InputError(
            f'The two annotators must be among {", ".join(opinions(labels).columns) or "(none)"}; got "{first}" and '
            f'"{second}". Choose two of them.'
        )
    both = both[[first, second]].dropna()
    if both.empty:
        raise InputError(
            f"Two annotators must have labelled some of the same maps; {first} and {second} have none in common. "
            "Choose other annotators, or label more maps."
        )
    firsts = labels.drop_duplicates("map_id")
    groups = inputs_of(firsts).set_axis(firsts["map_id"]).loc[both.index]
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
    """The agreement of two raters on two classes, over the maps to which each rater assigned one of these classes.

    Attributes:
        differ: number of maps on which they differ.
        kappa: Cohen's kappa; NaN if they used only one class.
    """

    classes: tuple[str, str]
    maps: int
    differ: int
    kappa: float


def pair_agreements(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> list[PairAgreement]:
    """Return the agreement of two raters for each pair of classes. The pair of classes that the raters confuse most
    often comes first."""
    both = opinions(labels, [first, second])[[first, second]].dropna()
    agreements = []
    for a, b in combinations(names, 2):
        within = both[both.isin([a, b]).all(axis=1)]
        if len(within):
            differ = int((within[first] != within[second]).sum())
            agreements.append(PairAgreement((a, b), len(within), differ, _kappa(within[first], within[second])))
    return sorted(agreements, key=lambda pair: (-pair.differ, pair.classes))


@dataclass(frozen=True)
class ClassAgreement:
    """The agreement of two raters on whether an attention map belongs to a class. `kappa` is NaN if both raters
    assigned this class to every map."""

    name: str
    first: int
    second: int
    both: int
    kappa: float


def class_agreements(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> list[ClassAgreement]:
    """Return Cohen's kappa of two raters for each class, compared with all other classes combined. The class with the
    lowest kappa comes first."""
    labelled = opinions(labels, [first, second])[[first, second]].dropna()
    agreements = []
    for name in names:
        a, b = (labelled[rater] == name for rater in (first, second))
        if (a | b).any():
            agreements.append(ClassAgreement(name, int(a.sum()), int(b.sum()), int((a & b).sum()), _kappa(a, b)))
    return sorted(agreements, key=lambda agreement: (agreement.kappa, agreement.name))


@dataclass(frozen=True)
class RaterPair:
    """The agreement of two raters: the number of attention maps that both labelled, the fraction of equal labels, and
    Cohen's kappa."""

    first: str
    second: str
    maps: int
    share: float
    kappa: float


def rater_pairs(labels: pd.DataFrame, *, fewest: int = 5) -> list[RaterPair]:
    """Return the agreement of each pair of raters with at least `fewest` maps that both labelled. The pair with the
    lowest kappa comes first."""
    given, agreements = _given(labels), []
    codes, size = np.ascontiguousarray(given.codes.T.astype(np.int64)), len(given.classes)
    for (first, a), (second, b) in combinations(zip(given.raters, codes, strict=True), 2):
        shared = (a >= 0) & (b >= 0)
        if shared.sum() >= fewest:
            table = np.bincount(a[shared] * size + b[shared], minlength=size * size).reshape(size, size)
            share, kappa = float(np.trace(table) / table.sum()), float(_kappas(table[None])[0])
            agreements.append(RaterPair(first, second, int(table.sum()), share, kappa))
    return sorted(agreements, key=lambda pair: (np.isnan(pair.kappa), pair.kappa, pair.first, pair.second))


def _kappa(a: Any, b: Any) -> float:
    if len(set(a) | set(b)) < 2:
        return float("nan")
    from sklearn.metrics import cohen_kappa_score  # 1 s at start

    return float(cohen_kappa_score(list(a), list(b)))


def _kappas(tables: Shaped[np.ndarray, "table first second"]) -> Float[np.ndarray, " table"]:
    """Return Cohen's kappa of each confusion matrix; NaN if both raters used only one class."""
    n = tables.sum((-2, -1)).astype(float)
    same = np.diagonal(tables, axis1=-2, axis2=-1)
    equal, chance = same.sum(-1) / n, (tables.sum(-1) * tables.sum(-2)).sum(-1) / n**2
    single = same.max(-1) == n
    return np.where(single, np.nan, (equal - chance) / np.where(single, 1.0, 1.0 - chance))


def _interval(a: np.ndarray, b: np.ndarray, groups: np.ndarray, seed: int) -> tuple[float, float]:
    """Return an expanded percentile bootstrap of kappa over inputs; NaN for fewer than two inputs."""
    # How often each input got class i from the first and j from the second rater [input, i, j].
    names, codes = np.unique(np.concatenate([a, b]).astype(str), return_inverse=True)
    inputs, places = np.unique(groups.astype(str), return_inverse=True)
    tables = np.zeros((len(inputs), len(names), len(names)))
    np.add.at(tables, (places, codes[: len(a)], codes[len(a) :]), 1.0)
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


def confusion(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> pd.DataFrame:
    """Return how often two raters chose each pair of classes, as a data frame with the columns `first`, `second` and
    n."""
    both = opinions(labels, [first, second])[[first, second]].dropna()
    from sklearn.metrics import confusion_matrix  # 1 s at start

    counts = confusion_matrix(both[first], both[second], labels=list(names))
    return pd.DataFrame(
        [{"first": a, "second": b, "n": int(counts[i, j])} for i, a in enumerate(names) for j, b in enumerate(names)]
    )


def disputed(labels: pd.DataFrame) -> list[str]:
    """Return the sorted IDs of attention maps that raters labelled differently and that have not been adjudicated."""
    settled = set(labels.loc[labels["queue_order"] == "adjudication", "map_id"])
    given = _given(labels)
    least = np.where(given.codes < 0, len(given.classes), given.codes).min(axis=1, initial=len(given.classes))
    return [name for name in given.maps[given.codes.max(axis=1, initial=-1) > least] if name not in settled]
