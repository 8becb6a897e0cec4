"""Decomposition of the scores of one head for one input: the terms of a clicked cell, and the map of one group."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from core import studies
from core.attention import Head
from core.config import command_line
from core.models.present import stamp_of
from pages.parts.charts.curves import waterfall
from pages.parts.charts.matrices import token_map
from pages.parts.shell import resources, url
from pages.parts.shell.messages import as_code, clear_errors, plain

if TYPE_CHECKING:
    from core.studies.explanation.cell_parts import Cell, LayerScores

TERMS = 8  # of a cell that are drawn by themselves
MOST_TOKENS = 64  # of an input whose cells are taken apart on the page
SIDES: dict[str, Literal["key", "query"]] = {"the key": "key", "the query": "query"}


@st.fragment
def show_cells(name: str, text: str, pair: str | None, head: Head) -> None:
    """Show the map of the head, the map of one group of contributions, and the terms of the clicked cell (as a
    fragment)."""
    with clear_errors():
        resources.checkpoint(name)
        scores = _layer(name, text, pair, head.layer, head.part, stamp_of(name))
        scores.check(head.head, 0, 0)
        query, key = _cell(scores, head)
        cell = scores.cell(head.head, query, key)
        ends = f"“{scores.encoding.tokens[query]}” to “{scores.key_encoding.tokens[key]}”"
        st.subheader(plain(f"Why does {head} attend from {ends}?"), anchor=False)
        st.markdown(f"**{_sentence(scores, head, (query, key), cell)}**")
        st.caption(
            f"{plain(name)} · one input (n = 1), so no test is possible. A score is the input of the softmax minus "
            "its mean over the row. Each score equals the sum of the terms below. The left map uses all terms, and "
            "the right map only the chosen group of terms."
        )
        # The group whose map is drawn, and the side that it is on; first the one of the cell's largest term
        with st.container(horizontal=True):
            side = SIDES[url.pick(st.segmented_control, "Contributions to", list(SIDES), key="side", required=True,
                                    label_visibility="collapsed")]  # fmt: skip
            groups, most = scores.groups(side), cell.terms[0]
            decisive = most.key_group if side == "key" else most.query_group
            group = url.pick(st.selectbox, "Group", groups, key="group", label_visibility="collapsed", width=220,
                               default=decisive if decisive in groups else None)  # fmt: skip
        maps_row = st.container(horizontal=True)  # one below the other where the window is narrow
        as_it_is, alone = maps_row.container(width="content"), maps_row.container(width="content")
        with as_it_is:
            chart = _map(
                scores, scores.inputs.weights[0, head.head], f"All terms: {head} as measured", (query, key), select=True
            )
            st.altair_chart(chart, width="content", on_select=_take, selection_mode="cell", key="why_cell")
        alone.altair_chart(
            _map(
                scores,
                scores.map_of(head.head, group, side),
                f"{head} with only terms of “{group}” in the {side}",
                (query, key),
            ),
            width="content",
        )
        st.altair_chart(_waterfall(cell, f"Largest terms of the score of this cell, {head}"), width="stretch")
        st.caption(
            f"{plain(name)} · {_length(name, text, pair)} · One input (n = 1) allows no significance test. To average "
            f"over many inputs, run {as_code(command_line('study', 'why', name))}."
        )
        st.caption(
            "The scales of the LayerNorms are treated as constants. A large term does not always affect attention: "
            "a term that is the same for every input can be replaced by its mean without changing the map."
        )


def _length(name: str, text: str, pair: str | None) -> str:
    """Return how many tokens are decomposed, and of how many."""
    token_count = len(resources.checkpoint(name).encode(text, pair))
    return f"the first {MOST_TOKENS} of {token_count} tokens" if token_count > MOST_TOKENS else f"{token_count} tokens"


@st.cache_resource(max_entries=24, show_spinner="Splitting the scores into terms ...")
def _layer(name: str, text: str, pair: str | None, layer: int, part: str, stamp: int) -> "LayerScores":
    checkpoint = resources.checkpoint(name)
    encoding = checkpoint.encode(text, pair).up_to(MOST_TOKENS)
    return studies.explanation.cell_parts.layer_scores(checkpoint, encoding, layer, part=part)


def _cell(scores: "LayerScores", head: Head) -> tuple[int, int]:
    """Return the cell that was clicked or is in the URL, otherwise the largest weight outside the first token."""
    weights = scores.inputs.weights[0, head.head].float().cpu().numpy()
    cell_numbers = [url.number_of(part) for part in st.query_params.get("cell", "").split("-")]
    if len(cell_numbers) == 2 and None not in cell_numbers:
        query, key = ((part or 0) - 1 for part in cell_numbers)
        if 0 <= query < weights.shape[0] and 0 <= key < weights.shape[1] and weights[query, key] > 0:
            return query, key
    inner = weights[1:] if len(weights) > 1 else weights
    row, column = np.unravel_index(int(inner.argmax()), inner.shape)
    return int(row) + len(weights) - len(inner), int(column)


def _take() -> None:
    """Store a clicked cell in the URL before the page runs, so that it runs once."""
    chosen = st.session_state["why_cell"].selection.get("cell") or []
    if chosen:
        query, key = (int(str(chosen[0][name]).split(" ", 1)[0]) for name in ("from_token", "to_token"))
        st.query_params["cell"] = f"{query}-{key}"


def _map(scores: "LayerScores", weights: Any, title: str, marked: tuple[int, int], *, select: bool = False) -> Any:
    values = weights.float().cpu().numpy()
    tokens, keys = scores.encoding.tokens, scores.key_encoding.tokens
    return token_map(values, tokens, keys, title=title, marked=marked, select=select)


def _sentence(scores: "LayerScores", head: Head, query_key: tuple[int, int], cell: "Cell") -> str:
    query, key = query_key
    most = cell.terms[0]
    does = "raises" if most.value > 0 else "lowers"
    where = {-1: ", the previous token,", 0: ", the same token,", 1: ", the next token,"}.get(key - query, "")
    return plain(
        f"{head} attends from “{scores.encoding.tokens[query]}” to “{scores.key_encoding.tokens[key]}”{where} with "
        f"weight {cell.weight:.2f}. The term that {does} the score of this pair most comes from {most.query_part} in "
        f"the query and {most.key_part} in the key ({most.value:+.2f} of {cell.score:+.2f})."
    )


def _waterfall(cell: "Cell", title: str) -> Any:
    rows, end = [], 0.0
    for number, term in enumerate(cell.largest(TERMS)):
        name = f"{term.query_part} × {term.key_part}" if term.key_part else term.query_part
        start, end = end, end + term.value
        kind = "raises" if term.value > 0 else "lowers"
        rows.append({"term": f"{number + 1}. {name}", "start": start, "end": end, "value": term.value, "kind": kind})
    rows.append({"term": "score of the cell", "start": 0.0, "end": end, "value": cell.score, "kind": "sum"})
    frame = pd.DataFrame(rows)
    return waterfall(frame.assign(right=frame[["start", "end"]].max(axis=1)), title=title)
