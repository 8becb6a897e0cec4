"""Heatmaps over classes or tokens: confusions, distributions over the tokens of an input, and attention maps."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from pages.parts.charts.encoding import LONGEST, Axes, Layers, Shade, field, legend, tips

CELL, STRIP = 64, 40  # pixels of a cell of a matrix, and of a token of a strip
MAP_CELL, LARGEST = 22, 360  # pixels of a cell of a map between tokens, and of a map at most
WRITTEN = 11  # pixels of a cell beside which a token is written
MIDDLE = 0.6  # share of the largest value from which the ramp is nearer its far end: numbers take the other end


def matrix(
    frame: pd.DataFrame, axes: Axes, *, value: str, title: str, order: Sequence[str], rows: Sequence[str] = (),
    select: bool = False,
) -> Layers:  # fmt: skip
    """Return a heatmap over two class axes (confusion, correlation), with nonzero numbers in the cells. `rows` is the
    order of the other axis, if it has other names; its rows are then half as high."""
    places: dict[str, Any] = {
        "x": alt.X(
            field(axes.x, "N"),
            sort=list(order),
            title=axes.x_says,
            axis=alt.Axis(orient="top", labelAngle=-35, labelAlign="left", labelOverlap=False),
        ),
        "y": alt.Y(field(axes.y, "N"), sort=list(rows or order), title=axes.y_says, axis=alt.Axis(labelLimit=LONGEST)),
    }
    base = alt.Chart(frame).encode(**places)
    cells = base.mark_rect(stroke="gray", strokeOpacity=0.25).encode(
        color=Shade(value).colour(frame[value]), tooltip=tips(frame, axes.y, axes.x, value)
    )
    if select:
        cells = cells.add_params(alt.selection_point(name="cell", fields=[axes.x, axes.y], on="click", toggle=False))
    is_integer = pd.api.types.is_integer_dtype(frame[value])
    most = float(frame[value].max() or 1)
    written = (
        base.transform_filter(alt.datum[value] != 0)
        .transform_calculate(light=f"{alt.datum[value]} < {MIDDLE * most} ? 1 : 0")
        .mark_text(fontSize=12)
        .encode(
            text=alt.Text(field(value, "Q"), format=",d" if is_integer else ".3~r"),
            color=alt.Color("light:Q", scale=alt.Scale(range="ramp", domain=[0, 1]), legend=None),
        )
    )
    layered = alt.layer(cells, written).resolve_scale(color="independent")
    return layered.properties(title=title, width=alt.Step(CELL), height=alt.Step(CELL // 2 if rows else CELL))


def token_strips(frame: pd.DataFrame, *, title: str) -> Layers:
    """Return distributions over the tokens of an input, one line each (Kovaleva et al., Fig 3).

    `frame` has columns `line`, `position`, `token`, `weight`, `mark` (below the token: "target", "sink", ...).
    """
    marks = zip(frame.position, frame.token, frame.mark, strict=True)
    tokens = [f"{position + 1} {token}" + (f" ({mark})" if mark else "") for position, token, mark in marks]
    base = alt.Chart(frame.assign(Token=tokens)).encode(
        x=alt.X(
            "Token:N", sort=list(dict.fromkeys(tokens)), title=None, axis=alt.Axis(labelAngle=-40, labelOverlap=False)
        ),  # the two words it is about are never left out
        y=alt.Y("line:N", sort=None, title=None),
    )
    cells = base.mark_rect(stroke="gray", strokeOpacity=0.25).encode(
        color=alt.Color(
            "weight:Q",
            scale=alt.Scale(range="ramp", domain=[0, max(0.01, float(frame["weight"].max()))]),
            legend=legend(False),
        ),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip("Token:N"), alt.Tooltip("weight:Q", format=".3f")],
    )
    marked = base.transform_filter("datum.mark == 'target' || datum.mark == 'element'")
    outline = marked.mark_rect(fillOpacity=0, stroke="#D55E00", strokeWidth=2)
    return alt.layer(cells, outline).properties(title=title, width=alt.Step(STRIP), height=alt.Step(24))


def token_map(weights: np.ndarray, tokens: Sequence[str], keys: Sequence[str], *, title: str,
              marked: tuple[int, int] | None = None, select: bool = False) -> Layers:  # fmt: skip
    """Return an attention map [query, key] between numbered tokens. `marked` is a cell with a ring."""
    queries, key_indices = np.indices(weights.shape)
    frame = pd.DataFrame(
        {"query": queries.ravel(), "key": key_indices.ravel(), "weight": weights.ravel().astype(float)}
    )
    side = max(8, min(MAP_CELL, LARGEST // max(len(tokens), len(keys), 1)))
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
