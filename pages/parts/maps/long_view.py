"""A prompt of up to thousands of tokens: block maxima of every head, and any window of one head, exact."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from core.attention import Head
from core.drawing.panes import Pane
from core.drawing.payload import as_bytes
from core.scoring.heads import SpecialPositions
from core.scoring.long_scores import long_even_scores, long_scores
from pages.parts.maps import maps_grid
from pages.parts.maps.inputs import Input
from pages.parts.shell import history, resources
from pages.parts.shell.messages import plain

if TYPE_CHECKING:
    from core.capture.long_maps import BlockMaps

OWN = {"scale": "own"}  # among thousands of tokens most weights are too small to be seen on a scale to 1


def reaches(name: str, part: str) -> bool:
    """Whether the checkpoint reads more than a page shows whole."""
    return not part and resources.checkpoint(name).max_length > resources.PIECES_SHOWN


def show_long(name: str, chosen: Input) -> None:
    """The grid of block maxima, and a window of the chosen head. Errors: InputError for a prompt beyond the context."""
    blocks = resources.long_shown(name, chosen.text, chosen.pair)
    layers, heads = blocks.maxima.shape[:2]
    pane = Pane(
        name, layers, heads, blocks.labels, as_bytes(blocks.maxima), blocks.causal, block=blocks.block,
        windows=blocks.windows, **_scores(name, chosen, blocks),
    )  # fmt: skip
    note = (
        f"{len(blocks.tokens):,} tokens in blocks of {blocks.block}: each cell is the greatest weight from its queries "
        "to its keys. Click a cell of the enlarged head to see its weights below, computed again."
    )
    opened = OWN | maps_grid.opened_view()
    view = maps_grid.show_grid([pane], caption=str(chosen)[:200], head="L1H1", key="long", opened=opened, note=note)
    if view:
        maps_grid.keep_view(view, "L1H1")
    if (head_name := (view or opened).get("head", "L1H1")) != "none":
        _window(name, chosen, Head.parse(head_name), blocks.tokens, _corner(view, blocks.block, len(blocks.tokens)))
    st.caption(f"{plain(name)} · {layers} layers of {heads} heads · {len(blocks.tokens):,} tokens · n = 1 input")


def _scores(name: str, chosen: Input, blocks: "BlockMaps") -> dict[str, Any]:
    """Each head's scores on all tokens, and those of even attention; none where a family's maps are all there is."""
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
    """The first query and key, from 1, of the block that was clicked or that the URL names. length: of the prompt."""
    if view.get("at") and not history.went_back():
        history.keep({"block": view["at"]})
    query, _, key = st.query_params.get("block", "0,0").partition(",")
    places = (int(text) if text.isascii() and text.isdigit() else 0 for text in (query, key))
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
            "Tokens a side", [32, 64, 128, most], value=64, key="window_side", width=220, bind="query-params"
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
