"""What is known of one head: facts with their sources, and the heads most like it."""

import numpy as np
import pandas as pd

from ..attention import Head
from ..errors import JobError
from ..scoring.registry import MAP_SCORES
from ..studies.attention import statistics
from ..studies.head_facts import Fact, HeadScores
from ..studies.lookup import find_study
from ..studies.patterns import classify_maps

CLASS_SHARE = f"{classify_maps.STUDY.name}/{classify_maps.SHARE}"
STATISTICS = [f"{statistics.STUDY.name}/{score.name}" for score in MAP_SCORES]


def facts(scores: pd.DataFrame, head: Head) -> list[Fact]:
    """Facts about a head from its rows of the atlas (one task), as their studies say them: its class, its roles, what
    it looks at beside chance, relations and frames, its effect when changed and its importance among all heads, and
    what fine-tuning did."""
    named = scores["score"].str.partition("/")
    mine = (scores["layer"] == head.layer) & (scores["head"] == head.head)
    studies = []
    for name in named.loc[mine, 0].unique():
        try:
            studies.append(find_study(name))
        except JobError:  # of a version that had it
            continue
    told: list[Fact] = []
    for study in sorted(studies, key=lambda study: study.said_at):
        own, every = scores.assign(score=named[2]), named[0] == study.name
        told += study.facts(HeadScores(own[every & mine], own[every]))
    return told


def sentence(known: list[Fact]) -> str:
    """All facts in one line."""
    return "; ".join(fact.text for fact in known) + "." if known else "Nothing is stored of this head yet."


def nearest(scores: pd.DataFrame, head: Head, most: int = 5) -> list[tuple[Head, float]]:
    """The heads whose statistics are most like this one's, nearest first, with the distance.

    Root mean square difference over the statistics of MAP_SCORES, each in standard deviations over heads: 0 the same.
    """
    some = scores[scores["score"].isin(STATISTICS)]
    table = some.pivot_table("value", ["layer", "head"], "score", aggfunc="first").dropna(axis=1, how="any")
    if (head.layer, head.head) not in table.index or table.shape[1] == 0:
        return []
    spread = table.std().replace(0, np.nan)
    scaled = ((table - table.mean()) / spread).dropna(axis=1)
    apart = np.sqrt(((scaled - scaled.loc[(head.layer, head.head)]) ** 2).mean(axis=1))
    order = apart.drop((head.layer, head.head)).sort_values(kind="stable")
    return [(Head(*place), float(value)) for place, value in order.head(most).items()]


def classes(scores: pd.DataFrame) -> pd.DataFrame:
    """The row of each head's most frequent pattern class (one task): its name as `kind`, its share as `value`."""
    shares = scores[scores["score"].str.startswith(CLASS_SHARE) & scores["value"].notna()]
    best = shares.sort_values("value", ascending=False, kind="stable").drop_duplicates(["layer", "head"])
    return best.assign(kind=best["score"].str.removeprefix(CLASS_SHARE))
