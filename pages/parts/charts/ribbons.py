"""Two layer x head pictures side by side, joined by ribbons from each head to its counterpart."""

import altair as alt
import pandas as pd

from pages.parts.charts.encoding import Layers

WIDTH, GAP, CELL = 860, 4, 30  # pixels; columns between the two pictures
AROUND = 110  # pixels of title and legend, which are fitted into a chart's height


def ribbons(frame: pd.DataFrame, *, first: str, second: str, highlight: str | None = None) -> Layers:
    """Heads of two checkpoints, and lines between those that are matched.

    frame: a row a head of the first with columns layer, head, match_layer, match_head (zero-based; None without),
    similarity, margin, p, matched, best_layer, best_head; columns others_layers, others_heads say the other's shape.
    A click on a head of the first selects "cell" (name). highlight: its name, whose line is drawn strong.
    """
    heads, shape = int(frame["head"].max()) + 1, (int(frame["others_layers"][0]), int(frame["others_heads"][0]))
    drawn = frame.assign(
        x=frame["head"] + 1,
        y=frame["layer"] + 1,
        x2=heads + GAP + frame["match_head"] + 1,
        y2=frame["match_layer"] + 1,
        name=[f"L{a + 1}H{b + 1}" for a, b in zip(frame["layer"], frame["head"], strict=True)],
        counterpart=[
            "none" if a != a else f"L{int(a) + 1}H{int(b) + 1}"
            for a, b in zip(frame["match_layer"], frame["match_head"], strict=True)
        ],
        found=["beyond chance, same in both halves" if yes else "not beyond chance" for yes in frame["matched"]],
    )
    strong = drawn["name"] == highlight
    kind = alt.Scale(domain=["beyond chance, same in both halves", "not beyond chance"], range=["#0072B2", "#8C8C8C"])
    colour = alt.Color("found:N", scale=kind, title=None, legend=alt.Legend(orient="top", labelLimit=400))
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0.4, heads + GAP + shape[1] + 0.6], nice=False))
    deepest = max(int(drawn["y"].max()), shape[0])
    y = alt.Y(
        "y:Q",
        title="layer",
        scale=alt.Scale(domain=[0.4, deepest + 0.6], reverse=True, nice=False),
        axis=alt.Axis(values=list(range(1, deepest + 1)), format="d", grid=False, labelOverlap=deepest > 24),
    )
    read = ["name:N", "counterpart:N", *(alt.Tooltip(f"{k}:Q", format=".3~g") for k in ("similarity", "margin", "p"))]
    thick = alt.condition(f"datum.name === '{highlight}'", alt.value(4), alt.value(1.2))
    lines = alt.Chart(drawn[drawn["x2"].notna()]).mark_rule(strokeCap="round").encode(
        x=x, y=y, x2="x2:Q", y2="y2:Q", color=colour, tooltip=read, strokeWidth=thick,
        opacity=alt.Opacity("similarity:Q", scale=alt.Scale(domain=[0, 1], range=[0.08, 0.8]), legend=None),
    )  # fmt: skip
    side = min(CELL, (WIDTH - 60) // (heads + GAP + shape[1])) - 3
    cells = alt.Chart(drawn).mark_square(size=side**2, opacity=1, stroke="gray", strokeOpacity=0.4, cursor="pointer")
    cells = cells.encode(x=x, y=y, color=colour, tooltip=read).add_params(
        alt.selection_point(name="cell", fields=["name"], on="click", toggle=False)
    )
    second_heads = pd.DataFrame([{"x": heads + GAP + b + 1, "y": a + 1, "name": f"L{a + 1}H{b + 1}"}
                                 for a in range(shape[0]) for b in range(shape[1])])  # fmt: skip
    matched = set(drawn.loc[drawn["matched"], "counterpart"])
    second_heads["found"] = [
        "beyond chance, same in both halves" if n in matched else "not beyond chance" for n in second_heads["name"]
    ]
    second_squares = alt.Chart(second_heads).mark_square(size=side**2, opacity=1, stroke="gray", strokeOpacity=0.4)
    second_squares = second_squares.encode(x=x, y=y, color=colour, tooltip=["name:N"])
    ring = (
        alt.Chart(drawn[strong])
        .mark_square(size=(side + 4) ** 2, filled=False, stroke="#D55E00", strokeWidth=2.5, aria=False)
        .encode(x=x, y=y)
    )
    return alt.layer(lines, cells, second_squares, ring).properties(
        width=min(WIDTH, (heads + GAP + shape[1]) * CELL),
        height=CELL * deepest + AROUND,
        title=f"{first} (left) and {second} (right)",
    )
