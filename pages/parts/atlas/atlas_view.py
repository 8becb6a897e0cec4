"""The component that shows all heads as a picture and in a plane of two scores, and the positions of similar heads."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.atlas.head import classes
from core.attention import all_heads
from core.store import runs
from core.studies.attention.records import PlaceScore
from core.studies.imports import result_rows
from core.studies.lookup import label_of
from pages.parts.maps.maps_grid import drawing_component
from pages.parts.reports.stored_runs import present_runs
from pages.parts.shell import resources

_view = drawing_component("atlas_view", Path(__file__).resolve().parent)
Numbers = list[float | None]


@dataclass(frozen=True)
class Axis:
    """A score of every head, layer by layer (None: no value). `domain` is the range of its scale.

    `names` are the names of kinds if the values are numbers of kinds; heads are then coloured by kind.
    """

    label: str
    values: Numbers
    low: Numbers
    high: Numbers
    n: Numbers
    domain: tuple[float, float]
    diverging: bool = False
    names: tuple[str, ...] = ()


def kinds_of(kinds: pd.DataFrame, label: str, shape: tuple[int, int]) -> Axis:
    """Return the kinds of heads (layer, head, kind) as an axis; the most frequent kind first."""
    counts = kinds["kind"].astype(str).value_counts()
    names = tuple(sorted(counts.index, key=lambda name: (-counts[name], name)))
    rows = kinds.assign(value=[names.index(str(kind)) for kind in kinds["kind"]], low=None, high=None, n=None)
    return replace(axis_of(rows, label, shape, diverging=False), names=names)


def axis_of(rows: pd.DataFrame, label: str, shape: tuple[int, int], *, diverging: bool | None = None) -> Axis:
    """Return the atlas rows of one score (layer, head, value, low, high, n) as an axis."""
    table = rows.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])
    places = pd.MultiIndex.from_product([range(shape[0]), range(shape[1])])
    reindexed = table.reindex(places)
    columns = {name: [_number_or_none(value) for value in reindexed[name]] for name in ("value", "low", "high", "n")}
    finite = [value for name in ("value", "low", "high") for value in columns[name] if value is not None]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    values = [value for value in columns["value"] if value is not None]
    signed = bool(values) and min(values) < 0 < max(values) if diverging is None else diverging
    if signed:
        low, high = -max(-low, high), max(-low, high)
    elif low > 0 and low < high / 2:
        low = 0.0
    spare = 0.0 if signed or high > low else 0.5
    return Axis(label, columns["value"], columns["low"], columns["high"], columns["n"], (low - spare, high + spare),
                diverging=signed)  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """Layers and heads, and the three scores that place and colour a head."""

    shape: tuple[int, int]
    across: Axis
    up: Axis
    colour: Axis


def show_atlas(
    plane: Plane, *, key: str, bars: bool = False, labels: Sequence[str] = (), selected: Sequence[str] = ()
) -> tuple[list[str], str | None]:
    """Show the component; return the names of the brushed heads, and the head that was clicked in this run.

    `labels` has an additional line about each head.
    """
    shape = plane.shape
    payload: dict[str, Any] = {
        "layers": shape[0], "heads": shape[1], "across": asdict(plane.across), "up": asdict(plane.up),
        "colour": asdict(plane.colour), "bars": bars, "labels": list(labels), "selected": list(selected),
    }  # fmt: skip
    payload_id = hashlib.blake2b(json.dumps(payload).encode(), digest_size=8).hexdigest()
    result = _view(
        key=key, data=payload | {"id": payload_id}, on_selected_change=lambda: None, on_opened_change=lambda: None
    )
    names = [str(head) for head in all_heads(*shape)]
    opened = (result.opened or "").partition(" ")[0]
    selection = selected if result.selected is None else result.selected
    brushed = [name for name in selection if name in names]
    return brushed, opened if opened in names else None


def _number_or_none(value: Any) -> float | None:
    return None if pd.isna(value) or not math.isfinite(value) else round(float(value), 6)


# -------------------- positions in the similarity plot (Clark et al. 2019, Fig 6), and a line about each head


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
        "Jensen-Shannon distance between the attention rows of heads, shown in two dimensions by multidimensional "
        "scaling (Clark et al. 2019)"
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
        places = [score for score in PlaceScore.among(result_rows(db, run)) if score.statistic == "place"]
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
