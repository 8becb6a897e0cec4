"""Pictures of a race: intervals against the margin, rows that each head took, the gradient beside exact effects."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from core.attention import Head
from pages.parts.charts.curves import points
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture

VERDICTS = ("matters", "does not matter", "open")


def verdict_counts(row: Mapping[str, Any]) -> str:
    """ "2 matters, 130 does not matter, 12 open", in words."""
    return f"{int(row['matters'])} matter, {int(row['does not matter'])} do not, {int(row['open'])} are open"


def intervals(body: pd.DataFrame, margin: float, *, always: bool = False) -> alt.LayerChart:
    """Every head's interval, least effect first, with the margin as lines. always: those that hold at any time."""
    ends = ("always_low", "always_high") if always else ("effect_low", "effect_high")
    drawn = body.assign(low=body[ends[0]].astype(float), high=body[ends[1]].astype(float))
    drawn = drawn.assign(middle=(drawn["low"] + drawn["high"]) / 2).sort_values("middle")
    x = alt.X("name:N", sort=list(drawn["name"]), title=None, axis=alt.Axis(labelAngle=-90, labelOverlap=True))
    colour = alt.Color("verdict:N", sort=list(VERDICTS), scale=alt.Scale(domain=list(VERDICTS)), title=None)
    tips = [alt.Tooltip(name) for name in ("name", "verdict", "rows", "low", "high")]
    base = alt.Chart(drawn).encode(x=x, color=colour, tooltip=tips)
    title = "mean change of the loss"
    bars = base.mark_rule(strokeWidth=3).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    middles = base.mark_point(filled=True, size=20).encode(y="middle:Q")
    lines = alt.Chart(pd.DataFrame({"margin": [-margin, margin]})).mark_rule(strokeDash=[4, 3]).encode(y="margin:Q")
    said = "hold whenever they are looked at" if always else "at the look that decided, or the last"
    return alt.layer(lines, bars, middles).properties(title=f"Intervals against the margin; {said}", height=260)


def rows_taken(body: pd.DataFrame) -> Any:
    """Rows that each head took, layer by head; outlined: those that matter."""
    drawn = body.astype({"layer": int, "head": int, "rows": int})
    sure = drawn[drawn["verdict"] == "matters"]
    marked = [Head(int(a), int(b)) for a, b in zip(sure["layer"], sure["head"], strict=True)]
    return head_picture(
        drawn,
        Shade("rows"),
        title="Rows each head took; outlined: matters",
        highlight=marked,
        tooltip=("verdict", "effect"),
    )


def gradient_beside(body: pd.DataFrame, whole: Mapping[str, Any]) -> Any:
    """First-order against exact means on the rows of the first look."""
    rho = whole["gradient_spearman"]
    said = "undefined" if pd.isna(rho) else f"{rho:.2f}"
    drawn = body.astype({"gradient_first": float, "exact_first": float})
    return points(
        drawn,
        Axes(x="gradient_first", y="exact_first", x_title="gradient alone", y_title="exact"),
        tooltip=("name", "verdict"),
        title=f"The gradient is no answer: first look, Spearman {said}, n = {len(body)}",
    )


def looks(rows: pd.DataFrame) -> pd.DataFrame:
    """What every look settled."""
    names = {"rows": "look after rows", "open": "heads open before", "settled": "settled", "matters": "of them matter"}
    return rows[list(names)].astype(int).rename(columns=names)
