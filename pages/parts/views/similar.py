"""Similar heads: heads with similar attention, in a plot and in unsupervised groups."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.interval import or_nan
from core.patterns.snapshot import known_class_set
from core.scoring.definitions import HEAD_KINDS
from core.studies.attention.records import AlikeHead, HeadGroup, LikenessKept, PlaceScore
from core.studies.patterns.records import HeadClass
from pages.parts.atlas.head_pictures import SmallMap, show_small_maps
from pages.parts.charts.curves import points
from pages.parts.charts.encoding import Axes
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import present_runs
from pages.parts.reports.study_view import details, shown_result
from pages.parts.shell import links, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import pickers

# -------------------- Heads grouped by mean pattern without any label, and whether redundancy stays the same over


CELL = 12  # pixels
MEANING = (
    "Groups are found without labels: the maps of each head are resized and averaged, and the mean patterns are "
    "clustered by Ward's linkage (of their square roots). The silhouette, from -1 to 1, shows how much closer a head "
    "is to its own group than to the next one."
)
CLAIM = "Bian et al. 2021 claim that which heads are redundant is “phase-independent and task-agnostic”."


def show_groups() -> None:
    """Show the newest stored groups of a checkpoint, and how stable its redundancy is."""
    with shown_result(
        "redundancy",
        "No groups of heads are stored yet. On “Heads > Overview”, open “Measure more scores of the heads in this "
        "checkpoint” and choose “nearest heads and groups by mean pattern”.",
        "run_redundancy",
        icon=":material/database:",
    ) as stored:
        if stored is None:
            links.link("heads", "Overview of heads")
            return

        rows = stored.result_rows
        heads, groups = AlikeHead.among(rows), HeadGroup.among(rows)
        places = attending.chosen_first(attending.by_place(heads))
        for number, ((checkpoint, task), alike_heads) in enumerate(places.items()):
            with st.container() if number == 0 else details(f"Groups on {plain(pickers.task_name(task))}"):
                head_groups = [group for group in groups if (group.checkpoint, group.task) == (checkpoint, task)]
                show_small_maps(
                    _figures(head_groups, alike_heads), key=f"groups {checkpoint} {task}", cell=CELL, own_scale=True
                )
        for pair in LikenessKept.among(rows):
            st.markdown(plain(comparison_sentence(pair)))
        with details():
            st.caption(MEANING)
            st.caption(CLAIM)


def comparison_sentence(comparison: LikenessKept) -> str:
    """Return whether redundancy agrees between two tasks or checkpoints: r of head distances, with its interval."""
    first = f"{comparison.checkpoint} on {pickers.task_name(comparison.task)}"
    second = f"{comparison.other_checkpoint} on {pickers.task_name(comparison.other_task)}"
    r, low, high, p = (or_nan(value) for value in (comparison.r, comparison.low, comparison.high, comparison.p))
    numbers = f"r = {r:.2f} [{low:.2f}, {high:.2f}], p = {p:.3g}, {comparison.n} heads"
    if low > 0.5 and p < 0.05:
        verdict = "the same heads are similar in both"
    else:
        verdict = "related" if low > 0 and p < 0.05 else "no significant agreement"
    return f"{first} and {second}: {numbers}: {verdict}."


def _figures(groups: Sequence[HeadGroup], heads: Sequence[AlikeHead]) -> list[SmallMap]:
    """Show the mean map of each group with the names of its heads."""
    figures = []
    for group in groups:
        members = [head for head in heads if head.group == group.group]
        names, clear = " ".join(head.name for head in members), fmean(head.clear for head in members)
        note = f"{group.heads} heads, silhouette {clear:.2f}: {names}"
        figures.append(SmallMap(f"Group {group.group}", np.array(group.pattern), note=note))
    return figures


COLOURS = {"attends mostly to": "main behaviour", "layer": "layer", "class": "pattern class"}


def pattern_classes(checkpoint: str) -> tuple[dict[str, str], Sequence[str]]:
    """Return the majority pattern class of each head by name, from the newest stored shares ({} without), and all
    classes."""
    for stored in present_runs("pattern-shares"):
        if checkpoint in stored.settings.checkpoints:
            heads = stored.among(HeadClass)
            set_name = stored.settings.class_set
            names = known_class_set(resources.database(), set_name).names if set_name else ()
            class_of_head = {
                str(Head(head.layer, head.head)): head.name for head in heads if head.checkpoint == checkpoint
            }
            return class_of_head, names
    return {}, ()


def picture_of_heads(measured: attending.ShownScores[PlaceScore], places: list[PlaceScore]) -> list:
    """Return heads placed by similarity, coloured by kind, layer or pattern class (Clark et al., Fig 6)."""
    colour = url.pick(st.segmented_control, "Colour", COLOURS, key="colour", default="attends mostly to", required=True)
    drawn = []
    for number, ((checkpoint, task), task_scores) in enumerate(
        attending.chosen_first(attending.by_place(places)).items()
    ):
        classes: dict[str, str] = {}
        names: Sequence[str] = ()
        if colour == "class":
            classes, names = pattern_classes(checkpoint)
            if not classes:
                st.info(
                    f"No pattern classes of {plain(checkpoint)} are stored yet. First compute them on “Statistics "
                    "> Pattern shares”."
                )
                links.link("statistics/shares")
                continue
            task_scores = [score for score in task_scores if score.name in classes]
        lines = [
            {"x": score.x, "y": score.y, "name": score.name, "layer": int(score.layer or 0) + 1,
             "attends mostly to": score.kind if score.kind in HEAD_KINDS else "nan", "value": score.value,
             "class": classes.get(score.name)}
            for score in task_scores
        ]  # fmt: skip
        chart = points(
            pd.DataFrame(lines),
            Axes(
                x="x",
                y="y",
                colour=colour,
                name="name",
                x_title="first direction",
                y_title="second direction",
                classes=names or None,
            ),
            title=measured.title((checkpoint, task)),
            square=True,
            continuous=colour == "layer",
            tooltip=("attends mostly to", "value"),
        )
        shown = st.container() if number == 0 else details(f"The figure on {plain(measured.title((checkpoint, task)))}")
        with shown, st.container(width=640):
            st.altair_chart(chart, width="stretch", key=f"heads_{checkpoint}_{task}")
        drawn.append(chart)
        first = task_scores[0]
        count = first.queries or first.n  # earlier results say no queries, and mean them by n
        shown.caption(
            f"Distances are Jensen-Shannon distances, averaged over {count} queries (Clark et al. report the sum over "
            f"queries). Positions are computed by metric multidimensional scaling. Its stress is {first.stress:.2f} "
            "(0: exact distances, above 0.2: rough)."
        )
        shown.caption(
            "Types of heads: “previous” or “next” (more than 0.5 of the weight on that token), “separator” "
            "or “first” (more than 0.6 of the weight), and “broad” (normalised entropy above 0.85)."
        )
    return drawn


MODES = ("Figure", "Groups")


def show(tools: DeltaGenerator) -> None:
    """Show the plot of a stored measurement, or groups of similar heads."""
    with tools:
        mode = url.pick_mode(MODES)
    if mode == "Groups":
        with clear_errors():
            show_groups()
        return
    inputs = attending.pick_inputs(tools)
    with clear_errors():
        top = st.container()
        with attending.shown_scores("statistics", PlaceScore, inputs, task="sst2", options=dict) as measured:
            if measured is not None:
                place_scores = [score for score in measured.scores if score.statistic == "place"]
                if place_scores:
                    _answer(measured, place_scores, top)
                    picture_of_heads(measured, place_scores)
                else:
                    st.info("Heads cannot be compared, because there is only one head or distances are undefined.")


ATTENDS = {
    "previous": "attend mostly to the previous token",
    "next": "attend mostly to the next token",
    "separator": "attend mostly to separators",
    "first": "attend mostly to the first token",
    "broad": "spread their attention almost evenly",
}


def group_sentence(scores: Sequence[PlaceScore]) -> str:
    """Return a sentence on the largest group of heads with one behaviour and the mean distance between them."""
    placed = [score for score in scores if score.x is not None and score.y is not None]
    groups = [[score for score in placed if score.kind == kind] for kind in ATTENDS]
    group = max(groups, key=len)
    if len(group) < 2:
        return "No two heads attend mostly to the same kind of token."
    return (
        f"{len(group)} of {len(placed)} heads {ATTENDS[str(group[0].kind)]}. Their "
        f"mean distance is {_apart(group):.2f}, compared with {_apart(placed):.2f} between all heads."
    )


def _apart(scores: Sequence[PlaceScore]) -> float:
    """Return the mean distance between two of these heads in the plot."""
    places = [(score.x or 0.0, score.y or 0.0) for score in scores]
    return fmean(math.dist(*pair) for pair in combinations(places, 2))


def _answer(measured: attending.ShownScores[PlaceScore], scores: Sequence[PlaceScore], top: DeltaGenerator) -> None:
    """Show the largest group of heads with one colour in the plot."""
    first = next(iter(attending.chosen_first(attending.by_place(scores)).values()))
    sure = (
        "Distances are measured in the figure, where they approximate the Jensen-Shannon distance between "
        "attention maps. The difference between distances has not been tested. Heads that attend to the same kind "
        "of token are expected to be similar."
    )
    attending.answered(
        measured, first, top, "Which heads have similar attention patterns?", group_sentence(first), sure, "statistics"
    )
