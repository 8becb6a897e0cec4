"""A circuit as a layered picture: components from the embeddings up to the output, edges between them."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from core.attention import Head
from core.studies.circuits.records import CircuitEdge
from pages.parts.charts.encoding import Layers

INPUTS = {"q": "query", "k": "key", "v": "value", "": "block or output"}
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#888888")
ROW, COLUMN = 54, 76  # pixels between two rows of components, and two of a row
THICKEST = 9.0
LEGEND = 60  # pixels of the legend below, beside which boxes would be pressed together


def place_of(name: str, layers: int, heads: int) -> tuple[float, float]:
    """Where a component stands: its column, and its row from below."""
    middle = (heads - 1) / 2
    if name == "embeddings":
        return middle, 0.0
    if name == "output":
        return middle, 2.0 * layers + 1
    if name.endswith("-feedforward"):
        return middle, 2.0 * int(name.removeprefix("L").removesuffix("-feedforward"))
    head = Head.parse(name)
    return float(head.head), 2.0 * head.layer + 1


def circuit_picture(edges: Sequence[CircuitEdge], layers: int, heads: int, *, title: str) -> Layers:
    """Edges from below up: thickness is the effect's size, opacity the selection probability, colour the input."""
    names = dict.fromkeys(["embeddings", "output", *(name for edge in edges for name in (edge.sender, edge.receiver))])
    positions = {name: place_of(name, layers, heads) for name in names}
    nodes = pd.DataFrame([{"component": name, "x": x, "y": y} for name, (x, y) in positions.items()])
    largest = max((abs(edge.effect or 0.0) for edge in edges), default=1.0) or 1.0
    lines = pd.DataFrame(
        [_line(edge, positions, largest) for edge in edges],
        columns=["x", "y", "x2", "y2", "edge", "into", "effect", "size", "selection", "seen", "verdict"],
    )
    scale_x = alt.Scale(domain=[-0.6, heads - 0.4], nice=False)
    scale_y = alt.Scale(domain=[-0.6, 2 * layers + 1.6], nice=False)
    axes: dict[str, Any] = {"x": alt.X("x:Q", axis=None, scale=scale_x), "y": alt.Y("y:Q", axis=None, scale=scale_y)}
    below = alt.Legend(orient="bottom")
    colour = alt.Scale(domain=list(INPUTS.values()), range=list(COLOURS))
    drawn = alt.Chart(lines).mark_rule(strokeCap="round").encode(
        **axes, x2="x2:Q", y2="y2:Q",
        color=alt.Color("into:N", scale=colour, title="input of the receiver", legend=below),
        strokeWidth=alt.StrokeWidth("size:Q", scale=None),
        opacity=alt.Opacity("seen:Q", scale=None),
        tooltip=["edge:N", "into:N", alt.Tooltip("effect:Q", format="+.3f"), "verdict:N",
                 alt.Tooltip("selection:Q", format=".2f")],
    )  # fmt: skip
    boxes = alt.Chart(nodes).encode(**axes)
    back = boxes.mark_rect(width=62, height=20, fill="#ffffff", stroke="#888888", cornerRadius=4, xOffset=0)
    written = (
        boxes.mark_text(fontSize=11, color="#222222")
        .encode(text="label:N")
        .transform_calculate(label="replace(datum.component, 'feedforward', 'FF')")
    )
    return alt.layer(drawn, back, written).properties(
        title=title, width=COLUMN * heads, height=ROW * (2 * layers + 2) // 2 + LEGEND
    )


def _line(edge: CircuitEdge, positions: dict[str, tuple[float, float]], largest: float) -> dict[str, Any]:
    (x, y), (x2, y2) = positions[edge.sender], positions[edge.receiver]
    return {
        "x": x, "y": y, "x2": x2, "y2": y2, "edge": edge.name, "into": INPUTS[edge.input], "effect": edge.effect,
        "size": max(1.0, THICKEST * abs(edge.effect or 0.0) / largest), "selection": edge.selection,
        "seen": 0.15 + 0.85 * edge.selection, "verdict": edge.verdict,
    }  # fmt: skip
