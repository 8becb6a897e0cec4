"""Norms, rollout and flow: norms |alpha f(x)|, rollout, flow and value zeroing of one input."""

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture, scoring
from core.attention import Head
from core.drawing.panes import Pane, difference
from core.drawing.payload import as_bytes
from pages.parts.charts.curves import grouped_bars
from pages.parts.charts.encoding import Axes
from pages.parts.maps import maps_grid
from pages.parts.reports.result_card import show_own_answer
from pages.parts.reports.study_view import details
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain

# ---------------------------------------------------------------- views of one input that see more than weights


MEANING = {
    "norms": "Norm-based attention: each weight is multiplied by the length of the transformed value vector "
    "(Kobayashi et al. 2020). Rows are divided by their sum, so that they can be compared with attention "
    "weights.",
    "rollout": "Rollout estimates how much each input token contributes to each output of a layer (Abnar and Zuidema "
    "2020). It multiplies the matrices 0.5 × mean attention + 0.5 × identity over layers. It describes a "
    "layer, not a head. Rows sum to 1.",
    "flow": "Attention flow is the maximum flow from each output of a layer to each input token, with attention "
    "weights as capacities (Abnar and Zuidema 2020). It describes a layer, not a head.",
    "value "
    "zeroing": "Value zeroing measures how much the output of a layer for one token changes (cosine distance) if the "
    "value vector of another token is set to 0 (Mohebbi et al. 2023). It describes a layer, not a head. "
    "Rows are divided by their sum.",
}
LONGEST = 48  # pieces that flow and value zeroing take: both ask once per token


def show_norms(name: str, text: str, pair: str | None) -> None:
    """Show weights, norms and the difference for every head. Raises InputError if values are not available."""
    shown = resources.shown(name, text, pair)
    maps = capture.norms.norm_maps(resources.checkpoint(name), shown.encoding)
    norms = maps.heads / np.maximum(maps.heads.sum(-1, keepdims=True), 1e-12)
    raw = maps_grid.pane_of(shown, "attention weights")
    pane = maps_grid.pane_like(raw, "norm-based attention", norms)
    third = difference(raw, pane, (shown.maps.weights, norms))
    panes = [raw, pane] if isinstance(third, str) else [raw, pane, third]
    special = [k for k in (shown.first, *shown.separators) if k is not None]
    of_special = [weights[..., special].sum(-1).mean(-1) for weights in (shown.maps.weights, norms)]
    show_own_answer(
        "Does attention change if the size of the value vectors counts?",
        [f"{name} · one input (n = 1), so no test is possible"],
        special_sentence(*of_special) if special else "This input has no special tokens, so no share is compared.",
        f"{MEANING['norms']} {_single_weights(shown.maps.weights, norms)}",
        key="norms",
    )
    maps_grid.show_kept(panes, caption=f"norms: {text[:150]}", key="norms", head="none")
    layers = maps.layers / np.maximum(maps.layers.sum(-1, keepdims=True), 1e-12)
    with details():
        st.markdown(
            "**All heads of a layer together**: norm of the sum of all head outputs, in which opposite outputs cancel"
        )
        _layers(layers, shown, "heads together")


def _single_weights(weights: np.ndarray, norms: np.ndarray) -> str:
    """Return where a single weight [layer, head, query, key] changes most, which the third grid shows."""
    layer, head, *_ = np.unravel_index(int(np.nanargmax(np.abs(norms - weights))), weights.shape)
    most = Head(int(layer), int(head))
    return f"The third grid shows single weights; the largest change of a single weight is in {most}."


def special_sentence(weights: np.ndarray, norms: np.ndarray) -> str:
    """Return how much attention a head gives to special tokens by weight and by norm, and where both differ most.

    weights, norms: [layer, head], means over queries; NaN for heads without maps.
    """
    layer, head = np.unravel_index(int(np.nanargmax(np.abs(norms - weights))), weights.shape)
    return (
        f"On average, the heads give {np.nanmean(weights):.0%} of their attention weight to special tokens, but "
        f"{np.nanmean(norms):.0%} of their norm-based attention. Averaged over queries, the share changes most in "
        f"{Head(int(layer), int(head))}: from {weights[layer, head]:.0%} to {norms[layer, head]:.0%}."
    )


def show_rollout(name: str, text: str, pair: str | None) -> None:
    shown = resources.shown(name, text, pair)
    _layers(scoring.rollout.rollout(shown.maps.weights), shown, "rollout")


def show_zeroing(name: str, text: str, pair: str | None) -> None:
    """Show value zeroing of every layer. Raises InputError if layers of the family cannot be run separately."""
    shown = resources.shown(name, text, pair, most=LONGEST)
    with st.spinner("Zeroing the value vector of one token after another ..."):
        scores = capture.zeroing.value_zeroing(resources.checkpoint(name), shown.encoding)
    _layers(scores, shown, "value zeroing")


def show_flow(name: str, text: str, pair: str | None) -> None:
    """Show the flow from one output to every input, compared with rollout."""
    shown = resources.shown(name, text, pair, most=LONGEST)
    tokens = [f"{k + 1} {token}" for k, token in enumerate(shown.maps.tokens)]
    places = st.columns(2)
    first = tokens[0] if not shown.maps.causal else tokens[-1]
    output = url.pick(places[0].selectbox, "From the output of", tokens, key="output", default=first)
    layers = [str(k + 1) for k in range(shown.maps.layers)]
    layer = int(url.pick(places[1].selectbox, "Layer", layers, key="layer", default=layers[-1]))
    number = tokens.index(output)
    with st.spinner("Computing the maximum flow to each input token ..."):
        flows = scoring.rollout.flow(shown.maps.weights, number, layer=layer - 1)
    rolled = scoring.rollout.rollout(shown.maps.weights)[layer - 1, number]
    rows = pd.DataFrame(
        {"input": tokens * 2, "value": [*flows, *rolled], "kind": ["flow"] * len(tokens) + ["rollout"] * len(tokens)}
    )
    chart = grouped_bars(rows, Axes(x="input", y="value", colour="kind"), order=tokens)
    st.altair_chart(chart)
    st.caption(
        plain(
            f"{name} · output of {output} in layer {layer} · {len(tokens)} inputs · "
            "one input (n = 1), so no test is possible"
        )
    )


def _layers(maps: np.ndarray, shown: resources.Shown, title: str) -> None:
    pane = Pane(title, len(maps), 1, shown.maps.tokens, as_bytes(maps[:, None]), shown.maps.causal, whole=True,
                attending=shown.maps.attending)  # fmt: skip
    layers = shown.maps.attending or range(len(maps))
    maps_grid.show_grid([pane], caption=title, key=title.replace(" ", "_"), head=f"Layer {layers[0] + 1}")
    st.caption(
        f"{len(layers)} layers with one map each · {len(shown.maps.tokens)} tokens · one input (n = 1), so no test "
        "is possible"
    )


SHOWN = {
    "norms": show_norms,
    "rollout": show_rollout,
    "flow": show_flow,
    "value zeroing": show_zeroing,
}


def show(tools: DeltaGenerator) -> None:
    view_context = context.now()
    with tools:
        kind = url.pick_mode(list(SHOWN), "Measure")
        is_on = url.switch(
            st.toggle,
            "Compute",
            key="compute",
            default=True,
            help="Runs the checkpoint on the sentence and computes the chosen measure.",
        )
    with clear_errors():
        if kind != "norms":  # whose answer says it
            st.caption(MEANING[kind])
        text = view_context.text or ""
        if view_context.checkpoint and text.strip() and is_on:
            SHOWN[kind](view_context.checkpoint, text, view_context.pair_or_none)
        else:
            st.info("Type a sentence and switch on “Compute” to see this measure.", icon=":material/play_circle:")
