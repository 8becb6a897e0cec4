"""Choices that stand in the URL by their own name, whatever the page calls them, and that Back restores.

Streamlit's own `bind="query-params"` writes what is shown, so that a link says "SST-2" for the task sst2, and a page
that renames a choice breaks every link to it; and it replaces the entry of the history, so that Back leaves the page.
It is for what is typed: numbers, words, options of a job.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages.parts.shell import history
from pages.parts.streamlit_internals import drawn

T = TypeVar("T", bound=str)
NOTHING = "none"  # what the URL says where nothing is chosen and usually something is
_KEYS, _USUAL = "_bound_keys", "_bound_usual"


def asks_link(key: str) -> bool:
    """Whether a choice is to be what the URL says: nothing is chosen on this page yet, or the user went back.

    What the browser has not drawn yet is said to it again: the code of a field comes by itself, on a slow line after
    the next run, whose message names no value; the field would begin empty, and its emptiness would be a choice.
    """
    st.session_state.setdefault(_KEYS, set()).add(key)
    if key not in st.session_state or history.went_back():
        return True
    if not drawn(key):
        st.session_state[key] = st.session_state[key]  # a value that is set goes along with the field
    return False


def number_of(text: str) -> int | None:
    """A whole number in an address, from 0; None for anything else, also for digits without end."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def forget() -> None:
    """Choices of the page before: a widget of the same name on another page is another widget."""
    for key in st.session_state.pop(_KEYS, ()):
        st.session_state.pop(key, None)
    st.session_state.pop(_USUAL, None)


def _goes_along(key: str, usual: T | list[T]) -> bool:
    """Whether a choice was left at what was usual, and something else is now (other rows were chosen): it follows."""
    usual_choices: dict[str, T | list[T]] = st.session_state.setdefault(_USUAL, {})
    before, usual_choices[key] = usual_choices.get(key, usual), usual
    return before != usual and st.session_state.get(key) == before


def _named(options: Sequence[T] | Mapping[T, str], settings: dict[str, Any]) -> tuple[Sequence[T], dict[str, Any]]:
    """The options one after another, and the settings with what each is called."""
    if isinstance(options, Mapping):
        return list(options), settings | {"format_func": options.__getitem__}
    return options, settings


def pick(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[T] | Mapping[T, str],
    *,
    key: str,
    default: T | None = None,
    **settings: Any,
) -> T:
    """One of `options`, in the URL as it stands there; `default` (the first) stays out of the URL.

    options: or what the page calls each. widget: `st.selectbox`, `st.segmented_control` or one of a column. settings:
    others of the widget.
    """
    options, settings = _named(options, settings)
    start = options[0] if default is None else default
    follows = _goes_along(key, start)
    if asks_link(key):
        st.session_state[key] = st.query_params.get(key, start)
    elif follows:
        st.session_state[key] = start
    if st.session_state[key] not in options and not settings.get("accept_new_options"):
        st.session_state[key] = start
    chosen = widget(label, options, key=key, **settings) or start
    if chosen != start or key in st.query_params:
        history.keep({key: chosen})
    return chosen


def pick_mode(names: Sequence[T], label: str = "What is shown", *, default: T | None = None) -> T:
    """Which part of a view is shown: the names in a row, without the label; in the URL as "mode"."""
    return pick(
        st.segmented_control, label, names, key="mode", default=default, required=True, label_visibility="collapsed"
    )


def pick_many(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[T] | Mapping[T, str],
    *,
    key: str,
    default: Sequence[T] = (),
    **settings: Any,
) -> list[T]:
    """Some of `options`, in the URL one after another; `default` stays out of the URL.

    options: or what the page calls each. widget: `st.multiselect` or one of a column. settings: others of the widget.
    """
    options, settings = _named(options, settings)
    usual = list(default)
    follows = _goes_along(key, usual)
    if asks_link(key):
        linked = [name for name in st.query_params.get_all(key) if name]
        st.session_state[key] = [name for name in linked if name != NOTHING] if linked else usual
    elif follows:
        st.session_state[key] = usual
    if settings.get("accept_new_options"):
        options = list(dict.fromkeys([*options, *st.session_state[key]]))
    else:
        st.session_state[key] = [name for name in st.session_state[key] if name in options]
    chosen: list[T] = widget(label, options, key=key, **settings)
    history.keep({key: None if chosen == usual else chosen or NOTHING})
    return chosen


def switch(widget: Callable[..., Any], label: str, *, key: str, default: bool = False, **settings: Any) -> bool:
    """A toggle that changes what is seen: where it is not `default` it stands in the URL, as "true" or "false".

    widget: `st.toggle` or one of a column. settings: others of the widget.
    """
    if asks_link(key):
        st.session_state[key] = {"true": True, "false": False}.get(st.query_params.get(key, ""), default)
    on = bool(widget(label, key=key, **settings))
    history.keep({key: None if on == default else str(on).lower()})
    return on
