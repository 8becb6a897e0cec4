"""Links between pages, which carry the context: in text, from a head, in the sidebar, and between views of a page."""

from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import config
from core.attention import Head
from core.capture.components import parse_components
from pages.parts.shell import context, people
from pages.parts.shell.messages import plain
from pages.parts.shell.page_table import ANNOTATOR, PAGES, PAGES_FOLDER, Page, View, page_of


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


# ---------------------------------------------------------------- from a head to the same head on other pages


LINKS = {  # view: what its link says, and what the view calls the head
    "heads/one": ("All about {}", ":material/pin_drop:", "head"),
    "maps": ("Maps of {}", ":material/grid_on:", "head"),
    "linguistics/frames": ("Frame relations of {}", ":material/account_tree:", "head"),
    "interventions": ("What happens without {}", ":material/block:", "heads"),
    "interventions/pruning": ("Importance of {}", ":material/content_cut:", "heads"),
}


def asked_heads() -> list[Head]:
    """Return the heads that the link to this page named."""
    components = parse_components(st.query_params.get("heads", "").replace(";", ","))
    return [component for component in components if isinstance(component, Head)]


def show_links(checkpoint: str, head: Head | str, *, current_view: str, text: str = "", pair: str = "") -> None:
    """Show links to other views with this head chosen, except to `current_view`."""
    if say_missing(checkpoint):
        return
    parameters: dict[str, Any] = {"checkpoint": checkpoint, "text": text, "pair": pair, "head": str(head)}
    with st.container(horizontal=True):
        for view, (label, icon, name) in LINKS.items():
            if view != current_view:
                link(view, label.format(head), icon=icon, **(parameters | {name: str(head)}))


def say_missing(checkpoint: str) -> bool:
    """Return whether a checkpoint is missing, and show a message if it is."""
    if missing := is_missing(checkpoint):
        command = config.how_to_install(checkpoint)
        how = f" To install it, run {command} and restart the app." if command else ""
        name = Path(checkpoint).name
        st.caption(plain(f"The checkpoint {name} is not on this machine, so only stored results can be shown.{how}"))
    return missing


def is_missing(checkpoint: str) -> bool:
    """Return whether a checkpoint is a missing folder or package."""
    if config.how_to_install(checkpoint):
        return True
    return checkpoint.count("/") > 1 and not (
        config.is_folder(checkpoint) or config.is_folder(config.PROJECT / checkpoint)
    )


def pick_and_link(checkpoint: str, heads: list[str], *, current_view: str, key: str) -> None:
    """Show the same for a head that is chosen from a list."""
    name = st.selectbox(
        "Continue with a head from this result", heads, index=None, placeholder="a head", key=key, bind="query-params"
    )
    if name:
        show_links(checkpoint, name, current_view=current_view)


# ---------------------------------------------------------------- pages and views that a visitor sees


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
    st.query_params.from_dict(query_of(page.name, st.session_state[key]))


def show_pages(container: DeltaGenerator) -> None:
    """Show links to the pages that this visitor sees, with the chosen context."""
    labels_alone = st.session_state.get(_ALONE)
    with container.container(gap=None):
        for page in PAGES:
            if not labels_alone or page.name in ANNOTATOR:
                link(page.name)


def offer_all_pages() -> None:
    """Offer all pages to visitors of a project link who may do more than label."""
    if st.session_state.get(_ALONE) and people.person().role != "annotator":
        st.button("All pages", icon=":material/apps:", type="tertiary", on_click=leave_labels, key="all_pages")


def shown_pages() -> tuple[object, ...]:
    """Return the content of the links; if it changes, they must be drawn again."""
    return st.session_state.get(_ALONE), tuple(context.parameters().items())
