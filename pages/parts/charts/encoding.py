"""Records that describe charts, and what all charts share.

Only Altair is used, with colours from the theme in light and dark: scales name the ranges of the theme ("ramp",
"diverging", "category") in .streamlit/config.toml, so charts follow the theme.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core import patterns
from core.codebook.registry import COLOURS as CLASSES
from core.drawing.theme import theme
from pages.parts import streamlit_internals
from pages.parts.shell import resources

# -------------------- One colour a class and a role, in every chart of the app


ROLES = {
    "previous": "#0072B2", "next": "#56B4E9", "separator": "#D55E00", "first": "#E69F00", "broad": "#009E73",
    "other": "#8C8C8C", "nan": "#8C8C8C",
    "facilitating": "#0072B2", "interfering": "#D55E00", "irrelevant": "#56B4E9", "undecided": "#8C8C8C",
}  # fmt: skip
COLOURS = CLASSES | ROLES


def own_colours(names: Sequence[str]) -> dict[str, str]:
    """Return the colours of names that are all classes of one class set: the chosen set first, then bundled and custom
    sets; the bundled colours if no set has them all."""
    if not names or not streamlit_internals.has_page() or set(names) <= set(ROLES):
        return COLOURS
    db, picked = resources.database(), st.session_state.get("class_set")
    sets = patterns.class_sets.class_set_names(db)
    for name in sorted(sets, key=lambda each: each != picked):
        class_colours = {member.name: member.colour for member in patterns.snapshot.known_class_set(db, name).classes}
        if all(label in class_colours for label in names):
            return ROLES | class_colours
    return COLOURS


def colours_of(names: Sequence[str]) -> list[str]:
    """Return the colour of each name; classes and roles have their own colours."""
    colour_of_name = own_colours(names)
    used = {colour_of_name[name] for name in names if name in colour_of_name}
    palette = list(theme()["chartCategoricalColors"])
    free = [colour for colour in palette if colour not in used] or palette
    uncoloured = [name for name in names if name not in colour_of_name]
    return [
        colour_of_name[name] if name in colour_of_name else free[uncoloured.index(name) % len(free)] for name in names
    ]


def has_own(names: Iterable[str]) -> bool:
    """Return whether any of these names has its own colour."""
    all_names = list(names)
    return bool(all_names) and any(name in own_colours(all_names) for name in all_names)


Layers = alt.LayerChart | alt.FacetChart  # what altair says that layering gives
CELL = 26  # pixels of one head in a layer x head picture
LONGEST = 320  # pixels of a name in a legend: a checkpoint's whole short name
SYMBOLS: dict[str, Any] = {"symbolOpacity": 1, "symbolStrokeWidth": 1}  # plain where marks are pale
LARGE = 44  # of one that has the width of the page, or the better part of it


@dataclass(frozen=True, kw_only=True)
class Axes:
    """The columns that a chart draws.

    low, high: interval of y. colour: series or class. classes: all classes of that column, in the order of their
    colours. name: label of a point. x_title, y_title: axis titles (default: the column).
    """

    x: str
    y: str
    low: str | None = None
    high: str | None = None
    colour: str | None = None
    name: str | None = None
    x_title: str | None = None
    y_title: str | None = None
    classes: Sequence[str] | None = None

    @property
    def x_says(self) -> str:
        return self.x if self.x_title is None else self.x_title

    @property
    def y_says(self) -> str:
        return self.y if self.y_title is None else self.y_title


@dataclass(frozen=True)
class Shade:
    """The column that colours the cells of a heatmap, and its scale.

    label: title of the legend (default: the column). diverging: blue below 0, orange above, symmetric about 0. domain:
    range of the scale (default: 0 or the smallest to the largest value). categories: class names in the column, in this
    order. cell: largest size of a cell in pixels.
    """

    value: str
    label: str | None = None
    diverging: bool = False
    domain: tuple[float, float] | None = None
    categories: Sequence[str] | None = None
    cell: int = CELL

    @property
    def says(self) -> str:
        return self.label or self.value

    @property
    def kind(self) -> str:
        """Return the Vega-Lite type of the column."""
        return "N" if self.categories else "Q"

    def colour(self, values: pd.Series) -> alt.Color:
        """Return the colour encoding of the cells, with a scale over these values."""
        shorthand = field(self.value, self.kind)
        return alt.Color(shorthand, title=self.says, scale=self._scale(values), legend=legend(bool(self.categories)))

    def _scale(self, values: pd.Series) -> alt.Scale:
        if self.categories:
            return alt.Scale(range=colours_of(list(self.categories)), domain=list(self.categories))
        numbers = pd.to_numeric(values).dropna()
        if self.diverging:
            ends = self.domain or ((float(numbers.min()), float(numbers.max())) if len(numbers) else (-1.0, 1.0))
            most = max(map(abs, ends)) or 1.0
            return alt.Scale(range="diverging", domain=[-most, most], clamp=True)
        full_range = (min(0.0, float(numbers.min())), float(numbers.max())) if len(numbers) else (0.0, 1.0)
        low, high = self.domain or full_range
        return alt.Scale(range="ramp", domain=[low, high if high > low else low + 1], clamp=True)


def legend(categories: bool) -> alt.Legend:
    """Return a legend on the right, of classes or of a colour ramp."""
    if categories:
        return alt.Legend(orient="right", **SYMBOLS)
    return alt.Legend(orient="right", gradientLength=140, format=".2~r")


def tips(frame: pd.DataFrame, *names: str | None) -> list[alt.Tooltip]:
    return [alt.Tooltip(field(name, _kind(frame[name])), title=name) for name in dict.fromkeys(names) if name]


def category(frame: pd.DataFrame, name: str, order: Sequence[str] | None = None) -> alt.Color:
    """Return one colour per class of a column, in this order; classes and roles have their own colours in every
    chart."""
    categories = [str(value) for value in frame[name].dropna().unique()]
    names = list(order) if order else categories
    if has_own(names):
        scale = alt.Scale(range=colours_of(names), domain=names)
    else:
        scale = alt.Scale(range="category", domain=names if order else alt.Undefined)
    key = alt.Legend(labelLimit=LONGEST, **SYMBOLS)
    return alt.Color(field(name, "N"), title=name, sort=order, scale=scale, legend=key)


def interval(mark: alt.Chart, axes: Axes, *, along: str = "y", **options: Any) -> list[alt.Chart]:
    """Return the mark over the intervals of the values, along x or y; empty if the axes have no intervals."""
    if not (axes.low and axes.high):
        return []
    if along == "x":
        return [mark.encode(x=alt.X(field(axes.low, "Q"), title=axes.y_says, **options), x2=alt.X2(axes.high))]
    return [mark.encode(y=alt.Y(field(axes.low, "Q"), title=axes.y_says, **options), y2=alt.Y2(axes.high))]


def baseline(rule: float | None, along: str = "y") -> list[alt.Chart]:
    """Return a dashed line at a value of y (or x); empty for None."""
    if rule is None:
        return []
    return [
        alt.Chart(pd.DataFrame({"baseline": [rule]}))
        .mark_rule(strokeDash=[5, 4], color="#D55E00")
        .encode(**{along: "baseline:Q"}, tooltip=alt.Tooltip("baseline:Q", format=".4~g"))
    ]


def field(name: str, kind: str) -> str:
    """Return a column as a Vega-Lite shorthand with escaped special characters."""
    for mark in ("\\", ":", ".", "[", "]"):
        name = name.replace(mark, "\\" + mark)
    return f"{name}:{kind}"


def _kind(values: pd.Series) -> str:
    return "Q" if pd.api.types.is_numeric_dtype(values) else "N"
