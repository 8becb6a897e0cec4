"""The links of the sidebar, which carry the context; annotators see only Label and Codebook."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.shell import context, links, people
from pages.parts.shell.page_table import ANNOTATOR, PAGES, PAGES_FOLDER, Page, View

_ALONE = "labels_alone"


def streamlit_pages() -> list:
    """Return all pages with absolute paths, so that a link opens any of them. The first page has the address of the
    app."""
    return [
        st.Page(PAGES_FOLDER / f"{page.name}.py", title=page.title, icon=page.icon, url_path=page.name,
                default=page is PAGES[0])
        for page in PAGES
    ]  # fmt: skip


def labels_alone(arrived_at: str) -> bool:
    """Return whether this visitor sees only Label and Codebook: an annotator by role, or a visitor of a project link.

    `arrived_at` is the page in the URL.
    """
    if _ALONE not in st.session_state:
        by_link = arrived_at == "annotate" and "project" in st.query_params
        st.session_state[_ALONE] = by_link or people.person().role == "annotator"
    labels_alone: bool = st.session_state[_ALONE]
    return labels_alone


def leave_labels() -> None:
    """Show the other pages to visitors whose role allows more than labelling."""
    st.session_state[_ALONE] = False


def views_of(page: Page) -> tuple[View, ...]:
    """Return the views of a page that this visitor sees."""
    if not st.session_state.get(_ALONE):
        return page.views
    names = ANNOTATOR.get(page.name, ())
    return tuple(view for view in page.views if view.name in names) or page.views[:1]


def view_of(page: Page) -> View:
    """Return the view in the URL if this visitor sees it, otherwise the first view."""
    views, view_name = views_of(page), st.query_params.get("view")
    return next((view for view in views if view.name == view_name), views[0])


def pick_view(page: Page) -> None:
    """Show the views of a page side by side (nothing for one view). A click is one history entry."""
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
    """Show links to the pages that this visitor sees, with the chosen context."""
    labels_alone = st.session_state.get(_ALONE)
    with container.container(gap=None):
        for page in PAGES:
            if not labels_alone or page.name in ANNOTATOR:
                links.link(page.name)


def offer_all_pages() -> None:
    """Offer all pages to visitors of a project link who may do more than label."""
    if st.session_state.get(_ALONE) and people.person().role != "annotator":
        st.button("All pages", icon=":material/apps:", type="tertiary", on_click=leave_labels, key="all_pages")


def shown_links() -> tuple[object, ...]:
    """Return the content of the links; if it changes, they must be drawn again."""
    return st.session_state.get(_ALONE), tuple(context.parameters().items())
