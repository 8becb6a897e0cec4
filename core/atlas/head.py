"""What is known of one head: facts with their sources, and the heads most like it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.attention import Head
from core.scoring.registry import MAP_SCORES, SCORES

SURE = 0.05
MOST, WORTH = 2, 0.05  # features, and relations, that the sentence names; how far above their baseline they are
CLASS_SHARE = "classify-maps/class share/"
STATISTICS = [score.key for score in MAP_SCORES]


@dataclass(frozen=True)
class Fact:
    """One part of what is known. about: the kind of knowledge; source: where the number comes from."""

    about: str
    text: str
    source: str


def facts(scores: pd.DataFrame, head: Head) -> list[Fact]:
    """Facts about a head from its rows of the atlas (one task): its class, its roles, what it looks at beside chance,
    relations and frames, its effect when changed and its importance among all heads, and what fine-tuning did."""
    mine = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)]
    known = [*_class(mine), *_roles(mine), *_features(mine), *_relations(mine), *_frames(mine), *_why(mine)]
    return [*known, *_effects(mine), *_importance(scores, mine), *_changes(mine)]


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


def classes(scores: pd.DataFrame) -> pd.DataFrame:
    """The row of each head's most frequent pattern class (one task): its name as `kind`, its share as `value`."""
    shares = scores[scores["score"].str.startswith(CLASS_SHARE) & scores["value"].notna()]
    best = shares.sort_values("value", ascending=False, kind="stable").drop_duplicates(["layer", "head"])
    return best.assign(kind=best["score"].str.removeprefix(CLASS_SHARE))


def _class(mine: pd.DataFrame) -> list[Fact]:
    return [
        Fact("class", f"{row['kind']} in {row['value']:.0%} of {row['n']} maps", row["source"])
        for _, row in classes(mine).iterrows()
    ]


def _roles(mine: pd.DataFrame) -> list[Fact]:
    roles = mine[mine["score"].str.startswith("roles/") & ~mine["score"].str.endswith("without sink")]
    roles = roles[roles["q"].notna()]
    if roles.empty:
        return []
    has = roles[roles["q"] < SURE].sort_values("value", ascending=False)
    if has.empty:
        return [Fact("roles", f"none of {len(roles)} roles above three times its baseline", roles["source"].iloc[0])]
    return [
        Fact(
            "roles",
            f"{SCORES[row['score']].label.removeprefix('role: ')} {number(row)} (baseline {row['baseline']:.2f})",
            row["source"],
        )
        for _, row in has.iterrows()
    ]


def _above(mine: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """Rows of scores that begin so and are surely, and by WORTH, above their baseline; the furthest above it first."""
    above = mine["value"] - mine["baseline"] >= WORTH
    some = mine[mine["score"].str.startswith(prefix) & (mine["q"] < SURE) & above]
    return some.loc[(some["value"] - some["baseline"]).sort_values(ascending=False, kind="stable").index].head(MOST)


def _features(mine: pd.DataFrame) -> list[Fact]:
    some = _above(mine, "features/max/")
    told = [
        f"{row['score'].rpartition('/')[2]} {number(row)} ({row['baseline']:.2f} by chance)"
        for _, row in some.iterrows()
    ]
    return [Fact("looks at", f"looks at {', '.join(told)}", some["source"].iloc[0])] if told else []


def _relations(mine: pd.DataFrame) -> list[Fact]:
    some = _above(mine, "relations/")
    told = [
        f"{row['score'].rpartition('/')[2]} {row['score'].split('/')[1]} {number(row)} (other words at the same "
        f"distance {row['baseline']:.2f})"
        for _, row in some.iterrows()
    ]
    return [Fact("relations", f"relates {', '.join(told)}", some["source"].iloc[0])] if told else []


def _why(mine: pd.DataFrame) -> list[Fact]:
    """What its scores are made of: the sort of contributions that has most of them, and the earlier heads it reads."""
    sorts = mine[mine["score"].str.startswith("why/score share/")].sort_values("value", ascending=False)
    told = []
    for _, row in sorts.head(1).iterrows():
        chance = "" if pd.isna(row["baseline"]) else f" (random weights {row['baseline']:.2f})"
        told.append((f"looks there because of {row['score'].rpartition('/')[2]}: share {number(row)}{chance}", row))
    read = mine[mine["score"].str.startswith("why/composition/") & (mine["value"] >= WORTH) & (mine["low"] > 0)]
    for _, row in read.sort_values("value", ascending=False).iterrows():
        earlier, _, side = row["score"].rpartition("/")[2].partition(" in the ")
        told.append((f"reads {earlier}'s output on the {side} side: share {number(row)}", row))
    return [Fact("why", text, row["source"]) for text, row in told]


def _importance(scores: pd.DataFrame, mine: pd.DataFrame) -> list[Fact]:
    kept = []
    for _, row in mine[mine["score"] == "importance/importance"].iterrows():
        every = scores.loc[scores["score"] == row["score"], "value"].dropna()
        rank = int((every > row["value"]).sum()) + 1
        kept.append(Fact("importance", f"importance {number(row)}, rank {rank} of {len(every)}", row["source"]))
    return kept


def _luck(row: pd.Series) -> str:
    if not pd.isna(row["q"]):  # over all heads
        return "not luck" if row["q"] < SURE else "may be luck"
    return "may be luck" if pd.isna(row["low"]) or row["low"] <= 0 <= row["high"] else "not luck on its own"


def _effects(mine: pd.DataFrame) -> list[Fact]:
    some = mine[mine["score"].str.match(r"disable/\S+ heads")]
    kept = []
    for _, row in some.iterrows():
        operator, metric = row["score"].split("/")[1].split()[0], row["score"].rpartition("/")[2].split()[-1]
        sure = _luck(row)
        percent = row.copy()
        percent[["value", "low", "high"]] = row[["value", "low", "high"]].astype(float) * 100
        kept.append(
            Fact("effect", f"{metric} {number(percent, 1)} points when changed ({operator}), {sure}", row["source"])
        )
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
