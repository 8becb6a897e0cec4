"""Heads grouped by mean pattern without any label, and whether redundancy stays the same over tasks and tuning."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np
import streamlit as st

from core.studies.attention.records import AlikeHead, HeadGroup, LikenessKept
from pages.parts.atlas.small_maps import SmallMap, show_small_maps
from pages.parts.reports.stored_runs import pick_run
from pages.parts.shell import links
from pages.parts.shell.messages import plain
from pages.parts.widgets import pickers

CELL = 12  # pixels
MEANING = (
    "Found without labels: each head's maps brought to one size and averaged, then joined by Ward's linkage of the "
    "patterns' square roots. Silhouette: how much nearer its own group a head is than the next, -1 to 1."
)
CLAIM = "Bian et al. 2021 claim that which heads are redundant is “phase-independent and task-agnostic”."


def show_groups() -> None:
    """The newest stored groups of a checkpoint, and how far its redundancy is kept."""
    stored = pick_run(
        "redundancy",
        "No heads have been grouped yet: choose “nearest heads and groups by mean pattern” under Measure "
        "more of this checkpoint on Overview.",
        "run_redundancy",
        icon=":material/database:",
    )
    if stored is None:
        links.link("heads", "Overview of heads")
        return

    rows = stored.result_rows
    heads, groups = AlikeHead.among(rows), HeadGroup.among(rows)
    for checkpoint, task in dict.fromkeys((head.checkpoint, head.task) for head in heads):
        st.markdown(f"**{plain(checkpoint)} · {plain(pickers.task_name(task))}**")
        alike_heads = [head for head in heads if (head.checkpoint, head.task) == (checkpoint, task)]
        head_groups = [group for group in groups if (group.checkpoint, group.task) == (checkpoint, task)]
        show_small_maps(
            _figures(head_groups, alike_heads), key=f"groups {checkpoint} {task}", cell=CELL, own_scale=True
        )
    st.caption(MEANING)
    comparisons = LikenessKept.among(rows)
    if comparisons:
        st.markdown("**Does it stay?**")
        st.caption(CLAIM)
    for pair in comparisons:
        st.markdown(plain(comparison_sentence(pair)))


def comparison_sentence(comparison: LikenessKept) -> str:
    """Whether redundancy is kept between two tasks or checkpoints: r of the distances between heads, with interval."""
    first = f"{comparison.checkpoint} on {pickers.task_name(comparison.task)}"
    second = f"{comparison.other_checkpoint} on {pickers.task_name(comparison.other_task)}"
    r, low, high, p = (
        float("nan") if value is None else value
        for value in (comparison.r, comparison.low, comparison.high, comparison.p)
    )
    numbers = f"r = {r:.2f} [{low:.2f}, {high:.2f}], p = {p:.3g}, {comparison.n} heads"
    if low > 0.5 and p < 0.05:
        verdict = "the same heads are alike in both"
    else:
        verdict = "related" if low > 0 and p < 0.05 else "not shown to be the same"
    return f"{first} and {second}: {numbers}: {verdict}."


def _figures(groups: Sequence[HeadGroup], heads: Sequence[AlikeHead]) -> list[SmallMap]:
    """A group's mean pattern with the names of its heads."""
    figures = []
    for group in groups:
        members = [head for head in heads if head.group == group.group]
        names, clear = " ".join(head.name for head in members), fmean(head.clear for head in members)
        note = f"{group.heads} heads, silhouette {clear:.2f}: {names}"
        figures.append(SmallMap(f"Group {group.group}", np.array(group.pattern), note=note))
    return figures
