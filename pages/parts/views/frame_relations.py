"""Frame relations: which heads attend between a word that evokes a frame and its frame elements."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.jobs import api
from core.store import frames
from pages.parts.frames import sets
from pages.parts.frames.lookup import offer_examples, show_lookup
from pages.parts.frames.sets import show_sets
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets.job_progress import show_job
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- search


CITATION = "FrameNet, International Computer Science Institute, Berkeley, CC BY 3.0."


def show_search() -> None:
    """Show the search in indexed releases, and the form that indexes a release."""
    with clear_errors():
        db = resources.database()
        releases = frames.indexed_releases(db)
        if releases.empty:
            st.info(
                "No FrameNet release has been indexed yet. Unpack FrameNet (fndata-1.5 or fndata-1.7), enter its "
                "folder below and press “Index”. Then you can search FrameNet here.",
                icon=":material/library_books:",
            )
        else:
            _search(releases["release"].tolist())
        with st.expander("Index a release", expanded=releases.empty):
            _index()
        for row in releases.itertuples():
            skipped = frames.skipped_of(db, row.release)
            st.caption(
                f"{plain(row.release)} has {row.annotations:,} frame annotations of sentences. {len(skipped)} parts of "
                f"its files could not be read and were skipped. {CITATION}"
            )
            if skipped:
                with st.expander(f"Skipped in {plain(row.release)}"):
                    show_table(skipped[:500])


def _search(releases: list[str]) -> None:
    places = st.columns(5, vertical_alignment="bottom")
    release = url.pick(places[0].selectbox, "Release", releases, key="search_release")
    search_terms: dict[str, Any] = {
        name: column.text_input(label, key=f"search_{name}", bind="query-params", placeholder=example)
        for column, (name, label, example) in zip(
            places[1:],
            (
                ("frame", "Frame", "Emotion_directed"),
                ("unit", "Lexical unit", "agitated.a"),
                ("element", "Element", "Experiencer"),
                ("text", "Words", "becoming"),
            ),
            strict=True,
        )
    }
    if not any(value.strip() for value in search_terms.values()):
        st.caption(
            "To search, type the beginning of a frame, a lexical unit or a frame element, or any part of a sentence."
        )
        return
    hits = frames.find_annotations(
        resources.database(), frames.Search(**search_terms), release=release, limit=frames.MOST
    )
    if hits.empty:
        st.info("No annotated sentence matches. Type fewer letters, or check the spelling.")
        return
    event = show_table(hits[["text", "frame", "unit", "elements"]], on_select="rerun", height=320,
                         selection_mode="single-row", key="search_rows")  # fmt: skip
    chosen = event["selection"]["rows"]
    left, middle, right = st.columns(3)
    count = counted(len(hits), "sentences")
    left.button(f"Test heads on these sentences ({count})", on_click=_use_as_set, args=("\n".join(hits["body"]),),
                icon=":material/playlist_add:",
                help="Opens the mode “A set of sentences” with these sentences, to test all heads on them. This mode "
                     "also applies its own filters, such as a maximum sentence length.")  # fmt: skip
    middle.download_button("Sentences (JSONL)", "\n".join(hits["body"]) + "\n", file_name="frames.jsonl",
                           on_click="ignore", icon=":material/download:")  # fmt: skip
    right.button("Open the selected sentence", on_click=_look_up, disabled=not chosen, icon=":material/search:",
                 args=(hits["text"].iloc[chosen[0]].strip() if chosen else "",))  # fmt: skip
    st.caption(f"This table shows the {len(hits)} shortest matching sentences (at most {frames.MOST}). {CITATION}")


def _use_as_set(rows: str) -> None:
    st.session_state["_frame_found"], st.session_state["frame_source"] = rows, "search"
    st.session_state["mode"] = "A set of sentences"


def _look_up(text: str) -> None:
    st.session_state["text"], st.session_state["mode"] = text, "One sentence"


def _index() -> None:
    folder = st.text_input(
        "Folder of the FrameNet release",
        value=sets.settings_folder(),
        key="index_folder",
        placeholder="/data/fndata-1.7",
    )
    db = resources.database()
    if st.button("Index", disabled=not folder.strip(), icon=":material/play_arrow:"):
        st.session_state["_index_job"] = api.start(db, "index-frames", {"data": folder.strip()}, "Index of FrameNet")
    job = st.session_state.get("_index_job")
    if job is None:
        return
    if st.session_state.get("_index_shown") != job and show_job(job, rows=False).state == "done":
        st.session_state["_index_shown"] = job
        st.rerun()


# ---------------------------------------------------------------- frame relations


SENTENCE = "One sentence"
VIEWS = {SENTENCE: st.fragment(show_lookup), "A set of sentences": show_sets, "Search FrameNet": show_search}


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick_mode(list(VIEWS))
        if mode == SENTENCE:
            offer_examples()
    VIEWS[mode]()
