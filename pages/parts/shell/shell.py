"""What surrounds every page: page config, navigation, access. `app.py` serves this file."""

import re
from pathlib import Path

import streamlit as st

from core.errors import AtlasError
from core.jobs import api
from core.store.bodies import collecting
from pages.parts import streamlit_internals
from pages.parts.shell import context, links, people, resources, url, warming
from pages.parts.shell.messages import clear_errors, counted, say_left_out
from pages.parts.shell.page_table import ANNOTATOR, PAGES, PAGES_FOLDER, page_of
from pages.parts.shell.resources import settle

# A parameter that some page may read. Streamlit keeps embed for itself; what the shell remembers begins with "_".
_NAME = re.compile(r"(?!embed)[a-z][a-z0-9_]*")
_PAYLOADS = ("grid_opened", "maps_head", "label_payload", "project_sheet")


def arrive(page: str, view: str) -> None:
    """On the first run of a view, let the values in its link override the state of widgets with the same names.

    The same applies after Back or Forward, and when a link of the view leads to the view itself.
    """
    back = url.went_back()
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
    streamlit_internals.refuse_infinite_numbers()
    st.set_page_config(page_title="Attention Atlas", page_icon=ICON, layout="wide", initial_sidebar_state=230)
    dress()
    admitted = False
    with clear_errors():
        admitted = people.admitted()
    chosen = st.navigation(links.streamlit_pages(), position="hidden")
    if not admitted:
        return
    warming.admit()
    page = page_of(chosen.url_path or PAGES[0].name)
    if links.labels_alone(page.name) and page.name not in ANNOTATOR:
        st.switch_page(PAGES_FOLDER / f"{next(iter(ANNOTATOR))}.py")
    view = links.view_of(page)
    url.count_turn()
    arrive(page.name, view.name)
    with st.sidebar:
        with st.container(key="pages"):
            place_of_links = st.empty()
        links.show_pages(place_of_links)
        links.offer_all_pages()
        drawn = links.shown_pages()
        people.who_is_here()
        running_indicator()
        watch_window()
    back = url.went_back()
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
        if links.shown_pages() != drawn:
            links.show_pages(place_of_links)
        settle(page.name + view.name)


# ---------------------------------------------------------------- running jobs


def running_indicator() -> None:
    """Show "2 jobs running" in the sidebar with a link to the Jobs page, if any job runs."""
    try:
        count = api.running_count(resources.database())
    except AtlasError:
        return  # pages that need the database say what is wrong with it, once
    if count:
        st.fragment(_indicator, run_every=3.0)()


def _indicator() -> None:
    with clear_errors():
        count = api.running_count(resources.database())
        if not count:
            st.rerun()
        label = f"{counted(count, 'jobs')} running"
        links.link("results/jobs", label, icon=":material/progress_activity:")


# ---------------------------------------------------------------- style


FRAME = Path(__file__).resolve().parent
ICON = str(FRAME / "icon.png")  # a file: named icons are fetched from the network
_STYLE = f"<style>{(FRAME / 'page.css').read_text(encoding='utf-8')}</style>"
_window = st.components.v2.component(
    "atlas_window", js=(FRAME / "sidebar.js").read_text(encoding="utf-8"), html="<span></span>\n"
)


def dress() -> None:
    st.html(_STYLE)
    st.logo(ICON, size="large")


def watch_window() -> None:
    """Collapse the sidebar in a narrow window, once the browser reports that a page is shown.

    It reports to the route `painted` and not to this script, because a component message together with typed text would
    be delivered to its own fragment only.
    """
    _window(key="window", data=None, height=1)


if __name__ == "__main__":
    show()
