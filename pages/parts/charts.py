"""The charts of every page: Altair only, one function per kind, colours from the theme in light and dark.

Scales name the theme's ranges ("ramp", "diverging", "category"), which .streamlit/config.toml defines, so a chart
follows the theme; `exported` puts the light colours in, for files. Layers run down, heads across, counted from 1.
"""

import textwrap
from collections.abc import Collection, Sequence
from typing import Any, Literal

import altair as alt
import pandas as pd

from core.attention import Head
from core.drawing import theme

Layers = alt.LayerChart | alt.FacetChart  # what altair says that layering gives
CELL = 26  # pixels of one head in a layer x head picture
WIDEST, SMALLEST_CELL = 640, 8  # pixels: of such a picture, and of a head of the widest models


def cell_of(heads: int) -> int:
    """Pixels of one head where a layer has so many: CELL, and less where the picture would leave the page."""
    return max(SMALLEST_CELL, min(CELL, WIDEST // max(heads, 1)))


def head_picture(
    frame: pd.DataFrame,
    *,
    value: str,
    title: str,
    diverging: bool = False,
    domain: tuple[float, float] | None = None,
    highlight: Collection[Head] = (),
    tooltip: Sequence[str] = (),
    label: str | None = None,
    cell: int = CELL,
    select: bool = False,
    categories: Sequence[str] | None = None,
) -> Layers:
    """A layer x head picture of one number (or one class) per head.

    frame: one row a head with columns `layer`, `head` (zero-based) and `value`. diverging: blue below 0, orange
    above, symmetric about 0. domain: ends of the scale (default: 0 or the least to the greatest value).
    highlight: heads to outline. tooltip: more columns to read. select: a click selects "cell" (layer, head).
    categories: `value` holds class names, in this order. Heads without a value stay empty.
    """
    drawn = frame.assign(
        Layer=frame["layer"] + 1,
        Head=frame["head"] + 1,
        Name=[str(Head(int(a), int(b))) for a, b in zip(frame["layer"], frame["head"], strict=True)],
    )
    x = alt.X("Head:O", title="head", axis=alt.Axis(labelAngle=0, orient="top"))
    y = alt.Y("Layer:O", title="layer")
    base = alt.Chart(drawn).encode(x=x, y=y)
    kind = "N" if categories else "Q"
    colour = alt.Color(
        _field(value, kind),
        title=label or value,
        scale=_scale(drawn[value], diverging, domain, categories),
        legend=_legend(categories),
    )
    written: dict[str, Any] = {} if categories else {"format": ".4~g"}
    tips = [alt.Tooltip("Name:N", title="head"), alt.Tooltip(_field(value, kind), title=label or value, **written)]
    tips += _tips(drawn, *tooltip)
    cell = min(cell, cell_of(int(drawn["head"].max()) + 1)) if len(drawn) else cell
    cells = base.mark_rect(stroke="gray", strokeOpacity=0.25).encode(color=colour, tooltip=tips)
    if select:
        cells = cells.add_params(alt.selection_point(name="cell", fields=["layer", "head"], on="click", toggle=False))
    marked = drawn[[Head(int(a), int(b)) in set(highlight) for a, b in zip(drawn["layer"], drawn["head"], strict=True)]]
    outline = alt.Chart(marked).mark_rect(fillOpacity=0, stroke="#D55E00", strokeWidth=2.5).encode(x=x, y=y)
    columns = int(drawn["head"].max()) + 1 if len(drawn) else 1
    lines = (
        textwrap.wrap(title, max(24, (cell * columns + 60) // 7)) or ""
    )  # a title must not be wider than its picture
    return alt.layer(cells, outline).properties(width=alt.Step(cell), height=alt.Step(cell), title=lines)


def stacked_bars(
    frame: pd.DataFrame,
    *,
    bar: str,
    value: str,
    colour: str,
    title: str,
    order: Sequence[str] | None = None,
    value_title: str | None = None,
    tooltip: Sequence[str] = (),
) -> alt.Chart:
    """Shares or counts of each `bar`, stacked by class from the left. order: of the classes."""
    legend = alt.Legend(orient="bottom", columns=2, title=None)
    return (
        alt.Chart(frame, title=title)
        .mark_bar()
        .encode(
            y=alt.Y(_field(bar, "N"), title=None, sort=None, axis=alt.Axis(labelLimit=220)),
            x=alt.X(_field(value, "Q"), title=value_title or value, stack="zero"),
            color=_category(colour, order).legend(legend),
            tooltip=_tips(frame, bar, colour, value, *tooltip),
        )
        .properties(height=alt.Step(24))
    )


def line_with_band(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    title: str,
    low: str | None = None,
    high: str | None = None,
    colour: str | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    domain: tuple[float, float] | None = None,
    rule: float | None = None,
) -> Layers:
    """A line, its interval as a band, one colour a series; `rule` draws a baseline."""
    whole = alt.Axis(format="d", tickMinStep=1) if pd.api.types.is_integer_dtype(frame[x]) else alt.Axis()
    shared: dict[str, Any] = {"x": alt.X(_field(x, "Q"), title=x_title or x, axis=whole)}
    if colour:
        shared["color"] = _category(colour)
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=False)
    base = alt.Chart(frame).encode(**shared)
    line = base.mark_line(point=True).encode(
        y=alt.Y(_field(y, "Q"), title=y_title or y, scale=scale), tooltip=_tips(frame, x, y, low, high, colour)
    )
    band = _interval(base.mark_area(opacity=0.2), low, high, title=y_title or y, scale=scale)
    return alt.layer(*band, line, *_baseline(rule)).properties(title=title, height=300)


def bars_with_intervals(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    title: str,
    low: str | None = None,
    high: str | None = None,
    colour: str | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    rule: float | None = None,
    sort: Any = None,
    tooltip: Sequence[str] = (),
) -> Layers:
    """Bars with their intervals as lines; side by side by `colour`; `rule` draws a baseline."""
    shared: dict[str, Any] = {"x": alt.X(_field(x, "N"), title=x_title or x, sort=sort, axis=alt.Axis(labelAngle=0))}
    if colour:
        shared["xOffset"] = alt.XOffset(_field(colour, "N"), sort=None)
    base = alt.Chart(frame).encode(**shared)
    bars = base.mark_bar().encode(
        y=alt.Y(_field(y, "Q"), title=y_title or y), tooltip=_tips(frame, x, colour, y, low, high, *tooltip)
    )
    if colour:
        bars = bars.encode(color=_category(colour))
    lines = _interval(base.mark_rule(strokeWidth=1.5, color="gray"), low, high, title=y_title or y)
    return alt.layer(bars, *lines, *_baseline(rule)).properties(title=title, height=300)


def grouped_bars(frame: pd.DataFrame, *, x: str, y: str, colour: str, order: Sequence[str]) -> alt.Chart:
    """Bars side by side: one group an entry of `order`, one bar a kind."""
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            alt.X(_field(x, "N"), sort=list(order), title=None),
            alt.Y(_field(y, "Q")),
            _category(colour),
            xOffset=_field(colour, "N"),
            tooltip=[x, colour, alt.Tooltip(y, format=".4f")],
        )
    )


def histogram(frame: pd.DataFrame, *, x: str, counted: str, title: str, rule: float | None = None) -> Layers:
    """How many rows of `frame` (`counted`: what they are) lie where; `rule` marks a value."""
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X(_field(x, "Q"), title=x, bin=alt.Bin(maxbins=20), scale=alt.Scale(zero=False)),
            y=alt.Y("count()", title=counted, axis=alt.Axis(tickMinStep=1, format="d")),
            tooltip=[
                alt.Tooltip(_field(x, "Q"), title=x, bin=alt.Bin(maxbins=20)),
                alt.Tooltip("count()", title=counted),
            ],
        )
    )
    return alt.layer(bars, *_baseline(rule, "x")).properties(title=title, height=300)


def points(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    title: str,
    colour: str | None = None,
    label: str | None = None,
    tooltip: Sequence[str] = (),
    continuous: bool = False,
    x_title: str | None = None,
    y_title: str | None = None,
    square: bool = False,
) -> Layers:
    """A scatter of points, optionally with their names beside them; `continuous` colours by a number."""
    shared: dict[str, Any] = {
        "x": alt.X(_field(x, "Q"), title=x if x_title is None else x_title, scale=alt.Scale(zero=False)),
        "y": alt.Y(_field(y, "Q"), title=y if y_title is None else y_title, scale=alt.Scale(zero=False)),
    }
    dots = alt.Chart(frame).mark_circle(size=60, opacity=0.8, stroke="gray", strokeWidth=0.5)
    dots = dots.encode(**shared, tooltip=_tips(frame, label, x, y, colour, *tooltip))
    if colour:
        ramp = alt.Color(_field(colour, "Q"), title=colour, scale=alt.Scale(range="ramp"))
        dots = dots.encode(color=ramp if continuous else _category(colour))
    layers = [dots]
    if label:
        layers.append(
            alt.Chart(frame)
            .mark_text(dx=8, align="left", fontSize=10, color="gray")
            .encode(**shared, text=alt.Text(_field(label, "N")))
        )
    return alt.layer(*layers).properties(title=title, height=420, **({"width": 420} if square else {}))


def matrix(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    value: str,
    title: str,
    order: Sequence[str],
    text: str | None = None,
    select: bool = False,
    domain: tuple[float, float] | None = None,
    cell: int = 64,
) -> Layers:
    """A square picture over two class axes (confusion, correlation), its numbers but 0 written in the cells."""
    axes: dict[str, Any] = {
        "x": alt.X(
            _field(x, "N"),
            sort=list(order),
            title=x,
            axis=alt.Axis(orient="top", labelAngle=-35, labelAlign="left", labelOverlap=False),
        ),
        "y": alt.Y(_field(y, "N"), sort=list(order), title=y),
    }
    base = alt.Chart(frame).encode(**axes)
    cells = base.mark_rect(stroke="gray", strokeOpacity=0.25).encode(
        color=alt.Color(_field(value, "Q"), title=value, scale=_scale(frame[value], False, domain, None)),
        tooltip=_tips(frame, y, x, value, text),
    )
    if select:
        cells = cells.add_params(alt.selection_point(name="cell", fields=[x, y], on="click", toggle=False))
    text_of = alt.Text(_field(text or value, "Q"), format=".3~g")
    numbers = base.transform_filter(alt.datum[value] != 0)
    halo = numbers.mark_text(fontSize=12, stroke="black", strokeWidth=3, strokeOpacity=0.6, strokeJoin="round").encode(
        text=text_of
    )
    written = numbers.mark_text(fontSize=12, fill="white").encode(text=text_of)
    return alt.layer(cells, halo, written).properties(title=title, width=alt.Step(cell), height=alt.Step(cell))


def layer_word_picture(frame: pd.DataFrame, *, value: str, title: str, label: str, cell: int = CELL) -> alt.Chart:
    """A layer x word picture of one number, symmetric about 0. frame: columns `layer` (zero-based), `word`, `value`."""
    drawn = frame.assign(Layer=frame["layer"] + 1)
    return (
        alt.Chart(drawn)
        .mark_rect(stroke="gray", strokeOpacity=0.25)
        .encode(
            x=alt.X("word:N", sort=list(dict.fromkeys(drawn["word"])), title=None, axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("Layer:O", title="layer"),
            color=alt.Color(_field(value, "Q"), title=label, scale=_scale(drawn[value], True, None, None)),
            tooltip=_tips(drawn, "word", "Layer", value),
        )
        .properties(title=textwrap.wrap(title, 60), width=alt.Step(cell), height=alt.Step(cell))
    )


def token_strips(frame: pd.DataFrame, *, title: str, cell: int = 40) -> Layers:
    """Distributions over the tokens of an input, one line each (Kovaleva et al., Fig 3's zoom).

    frame: columns `line`, `position`, `token`, `weight`, `mark` (said under the token: "target", "sink", ...).
    """
    drawn = frame.assign(
        Token=[f"{k + 1} {token}" + (f" ({mark})" if mark else "") for k, token, mark in
               zip(frame["position"], frame["token"], frame["mark"], strict=True)]
    )  # fmt: skip
    base = alt.Chart(drawn).encode(
        x=alt.X("Token:N", sort=list(dict.fromkeys(drawn["Token"])), title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("line:N", sort=None, title=None),
    )
    cells = base.mark_rect(stroke="gray", strokeOpacity=0.25).encode(
        color=alt.Color("weight:Q", scale=alt.Scale(range="ramp", domain=[0, 1]), legend=_legend(None)),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip("Token:N"), alt.Tooltip("weight:Q", format=".3f")],
    )
    marked = base.transform_filter("datum.mark == 'target' || datum.mark == 'element'")
    outline = marked.mark_rect(fillOpacity=0, stroke="#D55E00", strokeWidth=2)
    return alt.layer(cells, outline).properties(title=title, width=alt.Step(cell), height=alt.Step(24))


def together(drawn: Sequence[Any]) -> alt.TopLevelMixin:
    """Several pictures as one for a file, three a row."""
    return drawn[0] if len(drawn) == 1 else alt.concat(*drawn, columns=3).resolve_scale(color="independent")


def exported(chart: alt.TopLevelMixin, kind: Literal["svg", "png"]) -> bytes:
    """The chart as a file, in the light theme's colours; PNG at twice the size."""
    import vl_convert

    specification = chart.to_dict() | {"background": theme.theme()["light"]["backgroundColor"]}
    specification.setdefault("config", {})["range"] = theme.ranges()["light"]
    if kind == "svg":
        return vl_convert.vegalite_to_svg(specification).encode()
    return vl_convert.vegalite_to_png(specification, scale=2)


# ---------------------------------------------------------------- behind them


def category_colours() -> list[str]:
    """The theme's colours for classes, in order."""
    return list(theme.theme()["chartCategoricalColors"])


def _scale(
    values: pd.Series, diverging: bool, domain: tuple[float, float] | None, categories: Sequence[str] | None
) -> alt.Scale:
    if categories:
        return alt.Scale(range="category", domain=list(categories))
    known = pd.to_numeric(values).dropna()
    if diverging:
        most = max(abs(domain[0]), abs(domain[1])) if domain else float(known.abs().max()) if len(known) else 1.0
        return alt.Scale(range="diverging", domain=[-(most or 1.0), most or 1.0], clamp=True)
    low, high = domain or (min(0.0, float(known.min())), float(known.max())) if len(known) or domain else (0.0, 1.0)
    return alt.Scale(range="ramp", domain=[low, high if high > low else low + 1], clamp=True)


def _legend(categories: Sequence[str] | None) -> alt.Legend:
    if categories:
        return alt.Legend(orient="right")
    return alt.Legend(orient="right", gradientLength=140, format=".2~g")


def _tips(frame: pd.DataFrame, *names: str | None) -> list[alt.Tooltip]:
    return [alt.Tooltip(_field(name, _kind(frame[name])), title=name) for name in dict.fromkeys(names) if name]


def _category(name: str, order: Sequence[str] | None = None) -> alt.Color:
    scale = alt.Scale(range="category", domain=list(order) if order else alt.Undefined)
    return alt.Color(_field(name, "N"), title=name, sort=order, scale=scale)


def _interval(mark: alt.Chart, low: str | None, high: str | None, **options: Any) -> list[alt.Chart]:
    return [mark.encode(y=alt.Y(_field(low, "Q"), **options), y2=alt.Y2(high))] if low and high else []


def _baseline(rule: float | None, along: str = "y") -> list[alt.Chart]:
    if rule is None:
        return []
    return [
        alt.Chart(pd.DataFrame({"baseline": [rule]}))
        .mark_rule(strokeDash=[5, 4], color="#D55E00")
        .encode(**{along: "baseline:Q"}, tooltip=alt.Tooltip("baseline:Q", format=".4~g"))
    ]


def _field(name: str, kind: str) -> str:
    """A column as Vega-Lite's shorthand, its special characters escaped."""
    for mark in ("\\", ":", ".", "[", "]"):
        name = name.replace(mark, "\\" + mark)
    return f"{name}:{kind}"


def _kind(values: pd.Series) -> str:
    return "Q" if pd.api.types.is_numeric_dtype(values) else "N"
