"""The frame around every page: page config, navigation, who may come in. `app.py` serves this file."""

import re

import streamlit as st

from pages.parts.shell import bound, history, loading, people, style, warming
from pages.parts.shell.messages import clear_errors
from pages.parts.shell.page_table import PAGES, PAGES_FOLDER
from pages.parts.shell.resources import settle
from pages.parts.shell.running import running_indicator

READY = ("atlas", "head", "label")  # pages that stand without a model, so they need not wait for one
_NAME = re.compile(r"(?!embed)[a-z][a-z0-9_]*")  # a parameter that some page may read; Streamlit keeps embed for itself


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
    """On the first run of a page, what its link says wins over what another page left under the same names.

    So it is when the user goes back or forward in the browser.
    """
    if st.session_state.get("page_shown") == name and not history.went_back():
        return
    if st.session_state.get("page_shown") not in (None, name):
        bound.forget()
    st.session_state["page_shown"] = name
    for key in [*filter(_NAME.fullmatch, st.query_params), "grid_opened", "label_payload", "project_sheet"]:
        st.session_state.pop(key, None)


def show() -> None:
    """Run the page that the URL names."""
    st.set_page_config(page_title="Attention Atlas", page_icon=style.ICON, layout="wide", initial_sidebar_state=230)
    style.dress()
    admitted = False
    with clear_errors():
        admitted = people.admitted()
    chosen = st.navigation(navigation(), position="sidebar" if admitted else "hidden", expanded=True)
    if not admitted:
        return
    warming.admit()
    with st.sidebar:
        people.who_is_here()
        running_indicator()
        style.watch_window()
    history.count_turn()
    arrive(chosen.url_path)
    if loading.busy() and chosen.url_path not in READY:
        with st.spinner("Loading the models ..."):
            loading.wait()
    try:
        with clear_errors():
            chosen.run()
    finally:  # also when the page stopped early
        settle(chosen.url_path)


if __name__ == "__main__":
    show()
