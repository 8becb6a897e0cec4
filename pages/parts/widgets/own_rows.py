"""Sentences of one's own wherever a page takes rows of a task: pasted, or a file that is uploaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from core import config
from core.errors import InputError
from core.tasks.pasted_rows import keep_rows, kept_rows, read_pasted
from pages.parts.shell import resources, uploads
from pages.parts.shell.messages import clear_errors

LARGEST = 5  # MB of an upload
HELP = (
    "One on each line; a tab between two makes a pair. Or a table whose first line names its columns: sentence, "
    "sentence2 for pairs, and label (or score from 0 to 5) where a model is to be judged or to learn."
)


def folder() -> Path:
    """Where lists are kept: with what jobs leave, by the database."""
    return config.settings().runs / "own"


def known_lists() -> list[str]:
    """The lists that were kept here, as tasks, the newest first."""
    return [str(file) for file in kept_rows(folder())]


def ask_lines(key: str) -> None:
    """A field to paste into and a place to drop a file; `given_lines` has what they hold."""
    st.text_area("Sentences", key=f"{key}_pasted", height=130, placeholder="One on each line", help=HELP)
    uploads.ask_file("or a file", ["csv", "tsv", "txt"], key=f"{key}_file", max_upload_size=LARGEST)


def given_lines(key: str) -> str:
    """What `ask_lines` was given, the file before the field. Errors: InputError where it is nothing."""
    file = st.session_state.get(f"{key}_file")
    lines = st.session_state.get(f"{key}_pasted", "") if file is None else _text(file)
    if not lines.strip():
        raise InputError("A list of sentences has one on each line; there is none: paste some or drop a file.")
    return lines


def lines_of(file: Any) -> list[str]:
    """The sentences of an upload, one a line; of a pair both, as they are typed ("first | second")."""
    return [" | ".join(filter(None, pasted)) for pasted in read_pasted(_text(file))]


def offer_own_rows(take: Callable[[str], None], *, key: str, bare: bool = False) -> None:
    """A popover that keeps a list as a task. take: makes that task, by its path, the chosen one. key: of the picker.

    bare: a button of its icon alone, as in a bar.
    """
    help_text = "Rows of your own: paste sentences or drop a file" if bare else None
    with st.popover(
        "" if bare else "A list of rows",
        icon=":material/playlist_add:",
        help=help_text,
        width="content" if bare else "stretch",
    ):
        ask_lines(f"own_{key}")
        st.text_input("Name", key=f"own_{key}_name", placeholder="sentences", max_chars=40)
        st.toggle(
            "A model is to learn from them",
            key=f"own_{key}_learned",
            help="Of labelled rows every fifth is then kept for judging; else all are.",
        )
        st.button(
            "Use these sentences", key=f"own_{key}_use", type="primary", on_click=_keep, args=(f"own_{key}", take)
        )


def _text(file: Any) -> str:
    return file.getvalue().decode("utf-8-sig", errors="replace")


def _keep(key: str, take: Callable[[str], None]) -> None:
    with clear_errors():
        resources.database().person.must("annotator", "add sentences of your own")
        file = st.session_state.get(f"{key}_file")
        list_name = st.session_state.get(f"{key}_name") or (Path(file.name).stem if file is not None else "sentences")
        learned = bool(st.session_state.get(f"{key}_learned"))
        take(str(keep_rows(given_lines(key), folder(), list_name, learned=learned)))
