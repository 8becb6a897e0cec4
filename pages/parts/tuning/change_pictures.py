"""The pictures of the Change page: heads and layers per task, and the rows where a head changed most."""

import math
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from core.attention import Head
from core.report.published import QQP_CHANGE
from core.tasks.glue import read_rows
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import CELL, Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.frame.messages import plain
from pages.parts.frame.page_table import PAGES_FOLDER
from pages.parts.widgets.head_links import show_links
from pages.parts.widgets.pickers import task_name

STATISTICS = {
    "cosine": ("cosine of the flattened maps", "cosine", (0.0, 1.0)),
    "divergence": ("Jensen-Shannon divergence of the rows, nats", "nats", (0.0, math.log(2))),
    "cosine_without_first": ("cosine without the first token", "cosine", (0.0, 1.0)),
    "divergence_without_first": (
        "Jensen-Shannon divergence without the first token, nats",
        "nats",
        (0.0, math.log(2)),
    ),
}


def pictures(rows: pd.DataFrame, statistic: str, run: str) -> None:
    """A small picture per fine-tuned checkpoint, all on one scale, and the layers' means. A click chooses a head."""
    title, unit, domain = STATISTICS[statistic]
    heads = rows[(rows["kind"] == "head") & (rows["statistic"] == statistic)]
    if st.toggle("Stretch the colours", help="From the least to the greatest value; the paper's run from 0 to 1."):
        domain = (heads["value"].min(), heads["value"].max())
    groups = list(heads.groupby("after", sort=False))
    beside = st.container(horizontal=True)
    width = CELL * (int(heads["head"].max()) + 1) + 130  # with its legend, so that several stand side by side
    for after, mine in groups:
        task = task_name(mine["task"].iloc[0])
        with beside.container(width=width):
            picture = head_picture(
                mine, Shade("value", label=unit, domain=domain), title=task, tooltip=("low", "high", "n"), select=True
            )
            key = f"change|{run}|{statistic}|{after}"
            st.altair_chart(picture, width="content", on_select=partial(_clicked, key, after), key=key)
            st.caption(plain(f"n = {int(mine['n'].iloc[0])} rows · {Path(after).name}"))
    layers = rows[(rows["kind"] == "layer") & (rows["statistic"] == statistic)].astype({"layer": int})
    layers = layers.assign(layer=layers["layer"] + 1, task=[task_name(key) for key in layers["task"]])
    if statistic == "cosine" and layers["layer"].max() == len(QQP_CHANGE):
        printed = pd.DataFrame(
            {"layer": range(1, len(QQP_CHANGE) + 1), "value": QQP_CHANGE, "task": "QQP, the paper's"}
        )
        layers = pd.concat([layers, printed.assign(low=printed["value"], high=printed["value"])])
    chart = line_with_band(
        layers,
        Axes(x="layer", y="value", low="low", high="high", colour="task", y_title=title),
        title="Mean over the heads of a layer, 95% interval",
    )
    st.altair_chart(chart)


def _clicked(key: str, after: str) -> None:
    for cell in st.session_state[key].selection.get("cell", []):
        st.session_state["changed_after"] = after
        st.session_state["changed_head"] = str(Head(int(cell["layer"]), int(cell["head"])))


def strongest(rows: pd.DataFrame, about: dict) -> None:
    """One checkpoint's head, the rows where it changed most, and links to its maps before and after."""
    cosines = rows[(rows["kind"] == "head") & (rows["statistic"] == "cosine")].sort_values("value")
    left, right = st.columns(2)
    after = left.selectbox(
        "Checkpoint after",
        list(dict.fromkeys(rows["after"])),
        key="changed_after",
        on_change=lambda: st.session_state.pop("changed_head", None),  # back to the one that changed most
    )
    cosines = cosines[cosines["after"] == after]
    names = {
        str(Head(int(a), int(b))): v
        for a, b, v in zip(cosines["layer"], cosines["head"], cosines["value"], strict=True)
    }
    name = right.selectbox(
        "Head, most changed first",
        list(names),
        format_func=lambda head_name: f"{head_name} · {names[head_name]:.3f}",
        key="changed_head",
        help="Or click it in a picture above.",
    )
    head = Head.parse(name)
    show_links(after, head, here="change")
    chosen = cosines[(cosines["layer"] == head.layer) & (cosines["head"] == head.head)].iloc[0]
    options = about["options"]
    texts = {
        row.id: row for row in read_rows(chosen["task"], options["split"], folder=options["data"])
    }  # fmt: skip
    for changed in chosen["changed_most"]:
        row = texts.get(changed["row"])
        if row is None:
            continue
        asked = {"checkpoint": options["before"], "beside": after, "text": row.text, "head": name}
        asked |= {"pair": row.pair} if row.pair else {}
        place, link = st.columns([5, 2], vertical_alignment="center")
        place.text(
            f"{changed['row']} · cosine {changed['cosine']:.3f}\n{row.text}" + (f"\n{row.pair}" if row.pair else "")
        )
        link.page_link(
            PAGES_FOLDER / "maps.py", label=f"{name} before and after", icon=":material/grid_on:", query_params=asked
        )
