"""Attention budgets as stacked bars: one per head in a layer x head grid, or a few wide bars with numbers."""

import altair as alt
import pandas as pd

from core.attention import Head
from core.scoring.definitions import BUDGET_CATEGORIES, BUDGET_GROUPS, GROUP_OF
from pages.parts.charts.encoding import Layers

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
