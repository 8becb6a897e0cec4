"""From a head on one page to the same head on the others."""

import streamlit as st

from core.attention import Head
from core.capture.components import parse_components
from pages.parts.shell import links

LINKS = {  # view: what its link says, and what the view calls the head
    "heads/one": ("All about {}", ":material/pin_drop:", "head"),
    "maps": ("Maps of {}", ":material/grid_on:", "head"),
    "linguistics/frames": ("Frame relations of {}", ":material/account_tree:", "head"),
    "interventions": ("What happens without {}", ":material/block:", "heads"),
    "interventions/pruning": ("Importance of {}", ":material/content_cut:", "heads"),
}


def asked_heads() -> list[Head]:
    """The heads that the link to this page named, whatever groups they are in."""
    named = parse_components(st.query_params.get("heads", "").replace(";", ","))
    return [component for component in named if isinstance(component, Head)]


def show_links(checkpoint: str, head: Head | str, *, here: str, text: str = "", pair: str = "") -> None:
    """Links to other views with this head chosen. here: the view they are on, left out."""
    asked = {"checkpoint": checkpoint, "text": text, "pair": pair, "head": str(head)}
    with st.container(horizontal=True):
        for view, (label, icon, name) in LINKS.items():
            if view != here:
                links.link(view, label.format(head), icon=icon, **(asked | {name: str(head)}))


def pick_and_link(checkpoint: str, heads: list[str], *, here: str, key: str) -> None:
    """The same for a head that is chosen from a list."""
    name = st.selectbox("Go on with a head", heads, index=None, placeholder="a head", key=key, bind="query-params")
    if name:
        show_links(checkpoint, name, here=here)
