"""Custom sentences wherever a page needs examples of a task: pasted or uploaded."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from core import config
from core.errors import InputError
from core.reading import decoded
from core.tasks.own import keep_rows, kept_rows
from core.tasks.tables import LABEL, MOST, PASTED, SentenceTable, read_given, read_pasted
from pages.parts.shell import people, resources
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets.tables import show_table

LARGEST = 5  # MB of an upload
ENDINGS = ("csv", "tsv", "jsonl", "txt")
PREVIEWED, LABELS_LISTED = 5, 8
HELP = (
    "Type one sentence per line, or two sentences separated by a tab for a pair. Or paste a table whose first line "
    "names its columns: sentence, sentence2 for pairs, and label (or score from 0 to 5) to evaluate or train a "
    f"model. At most {MOST:,} rows."
)


def folder() -> Path:
    """Return the folder for lists, next to the database."""
    return config.settings().runs / "own"


def known_lists() -> list[str]:
    """Return the saved lists as tasks, newest first."""
    return [str(file) for file in kept_rows(folder())]


def ask_lines(key: str) -> None:
    """Show a field to paste into and an uploader, with a preview; `given` returns the text."""
    st.text_area("Sentences", key=f"{key}_pasted", height=130, placeholder="One per line", help=HELP)
    people.ask_file("or a file", list(ENDINGS), key=f"{key}_file", max_upload_size=LARGEST)
    if _is_filled(key):
        preview(lambda: given(key))


def _is_filled(key: str) -> bool:
    return st.session_state.get(f"{key}_file") is not None or bool(st.session_state.get(f"{key}_pasted", "").strip())


def is_explained(key: str) -> bool:
    """Return whether the preview of `ask_lines` shows why the text cannot be read."""
    try:
        if _is_filled(key):
            _read_once(*given(key))
    except InputError:
        return True
    return False


def given(key: str) -> tuple[str, str]:
    """Return the text of `ask_lines` (an upload before the field), and its name for errors. Raises InputError."""
    file = st.session_state.get(f"{key}_file")
    text, name = (st.session_state.get(f"{key}_pasted", ""), PASTED) if file is None else text_of(file)
    if not text.strip():
        raise InputError("A list must have at least one sentence; got an empty text. Paste sentences or upload a file.")
    return text, name


def text_of(file: Any) -> tuple[str, str]:
    """Return the text and name of an upload. Raises InputError, naming an invalid byte."""
    return decoded(file.getvalue(), file.name), file.name


def inputs_of(file: Any) -> list[tuple[str, str | None]]:
    """Return the sentences of an upload, each with the second sentence of its pair or None."""
    return [(text, pair) for text, pair in read_pasted(*text_of(file))]


def preview(read: Callable[[], tuple[str, str]]) -> bool:
    """Show the first rows, columns and labels of a text, or the error; return whether it can be read."""
    with clear_errors():
        table = _read_once(*read())
        st.caption(plain(f"{table.name}: {counted(len(table.rows), 'rows')}, read as {table.form}. {_columns(table)}"))
        show_table([{name: cells.get(name) for name in table.columns} for _, cells in table.rows[:PREVIEWED]])
        if LABEL in table.columns:
            labels = Counter(cells[LABEL] or "(empty)" for _, cells in table.rows)
            listed = ", ".join(f"{label[:40]} ({count})" for label, count in labels.most_common(LABELS_LISTED))
            more = f" and {len(labels) - LABELS_LISTED} more" if len(labels) > LABELS_LISTED else ""
            st.caption(plain(f"Labels: {listed}{more}."))
        return True
    return False


def offer_own_rows(take: Callable[[str], None], *, key: str, bare: bool = False) -> None:
    """Show a popover that saves a list as a task, and passes its path to `take`. `bare`: only an icon, as in a bar."""
    help_text = "Your own examples: paste sentences or upload a file" if bare else None
    with st.popover(
        "" if bare else "A list of rows",
        icon=":material/playlist_add:",
        help=help_text,
        width="content" if bare else "stretch",
    ):
        ask_lines(f"own_{key}")
        st.text_input("Name", key=f"own_{key}_name", placeholder="sentences", max_chars=40)
        st.toggle(
            "These examples will be used for fine-tuning",
            key=f"own_{key}_learned",
            help="If on, every fifth labelled example is held out for evaluation, and the other examples are used "
            "for training. If off, all examples are used for evaluation. A column “split” takes precedence.",
        )
        st.button(
            "Use these sentences", key=f"own_{key}_use", type="primary", on_click=_keep, args=(f"own_{key}", take)
        )


_read_once = lru_cache(maxsize=4)(read_given)  # a page runs again with every click


def _columns(table: SentenceTable) -> str:
    if table.form == "list":
        return "Sentences and second sentences." if len(table.columns) > 1 else "Each line is a sentence."
    unread = f" Not read: {', '.join(table.unread)}." if table.unread else ""
    return f"Columns: {', '.join(table.read)}.{unread}"


def _keep(key: str, take: Callable[[str], None]) -> None:
    with clear_errors():
        resources.database().person.must("annotator", "add sentences of your own")
        if is_explained(key):
            return
        file = st.session_state.get(f"{key}_file")
        list_name = st.session_state.get(f"{key}_name") or (Path(file.name).stem if file is not None else "sentences")
        learned = bool(st.session_state.get(f"{key}_learned"))
        text, source = given(key)
        take(str(keep_rows(text, folder(), list_name, learned=learned, source=source)))
