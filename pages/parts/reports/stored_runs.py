"""Choosing among the results of a study: the user's own, newest first, then those that ship."""

from collections.abc import Callable, Mapping

import streamlit as st

from pages.parts.reports import result_card
from pages.parts.reports.provenance import StoredRun, known_runs
from pages.parts.shell import context, history
from pages.parts.shell.messages import plain
from pages.parts.widgets.pickers import task_name
from pages.parts.widgets.undoing import offer_undo

MOST_LISTED = 12


def title_of(stored: StoredRun) -> str:
    """A run as pickers name it."""
    return f"{stored.title} · {stored.checkpoint} · {stored.created:%d %B %Y %H:%M}"


def pick_run(
    study: str,
    empty: str,
    key: str = "run",
    *,
    label: str = "result",
    icon: str = ":material/block:",
    is_included: Callable[[StoredRun], bool] = lambda stored: True,
    prefer: Callable[[StoredRun], bool] = lambda stored: True,
) -> StoredRun | None:
    """One of the results of a study as a card, the others below it to be opened; what is known of it.

    Without any, None and a hint what to do first. The URL names the one that is open; one that has just come is.
    is_included: which results are meant, of those of the study; prefer: which of them open first.
    """
    offer_undo()
    stored_runs = {stored.run: stored for stored in known_runs(study) if is_included(stored)}
    if not stored_runs:
        st.info(empty, icon=icon)
        return None
    run = _opened(stored_runs, key, prefer)
    _say_other(stored_runs[run])
    result_card.show_card(stored_runs[run], key=key)
    other_runs = [stored for stored in stored_runs.values() if stored.run != run]
    if other_runs:
        with st.expander(f"{len(other_runs)} more {label}" + ("" if len(other_runs) == 1 else "s")):
            for stored in other_runs[:MOST_LISTED]:
                result_card.show_line(stored, key=key, chosen=key)
    return stored_runs[run]


def has_results(study: str) -> bool:
    """Whether there is anything to show, so that the form for one's own can be a drawer."""
    return bool(known_runs(study))


def drawer(title: str, study: str):
    """Where a page asks for what it needs to measure something new: open only while there is nothing to show."""
    return st.expander(title, expanded=not has_results(study), icon=":material/play_circle:")


def _opened(stored_runs: Mapping[str, StoredRun], key: str, prefer: Callable[[StoredRun], bool]) -> str:
    """The one that was opened or that the link names; the newest where that is new; else the newest of the context's
    checkpoint and rows, and again when these change."""
    run_ids, newest, asked_key = list(stored_runs), f"{key}_newest", f"{key}_context"
    checkpoint_rows = (context.now().checkpoint, context.now().rows)
    newest_before, st.session_state[newest] = st.session_state.get(newest), run_ids[0]
    before, st.session_state[asked_key] = st.session_state.get(asked_key), checkpoint_rows
    usual = max(
        run_ids, key=lambda run: (*_standing(stored_runs[run]), prefer(stored_runs[run]))
    )  # the first of those that fit best
    if key not in st.session_state or history.went_back():
        st.session_state[key] = st.query_params.get(key, usual)
    elif newest_before != run_ids[0]:
        st.session_state[key] = run_ids[0]
    elif before != checkpoint_rows:
        st.session_state[key] = usual
    if st.session_state[key] not in run_ids:
        st.session_state[key] = usual
    run: str = st.session_state[key]
    if run != usual or key in st.query_params:
        history.keep({key: None if run == usual else run})
    return run


def _standing(stored: StoredRun) -> tuple[bool, ...]:
    """Whether it was measured, not imported; how well a run suits what was chosen; then one's own, those on a task's
    real rows, and what the view starts with."""
    chosen, (fits_checkpoint, fits_rows) = context.chosen(), _fit(stored)
    is_own = chosen.checkpoint is None and stored.source == "yours" and not stored.is_outdated
    of_chosen, on_chosen = bool(chosen.checkpoint) and fits_checkpoint, bool(chosen.rows) and fits_rows
    return stored.source != "imported", is_own, of_chosen, on_chosen, not stored.sampled, fits_checkpoint, fits_rows


def _fit(stored: StoredRun) -> tuple[bool, bool]:
    """Whether a run is of the context's checkpoint, and on its rows."""
    view_context = context.now()
    return stored.checkpoint == view_context.checkpoint, view_context.rows in (stored.task or "").split(", ")


def _say_other(stored: StoredRun) -> None:
    """A word where what is shown is not what was chosen."""
    chosen, (fits_checkpoint, fits_rows) = context.chosen(), _fit(stored)
    wrong = [f"of {chosen.checkpoint}"] if chosen.checkpoint and not fits_checkpoint else []
    wrong += [f"on {task_name(chosen.rows)}"] if chosen.rows and not fits_rows else []
    if wrong and stored.checkpoint:
        st.caption(plain(f"This result is not {' or '.join(wrong)}: none of it is stored, or another was opened."))
    elif (
        (context_checkpoint := context.now().checkpoint)
        and not chosen.checkpoint
        and not fits_checkpoint
        and not stored.sampled
    ):
        st.caption(
            plain(
                f"This result is of {stored.checkpoint_said} on the task's own rows; {context_checkpoint} is what you "
                "measure with here, and results of it are below."
            )
        )
