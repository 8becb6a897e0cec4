"""What every page has: its title and views in one line, the context in another, and the chosen view."""

import importlib

import streamlit as st

from pages.parts.shell import context, links, resources
from pages.parts.shell.page_table import VIEWS_ROOM, View, page_of
from pages.parts.widgets import context_bar


def show_page(name: str) -> None:
    """Draw a page. Only the open view runs, and only its module is imported."""
    page = page_of(name)
    view = links.view_of(page)
    with st.container(horizontal=True, vertical_alignment="center", key="bar"):
        st.title(page.title, width="content", anchor=False)
        links.pick_view(page)
        tools = st.container(horizontal=True, vertical_alignment="center", key="tools")
    if not view.uses:
        context.set_now(context.chosen())
    elif not context_bar.show_bar(view, _second_of(view)):
        return
    if resources.is_importing() and not view.ready:
        with st.spinner("Loading the models ..."):
            resources.wait_for_import()
    importlib.import_module(f"{VIEWS_ROOM}.{view.module}").show(tools)


def _second_of(view: View) -> str | None:
    """Return the second checkpoint of the comparison that a view is about to show."""
    if view.compares is None:
        return None
    from pages.parts.reports.study_view import second_shown  # with Altair, which the first page does without

    context.set_now(context_bar.coming(view))
    return second_shown(*view.compares)
