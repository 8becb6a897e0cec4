"""Choices that stand in the URL by their own name, whatever the page calls them, and that Back restores.

Streamlit's own `bind="query-params"` writes what is shown, so that a link says "SST-2" for the task sst2, and a page
that renames a choice breaks every link to it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages.parts.frame import history

T = TypeVar("T", bound=str)


def pick(
    widget: Callable[..., Any], label: str, options: Sequence[T], *, key: str, default: T | None = None, **settings: Any
) -> T:
    """One of `options`, in the URL as it stands there; `default` (the first) stays out of the URL.

    widget: `st.selectbox`, `st.segmented_control` or one of a column. settings: others of the widget.
    """
    start = options[0] if default is None else default
    if key not in st.session_state or history.went_back():
        st.session_state[key] = st.query_params.get(key, start)
    if st.session_state[key] not in options and not settings.get("accept_new_options"):
        st.session_state[key] = start
    chosen = widget(label, options, key=key, **settings) or start
    if chosen != start or key in st.query_params:
        history.keep({key: chosen})
    return chosen
