"""The sidebar's links, which carry the context from page to page; who only labels sees Label and Codebook alone."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.shell import context, links, people
from pages.parts.shell.page_table import ANNOTATOR, PAGES, PAGES_FOLDER, Page, View

_ALONE = "labels_alone"


def streamlit_pages() -> list:
    """Every page; paths are absolute, so a cold link to any of them opens it. The first is at the app's own address."""
    return [
        st.Page(PAGES_FOLDER / f"{page.name}.py", title=page.title, icon=page.icon, url_path=page.name,
                default=page is PAGES[0])
        for page in PAGES
    ]  # fmt: skip


def labels_alone(arrived_at: str) -> bool:
    """Whether this visitor sees Label and Codebook alone: an annotator by role, or who came by a project's link.

    arrived_at: the page that the address names.
    """
    if _ALONE not in st.session_state:
        by_link = arrived_at == "annotate" and "project" in st.query_params
        st.session_state[_ALONE] = by_link or people.person().role == "annotator"
    labels_alone: bool = st.session_state[_ALONE]
    return labels_alone


def leave_labels() -> None:
    """Show the other pages too, to those whose role has more to do."""
    st.session_state[_ALONE] = False


def views_of(page: Page) -> tuple[View, ...]:
    """The views of a page that this visitor sees."""
    if not st.session_state.get(_ALONE):
        return page.views
    names = ANNOTATOR.get(page.name, ())
    return tuple(view for view in page.views if view.name in names) or page.views[:1]


def view_of(page: Page) -> View:
    """The view that the URL names, of those that this visitor sees; else the first of them."""
    views, view_name = views_of(page), st.query_params.get("view")
    return next((view for view in views if view.name == view_name), views[0])


def pick_view(page: Page) -> None:
    """The views of a page side by side; nothing of a page with one. A click is one entry of the browser's history."""
    views, key = views_of(page), f"views_{page.name}"
    if len(views) < 2:
        return
    st.session_state[key] = view_of(page).name
    st.segmented_control("View", [view.name for view in views], key=key, required=True, on_change=_open,
                         args=(page, key),
                         format_func={view.name: view.title for view in views}.__getitem__,
                         label_visibility="collapsed", width="content")  # fmt: skip


def _open(page: Page, key: str) -> None:
    st.query_params.from_dict(links.query_of(page.name, st.session_state[key]))


def show_links(container: DeltaGenerator) -> None:
    """The pages that this visitor sees, each with the chosen context."""
    labels_alone = st.session_state.get(_ALONE)
    with container.container(gap=None):
        for page in PAGES:
            if not labels_alone or page.name in ANNOTATOR:
                links.link(page.name)


def offer_all_pages() -> None:
    """For who came by a project's link and may do more than label."""
    if st.session_state.get(_ALONE) and people.person().role != "annotator":
        st.button("All pages", icon=":material/apps:", type="tertiary", on_click=leave_labels, key="all_pages")


def shown_links() -> tuple[object, ...]:
    """What the links say now; another answer asks for drawing them again."""
    return st.session_state.get(_ALONE), tuple(context.parameters().items())
