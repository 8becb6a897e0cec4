"""All stored results in one table: search, open, compare, cite, pin and delete."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.findings.pinning import finding_of_run
from core.store.findings import Number
from pages.parts.reports import stored_runs
from pages.parts.reports.result_card import facts, offer_files, show_reference
from pages.parts.reports.stored_runs import StoredRun, stored_run
from pages.parts.shell import links, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.shell.page_table import RESULTS
from pages.parts.widgets import pickers
from pages.parts.widgets.result_actions import delete_run, offer_pin_of_run, offer_undo
from pages.parts.widgets.tables import show_table

A_PART, COMPARED = 50, 12  # results of a part of the list; rows of two compared
TALLEST = 860  # pixels of the table
EVERY = "all studies"


def matches(stored: StoredRun, words: str) -> bool:
    """Return whether all these words occur in the list entry of a result."""
    about = (stored.title, stored.study, stored.checkpoint, stored.task_said, stored.date, stored.source)
    text = " ".join(str(part) for part in about if part).lower()
    return all(word in text for word in words.lower().split())


def show_results(tools: DeltaGenerator) -> None:
    """Show the table of results with a search, a filter by study, and actions on selected results."""
    stored = stored_runs.every_run()
    with tools:
        words = pickers.pick_text("Search", key="search", placeholder="Checkpoint, task or date of a result", bare=True)
        names = [EVERY, *sorted({result.study for result in stored})]
        study = url.pick(st.selectbox, "Study", names, key="of_study", label_visibility="collapsed", width=190)
    offer_undo()
    matching = [one for one in stored if matches(one, words) and study in (EVERY, one.study)]
    parts = max(1, -(-len(matching) // A_PART))
    number = 1
    if parts > 1:
        number = int(url.pick(tools.selectbox, "Part of the list", [str(k + 1) for k in range(parts)], key="part",
                                format_func=lambda k: f"part {k} of {parts}", label_visibility="collapsed",
                                width=130))  # fmt: skip
    if not stored:
        st.info("No result is stored yet. Open the page of a study and run it.", icon=":material/inventory_2:")
        return
    shown = matching[(number - 1) * A_PART : number * A_PART]
    actions = st.container()
    rows = _table(shown, key=f"results|{number}|{study}|{words}")
    selected = matching if len(matching) == 1 else [shown[row] for row in rows]  # the only one that was found
    with actions:
        counts = (f"{len(matching)} of " if words or study != EVERY else "") + counted(len(stored), "results")
        hint = (
            "" if selected else ". Select one row to open, save, cite, pin or delete it, and two rows to compare them."
        )
        st.caption(plain(counts + hint))
        if len(selected) == 1:
            show_selected(selected[0])
        elif selected:
            _compared(selected[:2])


def _table(results: Sequence[StoredRun], *, key: str) -> list[int]:
    """One row for each result; returns the numbers of the selected rows."""
    lines = []
    for stored in results:
        headline = stored_runs.headline_of(stored.run)
        lines.append(
            {"run": stored.run, "finding": headline.sentence, "model": stored.checkpoint_said, "task": stored.task_said,
             "interval": headline.interval, "n": headline.n,
             "baseline": headline.baseline, "study": stored.study,
             "date": stored.created.date(), "origin": stored.source}
        )  # fmt: skip
    columns = ["run", "finding", "date", "model", "task", "interval", "n", "baseline", "study", "origin"]
    frame = pd.DataFrame(lines, columns=columns).astype({"n": "Int64"})
    widths = {"finding": 380, "date": 92, "model": 145, "task": 85, "interval": 195, "n": 55, "baseline": 160,
              "study": 110, "origin": 80}  # fmt: skip
    event = show_table(
        frame.assign(origin=frame["origin"].replace({"shipped": "bundled"})),
        height=TALLEST, row_height=66, key=key, column_order=columns[1:], on_select="rerun", selection_mode="multi-row",
        column_config={name: st.column_config.Column(width=width) for name, width in widths.items()},  # type: ignore[arg-type]
    )  # fmt: skip
    return [row for row in event.selection.rows if row < len(results)]


def open_link(stored: StoredRun, label: str = "Open") -> None:
    """Show a link to the view of this result, with its checkpoint and task as the context."""
    if (shown := RESULTS.get(stored.study)) is None:
        return
    about: dict[str, Any] = {
        "checkpoint": stored.checkpoints[0] or None,
        "rows": stored.task.split(", ")[0] if stored.task else None,
    }
    run_parameter = {shown.key: stored.run} if shown.key else {}
    links.link(shown.view, label, icon=":material/open_in_new:", **(about | dict(shown.query) | run_parameter))


def show_selected(stored: StoredRun) -> None:
    """Show one result: its finding, certainty, and actions."""
    headline = stored_runs.headline_of(stored.run)
    with st.container(border=True, key=f"line_{stored.run}", gap="small"):
        st.markdown(f"**{plain(headline.sentence)}**")
        st.caption(plain(" · ".join(facts(headline, stored))))
        with st.container(horizontal=True, vertical_alignment="center"):
            open_link(stored)
            offer_files(stored.run, key=f"result_{stored.run}")
            offer_pin_of_run(stored.run, key=f"pin_{stored.run}")
            if stored.source != "shipped":
                st.button("Delete", icon=":material/delete:", type="tertiary", key=f"delete_{stored.run}",
                          on_click=delete_run, args=(stored.run,))  # fmt: skip
        with clear_errors():
            show_reference(stored)


def show_briefly(run: str) -> None:
    stored = stored_run(run)
    with st.container(horizontal=True, vertical_alignment="center"):
        open_link(stored)
        st.caption(plain(stored_runs.headline_of(run).sentence), width="stretch")


# ---------------------------------------------------------------- two results compared


def _compared(chosen: Sequence[StoredRun]) -> None:
    with st.container(border=True, key="compared"):
        for column, stored in zip(st.columns(2), chosen, strict=True):
            headline = stored_runs.headline_of(stored.run)
            column.markdown(f"**{plain(headline.sentence)}**")
            column.caption(plain(" · ".join(facts(headline, stored))))
            with column:
                open_link(stored)
        db = resources.database()
        show_table(numbers_beside(*(finding_of_run(db, stored.run).numbers for stored in chosen)))


def numbers_beside(first: tuple[Number, ...], second: tuple[Number, ...]) -> pd.DataFrame:
    """Return the numbers that two results share, as second minus first, the largest difference first; otherwise both
    lists."""
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
    frame = pd.DataFrame(rows).assign(**{"second minus first": lambda frame: frame["second"] - frame["first"]})
    order = frame["second minus first"].abs().sort_values(ascending=False).index
    return frame.loc[order]
