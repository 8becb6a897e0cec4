"""What a page says when something is wrong, and text that stays text."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    """Text from a user or from data, safe inside markdown: shown as it is, never as formatting, image or link.

    The one function that renders such text (tests/pages/test_untrusted_text.py looks for calls without it).
    """
    one_line = " ".join(str(text).replace("\x00", "").splitlines())
    return _MARKDOWN.sub(r"\\\1", _ADDRESS.sub(_JOINER, one_line))


def as_code(text: object) -> str:
    """Text from a user or from data as code inside Markdown, between backticks."""
    return "`" + " ".join(str(text).replace("\x00", "").replace("`", "").split()) + "`"


def counted(count: int, plural: str) -> str:
    """ "1 map", "2,142 maps", "1 person": a count as a person writes it. plural: the noun, in the plural."""
    singular = {"people": "person"}.get(plural, plural.removesuffix("s"))
    return f"{count:,} {singular if count == 1 else plural}"


def say_left_out(place: Any, texts: Sequence[str]) -> None:
    """Say at the top of a page which stored rows it left out, if any."""
    if texts:
        more = f" {len(texts) - MOST_SAID} more are in the log of the server." if len(texts) > MOST_SAID else ""
        place.warning("\n\n".join([plain(text) for text in texts[:MOST_SAID]]) + more, icon=":material/rule:")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Show an AtlasError as its sentence; anything else as one honest sentence, its traceback in the server's log.

    Fragments use it themselves: they rerun without the shell around them.
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
                "Some rows of this result could not be read, so parts of it cannot be shown.", icon=":material/info:"
            )
            return
        st.error(
            f"An error in Attention Atlas stopped this page ({type(error).__name__}). Stored results are not "
            f"affected. Reload the page. If the error occurs again, report it with the lines in the log of the server.",
            icon=":material/error:",
        )
