"""Attention maps: every head of one or two checkpoints on one sentence or pair."""

import io
from datetime import date

import numpy as np
import streamlit as st

from pages.parts import pickers
from pages.parts.frame import resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.head_links import show_links
from pages.parts.maps import maps_grid

EXAMPLES = {
    "A sentence": ("The keys to the old cabinet were on the table.", ""),
    "A pair": ("The company said profits rose sharply.", "Profits went up, the company reported."),
    "A pronoun": ("When Mary met her sister, she smiled at her.", ""),
}


def try_example(text: str, pair: str) -> None:
    """Fill the fields, before the page runs again."""
    st.session_state["text"], st.session_state["pair"] = text, pair


def weights_file(shown: resources.Shown) -> bytes:
    """The NPZ that `python -m core maps` writes as well."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        weights=shown.maps.weights,
        tokens=np.array(shown.maps.tokens, dtype=np.str_),
        segments=np.array(shown.maps.segments),
    )
    return file.getvalue()


def show_checkpoint(name: str, text: str, pair: str | None, words: bool, key: str) -> None:
    """The grid of one checkpoint, what was cut, the caption, and the weights as a file."""
    shown = resources.shown(name, text, pair, words=words)
    maps, encoding = shown.maps, shown.encoding
    if encoding.cut:
        st.warning(
            f"The input is longer than {len(encoding)} pieces, the most that is shown for this checkpoint: the "
            f"last {encoding.cut} were cut. Shorten the text to see all of it.",
            icon=":material/content_cut:",
        )
    st.markdown(f"**{plain(name)}**")
    said = text if pair is None else f"{text} | {pair}"
    view = maps_grid.show_grid(shown, name=name, caption=said[:200], opened=maps_grid.opened_view(), key=f"grid_{key}")
    if view:
        maps_grid.keep_view(view)
    if head := (view or maps_grid.opened_view()).get("head"):
        show_links(name, head, here="maps", text=text, pair=pair or "")
    kind = "decoder, a query sees only keys up to itself" if maps.causal else "encoder, a query sees every key"
    st.caption(
        f"{plain(name)} · {maps.layers} layers of {maps.heads} heads · {len(maps)} {'words' if words else 'pieces'}"
        f" · {kind} · n = 1 input · {date.today():%d %B %Y} · L1H1 is the first head of the first layer"
    )
    st.download_button(
        "Weights (NPZ)",
        lambda: weights_file(shown),
        file_name="maps.npz",
        on_click="ignore",
        icon=":material/download:",
        key=f"npz_{key}",
        help="weights [layer, head, query, key] and tokens",
    )


st.title("Attention maps")
left, right = st.columns(2)
with left:
    first = pickers.pick_checkpoint()
    text = pickers.pick_text(placeholder="Type a sentence and press Enter")
with right:
    second = pickers.pick_checkpoint("Beside it", key="beside", none="no second checkpoint")
    pair = pickers.pick_text("Second sentence", key="pair", placeholder="optional")
with st.container(horizontal=True):
    unit = st.segmented_control(
        "Tokens",
        ["pieces", "words"],
        default="pieces",
        required=True,
        key="unit",
        bind="query-params",
        label_visibility="collapsed",
    )
    kind = st.segmented_control(
        "Weights",
        ["raw", "raw and effective"],
        default="raw",
        required=True,
        key="weights",
        bind="query-params",
        label_visibility="collapsed",
        help="Effective attention: what is left of a map when the part that cannot reach the output is taken away",
    )
    pickers.pick_task_row()

if not text.strip():
    st.info(
        "Type a sentence above and press Enter, take a row of a sample, or start with one of these.",
        icon=":material/edit:",
    )
    for place, (label, example) in zip(st.columns(len(EXAMPLES)), EXAMPLES.items(), strict=True):
        place.button(label, on_click=try_example, args=example, help=example[0], width="stretch")
    st.stop()

chosen = [name for name in (first, second) if name]
if not chosen:
    st.info("Choose a checkpoint above.", icon=":material/arrow_upward:")
second_text = pair if pair.strip() else None
if kind == "raw and effective":
    from pages.parts.maps import effective  # it needs more than this page does as it opens

    for name in chosen:
        with clear_errors():
            effective.show_effective(name, text, second_text)
    st.stop()
for number, (place, name) in enumerate(zip(st.columns(max(1, len(chosen))), chosen, strict=False)):
    with place, clear_errors():
        show_checkpoint(name, text, second_text, unit == "words", key=str(number))
