"""The line at the top of every analysing page: the fields of the context that the view uses."""

from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from core import config
from core.errors import AtlasError
from core.models.config_files import all_heads_in, read_config
from core.models.present import model_folder
from core.tasks.glue import TASKS
from pages.parts.shell import context, resources, url
from pages.parts.shell.context import CUT, FIELDS
from pages.parts.shell.messages import plain, short_names
from pages.parts.shell.page_table import View
from pages.parts.widgets import checkpoint_chooser, own_rows, pickers

NO_SECOND = "compare with another model"
SHOWN_SECOND = "compared with "  # the label of NO_SECOND while a result of two models is shown begins so
FIELDS_OF = {
    "input": ("text", "pair"),
    "sentence": ("text",),
    "head in its picture": (),
}  # what a view reads, where it is not one field
USUAL = {"checkpoint": config.ENCODER, "beside": NO_SECOND, "rows": "sst2", "text": "", "pair": "", "head": None}
_SECOND = "_second_named"
_TYPED_ON = "_context_typed_on"
_DEMO = "context_demo_pair"  # whether the second sentence is the one that came with the view's own first


def show_bar(view: View, second: str | None = None) -> bool:
    """Show the context fields that this view uses, and return whether the view can be drawn.

    `second` is the checkpoint of the shown comparison while none is chosen. The view cannot be drawn while its
    checkpoint must be downloaded and none was shown before.
    """
    mode = _mode()
    shown = [name for use in view.uses_in(mode) for name in FIELDS_OF.get(use, (use,))]
    usual: dict[str, Any] = USUAL | view.starts_in(mode) | {"checkpoint": usual_checkpoint(view, mode)}
    usual["second"] = second
    if "checkpoint" in shown and url.goes_along("checkpoint", usual["checkpoint"]):
        st.session_state["checkpoint"] = usual["checkpoint"]
    if "[MASK]" in (context.chosen().text or "") and usual["checkpoint"] == config.CLASSIFIER:
        usual["checkpoint"] = config.ENCODER  # it asks for a word
    with st.container(horizontal=True, vertical_alignment="center", key="context", gap="small"):
        picked = {name: _FIELDS[name](usual) for name in shown}
    # other modes than the first of a view show stored results, which need no weights
    computes = bool({"input", "sentence"} & set(view.uses)) and "mode" not in st.query_params
    with st.container(key="fetch_line"):  # always there, so that what stands below it stays where it is
        reads = {name: checkpoint_chooser.held(picked, name, needs_weights=computes, none=none)
                 for name, none in (("checkpoint", None), ("beside", NO_SECOND)) if name in picked}  # fmt: skip
    for name, read in reads.items():
        if picked[name] == checkpoint_chooser.OTHER:
            picked[name] = read or usual[name]
    st.session_state[resources.NOTES] = {
        picked[name]: st.empty() for name in ("checkpoint", "beside") if picked.get(name, NO_SECOND) != NO_SECOND
    }
    chosen = {name: None if picked[name] == usual[name] else picked[name] for name in shown}
    if chosen.get("text") is not None and "pair" in shown:
        chosen["pair"] = picked["pair"]
    if chosen.get("pair") is not None and chosen.get("text") is None:  # another pair, or none, of the view's sentence
        chosen["text"] = picked["text"]
    context.choose(**chosen)
    starts = {name: value for name, value in usual.items() if name in FIELDS and name != "beside"}
    context.set_now(context.with_starts(replace(context.chosen(), **_named(picked | reads)), starts))
    if not url.went_back():
        url.keep(dict.fromkeys((*shown, CUT)) | _kept_cut(picked) | context.parameters())
    chosen = asdict(context.chosen())
    used = {"pair", *(name for use in view.uses for name in FIELDS_OF.get(use, (use,)))}
    used |= {"head"} if "head in its picture" in view.uses else set()
    unread = [FIELDS[name] for name in FIELDS if chosen[name] and name not in used]
    if unread:
        st.caption(f"The view “{view.title}” does not use the chosen {', '.join(unread)}.")
    return None not in reads.values()


def coming(view: View) -> context.Context:
    """Return the context that the fields of a view are about to hold."""
    starts = view.starts_in(_mode()) | {"checkpoint": usual_checkpoint(view, _mode())}
    held = {name: st.session_state[name] for name in ("checkpoint", "beside", "rows") if not url.asks_link(name)}
    return context.with_starts(replace(context.chosen(), **_named(held)), starts)


def usual_checkpoint(view: View, mode: str | None = None) -> str:
    """Return the default checkpoint of a view in a mode: a real model if there is one and the view has results for
    it."""
    chosen = view.starts_in(mode).get("checkpoint")
    return chosen or (config.ENCODER if view.bundled else config.usual_encoder())


def _mode() -> str | None:
    """Return the mode that the view is about to show; None for its first."""
    in_url = st.query_params.get("mode")
    return in_url if url.went_back() else st.session_state.get("mode", in_url)


def _named(picked: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if value == NO_SECOND or str(value).startswith(SHOWN_SECOND) else value
        for name, value in picked.items()
    }


def _kept_cut(picked: dict[str, Any]) -> dict[str, str]:
    """State that a link left out a long sentence, until one is typed."""
    return {CUT: st.query_params[CUT]} if CUT in st.query_params and not picked.get("text") else {}


# ---------------------------------------------------------------- the fields


def _begin(key: str, usual: Any) -> None:
    """Give a field its value before it is first drawn, or after the user went back."""
    if url.asks_link(key):
        chosen = getattr(context.chosen(), key)
        st.session_state[key] = usual if chosen is None else chosen


def _checkpoint(usual: dict[str, Any]) -> str:
    checkpoint_chooser.take_typed("checkpoint")
    _begin("checkpoint", usual["checkpoint"])
    return checkpoint_chooser.pick("Checkpoint", "checkpoint", usual["checkpoint"],
                                   list(dict.fromkeys([usual["checkpoint"], *pickers.checkpoint_names()])),
                                   width=_width)  # fmt: skip


def _beside(usual: dict[str, Any]) -> str:
    checkpoint_chooser.take_typed("beside")
    _begin("beside", NO_SECOND)
    second = usual["second"]
    called = {} if second is None else {NO_SECOND: SHOWN_SECOND + short_names([second])[second]}
    if st.session_state.get(_SECOND) != second:  # a browser keeps the label of a value that is not set again
        st.session_state["beside"] = _named({"beside": st.session_state["beside"]})["beside"] or NO_SECOND
    st.session_state[_SECOND] = second
    return checkpoint_chooser.pick("Compare with", "beside", NO_SECOND, [NO_SECOND, *pickers.checkpoint_names()],
                                   help="A second checkpoint, which is shown next to the first checkpoint.",
                                   width=_width, called=called)  # fmt: skip


def _rows(usual: dict[str, Any]) -> str:
    _begin("rows", usual["rows"])
    names = list(dict.fromkeys([*TASKS, *own_rows.known_lists(), st.session_state["rows"] or usual["rows"]]))
    task = st.selectbox("Rows", names, key="rows", format_func=pickers.rows_name, accept_new_options=True,
                        help=pickers.TASK_HELP, label_visibility="collapsed", width=150)  # fmt: skip
    own_rows.offer_own_rows(lambda path: st.session_state.update(rows=path), key="rows", bare=True)
    return task or usual["rows"]


def _text(usual: dict[str, Any]) -> str:
    length = st.query_params.get(CUT)
    _begin("text", "" if length else usual["text"])
    if url.asks_link("pair"):
        chosen, demo = (
            context.chosen().pair,
            st.session_state["text"] == usual["text"] and context.chosen().pair is None,
        )
        st.session_state["pair"], st.session_state[_DEMO] = usual["pair"] if demo else chosen or "", demo
    text = st.text_input("Sentence", key="text", placeholder="Type a sentence and press Enter", on_change=_new_text,
                         label_visibility="collapsed", max_chars=None) or ""  # fmt: skip
    if length and not text:
        st.caption(
            f":material/link_off: The sentence was too long for this link ({plain(length)} characters). Paste the "
            "sentence here."
        )
    return text


def _new_text() -> None:
    """Remove the second sentence of the previous pair when a sentence replaces the first."""
    st.session_state[_TYPED_ON] = st.session_state.get("_page_shown")
    if st.session_state.pop(_DEMO, False):
        st.session_state["pair"] = ""


def was_typed(view: str) -> bool:
    """Return whether a sentence was typed on this view since the last run."""
    page_and_view = st.session_state.pop(_TYPED_ON, None)
    return page_and_view is not None and page_and_view[1] == view


def _new_pair() -> None:
    """Restore a sentence that _new_text may have emptied after it was pasted."""
    st.session_state.pop(_DEMO, None)
    st.session_state["pair"] = str(st.session_state["pair"] or "")


def _pair(usual: dict[str, Any]) -> str:
    return st.text_input("Second sentence", key="pair", placeholder="second sentence, optional", width=190,
                         on_change=_new_pair, label_visibility="collapsed") or ""  # fmt: skip


def _head(usual: dict[str, Any]) -> str | None:
    heads = heads_of(st.session_state.get("checkpoint") or usual["checkpoint"])
    _begin("head", usual["head"])
    head_name = st.session_state["head"]
    if head_name and heads and head_name not in heads:
        st.session_state["head"] = usual["head"] if usual["head"] in heads else None
        st.caption(plain(f"This checkpoint has no head {head_name[:20]}."), width="content")
        head_name = st.session_state["head"]
    names = list(dict.fromkeys([*heads, *([head_name] if head_name else [])]))
    chosen: str | None = st.selectbox("Head", names, key="head", index=None, placeholder="a head", width=110,
                                      accept_new_options=not heads, label_visibility="collapsed")  # fmt: skip
    return chosen


_FIELDS: dict[str, Any] = {
    "checkpoint": _checkpoint, "beside": _beside, "rows": _rows, "text": _text, "pair": _pair, "head": _head,
}  # fmt: skip


def _width(name: str) -> int:
    """Return the width in pixels that shows a name in full."""
    return min(330, max(150, 64 + 8 * len(name)))


def heads_of(name: str) -> list[str]:
    """Return the names of the heads of a checkpoint, read from its config; empty if it cannot be read."""
    for folder in filter(config.is_folder, (config.BUNDLED_MODELS / name, Path(name))):
        try:
            folder = folder.expanduser()
            file = (model_folder(folder, name) or folder) / "config.json"
            if file.is_file() and config.within(file):
                return _heads_in(file.parent, file.stat().st_mtime_ns)
        except (OSError, ValueError, RuntimeError, AtlasError):
            continue
    return []


@lru_cache(maxsize=256)
def _heads_in(folder: Path, modified: int) -> list[str]:
    found = read_config(folder, folder.name)
    return [str(head) for head in all_heads_in(found)]
