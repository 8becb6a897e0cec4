"""Figures about one head: its maps on three inputs, its scores with their baselines, and maps of similar heads."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.atlas.head import nearest
from core.attention import Head
from core.errors import AtlasError
from core.studies.comparison.records import Counterpart
from core.studies.lookup import label_of
from pages.parts.atlas.choices import is_task, of_head
from pages.parts.charts.curves import dumbbells
from pages.parts.maps.maps_grid import drawing_component
from pages.parts.reports.stored_runs import present_runs
from pages.parts.shell import links, resources
from pages.parts.shell.links import is_missing
from pages.parts.shell.messages import plain, short_names
from pages.parts.widgets import pickers

# ---------------------------------------------------------------- rows of small maps


_shelf = drawing_component("small_maps", Path(__file__).resolve().parent)


@dataclass(frozen=True)
class SmallMap:
    """A map [query, key] with its title, a note and, if it belongs to one input, the tokens."""

    title: str
    weights: np.ndarray
    tokens: tuple[str, ...] = ()
    note: str = ""

    def packed(self, most: float) -> dict[str, Any]:
        """Return the data for the browser. `most` is the weight drawn in the darkest colour."""
        shares = np.rint(np.clip(self.weights / most, 0, 1) * 255).astype(int)
        return {"title": self.title, "note": self.note, "tokens": list(self.tokens), "length": len(self.weights),
                "weights": shares.ravel().tolist(), "most": most}  # fmt: skip


def show_small_maps(maps: Sequence[SmallMap], *, key: str, cell: int = 9, own_scale: bool = False) -> None:
    """Draw small maps side by side. `cell` is the number of pixels per weight; with `own_scale`, the largest weight of
    each map has the darkest colour, otherwise 1 has."""
    packed = [small.packed(max(float(small.weights.max()), 1e-9) if own_scale else 1.0) for small in maps]
    payload: dict[str, Any] = {"cell": cell, "maps": packed}
    payload["id"] = hashlib.blake2b(json.dumps(payload).encode(), digest_size=8).hexdigest()
    _shelf(key=key, data=payload)


# ---------------------------------------------------------------- the head on three inputs, and its scores


INPUTS, LONGEST = 24, 32  # that the three are chosen among, and tokens of one at most
CHOSEN_BY = {
    "previous": "statistics/previous",
    "next": "statistics/next",
    "first": "statistics/first",
    "separator": "statistics/separator",
}
LOOKS = ("roles/", "features/max/", "relations/")
MOST_SCORES = 10


def strongest_role(scores: pd.DataFrame, head: Head) -> str:
    """Return the role whose weight is furthest above its baseline, among roles that a map can show."""
    head_scores = of_head(scores, head).set_index("score")
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
        help="The mean is over all queries, including special tokens such as [CLS] and [SEP].",
    )


def show_where_it_looks(scores: pd.DataFrame, head: Head) -> None:
    """Show the weights of the head with their baselines, the largest difference first."""
    head_scores = of_head(scores, head).dropna(subset=["baseline"])
    head_scores = head_scores[
        head_scores["score"].str.startswith(LOOKS) & ~head_scores["score"].str.endswith("without sink")
    ]
    if head_scores.empty:
        return
    head_scores = head_scores.assign(above=head_scores["value"] - head_scores["baseline"]).nlargest(
        MOST_SCORES, "above"
    )
    rows = pd.DataFrame({
        "head": [label_of(score).removeprefix("role: ") for score in head_scores["score"]],
        **{name: head_scores[name].astype(float).to_numpy() for name in ("value", "baseline", "low", "high")},
    })  # fmt: skip
    title = "Attention of the head by token type, compared with baselines"
    st.altair_chart(dumbbells(rows, title=title, value="mean weight of this head", baseline="baseline"))


# ---------------------------------------------------------------- similar heads


# -------------------- The counterparts of one head in other checkpoints, as far as they were matched


MOST_CHECKPOINTS = 4  # other checkpoints


def counterparts_of(checkpoint: str, head: Head) -> list[Counterpart]:
    """Return the newest match in each other checkpoint, for the current weights."""
    newest: dict[str, Counterpart] = {}
    for stored in present_runs("counterparts"):
        if stored.checkpoint == checkpoint:
            for record in stored.among(Counterpart):
                if (record.layer, record.head) == (head.layer, head.head) and record.match:
                    newest.setdefault(record.compare, record)
    return list(newest.values())[:MOST_CHECKPOINTS]


def matched_with(checkpoint: str, other_checkpoint: str | None) -> list[Counterpart]:
    """Return the significant counterparts in the other checkpoint by the newest match; [] if they were not matched."""
    for stored in present_runs("counterparts"):
        records = stored.among(Counterpart)
        counterparts = [
            record for record in records if record.compare == other_checkpoint and record.checkpoint == checkpoint
        ]
        if counterparts:
            return [record for record in counterparts if record.matched]
    return []


def at_its_counterparts(scores: pd.DataFrame, counterparts: list[Counterpart]) -> pd.DataFrame:
    """Return scores of the other checkpoint at the positions of the heads whose counterparts have them."""
    places = pd.DataFrame(
        [(record.layer, record.head, record.match_layer, record.match_head) for record in counterparts],
        columns=["layer", "head", "match_layer", "match_head"],
    )
    match_scores = scores.rename(columns={"layer": "match_layer", "head": "match_head"})
    return places.merge(match_scores, on=["match_layer", "match_head"])[list(scores.columns)]


CELL = 4  # pixels of a weight of a thumbnail
Input = tuple[str, str | None]


def input_of(checkpoint: str, head: Head, scores: pd.DataFrame, task: str | None) -> Input | None:
    """Return the input with the highest score of the head's strongest role; None if no model can be run."""
    if is_missing(checkpoint):
        return None
    inputs = ordered_inputs(checkpoint, head, scores, task).inputs
    return inputs[0] if inputs else None


def thumbnail(checkpoint: str, head: Head, shown_input: Input, title: str) -> SmallMap | str:
    """Return a map of a head without tokens, or why the checkpoint cannot be run here."""
    if is_missing(checkpoint):
        return f"{title}: {checkpoint} is not on this machine."
    try:
        shown = resources.shown(checkpoint, *shown_input, most=LONGEST)
        return SmallMap(title, shown.maps.weights[head.layer, head.head])
    except AtlasError as error:
        return f"{title}: {error}"


def show_nearest(scores: pd.DataFrame, head: Head, name: str, task: str | None) -> None:
    """Show the heads with the most similar statistics, with their maps."""
    alike = nearest(scores, head)
    if not alike:
        return
    st.subheader("Heads with the most similar statistics", anchor=False)
    shown_input = input_of(name, head, scores, task)
    if shown_input is not None:
        show_maps(
            [
                thumbnail(name, neighbour, shown_input, str(neighbour))
                for neighbour in (head, *(neighbour for neighbour, _ in alike))
            ],
            "nearest_maps",
        )
    with st.container(horizontal=True):
        for neighbour, apart in alike:
            links.link("heads/one", f"{neighbour} ({apart:.2f})", checkpoint=name, head=str(neighbour), rows=task)
    st.caption(
        "The number in brackets is the distance between the statistics of the two heads (root mean square, in "
        "standard deviations over heads)"
        + (f" · maps of: {plain(' | '.join(filter(None, shown_input)))}" if shown_input else "")
    )


def show_counterparts(checkpoint: str, head: Head, scores: pd.DataFrame, task: str | None) -> None:
    """Show the matched heads of other checkpoints with their maps of the same input, if any were compared."""
    counterparts = counterparts_of(checkpoint, head)
    if not counterparts:
        return
    st.subheader("Counterparts in other checkpoints", anchor=False)
    shown_input = input_of(checkpoint, head, scores, task)
    short = short_names([record.compare for record in counterparts])
    if shown_input is not None:
        maps = [thumbnail(checkpoint, head, shown_input, f"{head}, here")]
        maps += [
            thumbnail(
                record.compare, Head.parse(record.match), shown_input, f"{record.match} of {short[record.compare]}"
            )
            for record in counterparts
            if not is_missing(record.compare)
        ]
        show_maps(maps, "counterpart_maps")
    with st.container(horizontal=True):
        for record in counterparts:
            sure = "" if record.matched else ", not significant"
            label = f"{record.match} of {short[record.compare]} ({record.similarity:.2f}{sure})"
            if is_missing(record.compare):
                st.caption(plain(f"{label}, not on this machine"))
            else:
                links.link("heads/one", label, checkpoint=record.compare, head=record.match)
        links.link("heads/counterparts", checkpoint=checkpoint, head=str(head))
    st.caption(
        "The number in brackets is the similarity between the attention of the two heads on the same inputs. Every "
        "head is matched with at most one head."
    )


def show_maps(maps: list[SmallMap | str], key: str) -> None:
    """Show small maps in a row, and below them why some are missing."""
    show_small_maps([small for small in maps if isinstance(small, SmallMap)], key=key, cell=CELL)
    for reason in (small for small in maps if isinstance(small, str)):
        st.caption(plain(reason))
