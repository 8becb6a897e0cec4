"""Inputs that several pages share, with their values in the URL."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

from core import config
from core.errors import InputError
from core.tasks import own
from core.tasks.glue import TASKS, read_rows, sampled, task_of
from pages.parts.shell import context, resources, url
from pages.parts.widgets import checkpoint_chooser, own_rows
from pages.parts.widgets.checkpoint_chooser import checkpoint_names

TASK_HELP = (
    "Choose a GLUE task (the bundled examples only imitate it), or type the path of your own CSV or TSV file and "
    "press Enter. Its first line names the columns: sentence (and sentence2 for pairs) and label, or score from 0 to "
    "5. A column split has the values train or dev; without it, every fifth example is a dev example. A file without "
    "labels can only be used for measurements."
)


def pick_checkpoint(label: str = "Checkpoint", *, key: str, usual: str | None = None) -> str | None:
    """Ask for a checkpoint (default: `usual`, or the usual encoder); None while it is not on this machine."""
    names = checkpoint_names()
    for name in (usual, st.query_params.get(key) or st.session_state.get(key)):
        if name and name not in names:
            names.append(name)
    if not names:
        st.info("This installation has no bundled checkpoints. Type the path of a folder or a hub ID.")
    chosen = url.pick(
        st.selectbox,
        label,
        names,
        key=key,
        default=usual or (config.ENCODER if config.ENCODER in names or not names else names[0]),
        accept_new_options=True,
        help=checkpoint_chooser.HELP,
        placeholder="path of a folder, or a hub ID",
    )
    if names and checkpoint_chooser.is_wanted(chosen):
        checkpoint_chooser.offer(chosen, key, None)
        return None
    return chosen if names else None


def pick_text(
    label: str = "Sentence",
    *,
    key: str = "text",
    default: str = "",
    placeholder: str | None = None,
    help: str | None = None,
    height: int | None = None,
    bare: bool = False,
) -> str:
    """Ask for one line of text, stored in the URL if it fits.

    height: of a field with several lines, in pixels. bare: the label is only for screen readers, as in a bar.
    """
    if url.asks_link(key):
        st.session_state[key] = st.query_params.get(key, default)
    field: Callable[..., str | None] = st.text_input if height is None else partial(st.text_area, height=height)
    shown = "collapsed" if bare else "visible"
    text = field(label, key=key, placeholder=placeholder, help=help, label_visibility=shown) or ""
    url.keep({key: text if text != default and len(text) <= context.LINK_CHARACTERS else None})
    return text


def pick_tasks(default: str, *, key: str | None = None) -> list[str]:
    """Ask for task keys and paths of custom files, stored in the URL, with a way to paste or upload some."""
    key = key or f"tasks_{default}"
    tasks = url.pick_many(
        st.multiselect,
        "Tasks",
        list(dict.fromkeys([*TASKS, *own_rows.known_lists(), context.chosen().rows or default])),
        key=key,
        default=[context.chosen().rows or default],
        format_func=rows_name,
        accept_new_options=True,
        help=TASK_HELP,
        placeholder="Names of tasks, or the path of your own CSV file",
    )
    own_rows.offer_own_rows(lambda path: st.session_state.update({key: [path]}), key=key)
    return tasks


def pick_task(label: str = "Task", *, key: str) -> str:
    """Ask for a task key or the path of a custom file, stored in the URL, with a way to paste or upload one."""
    names = [*TASKS, *own_rows.known_lists()]
    linked_name = st.query_params.get(key) or st.session_state.get(key)
    if linked_name and linked_name not in names:
        names.append(linked_name)
    task = url.pick(st.selectbox, label, names, key=key, format_func=rows_name, accept_new_options=True, help=TASK_HELP)
    own_rows.offer_own_rows(lambda path: st.session_state.update({key: path}), key=key)
    return task


def task_name(key: str) -> str:
    """Return the name of a task as papers write it; for a custom file its path, for a pasted list its name."""
    try:
        if own.is_own(key):
            return Path(key).name if Path(key).parent == own_rows.folder() else key
        return task_of(key).name
    except InputError:
        return key


def rows_name(key: str) -> str:
    """Return the name of the examples of a task; bundled samples only imitate the task."""
    return task_name(key) if data_folder() else sampled(task_name(key))


def data_folder() -> str | None:
    """Return the GLUE folder from which pages read examples (ATLAS_GLUE), or None for the bundled samples."""
    glue = config.settings().glue
    return None if glue is None else str(glue)


def ask_folder(container: Any = st, *, key: str = "data", label: str = "Data") -> str | None:
    """Ask for the folder with examples (default: `data_folder`); None if empty."""
    given = container.text_input(
        label,
        value=data_folder() or "",
        key=key,
        bind="query-params",
        placeholder="folder with the GLUE tasks as TSV files (default: the bundled samples)",
    )
    folder = (given or "").strip() or None
    if bool(folder) != bool(data_folder()):  # the pickers' names go by ATLAS_GLUE
        samples = "Uses the bundled examples, which only imitate the task."
        container.caption("Uses the examples in this folder." if folder else samples)
    return folder


def named(tasks: Sequence[str], data: str | None = None) -> str:
    """Return tasks by the name of their examples, for the title of a job. Raises RightsError or InputError."""
    if any(own.is_own(task) for task in tasks):
        resources.database().person.must("annotator", "type the path of your own file")
    names = [(task, task_of(task).name) for task in tasks]
    return ", ".join(name if own.is_own(task) or data else sampled(name) for task, name in names)


@lru_cache(maxsize=32)
def task_rows(task: str, split: str, folder: str | None = None) -> list:
    """Return the examples of a task in a folder (None: the bundled samples), cached."""
    return read_rows(task, split, folder=folder)
