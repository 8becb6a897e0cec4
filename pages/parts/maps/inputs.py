"""Inputs of the maps page: a sentence or pair that is typed, from a sample or from a custom list, and a comparison."""

from typing import NamedTuple

import streamlit as st

from core.atlas import example
from core.attention import PARTS
from core.models.parts import parts_of
from core.tasks.glue import TASKS
from core.tasks.tables import Pasted, read_pasted
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import own_rows, pickers

EXAMPLES = {
    "A pair": (example.TEXT, example.PAIR),
    "A sentence": ("The keys to the old cabinet were on the table.", ""),
    "A pronoun": ("When Mary met her sister, she smiled at her.", ""),
}
ALONE, CHECKPOINT, SENTENCE, EFFECTIVE = "one input", "two checkpoints", "two sentences", "raw, effective"


class Input(NamedTuple):
    """A sentence, and the second sentence of a pair or None."""

    text: str
    pair: str | None

    def __str__(self) -> str:
        return self.text if self.pair is None else f"{self.text} | {self.pair}"


def pick_beside() -> str:
    """Ask what to compare with: ALONE, SENTENCE or EFFECTIVE; a second checkpoint belongs to the context."""
    return url.pick(
        st.selectbox,
        "Compare the maps of",
        [ALONE, SENTENCE, EFFECTIVE],
        key="compare",
    )


def pick_part(name: str | None) -> str:
    """Ask for the stack of an encoder-decoder: encoder, decoder or cross; "" for other models."""
    parts = parts_of(resources.split_revision(name)[0]) if name else ("",)
    if parts == ("",):
        return ""
    return url.pick(
        st.segmented_control, "Heads", parts, key="part", default="cross", required=True, format_func=PARTS.__getitem__,
        label_visibility=
            "collapsed", help="Choose the heads of the encoder, of the decoder, or of cross-attention (from the "
                              "decoder to the source). The decoder reads the second sentence, or the translation "
                              "by the model if there is no second sentence.",
    )  # fmt: skip


def pick_other() -> Input:
    for key in ("text2", "pair2"):
        if url.asks_link(key):
            st.session_state[key] = st.query_params.get(key, "")
    with st.container(horizontal=True):
        text = st.text_input("Second sentence for the comparison", key="text2", label_visibility="collapsed",
                             placeholder="sentence to compare, with as many tokens as the first") or ""  # fmt: skip
        pair = st.text_input("Its second sentence", key="pair2", label_visibility="collapsed",
                             placeholder="second sentence, optional") or ""  # fmt: skip
    if not url.went_back():
        short = len(text) + len(pair) <= context.LINK_CHARACTERS
        url.keep({"text2": text if short else None, "pair2": pair if short else None})
    return Input(text, pair if pair.strip() else None)


def offer_examples() -> None:
    """Offer example sentences if none is typed."""
    st.info("Type a sentence above and press Enter, or start with one of these examples.", icon=":material/edit:")
    for column, (label, chosen) in zip(st.columns(len(EXAMPLES)), EXAMPLES.items(), strict=True):
        column.button(label, on_click=_fill, args=chosen, help=chosen[0], width="stretch")


def pick_row() -> None:
    """Show a popover with bundled examples and a custom list, and step through the list."""
    with st.popover(
        "Rows", icon=":material/list:", help="Choose the sentence from the examples of a task or from your own list."
    ):
        sample_tab, own_tab = st.tabs(["Sample", "Your own"])
        with sample_tab, clear_errors():
            task = st.selectbox("Task", list(TASKS), format_func=pickers.rows_name, key="row_task")
            split = st.segmented_control("Split", ["dev", "train"], default="dev", required=True, key="row_split")
            rows = pickers.task_rows(task, split or "dev", pickers.data_folder())
            number = st.number_input(f"Row, 1 to {len(rows)}", 1, len(rows), key=f"row_number_{task}_{split}")
            row = rows[number - 1]
            st.text(row.text if row.pair is None else f"{row.text}\n{row.pair}")
            st.button("Use this row", on_click=_fill, args=(row.text, row.pair), type="primary", key="row_use")
        with own_tab:
            own_rows.ask_lines("own")
            st.button("Browse these examples", on_click=_take, type="primary", key="own_use")
    if st.session_state.get("_own_inputs"):
        position, count = st.session_state.get("_own_place", 0), len(st.session_state["_own_inputs"])
        st.button("Previous", on_click=_go, args=(position - 1,), key="own_back")
        st.caption(plain(f"{position + 1} of {count}"), width="content")
        st.button("Next", on_click=_go, args=(position + 1,), key="own_on")


# ---------------------------------------------------------------- behind them


def _fill(text: str, pair: str | None) -> None:
    st.session_state["text"], st.session_state["pair"] = text, pair or ""


def _take() -> None:
    if own_rows.is_explained("own"):
        return
    with clear_errors():
        st.session_state["_own_inputs"] = read_pasted(*own_rows.given("own"))
        _go(0)


def _go(position: int) -> None:
    inputs: list[Pasted] = st.session_state["_own_inputs"]
    st.session_state["_own_place"] = position % len(inputs)
    _fill(*inputs[position % len(inputs)])
