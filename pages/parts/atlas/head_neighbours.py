"""Heads similar to one head, as small maps of one input: the nearest here, and its counterparts in other
checkpoints."""

import pandas as pd
import streamlit as st

from core.atlas.head import nearest
from core.attention import Head
from core.errors import AtlasError
from core.studies.comparison.records import Counterpart
from pages.parts.atlas.head_pictures import LONGEST, ordered_inputs
from pages.parts.atlas.small_maps import SmallMap, show_small_maps
from pages.parts.reports.provenance import present_runs
from pages.parts.shell import links, resources
from pages.parts.shell.messages import plain, short_names
from pages.parts.widgets.head_links import is_missing

# -------------------- The counterparts of one head in other checkpoints, as far as they were matched


MOST = 4  # other checkpoints


def counterparts_of(checkpoint: str, head: Head) -> list[Counterpart]:
    """Return the newest match in each other checkpoint, for the current weights."""
    newest: dict[str, Counterpart] = {}
    for stored in present_runs("counterparts"):
        if stored.checkpoint == checkpoint:
            for record in stored.among(Counterpart):
                if (record.layer, record.head) == (head.layer, head.head) and record.match:
                    newest.setdefault(record.compare, record)
    return list(newest.values())[:MOST]


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
        "The number in brackets is the similarity between the attention of both heads on the same inputs. Heads "
        "are matched one to one."
    )


def show_maps(maps: list[SmallMap | str], key: str) -> None:
    """Show small maps in a row, and below them why some are missing."""
    show_small_maps([small for small in maps if isinstance(small, SmallMap)], key=key, cell=CELL)
    for reason in (small for small in maps if isinstance(small, str)):
        st.caption(plain(reason))
