"""The frame around every page: the page table, the page config, and errors as one sentence.

`app.py` serves this file; pages import `clear_errors` and `plain` from it.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from core.errors import AtlasError

PAGES_FOLDER = Path(__file__).resolve().parent.parent
ICON = str(Path(__file__).resolve().parent / "icon.png")  # a file: named icons are fetched from the network
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~$:&-])")
_NAME = re.compile(r"(?!embed)[a-z][a-z0-9_]*")  # a parameter that some page may read; Streamlit keeps embed for itself
log = logging.getLogger("atlas")


class Page(NamedTuple):
    """One entry of the sidebar. name: of pages/<name>.py and of its URL."""

    section: str
    name: str
    title: str
    icon: str


PAGES = (
    Page("Look", "maps", "Attention maps", ":material/grid_on:"),
    Page("Look", "frames", "Frames", ":material/account_tree:"),
    Page("Look", "features", "What heads attend to", ":material/center_focus_strong:"),
    Page("Look", "relations", "Token to token", ":material/swap_horiz:"),
    Page("Look", "statistics", "Head statistics", ":material/query_stats:"),
    Page("Label", "label", "Label maps", ":material/stylus:"),
    Page("Label", "patterns", "Pattern classifier", ":material/model_training:"),
    Page("Label", "shares", "Class shares", ":material/stacked_bar_chart:"),
    Page("Label", "agreement", "Agreement", ":material/group:"),
    Page("Train", "finetune", "Fine-tune", ":material/school:"),
    Page("Train", "change", "Change", ":material/compare:"),
    Page("Test", "disable", "Disable heads", ":material/block:"),
    Page("Test", "prune", "Prune", ":material/content_cut:"),
    Page("Papers", "reproduction", "Reproduction", ":material/menu_book:"),
    Page("Keep", "jobs", "Jobs", ":material/pending_actions:"),
)


def plain(text: object) -> str:
    """Text from a user or from data, safe inside markdown: shown as it is, never as formatting, image or link."""
    return _MARKDOWN.sub(r"\\\1", str(text)).replace("\x00", "").replace("\n", " ")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Show an AtlasError as its sentence; anything else as one honest sentence, its traceback in the server's log.

    Fragments use it themselves: they rerun without the shell around them.
    """
    try:
        yield
    except AtlasError as error:
        st.error(plain(error), icon=":material/info:")
    except Exception as error:
        log.exception("A page failed")
        st.error(
            f"This page met a defect of Attention Atlas ({type(error).__name__}); nothing stored is lost: reload "
            "the page, and report what the server's log says if it happens again.",
            icon=":material/error:",
        )


def navigation() -> dict[str, list]:
    """The pages by section; paths are absolute, so a cold link to any of them opens it."""
    sections: dict[str, list] = {}
    for page in PAGES:
        entry = st.Page(PAGES_FOLDER / f"{page.name}.py", title=page.title, icon=page.icon, url_path=page.name)
        sections.setdefault(page.section, []).append(entry)
    first = next(iter(sections.values()))[0]

    def start() -> None:
        named = {name: value for name, value in st.query_params.to_dict().items() if _NAME.fullmatch(name)}
        st.switch_page(first, query_params=named)

    # Streamlit gives the default page the URL "/" and no other; this one hands over, so every page has its own URL.
    sections[PAGES[0].section].append(
        st.Page(start, title="Attention Atlas", url_path="start", default=True, visibility="hidden")
    )
    return sections


def arrive(name: str) -> None:
    """On the first run of a page, what its link says wins over what another page left under the same names."""
    if st.session_state.get("page_shown") == name:
        return
    st.session_state["page_shown"] = name
    for key in [*filter(_NAME.fullmatch, st.query_params), "grid_opened"]:
        st.session_state.pop(key, None)


def show() -> None:
    """Run the page that the URL names."""
    st.set_page_config(page_title="Attention Atlas", page_icon=ICON, layout="wide", initial_sidebar_state=230)
    from pages.parts import people  # it needs this module
    from pages.parts.job_progress import running_indicator  # and so does this

    admitted = False
    with clear_errors():
        admitted = people.admitted()
    chosen = st.navigation(navigation(), position="sidebar" if admitted else "hidden", expanded=True)
    if not admitted:
        return
    with st.sidebar:
        people.who_is_here()
        running_indicator()
    arrive(chosen.url_path)
    from pages.parts.resources import settle  # and this

    try:
        with clear_errors():
            chosen.run()
    finally:  # also when the page stopped early
        settle(chosen.url_path)


if __name__ == "__main__":
    show()
