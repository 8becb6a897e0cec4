"""Positions of heads in the similarity plot (Clark et al. 2019, Fig 6), and a line about each head for its tooltip."""

import pandas as pd
import streamlit as st

from core.atlas.head import classes
from core.store import runs
from core.studies.attention.records import PlaceScore
from core.studies.imports import read_rows
from core.studies.score_records import label_of
from pages.parts.atlas.atlas_view import Axis, axis_of
from pages.parts.reports.provenance import present_runs
from pages.parts.shell import resources

SURE = 0.05
SHIPPED = "statistics/place "  # before x, y and stress, in keys of scores


def places(name: str, task: str | None, task_scores: pd.DataFrame, shape: tuple[int, int]) -> tuple[Axis, Axis, str]:
    """Return the two axes of the similarity plot with a description, from the newest stored or bundled statistics."""
    place_scores = _stored(name, task) or _shipped(task_scores)
    if not place_scores:
        st.info(
            "No distances between heads are stored yet. Measure head statistics below, which include these distances.",
            icon=":material/info:",
        )
    note = (
        "Jensen-Shannon distance between the attention rows of heads, shown in two dimensions by metric scaling "
        "(Clark et al. 2019)"
    )
    across = _axis(place_scores, [score.x for score in place_scores], "similarity, first axis", shape)
    up = _axis(place_scores, [score.y for score in place_scores], "similarity, second axis", shape)
    return across, up, f"{note}, stress {place_scores[0].stress:.2f}" if place_scores else note


def _axis(place_scores: list[PlaceScore], values: list[float | None], label: str, shape: tuple[int, int]) -> Axis:
    lines = [
        {"layer": score.layer, "head": score.head, "value": value, "low": None, "high": None, "n": None}
        for score, value in zip(place_scores, values, strict=True)
    ]
    rows = pd.DataFrame(lines, columns=["layer", "head", "value", "low", "high", "n"])
    return axis_of(rows, label, shape, diverging=True)


def lines(task_scores: pd.DataFrame, shape: tuple[int, int]) -> list[str]:
    """Return the pattern class and the roles of each head as text; empty if neither is known."""
    role_scores = task_scores[
        task_scores["score"].str.startswith("roles/") & ~task_scores["score"].str.endswith("without sink")
    ]
    roles_of_head: dict[tuple[int, int], list[str]] = {}
    for row in role_scores[role_scores["q"] < SURE].itertuples():
        roles_of_head.setdefault((row.layer, row.head), []).append(label_of(row.score).removeprefix("role: "))
    lines_of_head = {layer_head: [f"roles: {', '.join(roles)}"] for layer_head, roles in roles_of_head.items()}
    for row in classes(task_scores).itertuples():
        lines_of_head.setdefault((row.layer, row.head), []).insert(0, f"{row.kind} in {row.value:.0%} of {row.n} maps")
    return ["\n".join(lines_of_head.get((layer, head), [])) for layer in range(shape[0]) for head in range(shape[1])]


def _stored(name: str, task: str | None) -> list[PlaceScore]:
    db = resources.database()
    runs_with_places = set(runs.head_scores(db, statistic="place", study="statistics").run)
    for run in [stored.run for stored in present_runs("statistics") if stored.run in runs_with_places]:
        places = [score for score in PlaceScore.among(read_rows(db, run)) if score.statistic == "place"]
        task_places = [score for score in places if score.checkpoint == name and score.task == task]
        if task_places:
            return task_places
    return []


def _shipped(task_scores: pd.DataFrame) -> list[PlaceScore]:
    """Return the bundled scores of the similarity plot: x, y and stress of each head."""
    parts: dict[tuple[int, int], dict[str, float]] = {}
    for row in task_scores.itertuples():
        if row.score.startswith(SHIPPED):
            parts.setdefault((row.layer, row.head), {}).setdefault(row.score.removeprefix(SHIPPED), row.value)
    return [PlaceScore.of({"layer": layer, "head": head} | values) for (layer, head), values in parts.items()]
