"""The pictures of the Prune page: importance of heads, pruning curves, and saving what is left."""

import pandas as pd
import streamlit as st

from core import capture, config
from core.attention import parse_heads
from core.store.runs import study_rows
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.frame import resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.reports.stored_runs import pick_run
from pages.parts.widgets.head_links import asked_heads, pick_and_link
from pages.parts.widgets.pickers import task_name


def show_importance() -> None:
    """Importance per head, and how its ranks agree with what zeroing each head does."""
    picked = pick_run(
        "importance",
        "No importance has been measured yet: choose a fine-tuned checkpoint, press Measure importance.",
        "weighed",
    )
    if picked is None:
        return
    run, about = picked
    rows = study_rows(resources.database(), run)
    heads = rows[rows["kind"] == "head"].astype({"layer": int, "head": int})
    asked = asked_heads()
    left, right = st.columns([3, 2])
    left.altair_chart(
        head_picture(
            heads,
            Shade("value", label="importance"),
            tooltip=("rank", "gradient"),
            highlight=asked,
            title="Importance of each head, l2 within its layer",
        ),
        width="content",
    )
    right.dataframe(heads[["name", "value", "gradient"]].head(20), hide_index=True)
    compared = rows[rows["kind"] == "correlation"] if "kind" in rows else rows
    for row in compared.to_dict("records"):
        rho = "undefined" if pd.isna(row["spearman"]) else f"{row['spearman']:.2f}"
        right.markdown(f"Spearman with {plain(row['name'])} when zeroed: **{rho}**")
    pick_and_link(str(about["checkpoint"]), list(heads["name"]), here="prune", key="weighed_head")
    st.caption(
        plain(
            f"{about['checkpoint']} · {task_name(about['task'])} {about['split']} · "
            f"n = {int(heads.iloc[0]['n'])} rows · {about['created']:%d %B %Y}"
        )
    )


def show_curves() -> None:
    """The metric against the share of heads removed, per order; and a folder for what is left."""
    picked = pick_run(
        "prune", "No curve has been drawn yet: choose a fine-tuned checkpoint and press Draw the curve.", "curve"
    )
    if picked is None:
        return
    run, about = picked
    rows = study_rows(resources.database(), run)
    drawn = rows.assign(
        percent=100 * rows["share"], score=100 * rows["score"], low=100 * rows["low"], high=100 * rows["high"]
    )
    first = drawn.iloc[0]
    st.altair_chart(
        line_with_band(
            drawn,
            Axes(
                x="percent",
                y="score",
                low="low",
                high="high",
                colour="order",
                x_title="heads removed, %",
                y_title=f"{first['metric']} x 100",
            ),
            rule=100 * first["baseline"],
            title="The score as heads go; dashed: all heads (Michel et al., Fig 3)",
        )
    )
    st.caption(
        plain(
            f"{about['checkpoint']} · {task_name(first['task'])} dev · n = {int(first['n'])} rows · "
            f"order from train rows · 95% paired bootstrap of the change · {about['created']:%d %B %Y}"
        )
    )
    _save(drawn, str(about["checkpoint"]))


def _save(drawn: pd.DataFrame, checkpoint: str) -> None:
    with st.expander("Save a pruned checkpoint"):
        left, middle, right = st.columns([2, 2, 1], vertical_alignment="bottom")
        order = left.selectbox("Order", list(dict.fromkeys(drawn["order"])))
        mine = drawn[(drawn["order"] == order) & (drawn["removed"] > 0)]
        percent = middle.select_slider("Heads removed, %", list(mine["percent"].round(1)))
        step = mine[mine["percent"].round(1) == percent].iloc[0]
        folder = config.settings().runs / "pruned" / f"{checkpoint.rstrip('/').rsplit('/', 1)[-1]}-{order}-{percent:g}"
        if not right.button("Save", width="stretch"):
            return
        with clear_errors():
            resources.database().person.must("annotator", "save a checkpoint")
            saved = capture.pruning.save_pruned(
                resources.checkpoint(checkpoint, "classifier"), parse_heads(step["heads"]), folder
            )
            st.success(plain(f"Saved {saved} without {int(step['removed'])} heads: it opens like any checkpoint."))
