"""Every stored result in one list: search, open in its view, compare two, and what can be done with each."""

from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.findings.pinning import finding_of_run
from core.store import runs
from core.store.findings import Number
from core.studies.records import record_of
from pages.parts.reports import headlines
from pages.parts.reports.provenance import StoredRun, stored_run
from pages.parts.reports.result_card import facts, offer_citation
from pages.parts.reports.study_view import checkpoints_of
from pages.parts.shell import links, resources, url
from pages.parts.shell.messages import counted, plain
from pages.parts.shell.page_table import RESULTS
from pages.parts.widgets import pickers
from pages.parts.widgets.pin import offer_pin_of_run
from pages.parts.widgets.tables import show_table
from pages.parts.widgets.undoing import offer_undo, take_away

A_PART, COMPARED = 20, 12  # results of a part of the list; rows of two compared


def every_run() -> list[StoredRun]:
    """The runs of all studies that have rows: one's own, newest first, then those that ship."""
    stored = runs.known_runs(resources.database(), None).to_dict("records")
    return [run for run in (record_of(StoredRun, row) for row in stored) if run.rows > 0]


def matches(stored: StoredRun, words: str) -> bool:
    """Whether every one of these words is in what the list says of a result."""
    about = (stored.title, stored.study, stored.checkpoint, stored.task_said, stored.date, stored.source)
    text = " ".join(str(part) for part in about if part).lower()
    return all(word in text for word in words.lower().split())


def show_results(tools: DeltaGenerator) -> None:
    """The list, with a search over checkpoint, task, study and date."""
    stored = every_run()
    with tools:
        words = pickers.pick_text("Search", key="search", placeholder="checkpoint, task or date", bare=True)
    offer_undo()
    matching = [result for result in stored if matches(result, words)]
    parts = max(1, -(-len(matching) // A_PART))
    number = 1
    if parts > 1:
        number = int(url.pick(tools.selectbox, "Part of the list", [str(k + 1) for k in range(parts)], key="part",
                                format_func=lambda k: f"part {k}", label_visibility="collapsed",
                                width=110))  # fmt: skip
    if not stored:
        st.info("No result is stored yet: what a page or a command measures is listed.", icon=":material/inventory_2:")
        return
    st.caption(plain((f"{len(matching)} of " if words else "") + counted(len(stored), "results")))
    _compared({result.run: result for result in stored})
    for result in matching[(number - 1) * A_PART : number * A_PART]:
        show_line(result)


def open_link(stored: StoredRun, label: str = "Open") -> None:
    """A link to the view that shows this result, with its checkpoint and rows as the context."""
    if (shown := RESULTS.get(stored.study)) is None:
        return
    about: dict[str, Any] = {
        "checkpoint": checkpoints_of(stored)[0] or None,
        "rows": stored.task.split(", ")[0] if stored.task else None,
    }
    run_parameter = {shown.key: stored.run} if shown.key else {}
    links.link(shown.view, label, icon=":material/open_in_new:", **(about | dict(shown.query) | run_parameter))


def show_line(stored: StoredRun) -> None:
    """One result: what it says, what it rests on, and what can be done with it."""
    headline = headlines.headline_of(stored.run)
    with st.container(border=True, key=f"line_{stored.run}", gap="small"):
        st.markdown(plain(headline.sentence))
        st.caption(plain(" · ".join(facts(headline, stored))))
        with st.container(horizontal=True, vertical_alignment="center"):
            open_link(stored)
            st.button("Compare", icon=":material/compare:", type="tertiary", key=f"compare_{stored.run}",
                      on_click=_compare, args=(stored.run,), help="Side by side with another")  # fmt: skip
            offer_citation(stored, key=f"cite_{stored.run}")
            offer_pin_of_run(stored.run, key=f"pin_{stored.run}")
            if stored.source != "shipped":
                st.button("Delete", icon=":material/delete:", type="tertiary", key=f"delete_{stored.run}",
                          on_click=_delete, args=(stored.run,))  # fmt: skip


def show_briefly(run: str) -> None:
    """A link to a result and what it says."""
    stored = stored_run(run)
    with st.container(horizontal=True, vertical_alignment="center"):
        open_link(stored)
        st.caption(plain(headlines.headline_of(run).sentence), width="stretch")


def _delete(run: str) -> None:
    take_away(lambda db: runs.remove_run(db, run))


# ---------------------------------------------------------------- two beside each other


def _compare(run: str) -> None:
    """The first click names one, the second the other; a third begins anew."""
    chosen = [compared_run for compared_run in st.session_state.get("_compared_runs", []) if compared_run != run]
    st.session_state["_compared_runs"] = [run] if len(chosen) != 1 else [*chosen, run]


def _stop_comparing() -> None:
    st.session_state.pop("_compared_runs", None)


def _compared(stored_runs: dict[str, StoredRun]) -> None:
    chosen = [stored_runs[run] for run in st.session_state.get("_compared_runs", []) if run in stored_runs]
    if not chosen:
        return
    with st.container(border=True, key="compared"):
        for column, stored in zip(st.columns(2), chosen, strict=False):
            headline = headlines.headline_of(stored.run)
            column.markdown(f"**{plain(headline.sentence)}**")
            column.caption(plain(" · ".join(facts(headline, stored))))
        if len(chosen) == 1:
            st.caption("Press Compare on another result.")
        else:
            show_table(numbers_beside(*(_numbers(stored.run) for stored in chosen)))
        st.button("Close", icon=":material/close:", type="tertiary", on_click=_stop_comparing, key="stop_comparing")


def _numbers(run: str) -> tuple[Number, ...]:
    return finding_of_run(resources.database(), run).numbers


def numbers_beside(first: tuple[Number, ...], second: tuple[Number, ...]) -> pd.DataFrame:
    """The numbers that two results share, second less first, those furthest apart first; else both as they are."""
    sides = [{(number.what, number.name): number for number in side} for side in (first, second)]
    shared = [key for key in sides[0] if key in sides[1]]
    if not shared:
        rows = [
            {"result": name, "measured": number.what, "of": number.name, "value": number.value}
            for name, side in (("first", first), ("second", second))
            for number in side[:COMPARED]
        ]
        return pd.DataFrame(rows)
    rows = [
        {
            "measured": measure,
            "of": name,
            "first": sides[0][measure, name].value,
            "second": sides[1][measure, name].value,
        }
        for measure, name in shared
    ]
    frame = pd.DataFrame(rows).assign(**{"second less first": lambda frame: frame["second"] - frame["first"]})
    order = frame["second less first"].abs().sort_values(ascending=False).index
    return frame.loc[order]
