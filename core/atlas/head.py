"""What is known of one head: facts with their sources, and the heads most like it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.attention import Head
from core.scoring.registry import MAP_SCORES, SCORES

SURE = 0.05
STATISTICS = [score.key for score in MAP_SCORES]


@dataclass(frozen=True)
class Fact:
    """One part of what is known. about: the kind of knowledge; source: where the number comes from."""

    about: str
    text: str
    source: str


def facts(scores: pd.DataFrame, head: Head) -> list[Fact]:
    """Facts about a head from its rows of the atlas (one task): its class, roles, effects, change, frames, copying."""
    mine = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)]
    return [*_class(mine), *_roles(mine), *_effects(mine), *_changes(mine), *_frames(mine)]


def sentence(known: list[Fact]) -> str:
    """All facts in one line."""
    return "; ".join(fact.text for fact in known) + "." if known else "Nothing is stored of this head yet."


def number(row: pd.Series, digits: int = 2) -> str:
    """A value with its interval, as "0.99 [0.98, 0.99]"."""
    value = f"{row['value']:.{digits}f}"
    return value if pd.isna(row["low"]) else f"{value} [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"


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


def _class(mine: pd.DataFrame) -> list[Fact]:
    shares = mine[mine["score"].str.startswith("classify-maps/class share/")]
    if shares.empty or shares["value"].isna().all():
        return []
    best = shares.loc[shares["value"].idxmax()]
    name = best["score"].rpartition("/")[2]
    return [Fact("class", f"{name} in {best['value']:.0%} of {best['n']} maps", best["source"])]


def _roles(mine: pd.DataFrame) -> list[Fact]:
    roles = mine[mine["score"].str.startswith("roles/") & ~mine["score"].str.endswith("without sink")]
    roles = roles[roles["q"].notna()]
    if roles.empty:
        return []
    has = roles[roles["q"] < SURE].sort_values("value", ascending=False)
    if has.empty:
        return [Fact("roles", f"none of {len(roles)} roles above three times its baseline", roles["source"].iloc[0])]
    return [
        Fact("roles", f"{SCORES[row['score']].label.removeprefix('role: ')} {number(row)} "
             f"(baseline {row['baseline']:.2f})", row["source"])
        for _, row in has.iterrows()
    ]  # fmt: skip


def _effects(mine: pd.DataFrame) -> list[Fact]:
    some = mine[mine["score"].str.match(r"disable/\S+ heads")]
    kept = []
    for _, row in some.iterrows():
        operator, metric = row["score"].split("/")[1].split()[0], row["score"].rpartition("/")[2].split()[-1]
        sure = "may be luck" if pd.isna(row["low"]) or row["low"] <= 0 <= row["high"] else "not luck on its own"
        percent = row.copy()
        percent[["value", "low", "high"]] = row[["value", "low", "high"]].astype(float) * 100
        kept.append(Fact("effect", f"{metric} {number(percent, 1)} points when changed ({operator}), {sure}",
                         row["source"]))  # fmt: skip
    return kept


def _changes(mine: pd.DataFrame) -> list[Fact]:
    some = mine[mine["score"] == "change/cosine"]
    return [
        Fact("change", f"cosine {number(row)} with before fine-tuning", row["source"]) for _, row in some.iterrows()
    ]


def _frames(mine: pd.DataFrame) -> list[Fact]:
    some = mine[mine["score"].str.startswith("frame-heads/frames") & mine["q"].notna()]
    said = {True: "survives its nulls", False: "does not survive its nulls"}
    return [
        Fact("frames", f"frame score {number(row)}, {said[bool(row['q'] < SURE)]}", row["source"])
        for _, row in some.iterrows()
    ]
