"""What is around every page: page config, navigation, who may come in. `app.py` serves this file."""

import re

import streamlit as st

from core.store.bodies import collecting
from pages.parts import streamlit_internals
from pages.parts.shell import context, history, navigation, people, style, url, warming
from pages.parts.shell.messages import clear_errors, say_left_out
from pages.parts.shell.page_table import ANNOTATOR, PAGES, PAGES_FOLDER, page_of
from pages.parts.shell.resources import settle
from pages.parts.shell.running import running_indicator

# A parameter that some page may read. Streamlit keeps embed for itself; what the shell remembers begins with "_".
_NAME = re.compile(r"(?!embed)[a-z][a-z0-9_]*")
_PAYLOADS = ("grid_opened", "maps_head", "label_payload", "project_sheet")


def arrive(page: str, view: str) -> None:
    """On the first run of a view, what its link says wins over what another left under the same names.

    So it is when the user goes back or forward in the browser, and when a link of the view leads to itself: to another
    head, say.
    """
    back = history.went_back()
    shown = st.session_state.get("_page_shown")
    if shown == (page, view) and not back:
        if context.came_by_link():
            context.from_link()
            for key in filter(st.query_params.__contains__, context.FIELDS):
                st.session_state.pop(key, None)
        return
    if back:
        context.forget_for_link()
    else:
        context.from_link()
    if shown not in (None, (page, view)):
        url.forget()
    st.session_state["_page_shown"] = (page, view)
    for key in [*filter(_NAME.fullmatch, st.query_params), *_PAYLOADS]:
        st.session_state.pop(key, None)


def show() -> None:
    """Run the page that the URL names."""
    streamlit_internals.refuse_infinite_numbers()
    st.set_page_config(page_title="Attention Atlas", page_icon=style.ICON, layout="wide", initial_sidebar_state=230)
    style.dress()
    admitted = False
    with clear_errors():
        admitted = people.admitted()
    chosen = st.navigation(navigation.streamlit_pages(), position="hidden")
    if not admitted:
        return
    warming.admit()
    page = page_of(chosen.url_path or PAGES[0].name)
    if navigation.labels_alone(page.name) and page.name not in ANNOTATOR:
        st.switch_page(PAGES_FOLDER / f"{next(iter(ANNOTATOR))}.py")
    view = navigation.view_of(page)
    history.count_turn()
    arrive(page.name, view.name)
    with st.sidebar:
        with st.container(key="pages"):
            links = st.empty()
        navigation.show_links(links)
        navigation.offer_all_pages()
        drawn = navigation.shown_links()
        people.who_is_here()
        running_indicator()
        style.watch_window()
    back = history.went_back()
    try:
        with st.container(key="page"), collecting() as left_out:
            place = st.empty()
            with clear_errors():
                chosen.run()
            say_left_out(place, left_out)
        back = False
    finally:  # also when the page stopped early
        if not back:  # what interrupts the run after Back still has fields of before: its address wins as a link's does
            context.leave()
        if navigation.shown_links() != drawn:
            navigation.show_links(links)
        settle(page.name + view.name)


if __name__ == "__main__":
    show()
