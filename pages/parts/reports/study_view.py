"""The frame around every stored result: its question, its answer, what the view draws, and the other results.

A view shows a result of the chosen checkpoint and task. If none is stored, it shows a bundled one inside a labelled
example box, with one button that runs the study for what was chosen.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from core import config
from core.errors import AtlasError
from core.jobs import api, duration_estimate
from core.studies.contract import READ_FROM, declared
from core.studies.lookup import find_study
from pages.parts.reports import result_card
from pages.parts.reports.stored_runs import StoredRun, known_runs
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain, short_names
from pages.parts.shell.page_table import RESULTS, page_of
from pages.parts.widgets import job_progress
from pages.parts.widgets.pickers import data_folder, rows_name
from pages.parts.widgets.result_actions import offer_undo

MOST_LISTED = 12
CHECKPOINT_OPTIONS = ("checkpoint", "before")  # options that name the checkpoint that a study is about


def title_of(stored: StoredRun) -> str:
    """Return the name of a run in pickers."""
    return f"{stored.title} · {stored.checkpoint} · {stored.created:%d %B %Y %H:%M}"


@contextmanager
def shown_result(
    study: str,
    empty: str,
    key: str = "run",
    *,
    question: str | None = None,
    answered: bool = True,
    label: str = "result",
    icon: str = ":material/block:",
    is_included: Callable[[StoredRun], bool] = lambda stored: True,
    prefer: Callable[[StoredRun], bool] = lambda stored: True,
) -> Iterator[StoredRun | None]:
    """Show the answer of a stored result; the view draws its figure inside `with`. Other results are listed below.

    Yields None, after the sentence `empty`, if no result is stored. The URL names a result that was opened.

    Args:
        question: the title (default: the question that the study declares); "" for none.
        answered: False if the view shows the answer, because its controls choose the question.
        is_included: selects among the results of the study.
        prefer: which results open first.
    """
    offer_undo()
    asked = find_study(study).question if question is None else question
    stored_runs = {stored.run: stored for stored in known_runs(study) if is_included(stored)}
    if not stored_runs:
        if asked:
            st.subheader(plain(asked), anchor=False)
        st.info(empty, icon=icon)
        yield None
        return
    run = _opened(stored_runs, key, prefer)
    stored = stored_runs[run]
    with boxed(stored, key), clear_errors():
        if answered:
            result_card.show_answer(stored, key=key, question=asked)
        yield stored
    other_runs = [other for other in stored_runs.values() if other.run != run]
    if other_runs:
        with st.expander(f"Other {label}s ({len(other_runs)})", icon=":material/inventory_2:"):
            for other in other_runs[:MOST_LISTED]:
                result_card.show_line(other, key=key, chosen=key)


def has_results(study: str) -> bool:
    return bool(known_runs(study))


def drawer(title: str, study: str):
    """The form that starts a new run: open only while no result is stored."""
    return st.expander(title, expanded=not has_results(study), icon=":material/play_circle:")


# ---------------------------------------------------------------- which result is shown


def _opened(stored_runs: Mapping[str, StoredRun], key: str, prefer: Callable[[StoredRun], bool]) -> str:
    """Return the result to open, and remember it."""
    run, usual = _to_open(stored_runs, key, prefer)
    st.session_state.update({key: run, f"_{key}_newest": next(iter(stored_runs)), f"_{key}_context": _asked()})
    if run != usual or key in st.query_params:
        url.keep({key: None if run == usual else run})
    return run


def _asked() -> tuple[str | None, ...]:
    return (context.now().checkpoint, context.now().beside, context.now().rows)


def _to_open(
    stored_runs: Mapping[str, StoredRun], key: str, prefer: Callable[[StoredRun], bool] = lambda stored: True
) -> tuple[str, str]:
    """Return the opened or linked result, or a new one once it is stored, otherwise the one that fits the context best;
    and the latter."""
    newest, session = next(iter(stored_runs)), st.session_state
    usual = max(stored_runs, key=lambda run: (*_rank(stored_runs[run]), prefer(stored_runs[run])))
    if key not in session or url.went_back():
        run = st.query_params.get(key, usual)
    elif session.get(f"_{key}_newest") != newest:
        run = newest
    else:
        run = session[key] if session.get(f"_{key}_context") == _asked() else usual
    return (run if run in stored_runs else usual), usual


def second_shown(study: str, key: str) -> str | None:
    """Return the second checkpoint of the result that opens, if none was chosen to compare with."""
    in_link = st.query_params.get("class_set")
    class_set = in_link if url.went_back() else st.session_state.get("class_set", in_link)
    stored_runs = {
        stored.run: stored
        for stored in known_runs(study)
        if class_set in (None, getattr(stored.settings, "class_set", class_set))
    }
    if context.now().beside or not stored_runs:
        return None
    stored = stored_runs[_to_open(stored_runs, key)[0]]
    compared = stored.told.get("compare") or next(iter(stored.checkpoints[1:]), None)
    return compared if isinstance(compared, str) else None


def _rank(stored: StoredRun) -> tuple[bool, ...]:
    """Return how well a result fits the chosen checkpoint and task; larger tuples are shown first.

    The task counts more than the checkpoint.
    """
    of_checkpoint, on_rows = _fit(stored)
    now = context.now()
    return (
        stored.source != "imported",
        of_checkpoint and on_rows,
        on_rows,
        of_checkpoint,
        now.beside is None or now.beside in stored.checkpoints,
        stored.source == "yours",
        not stored.is_outdated,
    )


def fits(stored: StoredRun) -> bool:
    """Return True if a result is of the chosen checkpoint, on the chosen task."""
    return all(_fit(stored))


def _fit(stored: StoredRun) -> tuple[bool, bool]:
    """Return whether a result has the chosen checkpoint, and the chosen task (True if the view does not ask for it)."""
    now, uses = context.now(), _uses(stored.study)
    of_checkpoint = "checkpoint" not in uses or not now.checkpoint or now.checkpoint in stored.checkpoints
    on_rows = "rows" not in uses or not stored.task or not now.rows or now.rows in stored.task.split(", ")
    return of_checkpoint, on_rows


def _uses(study: str) -> tuple[str, ...]:
    """Return the context fields of the view that shows a study."""
    if (shown := RESULTS.get(study)) is None:
        return ()
    page, _, view = shown.view.partition("/")
    return page_of(page).view(view).uses


# ---------------------------------------------------------------- the example box


def boxed(stored: StoredRun, key: str) -> Any:
    """Where a result is drawn: the page, or the example box if it is not of the chosen checkpoint and task."""
    return st.container(gap="small") if fits(stored) else _example_box(stored, key)


def _example_box(stored: StoredRun, key: str) -> Any:
    """Show a box which states that the result is an example, with a button that runs the study for the chosen model."""
    now, uses = context.now(), _uses(stored.study)
    task = rows_name(str(now.rows)) if "rows" in uses and stored.task and now.rows else ""
    chosen = short_names([str(now.checkpoint)])[str(now.checkpoint)] if now.checkpoint else ""
    asked_for = plain(chosen) + (f" on {plain(task)}" if task else "")
    shown = plain(stored.checkpoint_said) + (f" on {plain(stored.task_said)}" if stored.task_said else "")
    box = st.container(border=True, key=f"example_{key}")
    with box, st.container(horizontal=True, vertical_alignment="center"):
        kind = "Example" if stored.source == "shipped" else "Another result"
        is_stored = any(map(fits, known_runs(stored.study)))
        no_result = "" if is_stored else f"No result for {asked_for} is stored yet."
        st.markdown(f":material/science: **{kind}: {shown}.** {no_result}", width="content")
        _offer_run(stored, chosen, key)
    return box


def _offer_run(stored: StoredRun, chosen: str, key: str) -> None:
    """Show the button that runs the study for the chosen checkpoint and task, or why that is impossible."""
    options = options_for_chosen(stored)
    try:
        api.check_runnable(stored.study, options)
    except AtlasError as error:
        st.caption(f":material/block: {plain(error)}", width="content")
        return
    estimate = duration_estimate.estimate_duration(resources.database(), stored.study, options)
    took = job_progress.time_said(estimate) if estimate else None
    st.button(f"Run for {chosen}", type="primary", icon=":material/play_arrow:", key=f"run_for_{key}", help=took,
              on_click=_run, args=(stored.study, options))  # fmt: skip


def options_for_chosen(stored: StoredRun) -> dict[str, Any]:
    """Return the options of a result for the chosen checkpoint and task, without folders that are not on this
    machine."""
    now, study = context.now(), find_study(stored.study)
    options = {
        name: value
        for name, value in stored.told.items()
        if not (name in READ_FROM and isinstance(value, str) and not _is_here(value))
    }
    names = declared(study.options)
    for name in CHECKPOINT_OPTIONS:
        if name in names:
            options[name] = now.checkpoint
    if "checkpoints" in names:
        options["checkpoints"] = [name for name in (now.checkpoint, now.beside) if name]
    if "compare" in names:
        options["compare"] = now.beside
    if now.rows and "rows" in _uses(stored.study):
        options |= {name: value for name, value in (("task", now.rows), ("tasks", [now.rows])) if name in names}
    if "data" in names:
        options["data"] = data_folder()
    return options


def _is_here(path: str) -> bool:
    folder = Path(path).expanduser()
    return folder.exists() or (config.PROJECT / folder).exists()


def _run(study: str, options: dict[str, Any]) -> None:
    with clear_errors():
        declared_study = find_study(study)
        job_progress.begin(study, options, declared_study.title(declared_study.read(options)))


# ---------------------------------------------------------------- a whole view of one study


def show_study(
    study: str,
    draw: Callable[[StoredRun], None],
    form: Callable[[], None],
    *,
    empty: str,
    key: str = "run",
    icon: str = ":material/play_circle:",
    jobs: bool = True,
) -> None:
    """A view of one study: its jobs, its answer with what `draw` adds, and the form that starts a new run."""
    if jobs:
        job_progress.show_jobs(study, most=2)
    with shown_result(study, empty, key, icon=icon) as stored:
        if stored is not None:
            draw(stored)
    with drawer("Run with other settings", study):
        form()


def details(title: str = "Details") -> Any:
    """The folded part of a view: method, assumptions, tables and further figures."""
    return st.expander(title, icon=":material/info:")
