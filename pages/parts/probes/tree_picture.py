"""Two dependency trees on one line of words: the probe's above, gold below; a click on a word keeps its arcs."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from core.studies.probing.records import DrawnTree

PROBE, GOLD = "probe", "gold"
STEP, POINTS, ROOT_HEIGHT = 74, 21, 0.9
CLEAR = 0.45  # from the middle of a word to its arcs, in their unit: beyond its box, so that they cross no word
WIDEST, NARROWEST = 700, 56  # pixels of a sentence where its words allow it, and of a word
COLOURS = {"as in gold": "#009E73", "not in gold": "#D55E00", "gold": "#0072B2"}


def arcs(heads: Sequence[int], gold: Sequence[int], side: str) -> pd.DataFrame:
    """Points of a half ellipse for every word that has a governor, and of an upright line for the root."""
    sign, rows = (1 if side == PROBE else -1), []
    for word, head in enumerate(heads):
        angles = np.linspace(0, np.pi, POINTS)
        if head == word:
            xs, ys = np.full(2, float(word)), np.array([0.0, max(1.0, ROOT_HEIGHT * len(heads) / 4)])
        else:
            xs = (word + head) / 2 + (word - head) / 2 * np.cos(angles)
            ys = np.sin(angles) * (0.35 + abs(word - head) / 2)
        kind = "gold" if side == GOLD else "as in gold" if head == gold[word] else "not in gold"
        for end in {word, int(head)}:  # once for each of its words, so that a click on either keeps it
            rows += [
                {"word": end, "x": float(x), "y": float(sign * (y + CLEAR)), "order": order, "drawn": kind,
                 "arc": f"{side}-{word}-{end}"} for order, (x, y) in enumerate(zip(xs, ys, strict=True))
            ]  # fmt: skip
    return pd.DataFrame(rows)


def tree_picture(tree: DrawnTree) -> alt.LayerChart:
    """One sentence, with the probe's tree and gold's."""
    words = list(tree.words)
    step = max(NARROWEST, min(STEP, WIDEST // len(words)))
    lines = pd.concat([arcs(tree.drawn, tree.gold, PROBE), arcs(tree.gold, tree.gold, GOLD)])
    word_rows = pd.DataFrame([_told(tree, k) for k in range(len(words))])
    chosen = alt.selection_point(name="word", fields=["word"], on="click", toggle=False, empty=True)
    axis: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[-0.6, len(words) - 0.4], nice=False)}
    tall = float(lines.y.abs().max()) + 0.3
    y: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[-tall, tall], nice=False)}
    scale = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    colour = alt.Color("drawn:N", title="arc", scale=scale, legend=alt.Legend(orient="top"))  # a sentence is wide
    drawn = (
        alt.Chart(lines)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("x:Q", **axis),
            y=alt.Y("y:Q", **y),
            detail="arc:N",
            order="order:Q",
            color=colour,
            opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.07)),
        )
    )
    tips = [alt.Tooltip(f"{name}:N") for name in ("text", "relation", "gold head", "probe head")]
    tips.append(alt.Tooltip("probability:Q", format=".2f"))
    base = alt.Chart(word_rows).encode(x=alt.X("x:Q", **axis), y=alt.Y("y:Q", **y), tooltip=tips)
    boxes = base.mark_rect(width=step - 14, height=22, fill="gray", cursor="pointer", cornerRadius=4).encode(
        fillOpacity=alt.condition(chosen, alt.value(0.5), alt.value(0.12), empty=False)
    )
    names = base.mark_text(fontSize=12, color="gray", limit=step - 8).encode(text="text:N").add_params(chosen)
    height = int(min(520, 60 + 44 * tall))
    return alt.layer(drawn, boxes, names).properties(width=step * len(words), height=height).configure_view(stroke=None)


def _told(tree: DrawnTree, word: int) -> dict[str, Any]:
    words, gold, drawn = tree.words, int(tree.gold[word]), int(tree.drawn[word])
    return {
        "word": word, "x": word, "y": 0, "text": words[word],
        "relation": tree.relations[word], "gold head": "(root)" if gold == word else words[gold],
        "probe head": "(root)" if drawn == word else words[drawn], "probability": tree.probability[word],
    }  # fmt: skip


def words_table(tree: DrawnTree, chosen: int | None) -> pd.DataFrame:
    """Every word with both heads, or the chosen one and its dependents in either tree."""
    word_indices = [k for k in range(len(tree.words)) if chosen is None or chosen in (k, tree.gold[k], tree.drawn[k])]
    rows = pd.DataFrame([_told(tree, k) | {"right": tree.gold[k] == tree.drawn[k]} for k in word_indices])
    return rows[["text", "relation", "gold head", "probe head", "probability", "right"]]
