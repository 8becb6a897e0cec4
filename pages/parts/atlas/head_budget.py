"""Where the attention of one head goes: one bar, and one for the token that classifiers read."""

import pandas as pd
import streamlit as st

from core.attention import Head
from pages.parts.charts.budget import budget_bars, budget_parts
from pages.parts.shell.messages import plain

BARS = {"budget": "tokens of the text", "classifying budget": "the token that classifiers read"}


def show_budget(scores: pd.DataFrame, head: Head) -> None:
    """The head's attention budgets; nothing where none is stored. scores: of all heads on one task."""
    own = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)]
    bars = {name: parts for key, name in BARS.items() if len(parts := budget_parts(own, key))}
    if not bars:
        return
    first = next(iter(bars.values()))
    st.subheader("What does this head attend to?", anchor=False)
    st.altair_chart(budget_bars(bars))
    largest = first.loc[first["value"].idxmax()]
    st.caption(
        plain(
            f"Most of it, {largest['value']:.0%}, goes to {largest['keys']}: 95 % CI {largest['interval']}, n = "
            f"{int(largest['n'])} inputs; {largest['baseline']:.0%} under uniform attention. Hover to see all "
            f"categories."
        )
    )
