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
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from core.errors import InputError

RESAMPLES = 1000


def rater(annotator: str, passing: int) -> str:
    """The name of a person in one pass."""
    return annotator if passing == 1 else f"{annotator}, pass {passing}"


def opinions(labels: pd.DataFrame) -> pd.DataFrame:
    """Class of each map (rows) by each rater (columns); missing where a rater has not labelled a map."""
    named = labels.assign(rater=[rater(a, p) for a, p in zip(labels["annotator"], labels["pass"], strict=True)])
    plain = named[named["queue_order"] != "adjudication"]
    return plain.pivot_table(index="map_id", columns="rater", values="class", aggfunc="last")


def inputs_of(labels: pd.DataFrame) -> pd.Series:
    """The input of each label, the unit that splits and intervals resample: task, split and row."""
    return labels["task"] + "/" + labels["split"].fillna("") + "/" + labels["row_id"].astype(str)


def consensus(labels: pd.DataFrame) -> pd.DataFrame:
    """One label a map: the newest adjudication; else the class that most first passes gave, the newest on a tie."""
    settled = labels[labels["queue_order"] == "adjudication"].drop_duplicates("map_id", keep="last")
    first = labels[(labels["pass"] == 1) & ~labels["map_id"].isin(settled["map_id"])]
    first = first[first["queue_order"] != "adjudication"]
    votes = first.groupby(["map_id", "class"])["map_id"].transform("size")
    voted = first.assign(votes=votes).sort_values(["votes", "ordinal"]).drop_duplicates("map_id", keep="last")
    return pd.concat([settled, voted.drop(columns="votes")]).sort_values("ordinal").reset_index(drop=True)


@dataclass(frozen=True)
class Agreement:
    """Two raters on the maps both labelled. kappa: Cohen's, with its 95 % interval over inputs; share: equal labels."""

    first: str
    second: str
    maps: int
    share: float
    kappa: float
    low: float
    high: float


def agreement(labels: pd.DataFrame, first: str, second: str, *, seed: int = 0) -> Agreement:
    """Cohen's kappa (scikit-learn) of two raters; NaN where both gave one and the same class to everything."""
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
    """Two raters on the maps that both gave one of two classes. differ: how many they gave one each; kappa: Cohen's,
    NaN where they used one class only.
    """

    classes: tuple[str, str]
    maps: int
    differ: int
    kappa: float


def pair_agreements(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> list[PairAgreement]:
    """Agreement within each pair of classes, the pair that parts the raters most first; pairs nobody used left out."""
    both = opinions(labels)[[first, second]].dropna()
    found = []
    for one, other in combinations(names, 2):
        within = both[both.isin([one, other]).all(axis=1)]
        if len(within):
            differ = int((within[first] != within[second]).sum())
            found.append(PairAgreement((one, other), len(within), differ, _kappa(within[first], within[second])))
    return sorted(found, key=lambda pair: (-pair.differ, pair.classes))


def _kappa(a: Any, b: Any) -> float:
    if len(set(a) | set(b)) < 2:
        return float("nan")
    return float(cohen_kappa_score(list(a), list(b)))


def _interval(a: np.ndarray, b: np.ndarray, groups: np.ndarray, seed: int) -> tuple[float, float]:
    """Percentile bootstrap over inputs; NaN with fewer than two inputs."""
    members = [np.flatnonzero(groups == one) for one in np.unique(groups)]
    if len(members) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(RESAMPLES):
        chosen = np.concatenate([members[k] for k in rng.integers(0, len(members), len(members))])
        found.append(_kappa(a[chosen], b[chosen]))
    low, high = np.nanquantile(found, [0.025, 0.975])
    return float(low), float(high)


def alpha(labels: pd.DataFrame) -> float:
    """Krippendorff's alpha (nominal, by NLTK) over all raters, maps that not everybody labelled included.

    NaN where it is undefined: the maps with two opinions or more have only one class between them, or are none.
    """
    from nltk.metrics.agreement import AnnotationTask  # NLTK takes a second to import

    both = opinions(labels)
    shared = both[both.notna().sum(axis=1) > 1].stack().dropna()
    if shared.nunique() < 2:
        return float("nan")
    return float(AnnotationTask([(who, name, given) for (name, who), given in shared.items()]).alpha())


def confusion(labels: pd.DataFrame, first: str, second: str, names: Sequence[str]) -> pd.DataFrame:
    """Counts in long form: columns `first`, `second` (classes) and n, over maps both raters labelled."""
    both = opinions(labels)[[first, second]].dropna()
    counts = confusion_matrix(both[first], both[second], labels=list(names))
    return pd.DataFrame(
        [{"first": a, "second": b, "n": int(counts[i, j])} for i, a in enumerate(names) for j, b in enumerate(names)]
    )


def disputed(labels: pd.DataFrame) -> list[str]:
    """Maps whose raters disagree and that nobody has adjudicated, in a fixed order."""
    settled = set(labels.loc[labels["queue_order"] == "adjudication", "map_id"])
    both = opinions(labels)
    return [name for name in both.index[both.nunique(axis=1) > 1] if name not in settled]
