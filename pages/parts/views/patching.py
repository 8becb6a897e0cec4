"""Perturb: comparison of two inputs, patching, cut edges, and the same on the examples of a task."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture, studies
from core.capture.components import PART_KINDS, SHOWN, every_part
from core.capture.words import words_of
from core.errors import InputError
from pages.parts.charts.encoding import Shade
from pages.parts.charts.heads import head_picture, layer_word_picture
from pages.parts.perturb.inputs import TwoInputs, head_rows, opened, pick_two, show_choices, show_pair
from pages.parts.perturb.rows import show_rows
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain

# ---------------------------------------------------------------- the second input with outputs taken from the first


WHAT = {"heads": "every head", "parts": "sublayers and layers, word by word"}


def show_patching() -> None:
    with clear_errors():
        inputs = pick_two()
        unit_kind = url.pick(st.segmented_control, "Patch from the first input", WHAT, key="patched", required=True)
        if inputs is not None:
            _heads(inputs) if unit_kind == "heads" else _parts(inputs)


def _aligned_pairs(inputs: TwoInputs) -> tuple[Any, Any]:
    """Return the pair with aligned positions, the positions of its predictions, and both predictions."""
    places = capture.comparing.answer_positions(inputs.checkpoint, inputs.first, inputs.second)
    alignment = studies.ablation.input_pairs.positions(inputs.first, inputs.second)
    pairs = capture.patching.InputPairs(
        (inputs.first,), (inputs.second,), (alignment,), None if places is None else (places,)
    )
    return pairs, capture.patching.untouched(inputs.checkpoint, pairs)


def _heads(inputs: TwoInputs) -> None:
    """Show the estimate before the exact effects are computed."""
    checkpoint = inputs.checkpoint
    pairs, before = _aligned_pairs(inputs)
    difference = studies.ablation.input_pairs.logit_difference(before.first, before.second)
    full_difference = difference.whole()
    _say(inputs, difference)
    left, right = st.columns(2)
    with left:
        st.markdown("**First-order estimate of patching effects** (from one gradient, for comparison only)")
        linear = capture.patching.first_order(checkpoint, pairs, lambda logits, _: difference.of(logits), before)[
            0
        ].numpy()
        _picture(linear / full_difference, "recovered logit difference, estimated")
    with right:
        st.markdown("**Exact effect of patching** (every head is patched in turn)")
        with st.spinner("Patching every head ..."):
            every = capture.sweeping.every_head(checkpoint.layers, checkpoint.heads, checkpoint.attending)
            swept = capture.patching.patch(checkpoint, pairs, every, before)
        moved = (difference.of(swept.patched) - difference.second).numpy()[:, 0] / full_difference
        shares = np.full((checkpoint.layers, checkpoint.heads), np.nan)
        shares[list(checkpoint.sets[0].numbers)] = moved.reshape(-1, checkpoint.heads)
        _picture(shares, "recovered logit difference")
    st.caption(plain(f"n = 1 pair, so there is no CI; “A task's rows” has CIs · {inputs.name}"))


def _picture(shares: np.ndarray, label: str) -> None:
    rows = head_rows(shares, "share")
    chart = head_picture(rows, Shade("share", label=label, diverging=True), title=label)
    st.altair_chart(chart, width="content")


def _parts(inputs: TwoInputs) -> None:
    """Show the recovered logit difference by layer and word of the second input."""
    kind = url.pick(st.segmented_control, "Part", list(PART_KINDS), key="part", default="layer", required=True,
                      format_func=SHOWN.__getitem__)  # fmt: skip
    pairs, before = _aligned_pairs(inputs)
    difference = studies.ablation.input_pairs.logit_difference(before.first, before.second)
    full_difference = difference.whole()
    _say(inputs, difference)
    aligned = {second_position: first_position for first_position, second_position in pairs.alignments[0].pairs}
    words = [word for word in words_of(inputs.second) if set(word.positions) & set(aligned)]
    alignments = [
        capture.outputs.Alignment(tuple((aligned[k], k) for k in word.positions if k in aligned)) for word in words
    ]
    many = capture.patching.InputPairs(
        (inputs.first,) * len(alignments),
        (inputs.second,) * len(alignments),
        tuple(alignments),
        None if pairs.places is None else pairs.places * len(alignments),
    )
    variants = [frozenset({part}) for part in every_part(inputs.checkpoint.layers, [kind])]
    patched = capture.patching.patch(inputs.checkpoint, many, variants)
    shares = (difference.of(patched.patched) - difference.second).numpy() / full_difference
    rows = [
        {"layer": layer, "word": f"{k + 1} {word.text}", "share": float(shares[layer, k])}
        for layer in range(len(variants))
        for k, word in enumerate(words)
    ]
    chart = layer_word_picture(
        pd.DataFrame(rows),
        value="share",
        label="recovered logit difference",
        title=f"{SHOWN[kind]} of the first input, patched at one word (1: logit difference "
        "fully recovered; negative: moved further away)",
    )
    st.altair_chart(chart, width="content")
    st.caption(plain(f"n = 1 pair; only words of the second input with an aligned word in the first · {inputs.name}"))


def _say(inputs: TwoInputs, difference: Any) -> None:
    names = inputs.checkpoint.labels
    decode = inputs.checkpoint.tokenizer.decode
    choice_names = [names[k] if names is not None else decode([k]).strip() for k in difference.choices]
    about = (
        f"the logit of {choice_names[0]} minus that of {choice_names[1]}" if len(set(choice_names)) > 1 else "the score"
    )
    st.markdown(
        f"The inputs are compared by {plain(about)}, which is {difference.first:.2f} on the first input and "
        f"{difference.second:.2f} on the second input."
    )


# ---------------------------------------------------------------- edges of attention cut on one input


CHOSEN = "chosen words"


def show_cutting() -> None:
    view_context = context.now()
    name, text, pair = view_context.checkpoint, view_context.text, view_context.pair_or_none
    right = st.container()
    if not name or not text:
        st.info("Type a sentence above to begin.", icon=":material/edit:")
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
        format_func=lambda cut: capture.knockout.EDGES.get(cut, "from chosen words to chosen words"),
    )
    layers = st.multiselect(
        "In layers (empty: all)", [str(k + 1) for k in range(checkpoint.layers)], key="layers", bind="query-params"
    )
    renormalised = st.checkbox(
        "Redistribute the attention weight to the other keys",
        value=True,
        key="renormalised",
        bind="query-params",
        help="If on, the attention scores of cut edges are set to minus infinity before the softmax, so that each "
        "row still sums to 1. If off, the weights of cut edges are set to 0 after the softmax.",
    )
    cut_layers = frozenset(int(layer) - 1 for layer in layers) or frozenset(range(checkpoint.layers))
    if kind != CHOSEN:
        return capture.knockout.edges_of(kind, causal=checkpoint.causal), cut_layers, renormalised
    words = words_of(encoding)
    names = [f"{k + 1} {word.text}" for k, word in enumerate(words)]
    ends = (("From", "queries"), ("To", "keys"))
    sides = [st.multiselect(label, names, key=key, bind="query-params") for label, key in ends]
    if not all(sides):
        raise InputError(
            "Choose at least one word on each side: the words that attend (queries) and the words to "
            "which they must not attend (keys)."
        )
    places = [[p for name in side for p in words[names.index(name)].positions] for side in sides]
    return capture.knockout.between(*places), cut_layers, renormalised


def _shown(name: str, checkpoint: Any, encoding: Any, edges: Any, layers: frozenset[int], renormalised: bool) -> None:
    cut = int(edges(encoding).sum())
    choices = capture.comparing.predictions(
        checkpoint, (encoding, ()), (encoding, (capture.interventions.Knockout(edges, layers, renormalised),))
    )
    st.markdown(plain(show_choices(choices, ("before", "cut"))))
    share = cut / len(encoding) ** 2
    cut_layers = (
        "all layers" if len(layers) == checkpoint.layers else f"layers {', '.join(str(k + 1) for k in sorted(layers))}"
    )
    st.caption(
        plain(f"{cut} edges ({share:.0%} of the map) cut in {cut_layers} · {len(encoding)} tokens · n = 1 · {name}")
    )


VIEWS = {
    "Two inputs": show_pair,
    "Patching": show_patching,
    "Cut edges": show_cutting,
    "A task's rows": show_rows,
}


def show(tools: DeltaGenerator) -> None:
    VIEWS[url.pick_mode(list(VIEWS))]()
