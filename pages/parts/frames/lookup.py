"""One sentence: propose targets and elements, let words be clicked, show every head between the two places."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core.attention import Head
from core.frames.records import AnnotatedSentence
from core.frames.rows import write_rows
from core.studies.frames.distance_null import distance_null
from core.studies.frames.frame_lookup import LinkReading, headline, links_for, picture, strips
from pages.parts.charts.encoding import Shade
from pages.parts.charts.heads import clicked_heads, head_picture
from pages.parts.charts.matrices import token_strips
from pages.parts.frames.marking import Marked, mark
from pages.parts.frames.sets import show_runs
from pages.parts.shell import context, history, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.files import show_files
from pages.parts.widgets.head_links import show_links
from pages.parts.widgets.tables import show_table

EXAMPLES = (
    "He was becoming agitated about the noise.",
    "The old teacher explained the rules to her class.",
    "The captain was angry about the delay.",
)
PROSE = {
    "target_to_element": "target → element (query = target; the paper's prose)",
    "element_to_target": "element → target (query = element; the paper's code)",
}
TOP = 10


def null_of(name: str) -> Any:
    """How much each head of a checkpoint looks over each distance in the bundled sentences."""
    opened = resources.checkpoint(name)
    with st.spinner("Looking at the bundled sentences ..."):
        return _null_of(opened.weights_hash, opened)


@st.cache_resource(show_spinner=False, max_entries=8)
def _null_of(weights: str, _checkpoint: Any) -> Any:
    return distance_null(_checkpoint)


def show_lookup() -> None:
    """The whole view; a fragment, so that a click reruns nothing else."""
    with clear_errors():
        view_context = context.now()
        first, second, text = view_context.checkpoint, view_context.beside, view_context.text or ""
        if not text.strip():
            _offer_examples()
            return
        marked = mark(text)
        if marked is None:
            return
        _offer_annotation(marked)
        chosen = [name for name in (first, second) if name]
        if not chosen:
            st.info("Choose a checkpoint above.", icon=":material/arrow_upward:")
        looked_up = []
        settings = _settings()
        for name in chosen:
            with clear_errors():
                looked_up.append(_looked_up(name, marked, settings))
        _show_beside(looked_up, marked, settings)


def _offer_examples() -> None:
    st.caption("Type a sentence above and press Enter, or start with one of these.")
    with st.container(horizontal=True):  # one below the other where a narrow window has no room for them whole
        for example in EXAMPLES:
            if st.button(example, on_click=_take, args=(example,)):
                st.rerun(scope="app")  # the field with the sentence is outside this fragment
    st.subheader("In many sentences at once")
    show_runs()


def _offer_annotation(marked: Marked) -> None:
    """What is marked as a line of our own form; several lines make a set for the next view."""
    sentence = AnnotatedSentence("typed", marked.text, marked.target, marked.frame, marked.unit, (marked.element,))
    st.download_button("Annotation (JSONL)", write_rows([sentence]), file_name="frames.jsonl", on_click="ignore",
                       icon=":material/download:", help="A line of the form that the set view reads.")  # fmt: skip


def _take(text: str) -> None:
    st.session_state["text"] = text


# ---------------------------------------------------------------- the heads


class LookupSettings(NamedTuple):
    """How heads are read, alike for all checkpoints. zipped, sinkless: of the maps; by: what heads are ranked by."""

    zipped: bool
    sinkless: bool
    by: str


class LookedUp(NamedTuple):
    """One checkpoint's maps of the sentence, the links in it, and its heads in both directions."""

    name: str
    shown: resources.Shown
    links: Any
    readings: dict[str, Any]


def _settings() -> LookupSettings:
    with st.container(horizontal=True):
        zipped = url.switch(
            st.toggle, "the paper's zip of word pieces", key="zip", help="Default: every pair of word pieces."
        )
        sinkless = url.switch(
            st.toggle,
            "without position 0",
            key="sinkless",
            help="Position 0 gets much weight whatever follows; rows renormalised.",
        )
        help_text = "Default: by the difference from places at the same distance in this sentence."
        raw = url.switch(st.toggle, "rank by raw weight", key="raw", help=help_text)
    return LookupSettings(zipped, sinkless, "score" if raw else "difference")


def _looked_up(name: str, marked: Marked, settings: LookupSettings) -> LookedUp:
    shown = resources.shown(name, marked.text)
    sentence = AnnotatedSentence("typed", marked.text, marked.target, marked.frame, marked.unit, (marked.element,))
    links = links_for(shown.encoding, sentence)
    readings = {
        way: picture(shown.maps, shown.encoding, links,
                     LinkReading(way, "zip" if settings.zipped else "product", settings.sinkless),
                     null=lambda: null_of(name))
        for way in PROSE
    }  # fmt: skip
    return LookedUp(name, shown, links, readings)


def _show_beside(looked_up: Sequence[LookedUp], marked: Marked, settings: LookupSettings) -> None:
    """The checkpoints side by side: one direction, one scale."""
    if not looked_up:
        return
    everywhere = [way for way in PROSE if all(lookup.readings[way].visible for lookup in looked_up)]
    ways = everywhere or [way for way in PROSE if any(lookup.readings[way].visible for lookup in looked_up)]
    if not ways:
        return
    direction = url.pick(st.radio, "Rank heads by", ways, key="ranked", format_func=PROSE.__getitem__, horizontal=True)
    visible = [reading for lookup in looked_up for reading in lookup.readings.values() if reading.visible]
    most = max((float(np.nanmax(reading.score)) for reading in visible), default=1.0)
    for number, (column, lookup) in enumerate(zip(st.columns(len(looked_up)), looked_up, strict=True), 1):
        with column, clear_errors():
            _show_heads(lookup, marked, number, direction, most, settings.by)


def _show_heads(lookup: LookedUp, marked: Marked, number: int, direction: str, most: float, by: str) -> None:
    """Both directions of one checkpoint, its best heads, and the strip of the chosen one.

    number: 1 or 2, of the checkpoints side by side; it tells their heads apart in the URL. most: the weight that is
    full ink for both.
    """
    st.markdown(f"**{plain(lookup.name)}**")
    answer = st.empty()  # the answer stands first, though it is known last
    drawn = _pictures(lookup.name, lookup.readings, number, most, by)
    reading = lookup.readings[direction]
    if not reading.visible:
        return
    answer.markdown(f"**{plain(headline(reading, *_ends(marked), by))}**")
    rows = pd.DataFrame(reading.rows(by))
    head = _chosen(f"head_{number}", rows)
    _table(lookup.name, rows, reading, marked)
    show_files(rows, [drawn[direction]], "heads", key=lookup.name)
    _strip(lookup.name, head, lookup.shown, lookup.links, marked)


def _ends(marked: Marked) -> tuple[str, str]:
    """The words of the element and of the target."""
    return tuple(
        " ".join(marked.text[start:end] for start, end in spans) for spans in (marked.element.spans, marked.target)
    )  # type: ignore[return-value]


def _chosen(key: str, rows: pd.DataFrame) -> Head:
    """The head that was clicked or that the URL names; else the first of the ranking."""
    head_name = (
        st.query_params.get(key, "") if history.went_back() else st.session_state.get(key, st.query_params.get(key))
    )
    st.session_state[key] = head_name
    history.keep({key: head_name})
    return Head.parse(head_name) if head_name in set(rows["name"]) else Head.parse(rows["name"].iloc[0])


def _pictures(name: str, readings: dict[str, Any], number: int, most: float, by: str) -> dict[str, Any]:
    """The two layer x head pictures, where a click chooses a head; returns the charts by direction. Outlined: the
    first three of the ranking."""
    charts_made: dict[str, Any] = {}
    beside = st.container(horizontal=True)  # wraps where there is no room for both
    for direction, reading in readings.items():
        with beside.container(width="content" if reading.visible else 220):
            if not reading.visible:
                st.caption(PROSE[direction])
                st.markdown(
                    ":gray-background[structurally zero] :gray[In a decoder a query sees only keys up to itself, and "
                    "here every key would lie after its query.]"
                )
                continue
            frame = pd.DataFrame(reading.rows(by))
            best = frame.head(3)
            drawn = charts_made[direction] = head_picture(
                frame,
                Shade("score", label="weight", domain=(0, most), cell=22),
                title=PROSE[direction].split(" (")[0],
                highlight=[Head(int(a), int(b)) for a, b in zip(best["layer"], best["head"], strict=True)],
                tooltip=("rank", "same_distance"),
                select=True,
            )
            key = f"picture|{name}|{direction}"
            st.altair_chart(drawn, width="content", on_select=partial(_clicked, key, f"head_{number}"), key=key)
    return charts_made


def _clicked(key: str, chosen: str) -> None:
    """Keep the head that was clicked; a click beside all of them forgets it."""
    st.session_state[chosen] = next((str(head) for head in clicked_heads(st.session_state[key])), "")


def _table(name: str, rows: pd.DataFrame, reading: Any, marked: Marked) -> None:
    shown = rows.head(TOP)[["rank", "name", "score", "same_distance", "difference", "place_rank"]]
    show_table(
        shown.assign(place_rank=[f"{rank:.0f} of {reading.places}" for rank in shown["place_rank"]]),
        column_config={
            "rank": st.column_config.NumberColumn("rank", help=f"among {len(rows)} heads"),
            "name": "head",
            "score": st.column_config.NumberColumn("weight", format="%.3f"),
            "same_distance": st.column_config.NumberColumn(
                "same distance",
                format="%.3f",
                help="mean over all other places of this sentence with the same distances and piece counts",
            ),
            "difference": st.column_config.NumberColumn("difference", format="%.3f"),
            "place_rank": st.column_config.TextColumn("place", help="this link among the places at the same distance"),
        },
    )
    comparison = (
        "no other place at this distance" if reading.places == 1 else f"{reading.places - 1} other places compared"
    )
    comparison += (
        f", so {reading.borrowed:,} pairs of the bundled sentences are compared instead" if reading.borrowed else ""
    )
    st.caption(
        f"{plain(name)} · {plain(marked.frame or 'no frame')} · n = 1 sentence, so a rank and no test · {comparison} · "
        f"{date.today():%d %B %Y}"
    )


def _strip(name: str, head: Head, shown: resources.Shown, links: Any, marked: Marked) -> None:
    """Fig 3's strip: what the target and the element look at, and who looks at the target."""
    st.altair_chart(
        token_strips(pd.DataFrame(strips(shown.maps, shown.encoding, links, head)), title=str(head)),
        key=f"strip|{name}",
    )
    st.caption("Rows: weights of a query over all keys, pieces of a word averaged; position 0 is marked as the sink.")
    show_links(name, head, current_view="linguistics/frames", text=marked.text)
