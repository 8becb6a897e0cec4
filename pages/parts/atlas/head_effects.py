"""What one head does, as pictures: the model without it, and the edges of circuits that it is an end of."""

import numpy as np
import pandas as pd
import streamlit as st

from core.attention import Head
from core.studies.circuits.records import CircuitEdge
from core.studies.score_records import label_of
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import Axes
from pages.parts.reports.provenance import present_runs
from pages.parts.shell import links
from pages.parts.shell.messages import plain

MEASURED_AS = {  # what scores of effects begin with: the unit of their axis, and the view that shows them
    "operators/": ("rise of the loss, nats", "interventions/ablation"),
    "race/": ("rise of the loss, nats", "interventions/sequential"),
    "disable/": ("change of the metric", "interventions/ablation"),
    "importance/importance": ("importance", "interventions/pruning"),
}
MOST_EDGES = 10


def effects(scores: pd.DataFrame, head: Head) -> dict[str, pd.DataFrame]:
    """By unit what happens without the head, beside the mean over the other heads: what, of, value, low and high."""
    drawn: dict[str, list[pd.DataFrame]] = {}
    is_head = (scores["layer"] == head.layer) & (scores["head"] == head.head)
    for start, (unit, _) in MEASURED_AS.items():
        for score in scores.loc[is_head & scores["score"].str.startswith(start), "score"].drop_duplicates():
            is_score = scores["score"] == score
            row = scores[is_head & is_score].iloc[0]
            value, low, high = (float(row[name]) for name in ("value", "low", "high"))
            usual = float(scores.loc[is_score & ~is_head, "value"].mean())
            drawn.setdefault(unit, []).append(pd.DataFrame({
                "what": label_of(score), "of": ["this head", "other heads, mean"], "value": [value, usual],
                "low": [low, np.nan], "high": [high, np.nan],
            }))  # fmt: skip
    return {unit: pd.concat(frames, ignore_index=True).dropna(subset=["value"]) for unit, frames in drawn.items()}


def edges_of(checkpoint: str, head: Head) -> list[CircuitEdge]:
    """The edges of the newest circuit of this checkpoint that the head is an end of, the strongest first."""
    for stored in present_runs("circuit"):
        if stored.checkpoint == checkpoint:
            edges = stored.among(CircuitEdge)
            head_edges = [edge for edge in edges if str(head) in (edge.sender, edge.receiver)]
            return sorted(head_edges, key=lambda edge: edge.rank)[:MOST_EDGES]
    return []


def show_what_it_does(checkpoint: str, scores: pd.DataFrame, head: Head) -> None:
    """A chart a unit, and one of edges; nothing where neither was measured."""
    effects_by_unit, edges = effects(scores, head), edges_of(checkpoint, head)
    if not effects_by_unit and not edges:
        return
    st.subheader("What it does", anchor=False)
    for unit, frame in effects_by_unit.items():
        axes = Axes(x="what", y="value", x_title="", y_title=unit, colour="of", low="low", high="high")
        st.altair_chart(values_with_intervals(frame, axes, title=f"Without it: {unit}"))
    if edges:
        frame = pd.DataFrame(
            [
                {"edge": edge.name, "effect": edge.effect, "low": edge.low, "high": edge.high, "verdict": edge.verdict}
                for edge in edges
            ]
        ).astype({"low": "float64", "high": "float64"})
        axes = Axes(x="edge", y="effect", x_title="", y_title="fall of the logit difference", colour="verdict",
                    low="low", high="high")  # fmt: skip
        st.altair_chart(values_with_intervals(frame, axes, title="Edges of the newest circuit"))
        st.caption(plain(f"exact effects over n = {edges[0].n} pairs, decided by the race"))
    with st.container(horizontal=True):
        starts = [
            page
            for start, (unit, page) in MEASURED_AS.items()
            if unit in effects_by_unit and scores["score"].str.startswith(start).any()
        ]
        for page in dict.fromkeys([*starts, *(["interventions/circuit"] if edges else [])]):
            links.link(page, checkpoint=checkpoint, head=str(head))
