"""The new tokens one after another: the maps as they grow, each token's row, its probability and the others'."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core.drawing.panes import scored_pane, telling_head
from pages.parts.generation.asking import Prompt
from pages.parts.generation.writing import generated
from pages.parts.maps import maps_grid
from pages.parts.shell.messages import plain
from pages.parts.widgets.tables import show_table

if TYPE_CHECKING:
    from core.capture.generating import Generated, GenerationStep


def show_steps(name: str, prompt: Prompt) -> None:
    """Written text, a slider over its tokens, the maps so far, and the newest row. Raises AtlasErrors."""
    generation = generated(name, prompt)
    _show_text(generation)
    last = len(generation.steps)
    least = 0 if generation.maps is not None else 1
    step_number = st.slider("After token", least, last, last, key="step", bind="query-params",
                            help="The maps grow by a row and a column a token")  # fmt: skip
    step = generation.steps[step_number - 1] if step_number else None
    maps = generation.grown(step_number)
    pane = scored_pane(name, maps, first=0, separators=())
    caption = f"{prompt.text[:150]}, {step_number} new tokens"
    maps_grid.show_kept([pane], caption=caption, head=telling_head(pane.scores or {}), key="generation")
    if step is not None:
        _show_step(step, maps.keys)
    st.caption(
        f"{plain(name)} · {maps.layers} layers of {maps.heads} heads · {len(generation.prompt)} tokens of the prompt "
        f"and {step_number} new · {maps.sees} · n = 1 input"
    )


def _show_text(generation: "Generated") -> None:
    written = "".join(step.token for step in generation.steps if not step.ends).replace("·", " ")
    ended = " (end of text)" if generation.steps and generation.steps[-1].ends else ""
    st.markdown(f"**Written:** {plain(written)}{ended}")


def _show_step(step: "GenerationStep", keys: tuple[str, ...]) -> None:
    """Its probability beside the others', and where each head's row is greatest."""
    left, right = st.columns([1, 2])
    likely = pd.DataFrame(step.likely, columns=["token", "probability"])
    show_table(likely, container=left, key="likely", height=220)
    left.caption(f"“{plain(step.token)}” had probability {step.probability:.3f}.")
    if step.ends:
        right.caption("It ends the text, so that it is not read and has no row.")
        return
    layers, heads, _ = step.rows.shape
    to, weight = step.rows.argmax(-1), step.rows.max(-1)
    names = keys if len(keys) == step.rows.shape[-1] else None
    rows = pd.DataFrame(
        {
            "head": f"L{layer + 1}H{head + 1}",
            "looks most at": names[to[layer, head]] if names else f"position {to[layer, head] + 1}",
            "position": int(to[layer, head]) + 1,
            "weight": round(float(weight[layer, head]), 4),
        }
        for layer, head in np.ndindex(layers, heads)
    ).sort_values("weight", ascending=False)
    show_table(rows, container=right, key="newest_row", height=220)
    right.caption(f"The row of “{plain(step.token)}”: where each of {layers * heads} heads looks most.")
