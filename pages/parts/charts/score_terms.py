"""Figures of decomposed attention scores: the largest terms of a cell, and maps between tokens."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from pages.parts.charts.encoding import Layers, Shade

ROW, CELL, LARGEST = 24, 22, 360  # pixels of a term, of a cell of a map, and of a map at most
WRITTEN = 11  # pixels of a cell beside which a token is written


def waterfall(frame: pd.DataFrame, *, title: str) -> Layers:
    """Return a waterfall chart of terms; the last row is their sum.

    `frame` has columns term (text), start, end, value, kind ("raises", "lowers", "sum").
    """
    order = list(frame["term"])
    base = alt.Chart(frame).encode(
        y=alt.Y("term:N", sort=order, title=None, axis=alt.Axis(labelLimit=420, labelFlush=False))
    )
    kinds = alt.Scale(domain=["raises", "lowers", "sum"], range=["#d55e00", "#0072b2", "#888888"])
    ends = frame[["start", "end"]].to_numpy()
    room = 0.12 * (ends.max() - min(0.0, ends.min()))  # for the number beside the longest bar
    scale = alt.Scale(domain=[min(0.0, float(ends.min())), float(ends.max() + room)], nice=False)
    bars = base.mark_bar().encode(
        x=alt.X("start:Q", title="attention score minus the mean score of its row (log odds)", scale=scale),
        x2="end:Q",
        color=alt.Color("kind:N", scale=kinds, title=None, legend=alt.Legend(orient="top")),
        tooltip=["term:N", alt.Tooltip("value:Q", format="+.3f")],
    )
    written = base.mark_text(align="left", dx=4, color="#888888").encode(
        x=alt.X("right:Q"), text=alt.Text("value:Q", format="+.2f")
    )
    return alt.layer(bars, written).properties(title=title, height=alt.Step(ROW))


def token_map(weights: np.ndarray, tokens: Sequence[str], keys: Sequence[str], *, title: str,
              marked: tuple[int, int] | None = None, select: bool = False) -> Layers:  # fmt: skip
    """Return an attention map [query, key] between numbered tokens. `marked` is a cell with a ring."""
    queries, key_indices = np.indices(weights.shape)
    frame = pd.DataFrame(
        {"query": queries.ravel(), "key": key_indices.ravel(), "weight": weights.ravel().astype(float)}
    )
    side = max(8, min(CELL, LARGEST // max(len(tokens), len(keys), 1)))
    shown = alt.Undefined if side < WRITTEN else False  # each token is named, where its name has the room
    labels = [f"{position + 1} {token}" for position, token in enumerate(tokens)]
    key_labels = [f"{position + 1} {token}" for position, token in enumerate(keys)]
    frame = frame.assign(from_token=[labels[k] for k in frame["query"]], to_token=[key_labels[k] for k in frame["key"]])
    places: dict[str, Any] = {
        "x": alt.X(
            "to_token:N",
            sort=key_labels,
            title="attends to (key)",
            axis=alt.Axis(orient="top", labelAngle=-60, labelOverlap=shown),
        ),
        "y": alt.Y(
            "from_token:N",
            sort=labels,
            title="attends from (query)",
            axis=alt.Axis(labelOverlap=shown, labelFlush=False),
        ),
    }
    base = alt.Chart(frame).encode(**places)
    cells = base.mark_rect().encode(
        color=Shade("weight", domain=(0.0, 1.0)).colour(frame["weight"]),
        tooltip=["from_token:N", "to_token:N", alt.Tooltip("weight:Q", format=".3f")],
    )
    if select:
        fields = ["from_token", "to_token"]
        cells = cells.add_params(alt.selection_point(name="cell", fields=fields, on="click", toggle=False))
    query, key = marked or (-1, -1)
    ring = base.transform_filter((alt.datum.query == query) & (alt.datum.key == key)).mark_rect(
        filled=False, stroke="#d55e00", strokeWidth=2.5, aria=False
    )
    return alt.layer(cells, ring).properties(title=title, width=alt.Step(side), height=alt.Step(side))
