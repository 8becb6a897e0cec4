"""Heatmaps of one number per head, or per word and layer. Rows are layers, columns heads, counted from 1."""

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import altair as alt
import pandas as pd

from core.attention import Head
from pages.parts.charts.encoding import CELL, Layers, Shade, field, tips

FADED = 0.25  # opacity of a head that is not significant
WIDEST, SMALLEST_CELL = 640, 8  # pixels: of such a picture, and of a head of the widest models


def cell_of(heads: int, most: int = CELL) -> int:
    """Return the size in pixels of one head's cell, at most `most`, so that the heatmap fits on the page."""
    return max(SMALLEST_CELL, min(most, WIDEST // max(heads, 1)))


def head_picture(
    frame: pd.DataFrame,
    shade: Shade,
    *,
    title: str,
    highlight: Collection[Head] = (),
    full: Collection[Head] | None = None,
    tooltip: Sequence[str] = (),
    select: bool = False,
    lines: int = 1,
) -> Layers:
    """Return a layer x head heatmap of one number (or class) per head.

    `frame` has one row per head with columns `layer`, `head` (zero-based) and that of the shade. highlight: heads to
    outline. full: heads in full colour, with others faded (default: all). tooltip: further columns. select: a click
    selects "cell" (layer, head). lines: smallest number of title lines, to align heatmaps side by side.
    """
    heads = [Head(int(layer), int(head)) for layer, head in zip(frame.layer, frame["head"], strict=True)]
    drawn = frame.assign(
        Layer=[head.layer + 1 for head in heads], Head=[head.head + 1 for head in heads], Name=list(map(str, heads))
    )
    x = alt.X("Head:O", title="head", axis=alt.Axis(labelAngle=0, orient="top"))
    y = alt.Y("Layer:O", title="layer")
    written: dict[str, Any] = {} if shade.categories else {"format": ".4~g"}
    read = [
        alt.Tooltip("Name:N", title="head"),
        alt.Tooltip(field(shade.value, shade.kind), title=shade.says, **written),
    ]
    read += tips(drawn, *tooltip)
    cells = alt.Chart(drawn).encode(x=x, y=y).mark_rect(stroke="gray", strokeOpacity=0.25)
    cells = cells.encode(color=shade.colour(drawn[shade.value]), tooltip=read)
    if full is not None:
        drawn["Ink"] = [1.0 if head in set(full) else FADED for head in heads]
        cells = cells.encode(opacity=alt.Opacity("Ink:Q", scale=None, legend=None))
    if select:
        cells = cells.add_params(alt.selection_point(name="cell", fields=["layer", "head"], on="click", toggle=False))
    marked = drawn[[head in set(highlight) for head in heads]]
    # no part of its own for screen readers: a cell is read once, and without any highlight there is nothing to read
    outline = alt.Chart(marked).mark_rect(fillOpacity=0, stroke="#D55E00", strokeWidth=2.5, aria=False).encode(x=x, y=y)
    columns = max((head.head + 1 for head in heads), default=1)
    cell = cell_of(columns, shade.cell) if heads else shade.cell
    wrapped = wrapped_title(title, columns, cell)
    wrapped += [" "] * (lines - len(wrapped))
    return alt.layer(cells, outline).properties(width=alt.Step(cell), height=alt.Step(cell), title=wrapped or "")


def wrapped_title(title: str, columns: int, cell: int) -> list[str]:
    """Split a title into lines that are no wider than the heatmap with its legend."""
    return textwrap.wrap(title, max(24, (cell * columns + 60) // 7))


def clicked_heads(picked: Any) -> list[Head]:
    """Return the heads that were clicked in a heatmap with `select`, from the state of the chart."""
    return [Head(int(cell["layer"]), int(cell["head"])) for cell in picked.selection.get("cell", [])]


def layer_word_picture(frame: pd.DataFrame, *, value: str, title: str, label: str) -> alt.Chart:
    """Return a layer x word heatmap, symmetric about 0. `frame` has columns `layer` (zero-based), `word`, `value`."""
    drawn = frame.assign(Layer=frame.layer + 1)
    shade = Shade(value, label, diverging=True)
    return (
        alt.Chart(drawn)
        .mark_rect(stroke="gray", strokeOpacity=0.25)
        .encode(
            x=alt.X("word:N", sort=list(dict.fromkeys(drawn.word)), title=None, axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("Layer:O", title="layer"),
            color=shade.colour(drawn[value]),
            tooltip=tips(drawn, "word", "Layer", value),
        )
        .properties(title=textwrap.wrap(title, 60), width=alt.Step(CELL), height=alt.Step(CELL))
    )
