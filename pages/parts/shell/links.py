"""Links between pages, which carry the context."""

from typing import Any

import streamlit as st

from pages.parts.shell import context
from pages.parts.shell.messages import plain
from pages.parts.shell.page_table import PAGES_FOLDER, page_of


def query_of(page: str, view: str | None = None, **parameters: str | None) -> dict[str, str]:
    """Return the parameters of a link: the view, the chosen context, and overriding parameters."""
    chosen = context.parameters()
    if parameters.get("text"):  # a sentence of the link does not go with an older second one
        chosen = {name: value for name, value in chosen.items() if name not in ("pair", context.CUT)}
    first = page_of(page).views[0].name
    view_parameter = {"view": view} if view and view != first else {}
    return view_parameter | chosen | {name: value for name, value in parameters.items() if value}


def link(
    target: str,
    label: str | None = None,
    *,
    icon: str | None = None,
    help: str | None = None,
    bold: bool = False,
    **parameters: Any,
) -> None:
    """Show a link to "page" or "page/view", by default with the title and icon of the page."""
    page, _, view = target.partition("/")
    table = page_of(page)
    shown = table.view(view).title if view else table.title
    shown = plain(label) if label else shown
    shown = f"**{shown}**" if bold else shown
    st.page_link(PAGES_FOLDER / f"{page}.py", label=shown, icon=icon or table.icon, help=help,
                 query_params=query_of(page, view or None, **parameters))  # fmt: skip


def go(target: str, **parameters: str | None) -> None:
    page, _, view = target.partition("/")
    st.switch_page(PAGES_FOLDER / f"{page}.py", query_params=query_of(page, view or None, **parameters))
