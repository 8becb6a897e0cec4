"""Every stored result in one list: search, open in its view, and what can be done with each."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.results.reading import record_of
from core.store import runs
from pages.parts.reports import headlines
from pages.parts.reports.provenance import StoredRun
from pages.parts.reports.result_card import facts
from pages.parts.shell import bound, resources
from pages.parts.shell.messages import plain
from pages.parts.widgets import pickers

A_PAGE = 20


def every_run() -> list[StoredRun]:
    """The runs of all studies that have rows: one's own, newest first, then those that ship."""
    stored = runs.known_runs(resources.database(), None).to_dict("records")
    return [known for known in (record_of(StoredRun, row) for row in stored) if known.rows > 0]


def matches(stored: StoredRun, words: str) -> bool:
    """Whether every one of these words is in what the list says of a result."""
    about = (stored.title, stored.study, stored.checkpoint, stored.task_said, stored.date, stored.source)
    text = " ".join(str(part) for part in about if part).lower()
    return all(word in text for word in words.lower().split())


def show_results(tools: DeltaGenerator) -> None:
    """The list, with a search over checkpoint, task, study and date."""
    stored = every_run()
    with tools:
        words = pickers.pick_text("Search", key="search", placeholder="checkpoint, task, study or date", bare=True)
    found = [known for known in stored if matches(known, words)]
    pages = max(1, -(-len(found) // A_PAGE))
    number = 1
    if pages > 1:
        number = int(bound.pick(tools.selectbox, "Part", [str(k + 1) for k in range(pages)], key="part",
                                label_visibility="collapsed", width=80))  # fmt: skip
    st.caption(plain(f"{len(found)} of {len(stored)} results"))
    for known in found[(number - 1) * A_PAGE : number * A_PAGE]:
        said = headlines.headline_of(known.run)
        st.markdown(plain(said.sentence))
        st.caption(plain(" · ".join(facts(said, known))))
