"""Links from a head on one page to the same head on other pages."""

from pathlib import Path
from typing import Any

import streamlit as st

from core import config
from core.attention import Head
from core.capture.components import parse_components
from pages.parts.shell import links
from pages.parts.shell.messages import plain

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
                links.link(view, label.format(head), icon=icon, **(parameters | {name: str(head)}))


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
