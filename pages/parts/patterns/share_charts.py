"""Class shares as charts: stacked bars a task (Fig 2) and the majority class of each head."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from core.attention import Head
from core.labelling.kept import unfamiliar
from core.store import runs
from core.store.database import Database
from pages.parts.charts.curves import stacked_bars
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.frame.messages import plain
from pages.parts.widgets.head_links import pick_and_link
from pages.parts.widgets.pickers import task_name


def stored_rows(db: Database, study: str, class_set: str) -> pd.DataFrame:
    """Rows of the newest run of each task and set of checkpoints, of this class set."""
    known = runs.known_runs(db, study)
    frames = []
    for run in known["run"].head(40):
        shares = runs.study_rows(db, run)
        if len(shares) and shares["class_set"].iloc[0] == class_set:
            frames.append(shares.assign(run=run))
    if not frames:
        return pd.DataFrame()
    rows = pd.concat(frames, ignore_index=True)
    newest = rows.groupby(["checkpoint", "task"])["run"].first().rename("newest")
    rows = rows.join(newest, on=["checkpoint", "task"])
    return rows[rows["run"] == rows["newest"]]


def shortened(checkpoint: str, most: int = 24) -> str:
    """The name of a checkpoint or of its folder, its middle left out where it is long."""
    name = Path(checkpoint).name
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most - most // 2 - 1) :]}"


def bars(rows: pd.DataFrame, part: str, title: str, names: list[str]) -> None:
    """Stacked bars, one a task and checkpoint, and their numbers."""
    shares = rows[rows["part"] == part].assign(percent=lambda frame: 100 * frame["share"])
    if shares.empty:
        st.caption("There is no held-out confusion to correct with.")
        return
    pairs = zip(shares["task"], shares["checkpoint"], strict=True)
    shares = shares.assign(bar=[f"{task_name(task)} · {shortened(checkpoint)}" for task, checkpoint in pairs])
    st.altair_chart(
        stacked_bars(
            shares.sort_values("task", kind="stable"),
            Axes(x="percent", y="bar", colour="class", x_title="percent of maps"),
            title=title,
            order=names,
            tooltip=["checkpoint", "low", "high", "maps"],
        )
    )
    table = shares[["checkpoint", "task", "class", "share", "low", "high", "maps", "inputs", "classifier"]]
    with st.expander("Numbers, with 95 % intervals over inputs"):
        st.dataframe(table.round(4), hide_index=True)
        st.download_button("CSV", table.to_csv(index=False), f"shares-{part}.csv", on_click="ignore", key=f"csv_{part}")


def doubts(notes: pd.DataFrame) -> None:
    """How much of each checkpoint the classifier was unsure of, and a warning where it never saw such maps."""
    if "outside" not in notes or notes["outside"].isna().all():
        return
    known = notes.dropna(subset=["outside"])
    for name, mine in known.groupby("checkpoint", sort=False):
        unsure, outside = (float(np.average(mine[part], weights=mine["maps"])) for part in ("unsure", "outside"))
        said = (
            f"{shortened(str(name))}: the classifier was unsure of {unsure:.1%} of its maps (no class has half of the "
            f"probability), and {outside:.1%} lie outside what it was trained on"
        )
        if not unfamiliar(unsure, outside):
            st.caption(plain(f"{said}."))
            continue
        st.warning(
            plain(
                f"{said}: do not trust these shares yet. Label 50 of this checkpoint's maps (about four minutes) on "
                "the Label page, then retrain (about a minute) on the Pattern classifier page."
            ),
            icon=":material/help:",
        )


def heads(rows: pd.DataFrame, names: list[str]) -> None:
    """Each head's majority class, checkpoints side by side."""
    task = st.selectbox("Task of the head picture", sorted(rows["task"].unique()), format_func=task_name)
    shares = rows[(rows["part"] == "head") & (rows["task"] == task)]
    beside = st.container(horizontal=True)  # wraps where there is no room for both
    for name, mine in shares.groupby("checkpoint", sort=False):
        mine = mine.assign(
            counts=[json.dumps(counts) for counts in mine["counts"]],
            layer=mine["layer"].astype(int),
            head=mine["head"].astype(int),
        )
        place = beside.container(width="content")
        place.altair_chart(
            head_picture(
                mine,
                Shade("class", categories=names),
                title=f"{shortened(name)}: class of most inputs",
                tooltip=["share", "counts"],
            ),
            width="content",
        )
        with place:
            named = [str(Head(int(a), int(b))) for a, b in zip(mine["layer"], mine["head"], strict=True)]
            pick_and_link(name, named, here="shares", key=f"go_on|{name}")
