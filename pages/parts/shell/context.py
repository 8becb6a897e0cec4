"""The context of all analysing pages: checkpoint, comparison, examples, a sentence or pair, and a head.

It is stored in the URL and in the session, so that it follows the links of the sidebar. A field that was not chosen is
None; a view then uses its default (`View.starts`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import streamlit as st

from core.attention import Head
from core.capture.components import parse_components
from core.errors import AtlasError

LINK_CHARACTERS = 1500  # a longer text stays out of the URL, where servers and mail programs would cut it
CUT = "cut"  # the URL's word for how long a sentence was that it could not hold
FIELDS = {
    "checkpoint": "checkpoint",
    "beside": "comparison",
    "rows": "rows",
    "text": "sentence",
    "pair": "second sentence",
    "head": "head",
}
_CHOSEN, _NOW, _LEFT = "_context_chosen", "_context_now", "_context_left"


@dataclass(frozen=True)
class Context:
    """checkpoint: a bundled name, a folder, or a hub ID. beside: another checkpoint to compare with. rows: key of a
    task, or path of a custom file. text, pair: a sentence, and the second sentence of a pair; pair is "" or None
    without one. head: name of a head, such as "L2H3"."""

    checkpoint: str | None = None
    beside: str | None = None
    rows: str | None = None
    text: str | None = None
    pair: str | None = None
    head: str | None = None

    @property
    def pair_or_none(self) -> str | None:
        """Return the second sentence, or None if it is empty."""
        return self.pair if self.pair and self.pair.strip() else None


def chosen() -> Context:
    """Return what the user has chosen, on this page or an earlier one."""
    stored: Context = st.session_state.get(_CHOSEN, Context())
    return stored


def now() -> Context:
    """Return the context of this view: the user's choices and otherwise the defaults of the view."""
    stored: Context = st.session_state.get(_NOW, chosen())
    return stored


def set_now(context: Context) -> None:
    """Set the context of the view that is about to be drawn."""
    st.session_state[_NOW] = context


def choose(**values: str | None) -> None:
    """Store choices; None removes a choice."""
    st.session_state[_CHOSEN] = replace(chosen(), **values)
    st.session_state[_NOW] = replace(now(), **{name: value for name, value in values.items() if value is not None})


def from_link() -> None:
    """Let the values in the link override earlier choices."""
    linked = {field.name: st.query_params[field.name] for field in fields(Context) if field.name in st.query_params}
    if "text" in linked:
        linked.setdefault("pair", "")  # a sentence of the link does not go with an older second one
    if linked:
        st.session_state[_CHOSEN] = replace(chosen(), **linked)


def leave() -> None:
    """Remember the context in the URL at the end of a run."""
    st.session_state[_LEFT] = _addressed()


def came_by_link() -> bool:
    """Return whether a link changed the context in the URL since the last run."""
    return _LEFT in st.session_state and st.session_state[_LEFT] != _addressed()


def _addressed() -> dict[str, str]:
    return {name: st.query_params[name] for name in FIELDS if st.query_params.get(name)}


def forget_for_link() -> None:
    """After the user went back, remove choices that the URL does not have."""
    st.session_state.pop(_CHOSEN, None)
    from_link()


def parameters(context: Context | None = None) -> dict[str, str]:
    """Return the chosen context as parameters of a link; a long sentence is replaced by its length."""
    parameters = {name: value for name, value in asdict(context or chosen()).items() if value}
    texts = len(parameters.get("text", "")) + len(parameters.get("pair", ""))
    if texts > LINK_CHARACTERS:
        parameters = {name: value for name, value in parameters.items() if name not in ("text", "pair")}
        parameters[CUT] = str(texts)
    return parameters


def heads_named(text: str) -> list[Head]:
    """Return the heads among components that a user typed; empty if they cannot be parsed."""
    try:
        return [component for component in parse_components(text.replace(";", ",")) if isinstance(component, Head)]
    except AtlasError:
        return []


def with_starts(context: Context, starts: Mapping[str, Any]) -> Context:
    """Return the context with the defaults of a view; a chosen sentence keeps its own pair."""
    left_out = {"pair"} if context.text is not None else set()
    missing = {name: value for name, value in starts.items() if getattr(context, name) is None and name not in left_out}
    return replace(context, **missing)
