"""Two dependency trees on one line of words: the probe's above, gold below; a click on a word keeps its arcs."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

PROBE, GOLD = "probe", "gold"
STEP, POINTS, ROOT_HEIGHT = 74, 21, 0.9
COLOURS = {"as in gold": "#009E73", "not in gold": "#D55E00", "gold": "#0072B2"}


def arcs(heads: Sequence[int], gold: Sequence[int], side: str) -> pd.DataFrame:
    """Points of a half ellipse for every word that has a governor, and of an upright line for the root."""
    sign, rows = (1 if side == PROBE else -1), []
    for word, head in enumerate(heads):
        where = np.linspace(0, np.pi, POINTS)
        if head == word:
            xs, ys = np.full(2, float(word)), np.array([0.0, max(1.0, ROOT_HEIGHT * len(heads) / 4)])
        else:
            xs = (word + head) / 2 + (word - head) / 2 * np.cos(where)
            ys = np.sin(where) * (0.35 + abs(word - head) / 2)
        kind = "gold" if side == GOLD else "as in gold" if head == gold[word] else "not in gold"
        for end in {word, int(head)}:  # once for each of its words, so that a click on either keeps it
            rows += [
                {"word": end, "x": float(x), "y": float(sign * (y + 0.25)), "order": order, "drawn": kind,
                 "arc": f"{side}-{word}-{end}"} for order, (x, y) in enumerate(zip(xs, ys, strict=True))
            ]  # fmt: skip
    return pd.DataFrame(rows)


def tree_picture(row: pd.Series) -> alt.LayerChart:
    """One sentence. row: words, relations, gold, drawn, probability; lists in the order of the words."""
    words = list(row["words"])
    lines = pd.concat([arcs(row["drawn"], row["gold"], PROBE), arcs(row["gold"], row["gold"], GOLD)])
    told = pd.DataFrame([_told(row, k) for k in range(len(words))])
    chosen = alt.selection_point(name="word", fields=["word"], on="click", toggle=False, empty=True)
    axis = {"axis": None, "scale": alt.Scale(domain=[-0.6, len(words) - 0.4], nice=False)}
    tall = float(lines["y"].abs().max()) + 0.3
    y: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[-tall, tall], nice=False)}
    colour = alt.Color("drawn:N", title="arc", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())))
    drawn = (
        alt.Chart(lines)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("x:Q", **axis), y=alt.Y("y:Q", **y), detail="arc:N", order="order:Q", color=colour,
            opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.07)),
        )
    )  # fmt: skip
    tips = [alt.Tooltip(f"{name}:N") for name in ("text", "relation", "gold head", "probe head")]
    tips.append(alt.Tooltip("probability:Q", format=".2f"))
    base = alt.Chart(told).encode(x=alt.X("x:Q", **axis), y=alt.Y("y:Q", **y), tooltip=tips)
    boxes = base.mark_rect(width=STEP - 14, height=22, fill="gray", cursor="pointer", cornerRadius=4).encode(
        fillOpacity=alt.condition(chosen, alt.value(0.5), alt.value(0.12), empty=False)
    )
    names = base.mark_text(fontSize=12, color="gray", limit=STEP - 8).encode(text="text:N").add_params(chosen)
    height = int(min(520, 60 + 44 * tall))
    return alt.layer(drawn, boxes, names).properties(width=STEP * len(words), height=height).configure_view(stroke=None)


def _told(row: pd.Series, word: int) -> dict[str, Any]:
    words, gold, drawn = row["words"], int(row["gold"][word]), int(row["drawn"][word])
    return {
        "word": word, "x": word, "y": 0, "text": words[word],
        "relation": row["relations"][word], "gold head": "(root)" if gold == word else words[gold],
        "probe head": "(root)" if drawn == word else words[drawn], "probability": row["probability"][word],
    }  # fmt: skip


def words_table(row: pd.Series, chosen: int | None) -> pd.DataFrame:
    """Every word with both heads, or the chosen one and its dependents in either tree."""
    rows = pd.DataFrame([_told(row, k) for k in range(len(row["words"]))])
    rows["right"] = [gold == drawn for gold, drawn in zip(row["gold"], row["drawn"], strict=True)]
    if chosen is not None:
        own = [k == chosen or chosen in (row["gold"][k], row["drawn"][k]) for k in range(len(rows))]
        rows = rows[own]
    return rows[["text", "relation", "gold head", "probe head", "probability", "right"]]
