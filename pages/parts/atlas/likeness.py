"""Where heads lie when alike ones are near (Clark et al. 2019, Fig 6), and a line on each for its tooltip."""

import pandas as pd
import streamlit as st

from core.atlas.head import classes
from core.scoring.registry import SCORES
from core.store import runs
from pages.parts.atlas.atlas_view import Axis, axis_of
from pages.parts.frame import resources

SURE = 0.05


def places(name: str, task: str | None, mine: pd.DataFrame, shape: tuple[int, int]) -> tuple[Axis, Axis, str]:
    """The two axes of the scaling, and what they are; from the newest stored run of statistics, or what ships."""
    rows, stress = _stored(name, task), None
    if rows.empty:
        rows, stress = _shipped(mine)
    else:
        stress = float(rows["stress"].iloc[0])
    if rows.empty:
        st.info("Measure head statistics below: the distances between heads come with them.", icon=":material/info:")
    axes = [
        axis_of(rows.assign(value=rows[axis] if len(rows) else [], low=None, high=None, n=None), label, shape,
                diverging=True)
        for axis, label in (("x", "likeness, first axis"), ("y", "likeness, second axis"))
    ]  # fmt: skip
    note = "Jensen-Shannon distance between heads' rows, placed by metric scaling (Clark et al. 2019)"
    return axes[0], axes[1], note if stress is None else f"{note}, stress {stress:.2f}"


def lines(mine: pd.DataFrame, shape: tuple[int, int]) -> list[str]:
    """The pattern class and the roles that each head has, in words; empty where neither is known."""
    some = mine[mine["score"].str.startswith("roles/") & ~mine["score"].str.endswith("without sink")]
    has: dict[tuple[int, int], list[str]] = {}
    for row in some[some["q"] < SURE].itertuples():
        has.setdefault((row.layer, row.head), []).append(SCORES[row.score].label.removeprefix("role: "))
    told = {place: [f"roles: {', '.join(roles)}"] for place, roles in has.items()}
    for row in classes(mine).itertuples():
        told.setdefault((row.layer, row.head), []).insert(0, f"{row.kind} in {row.value:.0%} of {row.n} maps")
    return ["\n".join(told.get((layer, head), [])) for layer in range(shape[0]) for head in range(shape[1])]


def _stored(name: str, task: str | None) -> pd.DataFrame:
    db = resources.database()
    known = runs.head_scores(db, statistic="place", study="statistics")
    for run in dict.fromkeys(known["run"]):
        rows = runs.study_rows(db, run)
        mine = rows[(rows["statistic"] == "place") & (rows["checkpoint"] == name) & (rows["task"] == task)]
        if len(mine):
            return mine.astype({"layer": int, "head": int})
    return pd.DataFrame()


def _shipped(mine: pd.DataFrame) -> tuple[pd.DataFrame, float | None]:
    some = mine[mine["score"].str.startswith("statistics/place ")]
    if some.empty:
        return pd.DataFrame(columns=["layer", "head", "x", "y"]), None
    table = some.assign(name=some["score"].str.removeprefix("statistics/place ")).pivot_table(
        "value", ["layer", "head"], "name", aggfunc="first"
    )
    return table.reset_index(), float(table["stress"].iloc[0])
