"""Curves of every head over snapshots, as small multiples: layers run down, heads across, counted from 1."""

import altair as alt
import pandas as pd

from pages.parts.charts.encoding import Layers
from pages.parts.charts.heads import cell_of

CELL = 78  # pixels of one head's curve, at most


def small_multiples(frame: pd.DataFrame, *, label: str, title: str, bound: float | None = None) -> Layers:
    """One number of every head over snapshots.

    frame: columns layer, head (zero-based), order, snapshot, value, low, high. bound: drawn as a dashed line.
    """
    drawn = frame.assign(Layer=frame["layer"] + 1, Head=frame["head"] + 1, bound=bound)
    size = cell_of(int(drawn["Head"].max()), CELL)
    top = float(max(drawn[["value", "low", "high"]].max().max(), bound or 0))
    least = float(min(0.0, drawn["value"].min()))
    y = alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[least, top], nice=False),
        axis=alt.Axis(values=[least, top], format=".2~g"),
    )
    base = alt.Chart(drawn).encode(x=alt.X("order:Q", title=None, axis=None, scale=alt.Scale(nice=False)))
    tooltip = ["Layer:O", "Head:O", "snapshot:N", alt.Tooltip("value:Q", title=label, format=".3~g")]
    layers = [base.mark_line(strokeWidth=1.5).encode(y=y), base.mark_circle(size=14).encode(y=y, tooltip=tooltip)]
    if drawn["low"].notna().any():
        layers.insert(0, base.mark_area(opacity=0.25).encode(y=alt.Y("low:Q", title=None), y2="high:Q"))
    if bound is not None:
        # a line and no rule: in a facet a rule takes x as well, and stands upright at every snapshot
        layers.append(base.mark_line(strokeDash=[4, 3], color="#D55E00", strokeWidth=1, aria=False).encode(y="bound:Q"))
    panel = alt.layer(*layers).properties(width=size, height=round(size * 0.6))
    header = alt.Header(labelPadding=2, titlePadding=2)
    return panel.facet(
        row=alt.Row("Layer:O", title="layer", header=header),
        column=alt.Column("Head:O", title="head", header=header),
        spacing=6,
    ).properties(title=title)
