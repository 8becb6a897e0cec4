"""Heads grouped by mean pattern without any label, and whether redundancy stays the same over tasks and tuning."""

import numpy as np
import pandas as pd
import streamlit as st

from core.store.runs import study_rows
from pages.parts.atlas.small_maps import SmallMap, show_small_maps
from pages.parts.frame import resources
from pages.parts.frame.messages import plain
from pages.parts.frame.page_table import PAGES_FOLDER
from pages.parts.reports.stored_runs import pick_run
from pages.parts.widgets import pickers

CELL = 12  # pixels
MEANING = (
    "Found without labels: each head's maps brought to one size and averaged, then joined by Ward's linkage of the "
    "patterns' square roots. Silhouette: how much nearer its own group a head is than the next, -1 to 1."
)
CLAIM = "Bian et al. 2021 claim that which heads are redundant is “phase-independent and task-agnostic”."


def show_groups() -> None:
    """The newest stored groups of a checkpoint, and how far its redundancy is kept."""
    picked = pick_run(
        "redundancy", "No heads have been grouped yet: choose “nearest heads and groups by mean pattern” under Measure "
        "more of this checkpoint on the Atlas.", "run_redundancy", icon=":material/database:",
    )  # fmt: skip
    if picked is None:
        st.page_link(PAGES_FOLDER / "atlas.py", label="Atlas", icon=":material/map:")
        return

    rows = study_rows(resources.database(), picked[0])
    for (checkpoint, task), mine in rows[rows["kind"] != "kept"].groupby(["checkpoint", "task"], sort=False):
        st.markdown(f"**{plain(checkpoint)} · {plain(pickers.task_name(task))}**")
        show_small_maps(_figures(mine), key=f"groups {checkpoint} {task}", cell=CELL, own_scale=True)
    st.caption(MEANING)
    kept = rows[rows["kind"] == "kept"]
    if len(kept):
        st.markdown("**Does it stay?**")
        st.caption(CLAIM)
    for row in kept.to_dict("records"):
        st.markdown(plain(said(row)))


def said(row: dict) -> str:
    """Whether redundancy is kept between two tasks or checkpoints: r of the distances between heads, with interval."""
    first, second = (f"{row[f'{which}checkpoint']} on {pickers.task_name(row[f'{which}task'])}"
                     for which in ("", "other_"))  # fmt: skip
    numbers = f"r = {row['r']:.2f} [{row['low']:.2f}, {row['high']:.2f}], p = {row['p']:.3g}, {int(row['n'])} heads"
    if row["low"] > 0.5 and row["p"] < 0.05:
        verdict = "the same heads are alike in both"
    else:
        verdict = "related" if row["low"] > 0 and row["p"] < 0.05 else "not shown to be the same"
    return f"{first} and {second}: {numbers}: {verdict}."


def _figures(rows: pd.DataFrame) -> list[SmallMap]:
    """A group's mean pattern with the names of its heads."""
    heads, figures = rows[rows["kind"] == "head"], []
    for row in rows[rows["kind"] == "group"].itertuples():
        mine = heads[heads["group"] == row.group]
        note = f"{int(row.heads)} heads, silhouette {mine['clear'].mean():.2f}: {' '.join(mine['name'])}"
        figures.append(SmallMap(f"Group {int(row.group)}", np.array(row.pattern), note=note))
    return figures
