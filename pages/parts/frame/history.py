"""What stands in the URL, and the browser's Back and Forward.

Streamlit pushes an entry for every message that changes the URL, so what changes together is written together; on
Back it runs the page again with the old URL, and what the page kept for itself must give way to it.
"""

from collections.abc import Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx


def went_back() -> bool:
    """Whether this run is because the user went back or forward in the browser."""
    context = get_script_run_ctx()
    return bool(context and getattr(context, "is_history_navigation", False))


def keep(values: Mapping[str, str | None]) -> None:
    """Write these parameters into the URL as one entry of the history; None takes a parameter out."""
    changed = {name: value for name, value in values.items() if value and st.query_params.get(name) != value}
    removed = [name for name, value in values.items() if not value and st.query_params.get(name)]
    if len(removed) == 1 and not changed:
        del st.query_params[removed[0]]
    elif changed or removed:
        st.query_params.update(changed | dict.fromkeys(removed, ""))
