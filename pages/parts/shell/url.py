"""The URL of a page: parameters, Back and Forward, and widgets whose values are in the URL under a stable name.

Streamlit adds a history entry for every message that changes the URL, so related changes are written together. After
Back, the page runs again with the old URL, which must override the state of the page.

`bind="query-params"` of Streamlit writes what is shown ("SST-2" for the task sst2), so that renaming a choice breaks
links, and it replaces the history entry, so that Back leaves the page. It is used for typed values: numbers, words,
options.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages.parts.streamlit_internals import drawn, went_back

_TURNS, _ASKED = "_history_turns", "_history_asked"


def keyed(name: str) -> str:
    """Return a key for a widget with its own state, which is reset when the user goes back or forward."""
    turns = st.session_state.get(_TURNS, 0)
    return f"{name}_{turns}" if turns else name


def count_turn() -> None:
    """Count a navigation; called once per run, before any call of `keyed`."""
    if went_back():
        st.session_state[_TURNS] = st.session_state.get(_TURNS, 0) + 1
        st.session_state[_ASKED] = {name: "\n".join(st.query_params.get_all(name)) for name in st.query_params}


def last_turn() -> dict[str, Any]:
    """Return the number of the last Back or Forward with the requested parameters; {} before the first.

    Components with state in the browser use it to detect that the page has answered.
    """
    turns = st.session_state.get(_TURNS, 0)
    return {"turn": turns, "asked": st.session_state.get(_ASKED, {})} if turns else {}


def keep(values: Mapping[str, str | Sequence[str] | None]) -> None:
    """Write parameters into the URL as one history entry; None removes a parameter, and several values are repeated."""
    changed = {
        name: value
        for name, value in values.items()
        if value and (st.query_params.get(name) if isinstance(value, str) else st.query_params.get_all(name)) != value
    }
    removed = [name for name, value in values.items() if not value and st.query_params.get(name)]
    if len(removed) == 1 and not changed:
        del st.query_params[removed[0]]
    elif changed or removed:
        st.query_params.update(changed | dict.fromkeys(removed, ""))


# ---------------------------------------------------------------- widgets with values in the URL


T = TypeVar("T", bound=str)
NOTHING = "none"  # what the URL says where nothing is chosen and usually something is
_KEYS, _USUAL = "_bound_keys", "_bound_usual"


def asks_link(key: str) -> bool:
    """Return whether a choice must be read from the URL: nothing is chosen on this page yet, or the user went back.

    What the browser has not drawn yet is sent again, because the code of a field may arrive after the next run, whose
    message has no value; the empty field would then count as a choice.
    """
    st.session_state.setdefault(_KEYS, set()).add(key)
    if key not in st.session_state or went_back():
        return True
    if not drawn(key):
        st.session_state[key] = st.session_state[key]  # a value that is set goes along with the field
    return False


def number_of(text: str) -> int | None:
    """Return a nonnegative whole number from the URL; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def forget() -> None:
    """Remove the choices of the previous page, because widgets with equal names on different pages are different."""
    for key in st.session_state.pop(_KEYS, ()):
        st.session_state.pop(key, None)
    st.session_state.pop(_USUAL, None)


def goes_along(key: str, usual: T | list[T]) -> bool:
    """Return whether a choice was left at its default and the default has changed, so that the choice follows."""
    usual_choices: dict[str, T | list[T]] = st.session_state.setdefault(_USUAL, {})
    before, usual_choices[key] = usual_choices.get(key, usual), usual
    return before != usual and st.session_state.get(key) == before


def _named(options: Sequence[T] | Mapping[T, str], settings: dict[str, Any]) -> tuple[Sequence[T], dict[str, Any]]:
    """Return the options in order, and widget settings with their labels."""
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
    """Ask for one of `options`, which is stored in the URL unless it is the `default` (the first).

    `options` may map values to labels. `widget` is `st.selectbox`, `st.segmented_control` or that of a column, and
    `settings` are its other arguments.
    """
    options, settings = _named(options, settings)
    start = options[0] if default is None else default
    follows = goes_along(key, start)
    if asks_link(key):
        st.session_state[key] = st.query_params.get(key, start)
    elif follows:
        st.session_state[key] = start
    if st.session_state[key] not in options and not settings.get("accept_new_options"):
        st.session_state[key] = start
    chosen = widget(label, options, key=key, **settings) or start
    if chosen != start or key in st.query_params:
        keep({key: chosen})
    return chosen


def pick_mode(names: Sequence[T], label: str = "What is shown", *, default: T | None = None) -> T:
    """Ask which part of a view is shown, by names in a row; in the URL as "mode"."""
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
    """Ask for some of `options`, which are stored in the URL one after another, unless they are the `default`.

    Arguments as in `pick`, with `st.multiselect`.
    """
    options, settings = _named(options, settings)
    usual = list(default)
    follows = goes_along(key, usual)
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
    keep({key: None if chosen == usual else chosen or NOTHING})
    return chosen


def switch(widget: Callable[..., Any], label: str, *, key: str, default: bool = False, **settings: Any) -> bool:
    """Show a toggle; a value other than `default` is stored in the URL as "true" or "false"."""
    if asks_link(key):
        st.session_state[key] = {"true": True, "false": False}.get(st.query_params.get(key, ""), default)
    on = bool(widget(label, key=key, **settings))
    keep({key: None if on == default else str(on).lower()})
    return on
