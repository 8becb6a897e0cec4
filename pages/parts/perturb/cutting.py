"""Edges of attention cut on one input: which words may not look at which, in which layers."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from core import capture
from core.capture.words import words_of
from core.errors import InputError
from pages.parts.perturb.inputs import opened
from pages.parts.perturb.side_by_side import show_choices
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain

CHOSEN = "chosen words"


def show_cutting() -> None:
    """Pick an input and the edges to cut."""
    view_context = context.now()
    name, text, pair = view_context.checkpoint, view_context.text, view_context.pair_or_none
    right = st.container()
    if not name or not text:
        st.info("Type a sentence to begin.", icon=":material/edit:")
        return
    with clear_errors():
        checkpoint = opened(name)
        encoding = checkpoint.encode(text, pair, max_length=resources.PIECES_SHOWN)
        with right:
            edges, layers, renormalised = _pick(checkpoint, encoding)
        _shown(name, checkpoint, encoding, edges, layers, renormalised)


def _pick(checkpoint: Any, encoding: Any) -> tuple[Callable[[Any], Any], frozenset[int], bool]:
    kinds = [kind for kind in capture.knockout.EDGES if not (checkpoint.causal and kind == "next")]
    kind = url.pick(
        st.selectbox,
        "Cut",
        [*kinds, CHOSEN],
        key="edges",
        format_func=lambda cut: capture.knockout.EDGES.get(cut, "from words to words"),
    )
    layers = st.multiselect(
        "In layers (none: all)", [str(k + 1) for k in range(checkpoint.layers)], key="layers", bind="query-params"
    )
    renormalised = st.checkbox(
        "The other keys take the weight",
        value=True,
        key="renormalised",
        bind="query-params",
        help="Scores are set to minus infinity before the softmax; otherwise weights are set to 0 after it.",
    )
    cut_layers = frozenset(int(layer) - 1 for layer in layers) or frozenset(range(checkpoint.layers))
    if kind != CHOSEN:
        return capture.knockout.edges_of(kind, causal=checkpoint.causal), cut_layers, renormalised
    words = words_of(encoding)
    names = [f"{k + 1} {word.text}" for k, word in enumerate(words)]
    ends = (("From", "queries"), ("To", "keys"))
    sides = [st.multiselect(label, names, key=key, bind="query-params") for label, key in ends]
    if not all(sides):
        raise InputError("Choose the words that may not look, and the words they may not look at.")
    places = [[p for name in side for p in words[names.index(name)].positions] for side in sides]
    return capture.knockout.between(*places), cut_layers, renormalised


def _shown(name: str, checkpoint: Any, encoding: Any, edges: Any, layers: frozenset[int], renormalised: bool) -> None:
    cut = int(edges(encoding).sum())
    choices = capture.comparing.predictions(
        checkpoint, (encoding, ()), (encoding, (capture.interventions.Knockout(edges, layers, renormalised),))
    )
    show_choices(choices, ("before", "cut"))
    share = cut / len(encoding) ** 2
    cut_layers = (
        "all layers" if len(layers) == checkpoint.layers else f"layers {', '.join(str(k + 1) for k in sorted(layers))}"
    )
    st.caption(
        plain(f"{cut} edges ({share:.0%} of the map) cut in {cut_layers} · {len(encoding)} tokens · n = 1 · {name}")
    )
