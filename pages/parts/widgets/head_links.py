"""From a head on one page to the same head on the others."""

import streamlit as st

from core.attention import Head
from core.capture.components import parse_components
from pages.parts.shell.page_table import PAGES_FOLDER

LINKS = {  # page: what its link says, and what the page calls the head; two pages may not bind the same name
    "maps": ("Maps of {}", ":material/grid_on:", "head"),
    "frames": ("Frame relations of {}", ":material/account_tree:", "head"),
    "disable": ("What happens without {}", ":material/block:", "heads"),
    "prune": ("Importance of {}", ":material/content_cut:", "heads"),
}


def asked_heads() -> list[Head]:
    """The heads that the link to this page named, whatever groups they are in."""
    named = parse_components(st.query_params.get("heads", "").replace(";", ","))
    return [component for component in named if isinstance(component, Head)]


def show_links(checkpoint: str, head: Head | str, *, here: str, text: str = "", pair: str = "") -> None:
    """Links to the other pages with this head chosen. here: the page they are on, left out."""
    asked = {"checkpoint": checkpoint, "text": text, "pair": pair}
    asked = {name: value for name, value in asked.items() if value}
    with st.container(horizontal=True):
        for page, (label, icon, name) in LINKS.items():
            if page != here:
                place = PAGES_FOLDER / f"{page}.py"
                st.page_link(place, label=label.format(head), icon=icon, query_params=asked | {name: str(head)})


def pick_and_link(checkpoint: str, heads: list[str], *, here: str, key: str) -> None:
    """The same for a head that is chosen from a list."""
    name = st.selectbox("Go on with a head", heads, index=None, placeholder="a head", key=key, bind="query-params")
    if name:
        show_links(checkpoint, name, here=here)
