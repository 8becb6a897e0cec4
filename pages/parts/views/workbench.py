"""Attention maps: every head of a checkpoint on one sentence or pair, alone or in comparison."""

import io
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import findings
from core.attention import Head
from core.drawing.page import MapsSource, grid_of, maps_page
from core.drawing.panes import Pane, telling_head, usual_scale
from core.drawing.payload import as_bytes
from core.scoring.heads import SpecialPositions
from core.scoring.long_scores import long_even_scores, long_scores
from pages.parts.maps import inputs, maps_grid
from pages.parts.maps.inputs import Input
from pages.parts.shell import context, resources, url
from pages.parts.shell.links import show_links
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.result_actions import ask_pin

if TYPE_CHECKING:
    from core.capture.long_maps import BlockMaps


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
    if kind == inputs.CHECKPOINT and (other_checkpoint := context.now().beside):
        second = resources.shown(other_checkpoint, chosen.text, chosen.pair, words=words, part=shown.maps.part)
        return maps_grid.beside(shown, second, (name, other_checkpoint))
    if kind == inputs.SENTENCE:
        other_input = inputs.pick_other()
        if other_input.text.strip():
            second = resources.shown(name, other_input.text, other_input.pair, words=words, part=shown.maps.part)
            return maps_grid.beside(shown, second, maps_grid.titles_of(chosen, other_input))
    if kind == inputs.EFFECTIVE:
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
    if shown.encoding.cut and kind == inputs.ALONE and not words and reaches(name, part):
        show_long(name, chosen)
        return
    result = compared(name, chosen, shown, kind, words)
    if shown.encoding.cut:
        st.warning(
            f"The input is longer than {len(shown.encoding)} tokens, which is the maximum for this checkpoint. The "
            f"last {plain(shown.encoding.cut)} tokens were cut off. Shorten the text to see the attention of all "
            "tokens.",
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
        part = inputs.pick_part(view_context.checkpoint)
        with st.popover("Options", icon=":material/tune:",
                        help="Compare the maps with other maps of this checkpoint, or show whole words."):  # fmt: skip
            beside = inputs.pick_beside() if not view_context.beside else inputs.CHECKPOINT
            unit = url.pick(st.segmented_control, "Attention between", ["pieces", "words"], key="unit", required=True,
                            format_func={"pieces": "tokens", "words": "words"}.get,
                            help="Shows the attention between tokens (the words and subwords that the model reads), "
                                 "or between whole words.")  # fmt: skip
        inputs.pick_row()
    if not chosen.text.strip():
        inputs.offer_examples()
        return
    with clear_errors():
        show_maps(str(view_context.checkpoint), chosen, beside, unit == "words", part)
