"""Attention maps: every head of a checkpoint on one sentence or pair, alone or in comparison."""

import io
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import findings
from core.atlas import example
from core.attention import PARTS, Head
from core.drawing.page import MapsSource, grid_of, maps_page
from core.drawing.panes import Pane, telling_head, usual_scale
from core.drawing.payload import as_bytes
from core.models.present import parts_of
from core.scoring.heads import SpecialPositions
from core.scoring.registry import long_even_scores, long_scores
from core.tasks.glue import TASKS
from core.tasks.tables import Pasted, read_pasted
from pages.parts.maps import maps_grid
from pages.parts.shell import context, resources, url
from pages.parts.shell.links import show_links
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import own_rows, pickers
from pages.parts.widgets.result_actions import ask_pin

if TYPE_CHECKING:
    from core.capture.long_maps import BlockMaps


# -------------------- a sentence or pair that is typed, from a sample or from a custom list, and a comparison


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
    parts = parts_of(name) if name else ("",)
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


# ---------------------------------------------------------------- A prompt of up to thousands of tokens


OWN = {"scale": "own"}  # of a window into thousands of tokens, whose weights are too small to be seen on a scale to 1


def reaches(name: str, part: str) -> bool:
    """Return whether the checkpoint reads more tokens than a page shows in whole maps."""
    return not part and resources.checkpoint(name).max_length > resources.PIECES_SHOWN


def show_long(name: str, chosen: Input) -> None:
    """Show block maxima, and a window of the chosen head. Raises InputError for an input beyond the context."""
    blocks = resources.long_shown(name, chosen.text, chosen.pair)
    layers, heads = blocks.maxima.shape[:2]
    pane = Pane(
        name, layers, heads, blocks.labels, as_bytes(blocks.maxima), blocks.causal, block=blocks.block,
        windows=blocks.windows, attending=blocks.attending, **_scores(name, chosen, blocks),
    )  # fmt: skip
    first = str(Head(blocks.attending[0] if blocks.attending else 0, 0))
    note = (
        f"The {len(blocks.tokens):,} tokens are shown in blocks of {blocks.block}. Each cell is the largest weight "
        f"from its queries to its keys. Click a cell of the enlarged head to see its exact weights below."
    )
    opened = maps_grid.opened_view()
    view = maps_grid.show_grid([pane], caption=str(chosen)[:200], head=first, key="long", opened=opened, note=note)
    if view:
        maps_grid.keep_view(view, first, usual_scale([pane]))
    if (head_name := (view or opened).get("head", first)) != "none":
        _window(name, chosen, Head.parse(head_name), blocks.tokens, _corner(view, blocks.block, len(blocks.tokens)))
    st.caption(
        f"{plain(name)} · {layers} layers of {heads} heads · {len(blocks.tokens):,} tokens · one input (n = 1), so "
        "no test is possible"
    )


def _scores(name: str, chosen: Input, blocks: "BlockMaps") -> dict[str, Any]:
    """Return the scores of each head and of uniform attention; none if only maps are available."""
    if not blocks.sums:
        return {"scores": {}}
    checkpoint = resources.checkpoint(name)
    encoding = checkpoint.encode(chosen.text, chosen.pair)
    special_positions = SpecialPositions(encoding.first or 0, encoding.separators, 0)
    how = {"causal": blocks.causal, "sink": checkpoint.family.sinks}
    return {
        "scores": long_scores(blocks.sums, special_positions, blocks.windows, **how),
        "even": long_even_scores(len(encoding), special_positions, blocks.windows, **how),
    }


def _corner(view: dict, block: int, length: int) -> tuple[int, int]:
    """Return the first query and key, from 1, of the block that was clicked or is in the URL."""
    if view.get("at") and not url.went_back():
        url.keep({"block": view["at"]})
    query, _, key = st.query_params.get("block", "0,0").partition(",")
    places = (url.number_of(text) or 0 for text in (query, key))
    first, second = (block_index * block + 1 for block_index in places)
    return min(first, length), min(second, length)


@st.fragment
def _window(name: str, chosen: Input, head: Head, tokens: tuple[str, ...], corner: tuple[int, int]) -> None:
    most, length = resources.WINDOW_SHOWN, len(tokens)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        starts = [
            st.number_input(
                f"{side} from", 1, length, first, key=f"{side.lower()}_from_{first}", width=180, bind="query-params"
            )
            for side, first in zip(("Queries", "Keys"), corner, strict=True)
        ]
        side = st.select_slider(
            "Tokens per side", [32, 64, 128, most], value=64, key="window_side", width=220, bind="query-params"
        )
    queries, keys = ((start - 1, min(start - 1 + side, length)) for start in starts)
    weights = resources.window_shown(name, chosen.text, chosen.pair, head, queries, keys)
    title = f"{head}, queries {queries[0] + 1} to {queries[1]}, keys {keys[0] + 1} to {keys[1]}"
    rows, columns = tokens[slice(*queries)], tokens[slice(*keys)]
    pane = Pane(
        title, 1, 1, rows, as_bytes(weights), key_tokens=columns, named=str(head), starts=(queries[0], keys[0]),
        scores={},
    )  # fmt: skip
    maps_grid.show_grid(
        [pane], caption=pane.title, head=str(head), key="map_window", opened=OWN, note=f"{pane.title}: exact weights."
    )


def weights_file(shown: resources.Shown) -> bytes:
    """Return the NPZ file that `python -m core maps` writes."""
    of_keys = shown.maps.key_tokens
    keys: dict[str, Any] = {} if of_keys is None else {"key_tokens": np.array(of_keys, dtype=np.str_)}
    file = io.BytesIO()
    np.savez_compressed(
        file,
        weights=shown.maps.weights,
        tokens=np.array(shown.maps.tokens, dtype=np.str_),
        segments=np.array(shown.maps.segments),
        **keys,
    )
    return file.getvalue()


def compared(name: str, chosen: Input, shown: resources.Shown, kind: str, words: bool) -> maps_grid.Compared:
    """Return what the workbench shows: the maps alone, or in comparison. Raises CheckpointError or InputError."""
    if kind == CHECKPOINT and (other_checkpoint := context.now().beside):
        second = resources.shown(other_checkpoint, chosen.text, chosen.pair, words=words, part=shown.maps.part)
        return maps_grid.beside(shown, second, (name, other_checkpoint))
    if kind == SENTENCE:
        other_input = pick_other()
        if other_input.text.strip():
            second = resources.shown(name, other_input.text, other_input.pair, words=words, part=shown.maps.part)
            return maps_grid.beside(shown, second, (str(chosen)[:40], str(other_input)[:40]))
    if kind == EFFECTIVE:
        why = (
            "is defined between tokens, so show tokens instead of words"
            if words
            else "is available only for self-attention without a sink"
        )
        if words or shown.maps.key_tokens or shown.maps.part == "decoder":
            return maps_grid.Compared([maps_grid.pane_of(shown, name)], f"Effective attention {why}.")
        return maps_grid.with_effective(name, shown)
    return maps_grid.Compared([maps_grid.pane_of(shown, name)])


def show_maps(name: str, chosen: Input, kind: str, words: bool, part: str) -> None:
    """Show the workbench, a description, links to other pages, and the weights as a file."""
    shown = resources.shown(name, chosen.text, chosen.pair, words=words, part=part)
    if shown.encoding.cut and kind == ALONE and not words and reaches(name, part):
        show_long(name, chosen)
        return
    result = compared(name, chosen, shown, kind, words)
    if shown.encoding.cut:
        st.warning(
            f"The input is longer than {len(shown.encoding)} tokens, which is the maximum here. "
            f"{plain(shown.encoding.cut)} tokens were cut off. Shorten the text to see the attention of all tokens.",
            icon=":material/content_cut:",
        )
    if shown.encoding.unknown > 0.5:
        st.warning(
            f"The tokenizer of this checkpoint does not know {shown.encoding.unknown:.0%} of the tokens, so the "
            "attention maps are not informative for this text.",
            icon=":material/help:",
        )
    telling, opened = telling_head(shown.scores, shown.maps.part), maps_grid.opened_view()
    first = _first_head(telling, shown)
    view = maps_grid.show_grid(
        result.panes, caption=str(chosen)[:200], opened=opened, head=first, key="grid", note=result.note
    )
    if view:
        maps_grid.keep_view(view, telling, usual_scale(result.panes))
    head = (view or opened).get("head", first)
    if not view and head != telling:
        url.keep({"head": head})
    if head != context.chosen().head and (head != telling or context.chosen().head):
        context.choose(head=None if head == "none" else head)
    st.caption(
        f"{plain(name)} · {shown.maps.layers} layers of {shown.maps.heads} heads · {len(shown.maps)} "
        f"{'words' if words else 'tokens'} · {plain(shown.maps.sees)} · one input (n = 1), so no test is possible "
        f"· {date.today():%d %B %Y} · L1H1 is the first head of the first layer"
    )
    source = MapsSource(name, chosen.text, chosen.pair, words=words, part=part).with_command()
    with st.container(horizontal=True):
        st.download_button(
            "Page (HTML)",
            lambda: maps_page(result.panes, source, head=telling, opened=view or opened, note=result.note),
            file_name="maps.html",
            mime="text/html",
            on_click="ignore",
            icon=":material/download:",
            key="html",
            help="Saves all maps as one interactive HTML file that opens in any browser without a server.",
        )
        with st.popover("Save or pin", icon=":material/ios_share:",
                        help="Save the attention weights as a NumPy file, or store the maps with a note."):  # fmt: skip
            st.download_button(
                "Weights (NPZ)", lambda: weights_file(shown), file_name="maps.npz", on_click="ignore",
                icon=":material/download:", key="npz",
                help="Saves the attention weights (layer, head, query, key) and the tokens as a NumPy file.",
            )  # fmt: skip
            _ask_pin(result, source, shown, head if head != "none" else telling, view or opened)
    if head != "none":
        show_links(name, head, current_view="maps", text=chosen.text, pair=chosen.pair or "")


def _first_head(telling: str, shown: resources.Shown) -> str:
    """Return the head that is enlarged by default; it stays when the sentence changes, if the checkpoint has it."""
    opened_head: str = st.session_state.setdefault("maps_head", telling)
    named_heads, layers = context.heads_named(opened_head), shown.maps.attending or range(shown.maps.layers)
    is_lacking = bool(named_heads) and (named_heads[0].layer not in layers or named_heads[0].head >= shown.maps.heads)
    if is_lacking or opened_head.rpartition(" ")[0] != telling.rpartition(" ")[0]:  # "Enc": another set than "Cross"
        st.session_state["maps_head"] = telling
    return str(st.session_state["maps_head"])


def _ask_pin(result: maps_grid.Compared, source: MapsSource, shown: resources.Shown, head: str, view: dict) -> None:
    def pin(title: str, note: str, who: str) -> None:
        pinned_source = replace(source, weights_hash=resources.checkpoint(source.checkpoint).weights_hash)
        grid = grid_of(result.panes, pinned_source, head=head, opened=view, note=result.note)
        remark = findings.pinning.Remark(note, title, annotator=who)
        findings.pinning.pin_maps(resources.database(), grid, pinned_source, shown.maps, remark)

    ask_pin(pin, key="pin_maps")


def show(tools: DeltaGenerator) -> None:
    """Show the maps of the sentence or pair in the context, and those of a second checkpoint if chosen."""
    view_context = context.now()
    chosen = Input(view_context.text or "", view_context.pair_or_none)
    with tools:
        part = pick_part(view_context.checkpoint)
        with st.popover("Options", icon=":material/tune:",
                        help="Compare the maps with other maps of this checkpoint, or show whole words."):  # fmt: skip
            beside = pick_beside() if not view_context.beside else CHECKPOINT
            unit = url.pick(st.segmented_control, "Attention between", ["pieces", "words"], key="unit", required=True,
                            format_func={"pieces": "tokens", "words": "words"}.get,
                            help="Shows the attention between tokens (the words and subwords that the model reads), "
                                 "or between whole words.")  # fmt: skip
        pick_row()
    if not chosen.text.strip():
        offer_examples()
        return
    with clear_errors():
        show_maps(str(view_context.checkpoint), chosen, beside, unit == "words", part)
