"""Figures of one number per head, or per word and layer (rows: layers, columns: heads, counted from 1), and budgets."""

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import altair as alt
import pandas as pd

from core.attention import Head
from core.scoring.definitions import BUDGET_CATEGORIES, BUDGET_GROUPS, GROUP_OF
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


# ---------------------------------------------------------------- attention budgets as stacked bars


GROUPS = tuple(BUDGET_GROUPS)
COLOURS = ("#E69F00", "#D55E00", "#F0E442", "#0072B2", "#56B4E9", "#CC79A7", "#009E73", "#8C8C8C")  # Okabe and Ito
GRID_WIDTH, BAR_WIDTH = 980, 760  # pixels
ROW = 26  # pixels of a layer
WRITTEN_FROM = 0.04  # share of a bar above which it has room for its number


def budget_parts(scores: pd.DataFrame, statistic: str = "budget") -> pd.DataFrame:
    """Return the shares of each head as bar segments `start` to `end` from 0 to 1, with the columns of the tooltip.

    `scores` are from the atlas (layer, head, score, value, low, high, baseline, n).
    """
    prefix, order = f"budget/{statistic}/", list(BUDGET_CATEGORIES)
    parts = scores[scores["score"].str.startswith(prefix)].copy()
    parts["category"] = parts["score"].str.removeprefix(prefix)
    parts["group"] = parts["category"].map(GROUP_OF)
    parts["keys"] = parts["category"].map(BUDGET_CATEGORIES)
    parts["place"] = parts["category"].map(lambda name: (GROUPS.index(GROUP_OF[name]), order.index(name)))
    parts = parts.sort_values(["layer", "head", "place"]).drop(columns="place")
    parts["end"] = parts.groupby(["layer", "head"])["value"].cumsum()
    parts["start"] = parts["end"] - parts["value"]
    parts["name"] = [str(Head(int(a), int(b))) for a, b in zip(parts["layer"], parts["head"], strict=True)]
    parts["times"] = parts["value"] / parts["baseline"]
    parts["interval"] = [f"{low:.1%} to {high:.1%}" for low, high in zip(parts["low"], parts["high"], strict=True)]
    return parts


def _colour() -> alt.Color:
    scale = alt.Scale(domain=list(GROUPS), range=list(COLOURS))
    legend = alt.Legend(title="attention to", orient="top", columns=4, symbolOpacity=1, labelLimit=260)
    return alt.Color("group:N", scale=scale, sort=list(GROUPS), legend=legend)


def _tips() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("name:N", title="head"),
        alt.Tooltip("keys:N", title="attention to"),
        alt.Tooltip("value:Q", title="share", format=".1%"),
        alt.Tooltip("interval:N", title="95 % CI"),
        alt.Tooltip("baseline:Q", title="share under uniform attention", format=".1%"),
        alt.Tooltip("times:Q", title="share of attention divided by the share under uniform attention", format=".2f"),
    ]


def budget_grid(parts: pd.DataFrame) -> alt.Chart:
    """Return one stacked bar per head (rows: layers, columns: heads). A click selects "cell" (layer, head)."""
    heads = int(parts["head"].max()) + 1
    drawn = parts.assign(
        Layer=parts["layer"] + 1,
        x=parts["head"] + 1 - 0.46 + 0.92 * parts["start"],
        x2=parts["head"] + 1 - 0.46 + 0.92 * parts["end"],
    )
    axis = alt.Axis(values=list(range(1, heads + 1)), format="d", orient="top", grid=False, domain=False, ticks=False)
    clicked = alt.selection_point(name="cell", fields=["layer", "head"], on="click", toggle=False)
    return (
        alt.Chart(drawn)
        .mark_bar(size=ROW - 6, cursor="pointer")
        .encode(
            x=alt.X("x:Q", title="head", scale=alt.Scale(domain=[0.5, heads + 0.5], nice=False), axis=axis),
            x2="x2:Q",
            y=alt.Y("Layer:O", title="layer"),
            color=_colour(),
            tooltip=_tips(),
        )
        .add_params(clicked)
        .properties(width=GRID_WIDTH, height=alt.Step(ROW))
    )


def budget_bars(bars: dict[str, pd.DataFrame]) -> Layers:
    """Return one wide bar per name, with the number of each share that has room for it."""
    drawn = pd.concat([parts.assign(bar=name) for name, parts in bars.items()], ignore_index=True)
    groups = drawn.groupby(["bar", "group"], sort=False).agg(start=("start", "min"), end=("end", "max")).reset_index()
    groups["share"] = groups["end"] - groups["start"]
    groups["middle"] = (groups["start"] + groups["end"]) / 2
    y = alt.Y("bar:N", title=None, sort=list(bars), axis=alt.Axis(labelLimit=320))
    x = alt.X("start:Q", title="share of attention", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    bar = alt.Chart(drawn).mark_bar(size=30).encode(x=x, x2="end:Q", y=y, color=_colour(), tooltip=_tips())
    written = groups[groups["share"] >= WRITTEN_FROM]
    nearly_all = written["share"].between(0.995, 1, inclusive="left")  # no share is written as 100 % that is less
    written = written.assign(number=written["share"].map("{:.0%}".format).mask(
        nearly_all, written["share"].map("{:.1%}".format)))  # fmt: skip
    numbers = (
        alt.Chart(written)
        .mark_text(color="black", fontWeight="bold", aria=False)
        .encode(x="middle:Q", y=y, text="number:N")
    )
    return alt.layer(bar, numbers).properties(width=BAR_WIDTH, height=alt.Step(44))
