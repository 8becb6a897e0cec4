"""Lines, bars and points over two columns, with intervals and one colour per series."""

import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from pages.parts.charts.encoding import SYMBOLS, Axes, Layers, baseline, category, field, interval, tips


def stacked_bars(
    frame: pd.DataFrame, axes: Axes, *, title: str, order: Sequence[str] | None = None, tooltip: Sequence[str] = (),
    most: float | None = None,
) -> alt.Chart:  # fmt: skip
    """Return shares or counts (x, up to `most`) of each bar (y), stacked by class (colour) in this order."""
    domain = alt.Undefined if most is None else [0, most]
    legend = alt.Legend(orient="bottom", columns=6, title=None)
    return (
        alt.Chart(frame, title=in_lines(title))
        .mark_bar()
        .encode(
            y=alt.Y(field(axes.y, "N"), title=None, sort=None, axis=alt.Axis(labelLimit=320)),
            x=alt.X(
                field(axes.x, "Q"),
                title=axes.x_says,
                stack="zero",
                scale=alt.Scale(nice=False, zero=True, domain=domain),
                axis=alt.Axis(tickCount=10),
            ),
            color=category(frame, str(axes.colour), order).legend(legend),
            tooltip=tips(frame, axes.y, axes.colour, axes.x, *tooltip),
        )
        .properties(height=alt.Step(40))
    )


def line_with_band(
    frame: pd.DataFrame,
    axes: Axes,
    *,
    title: str,
    domain: tuple[float, float] | None = None,
    rule: float | None = None,
    log: bool = False,
) -> Layers:
    """Return lines with intervals as bands. `domain` is the range of y, `rule` a baseline, and `log` applies to x."""
    tick_axis = alt.Axis(format="d", tickMinStep=1) if pd.api.types.is_integer_dtype(frame[axes.x]) else alt.Axis()
    x_scale = alt.Scale(type="log") if log else alt.Undefined
    shared: dict[str, Any] = {"x": alt.X(field(axes.x, "Q"), title=axes.x_says, axis=tick_axis, scale=x_scale)}
    if axes.colour:
        shared |= {"color": category(frame, axes.colour)}
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=False)
    base = alt.Chart(frame).encode(**shared)
    line = base.mark_line(point=True).encode(
        y=alt.Y(field(axes.y, "Q"), title=axes.y_says, scale=scale),
        tooltip=tips(frame, axes.x, axes.y, axes.low, axes.high, axes.colour),
    )
    band = interval(base.mark_area(opacity=0.2), axes, scale=scale)
    return alt.layer(*band, line, *baseline(rule)).properties(title=in_lines(title), height=300)


TERM = 24  # pixels of a term of a sum
HALF = 44  # characters of a title in half of a window of 800 pixels
HEIGHT, SQUARE = 420, 640  # pixels of a scatter
NAME_WIDTH, NAME_HEIGHT = 0.1, 0.03  # shares of a scatter's width and height that a point's name takes
LEVEL = 48  # characters of names that fit side by side in half a page; more of them stand aslant
MANY = 14  # names that stand below a chart without touching each other; more stand at its left, one a line
FEW, LONG = 3, 18  # more than so many names, one of them longer than this (in characters), stand at the left too


def values_with_intervals(
    frame: pd.DataFrame, axes: Axes, *, title: str, rule: float | None = None, tooltip: Sequence[str] = ()
) -> Layers:
    """Return values in the order of the rows, side by side by colour: dots with intervals, otherwise bars.

    `rule` draws a baseline. Many or long names are placed one per line.
    """
    lengths = frame[axes.x].astype(str).drop_duplicates().str.len()
    sideways = len(lengths) > MANY or (len(lengths) > FEW and lengths.max() > LONG)
    names, numbers, offset = ("y", "x", "yOffset") if sideways else ("x", "y", "xOffset")
    along = alt.Y if sideways else alt.X
    level = sideways or lengths.sum() <= LEVEL
    shared: dict[str, Any] = {
        names: along(
            field(axes.x, "N"),
            title=axes.x_says,
            sort=None,
            axis=alt.Axis(labelAngle=0 if level else -25, labelOverlap=False, labelLimit=260, labelFlush=False),
        )
    }
    if axes.colour:
        shared |= {offset: (alt.YOffset if sideways else alt.XOffset)(field(axes.colour, "N"), sort=None)}
    base = alt.Chart(frame).encode(**shared)
    has_ends = bool(axes.low and axes.high)
    across = alt.X if sideways else alt.Y
    mark = base.mark_point(filled=True, size=55, opacity=1) if has_ends else base.mark_bar()
    drawn = mark.encode(
        **{numbers: across(field(axes.y, "Q"), title=axes.y_says, axis=alt.Axis(tickCount=10))},
        tooltip=tips(frame, axes.x, axes.colour, axes.y, axes.low, axes.high, *tooltip),
    )
    lines = interval(
        base.mark_rule(strokeWidth=2, color="gray", aria=False), axes, along=numbers
    )  # a dot says its interval
    if axes.colour:
        colour = category(frame, axes.colour)
        drawn, lines = drawn.encode(color=colour), [line.encode(color=colour) for line in lines]
    size = (
        {"height": alt.Step(16 * (frame[axes.colour].nunique() if axes.colour else 1), **{"for": "position"})}
        if sideways
        else {"height": 300}
    )
    return alt.layer(*lines, drawn, *baseline(rule, numbers)).properties(title=in_lines(title), **size)


def bars(
    frame: pd.DataFrame, axes: Axes, *, title: str, domain: tuple[float, float], tooltip: Sequence[str] = ()
) -> Layers:
    """Return a horizontal bar with its number (x) for each row, in the order of the rows."""
    base = alt.Chart(frame).encode(
        y=alt.Y(field(axes.y, "N"), sort=None, title=None, axis=alt.Axis(labelLimit=260, labelFlush=False)),
        x=alt.X(field(axes.x, "Q"), title=axes.x_says, scale=alt.Scale(domain=list(domain))),
    )
    drawn = base.mark_bar().encode(tooltip=tips(frame, axes.y, axes.x, *tooltip))
    written = base.mark_text(align="right", dx=-5, color="white").encode(
        text=alt.Text(field(axes.x, "Q"), format=".2f")
    )
    return alt.layer(drawn, written).properties(title=in_lines(title), height=alt.Step(30))


def dots_and_controls(
    frame: pd.DataFrame, *, title: str, value: str, controls: Sequence[str], passing: str, others: str
) -> Layers:
    """Return a dot with its interval for each head, in the order of the rows, and its controls as ticks.

    `frame` has columns head, value, low, high, passes, and one for each of `controls` (NaN: no tick). `passing` and
    `others` name both kinds of heads in the legend.
    """
    y = alt.Y("head:N", sort=None, title=None, axis=alt.Axis(labelFlush=False))
    x = alt.X("value:Q", title=value, scale=alt.Scale(zero=True))
    drawn = frame.assign(kind=[passing if passes else others for passes in frame["passes"]])
    base = alt.Chart(drawn).encode(y=y)
    legend = alt.Legend(orient="bottom", title=None, **SYMBOLS)
    kinds = alt.Color(
        "kind:N", scale=alt.Scale(domain=[passing, others], range=["#0072B2", "#8C8C8C"]), title=None, legend=legend
    )
    lines = base.mark_rule(strokeWidth=2, aria=False).encode(x="low:Q", x2="high:Q", color=kinds)
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, color=kinds, tooltip=tips(drawn, "head", "value", "low", "high", *controls)
    )
    long = drawn[["head", *controls]].melt("head", var_name="control").dropna(subset=["value"])
    shapes = alt.Scale(domain=list(controls), range=["#D55E00", "#E69F00", "#CC79A7", "#009E73"][: len(controls)])
    ticks = alt.Chart(long).mark_tick(thickness=3, size=14).encode(
        y=y, x=x, color=alt.Color("control:N", scale=shapes, title=None, legend=legend),
        tooltip=["head:N", "control:N", alt.Tooltip("value:Q", format=".3f")],
    )  # fmt: skip
    layered = alt.layer(lines, dots, ticks).resolve_scale(color="independent")
    return layered.properties(title=in_lines(title), height=alt.Step(21))


def dumbbells(frame: pd.DataFrame, *, title: str, value: str, baseline: str, name: str = "head") -> Layers:
    """Return a value and its baseline per row, joined by a line. `frame` has columns `name`, value, baseline, low,
    high."""
    y = alt.Y(field(name, "N"), sort=None, title=None, axis=alt.Axis(labelLimit=260, labelFlush=False))
    base = alt.Chart(frame).encode(y=y)
    x = alt.X("value:Q", title=value, scale=alt.Scale(zero=True))
    joined = base.mark_rule(color="gray", strokeWidth=2, aria=False).encode(x=x, x2="baseline:Q")
    kinds = {"value": value, "baseline": baseline}
    scale = alt.Scale(domain=list(kinds.values()), range=["#0072B2", "#8C8C8C"])
    long = frame.melt([name, "low", "high"], list(kinds), "which", "x").assign(which=lambda at: at["which"].map(kinds))
    dots = alt.Chart(long).mark_point(filled=True, size=70, opacity=1).encode(
        y=y, x=alt.X("x:Q", title=value),
        color=alt.Color("which:N", title=None, scale=scale, legend=alt.Legend(orient="bottom", **SYMBOLS)),
        tooltip=[f"{name}:N", alt.Tooltip("which:N", title="of"), alt.Tooltip("x:Q", title="value", format=".3f"),
                 alt.Tooltip("low:Q", format=".3f"), alt.Tooltip("high:Q", format=".3f")],
    )  # fmt: skip
    return alt.layer(joined, dots).properties(title=in_lines(title), height=alt.Step(21))


def grouped_bars(frame: pd.DataFrame, axes: Axes, *, order: Sequence[str]) -> alt.Chart:
    """Return grouped bars: one group per entry of `order`, one bar per kind (colour)."""
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            alt.X(field(axes.x, "N"), sort=list(order), title=None),
            alt.Y(field(axes.y, "Q")),
            category(frame, str(axes.colour)),
            xOffset=field(str(axes.colour), "N"),
            tooltip=[axes.x, axes.colour, alt.Tooltip(axes.y, format=".4f")],
        )
    )


def ranked(frame: pd.DataFrame, axes: Axes, *, title: str, rule: float | None = None, named: int = 3) -> Layers:
    """Return every value (y) as a dot with its interval, in ascending order. The `named` smallest and largest are
    labelled.

    `frame` has one row per item, named in the column axes.name. `rule` marks a value.
    """
    drawn = frame.dropna(subset=[axes.y]).sort_values(axes.y).reset_index(drop=True)
    drawn = drawn.assign(rank=range(1, len(drawn) + 1))
    x = alt.X("rank:Q", title="rank, least first", axis=alt.Axis(format="d", tickMinStep=1))
    y = alt.Y(field(axes.y, "Q"), title=axes.y_says, scale=alt.Scale(zero=False))
    base = alt.Chart(drawn).encode(x=x)
    dots = base.mark_point(filled=True, size=40, opacity=1).encode(
        y=y, tooltip=tips(drawn, axes.name, axes.y, axes.low, axes.high, "rank")
    )
    lines = interval(base.mark_rule(color="gray", aria=False), axes, scale=alt.Scale(zero=False))
    ends = drawn[(drawn["rank"] <= named) | (drawn["rank"] > len(drawn) - named)]
    name_labels = alt.Chart(ends).mark_text(dx=6, align="left", fontSize=10, color="gray")
    name_labels = name_labels.encode(x=x, y=y, text=alt.Text(field(str(axes.name), "N")))
    return alt.layer(*lines, dots, name_labels, *baseline(rule)).properties(title=in_lines(title), height=300)


def in_lines(title: str) -> str | list[str]:
    """Split a title into lines if it would be cut next to another chart in a narrow window."""
    return title if len(title) <= HALF else textwrap.wrap(title, HALF)


def points(
    frame: pd.DataFrame,
    axes: Axes,
    *,
    title: str,
    tooltip: Sequence[str] = (),
    continuous: bool = False,
    square: bool = False,
) -> Layers:
    """Return a scatter plot, optionally with names. `continuous` colours by a number; `square` uses equal units on both
    axes."""
    span = 1.1 * max(float(frame[name].max() - frame[name].min()) for name in (axes.x, axes.y)) if square else 0.0
    shared: dict[str, Any] = {
        "x": alt.X(field(axes.x, "Q"), title=axes.x_says, scale=_reaching(frame[axes.x], span)),
        "y": alt.Y(field(axes.y, "Q"), title=axes.y_says, scale=_reaching(frame[axes.y], span)),
    }
    dots = alt.Chart(frame).mark_circle(size=60, opacity=0.8, stroke="gray", strokeWidth=0.5)
    dots = dots.encode(**shared, tooltip=tips(frame, axes.name, axes.x, axes.y, axes.colour, *tooltip))
    if axes.colour:
        ramp = alt.Color(field(axes.colour, "Q"), title=axes.colour, scale=alt.Scale(range="ramp"))
        colour = ramp if continuous else category(frame, axes.colour, axes.classes)
        dots = dots.encode(color=colour.legend(orient="top", symbolStrokeWidth=0) if square else colour)
    layers = [dots]
    if axes.name:
        layers.append(
            alt.Chart(frame[apart(frame, axes, span=span, size=HEIGHT / SQUARE if square else 1.0)])
            .mark_text(dx=8, align="left", fontSize=10, color="gray")
            .encode(**shared, text=alt.Text(field(axes.name, "N")))
        )
    size = {"height": SQUARE, "width": SQUARE} if square else {"height": HEIGHT}
    return alt.layer(*layers).properties(title=in_lines(title), **size)


def _reaching(values: pd.Series, span: float) -> alt.Scale:
    """Return a scale of width `span` around the middle of the values (0: their range)."""
    if not span:
        return alt.Scale(zero=False)
    middle = (float(values.max()) + float(values.min())) / 2
    return alt.Scale(domain=[middle - span / 2, middle + span / 2], nice=False)


def apart(frame: pd.DataFrame, axes: Axes, *, span: float = 0.0, size: float = 1.0) -> list[bool]:
    """Return which names of points do not overlap other points or earlier names; the others are shown on hover.

    `span` is the range of both axes (0: that of the points); `size` is the size of a name relative to its size at
    HEIGHT.
    """
    wide, high = size * NAME_WIDTH, size * NAME_HEIGHT
    spans = [span or float(frame[name].max() - frame[name].min()) or 1.0 for name in (axes.x, axes.y)]
    places = (frame[[axes.x, axes.y]].to_numpy(dtype=float) / spans).tolist()
    free: list[tuple[float, float]] = []
    shown = []
    for x, y in places:
        is_free = all(abs(x - a) > wide or abs(y - b) > high for a, b in free)
        covers = any(0 < a - x <= wide and abs(b - y) <= high for a, b in places)
        shown.append(is_free and not covers)
        if shown[-1]:
            free.append((x, y))
    return shown


def calibration(frame: pd.DataFrame, axes: Axes, *, counted: str, title: str) -> Layers:
    """Return accuracy (y) by predicted probability (x), both 0 to 1, with the diagonal. `counted` is the column of
    sample sizes."""
    ends = alt.Scale(domain=[0, 1])
    x = alt.X(field(axes.x, "Q"), title=axes.x_says, scale=ends)
    y = alt.Y(field(axes.y, "Q"), title=axes.y_says, scale=ends)
    dots = (
        alt.Chart(frame)
        .mark_circle(size=90, opacity=0.8)
        .encode(x=x, y=y, tooltip=tips(frame, axes.x, axes.y, counted))
    )
    count_labels = alt.Chart(frame[apart(frame, axes, span=1.0)]).mark_text(
        dx=8, align="left", fontSize=10, color="gray"
    )
    count_labels = count_labels.transform_calculate(said=f"'n = ' + datum['{counted}']").encode(x=x, y=y, text="said:N")
    line = alt.Chart(pd.DataFrame({axes.x: [0.0, 1.0], axes.y: [0.0, 1.0]}))
    equal = line.mark_line(strokeDash=[5, 4], color="#D55E00").encode(x=x, y=y)
    return alt.layer(equal, dots, count_labels).properties(title=in_lines(title), height=380)


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
        x=alt.X("start:Q", title="attention score minus the mean score of its row", scale=scale),
        x2="end:Q",
        color=alt.Color("kind:N", scale=kinds, title=None, legend=alt.Legend(orient="top")),
        tooltip=["term:N", alt.Tooltip("value:Q", format="+.3f")],
    )
    written = base.mark_text(align="left", dx=4, color="#888888").encode(
        x=alt.X("right:Q"), text=alt.Text("value:Q", format="+.2f")
    )
    return alt.layer(bars, written).properties(title=title, height=alt.Step(TERM))
