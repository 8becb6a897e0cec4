"""What every analysing page is about: checkpoint, the one to compare with, rows, a sentence or pair, and a head.

The record stands in the URL and in the session, so that it goes from page to page with the sidebar's links. A field
that nobody chose is None: a view then reads what it starts with (`View.starts`).
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
    """checkpoint: a bundled name, a folder, or a hub id.
    beside: another one to compare it with.
    rows: a task's key, or the path of a file of one's own.
    text, pair: a sentence, and the second one of a pair; pair is "" or None where there is none.
    head: by its name, "L2H3"."""

    checkpoint: str | None = None
    beside: str | None = None
    rows: str | None = None
    text: str | None = None
    pair: str | None = None
    head: str | None = None

    @property
    def pair_or_none(self) -> str | None:
        """The second sentence, None where it is empty."""
        return self.pair if self.pair and self.pair.strip() else None


def chosen() -> Context:
    """What the user chose, on this page or one before."""
    stored: Context = st.session_state.get(_CHOSEN, Context())
    return stored


def now() -> Context:
    """What this view reads: what was chosen, and else what the view starts with."""
    stored: Context = st.session_state.get(_NOW, chosen())
    return stored


def set_now(context: Context) -> None:
    """The view that is about to be drawn reads this."""
    st.session_state[_NOW] = context


def choose(**values: str | None) -> None:
    """Keep what was chosen; None takes a choice back."""
    st.session_state[_CHOSEN] = replace(chosen(), **values)
    st.session_state[_NOW] = replace(now(), **{name: value for name, value in values.items() if value is not None})


def from_link() -> None:
    """What the page's link names wins over what was chosen before."""
    linked = {field.name: st.query_params[field.name] for field in fields(Context) if field.name in st.query_params}
    if "text" in linked:
        linked.setdefault("pair", "")  # a sentence of the link does not go with an older second one
    if linked:
        st.session_state[_CHOSEN] = replace(chosen(), **linked)


def leave() -> None:
    """Remember what the address says of the context at the end of a run."""
    st.session_state[_LEFT] = _addressed()


def came_by_link() -> bool:
    """Whether the address says something else of the context than the run before left there: a link did."""
    return _LEFT in st.session_state and st.session_state[_LEFT] != _addressed()


def _addressed() -> dict[str, str]:
    return {name: st.query_params[name] for name in FIELDS if st.query_params.get(name)}


def forget_for_link() -> None:
    """The user went back: what the address does not name was not chosen then."""
    st.session_state.pop(_CHOSEN, None)
    from_link()


def parameters(context: Context | None = None) -> dict[str, str]:
    """The chosen context as parameters of a link; a sentence too long for one is named by its length alone."""
    parameters = {name: value for name, value in asdict(context or chosen()).items() if value}
    texts = len(parameters.get("text", "")) + len(parameters.get("pair", ""))
    if texts > LINK_CHARACTERS:
        parameters = {name: value for name, value in parameters.items() if name not in ("text", "pair")}
        parameters[CUT] = str(texts)
    return parameters


def heads_named(text: str) -> list[Head]:
    """The heads among components written as people do; none where it cannot be read."""
    try:
        return [component for component in parse_components(text.replace(";", ",")) if isinstance(component, Head)]
    except AtlasError:
        return []


def with_starts(context: Context, starts: Mapping[str, Any]) -> Context:
    """The context with what a view starts with where nothing was chosen; a chosen sentence keeps its own pair."""
    left_out = {"pair"} if context.text is not None else set()
    missing = {name: value for name, value in starts.items() if getattr(context, name) is None and name not in left_out}
    return replace(context, **missing)
