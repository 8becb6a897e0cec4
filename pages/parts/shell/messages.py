"""Error messages on pages, and how texts of users and data are shown: without formatting, counted, and shortened."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

import streamlit as st

from core.errors import AtlasError
from core.store.bodies import left_out

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~$:&-])")
_ADDRESS = re.compile(
    r"(?<=:/)(?=/)|(?<=\bww)(?=w\.)|(?=@[\w-]+\.)", re.IGNORECASE
)  # which browsers are shown as links
_JOINER = "\u2060"  # has no width and breaks no line; Markdown looks for addresses also in escaped text
MOST_SAID = 5  # texts about rows that were left out
log = logging.getLogger("atlas")


def plain(text: object) -> str:
    """Return text from a user or from data so that Markdown shows it literally, without formatting, images or links.

    All such text must pass through this function (checked by tests/pages/test_untrusted_text.py).
    """
    one_line = " ".join(str(text).replace("\x00", "").splitlines())
    return _MARKDOWN.sub(r"\\\1", _ADDRESS.sub(_JOINER, one_line))


def as_code(text: object) -> str:
    """Return text from a user or from data as code in Markdown, between backticks."""
    return "`" + " ".join(str(text).replace("\x00", "").replace("`", "").split()) + "`"


def counted(count: int, plural: str) -> str:
    """Return a count with its noun, such as "1 map" or "2,142 maps". `plural` is the noun in the plural."""
    singular = {"people": "person"}.get(plural, plural.removesuffix("s"))
    return f"{count:,} {singular if count == 1 else plural}"


def say_left_out(place: Any, texts: Sequence[str]) -> None:
    """Show which stored rows the page left out, if any."""
    if texts:
        more = f" {len(texts) - MOST_SAID} more are in the log of the server." if len(texts) > MOST_SAID else ""
        place.warning("\n\n".join([plain(text) for text in texts[:MOST_SAID]]) + more, icon=":material/rule:")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Show an AtlasError as its message; for other errors, show one sentence and log the traceback.

    Fragments must use it themselves, because they rerun without the shell.
    """
    try:
        yield
    except AtlasError as error:
        st.error(plain(error), icon=":material/info:")
    except MemoryError:
        log.exception("A page ran out of memory")
        st.error(
            "There is not enough free memory for this computation. Use fewer or shorter inputs, or close other "
            "programs. Stored results are not affected.",
            icon=":material/info:",
        )
    except Exception as error:
        log.exception("A page failed")
        if left_out():
            st.info(
                "Some rows of this result could not be read, so parts of the result are not shown.",
                icon=":material/info:",
            )
            return
        st.error(
            f"An error in Attention Atlas stopped this page ({type(error).__name__}). Stored results are not "
            "affected. Reload the page. If the error occurs again, report it with the message from the server log.",
            icon=":material/error:",
        )


# ---------------------------------------------------------------- short names of checkpoints whose paths begin alike


BETWEEN_WORDS = re.compile(r"([\s,;:()]+)")
BETWEEN_NAMES = re.compile(r"(, | and )")  # of checkpoints in a cell, which may have spaces


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return each name reduced to the fewest last parts of its path that are unique; hub IDs are unchanged."""
    parts = {
        name: PurePath(name).parts if (name.startswith(("/", "~", "./", "../")) or name.count("/") > 1) else (name,)
        for name in names
    }
    shorts = {}
    for name, path_parts in parts.items():
        other_paths = [other_path for other_name, other_path in parts.items() if other_name != name]
        count = next(
            (
                n
                for n in range(1, len(path_parts))
                if all(path_parts[-n:] != other_path[-n:] for other_path in other_paths)
            ),
            len(path_parts),
        )
        shorts[name] = str(PurePath(*path_parts[-count:])) if path_parts else name
    return shorts


def short_titles(titles: Sequence[str], between: re.Pattern[str] = BETWEEN_WORDS) -> dict[str, str]:
    """Return each title with short names for its paths. `between` separates names or words."""
    parts = {title: between.split(title) for title in titles}
    shorts = short_names(list({part for of_title in parts.values() for part in of_title}))
    return {title: "".join(map(shorts.__getitem__, of_title)) for title, of_title in parts.items()}
