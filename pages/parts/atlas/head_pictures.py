"""Figures about one head: its maps on three inputs, and its scores with their baselines."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from core.attention import Head
from core.studies.score_records import label_of
from pages.parts.atlas.choices import is_task
from pages.parts.atlas.small_maps import SmallMap, show_small_maps
from pages.parts.charts.curves import dumbbells
from pages.parts.shell import resources
from pages.parts.shell.messages import plain
from pages.parts.widgets import pickers

INPUTS, LONGEST = 24, 32  # that the three are chosen among, and tokens of one at most
CHOSEN_BY = {
    "previous": "statistics/previous",
    "next": "statistics/next",
    "first": "statistics/first",
    "separator": "statistics/separator",
}
LOOKS = ("roles/", "features/max/", "relations/")
MOST = 10


def strongest_role(scores: pd.DataFrame, head: Head) -> str:
    """Return the role whose weight is furthest above its baseline, among roles that a map can show."""
    head_scores = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)].set_index("score")
    above = {
        name: float(head_scores.loc[f"roles/{name}", "value"] - head_scores.loc[f"roles/{name}", "baseline"])
        for name in CHOSEN_BY
        if f"roles/{name}" in head_scores.index
    }
    return max(above, key=lambda name: above[name], default="first")


@dataclass(frozen=True)
class OrderedInputs:
    """Short inputs of a task by the weight of a head in its strongest role, the highest first."""

    role: str
    inputs: tuple[tuple[str, str | None], ...]
    values: tuple[float, ...]


def ordered_inputs(checkpoint: str, head: Head, scores: pd.DataFrame, task: str | None) -> OrderedInputs:
    """Return some inputs of a task (SST-2 if the task is a file), ordered by score."""
    role = strongest_role(scores, head)
    rows = pickers.task_rows(task if task and is_task(task) else "sst2", "dev", pickers.data_folder())
    short = [row for row in rows if len(row.text.split()) + len((row.pair or "").split()) <= LONGEST // 2]
    texts = tuple((row.text, row.pair) for row in (short or rows)[:INPUTS])
    values = resources.input_scores(checkpoint, texts, CHOSEN_BY[role])[:, head.layer, head.head]
    order = np.argsort(-values, kind="stable")[: int((~np.isnan(values)).sum())]
    return OrderedInputs(role, tuple(texts[k] for k in order), tuple(float(values[k]) for k in order))


def show_three_maps(checkpoint: str, head: Head, scores: pd.DataFrame, task: str | None) -> None:
    """Show the maps with the highest, a medium and the lowest score of the head's strongest role."""
    ordered = ordered_inputs(checkpoint, head, scores, task)
    count = len(ordered.inputs)
    if not count:
        return
    maps = []
    for rank_name, number in (("highest", 0), ("median", count // 2), ("lowest", count - 1)):
        shown = resources.shown(checkpoint, *ordered.inputs[number], most=LONGEST)
        maps.append(
            SmallMap(
                f"{rank_name} mean weight: {ordered.values[number]:.2f}",
                shown.maps.weights[head.layer, head.head],
                shown.maps.tokens,
            )
        )
    show_small_maps(maps, key="head_maps", cell=8)
    criterion = f"weight on the {ordered.role}" + ("" if ordered.role == "separator" else " token")
    st.caption(
        plain(
            f"These are the maps of the head on three of {count} inputs, chosen by the mean {criterion}. Rows are "
            "queries, and columns are keys."
        ),
        help="The mean is over all queries, including [CLS] and [SEP].",
    )


def show_where_it_looks(scores: pd.DataFrame, head: Head) -> None:
    """Show the weights of the head with their baselines, the largest difference first."""
    head_scores = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head) & scores["baseline"].notna()]
    head_scores = head_scores[
        head_scores["score"].str.startswith(LOOKS) & ~head_scores["score"].str.endswith("without sink")
    ]
    if head_scores.empty:
        return
    head_scores = head_scores.assign(above=head_scores["value"] - head_scores["baseline"]).nlargest(MOST, "above")
    rows = pd.DataFrame({
        "head": [label_of(score).removeprefix("role: ") for score in head_scores["score"]],
        **{name: head_scores[name].astype(float).to_numpy() for name in ("value", "baseline", "low", "high")},
    })  # fmt: skip
    title = "Attention of the head by token type, compared with baselines"
    st.altair_chart(dumbbells(rows, title=title, value="mean weight of this head", baseline="baseline"))
