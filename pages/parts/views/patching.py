"""Patching and perturbation: comparison of two inputs, patching, cut edges, and the same on the examples of a task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture, studies
from core.attention import Head
from core.capture.components import PART_KINDS, SHOWN, every_part
from core.capture.words import words_of
from core.errors import InputError
from core.tasks.perturbations import PERTURBATIONS, PerturbationChoice, Text, perturb
from pages.parts.charts.encoding import LARGE, Shade
from pages.parts.charts.heads import head_picture, layer_word_picture
from pages.parts.disable.task_studies import show_rows
from pages.parts.reports.result_card import show_own_answer
from pages.parts.shell import context, resources, url
from pages.parts.shell.links import pick_and_link
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import pickers
from pages.parts.widgets.tables import show_table

if TYPE_CHECKING:
    from core.models.encoding import Encoding


# -------------------- two inputs: the first is typed, the second derived from it or typed


KIND = "negate"  # that the view opens with
FIXED = ("negate", "first-only", "second-only", "same")  # perturbations without random choices


@dataclass(frozen=True)
class TwoInputs:
    """The checkpoint and both inputs."""

    name: str
    checkpoint: Any
    first: "Encoding"
    second: "Encoding"
    texts: tuple[Text, Text]


def pick_two() -> TwoInputs | None:
    """Ask for both inputs; None until there is something to compare. Raises InputError if the second cannot be
    created."""
    view_context = context.now()
    name, text, pair = view_context.checkpoint, view_context.text or "", view_context.pair_or_none
    left, right = st.columns([2, 3])
    meanings = {way: f"{way}: {perturbation.meaning}" for way, perturbation in PERTURBATIONS.items()}
    kind = url.pick(left.selectbox, "The second input is made by", meanings, key="kind", default=KIND)
    with right:
        word, seed, typed = _told(kind)
    if not name or not text:
        st.info("Type a sentence above to begin.", icon=":material/edit:")
        return None
    checkpoint = resources.opened(name)
    mask = getattr(checkpoint.tokenizer, "mask_token", None)
    perturbed = perturb(kind, text, pair, seed=seed, choice=PerturbationChoice(word, mask, typed))
    first, second = Text(text, pair), perturbed.made
    encodings = [
        checkpoint.encode(input_text.text, input_text.pair, max_length=resources.PIECES_SHOWN)
        for input_text in (first, second)
    ]
    also = f" · {perturbed.made.pair}" if perturbed.made.pair else ""
    st.markdown(f"**Second input:** {plain(perturbed.made.text)}{plain(also)}  \n{plain(perturbed.note)}")
    return TwoInputs(name, checkpoint, encodings[0], encodings[1], (first, second))


def _told(kind: str) -> tuple[str, int, Text | None]:
    """Ask for the input of a perturbation: a word, another draw, or the text itself."""
    if kind == "typed":
        text = pickers.pick_text("Second input", key="text2")
        pair = pickers.pick_text("Its second sentence (optional)", key="pair2")
        return "", 0, Text(text, pair or None)
    word = ""
    if kind in FIXED:
        return word, 0, None
    if kind.startswith("name") or kind in ("drop", "mask", "synonym"):
        word = pickers.pick_text("Word (empty: drawn at random)", key="word").strip()
    seed = st.number_input(
        "Random seed",
        0,
        1000,
        0,
        key="draw",
        bind="query-params",
        help="Another seed selects another random name, word or order.",
    )
    return word, int(seed), None


# ---------------------------------------------------------------- two inputs side by side


def show_pair() -> None:
    with clear_errors():
        inputs = pick_two()
        if inputs is not None:
            _show_pair(inputs)


def _show_pair(inputs: TwoInputs) -> None:
    comparison = studies.ablation.input_pairs.beside(inputs.checkpoint, inputs.first, inputs.second)
    answer = st.empty()
    left, right = st.columns([3, 2])
    with right:
        sides = (inputs.first, ()), (inputs.second, ())
        outcome = show_choices(capture.comparing.predictions(inputs.checkpoint, *sides))
    change = 1 - comparison.change.cosine
    if outcome:
        layer, head = np.unravel_index(int(np.nanargmax(change)), change.shape)
        most = Head(int(layer), int(head))
        with answer.container():
            show_own_answer(
                "What changes from the first input to the second?",
                [f"{inputs.name} · n = 1 pair, so no test is possible"],
                f"{outcome} The map of {most} changes most (1 − cosine = {np.nanmax(change):.2f}).",
                "A value of 1 − cosine of 0 means that the map of a head does not change.",
                key="pair",
            )
    with left:
        rows = head_rows(change, "moved")
        rows["on words without an aligned word, first input"] = comparison.change.first_elsewhere.flatten()
        rows["on words without an aligned word, second input"] = comparison.change.second_elsewhere.flatten()
        moved = rows["moved"].max()
        chart = head_picture(
            rows,
            Shade(
                "moved", "1 − cosine", domain=(0.0, float(max(0.01, moved if np.isfinite(moved) else 1))), cell=LARGE
            ),
            title="Change in the attention of each head between aligned words of both inputs",
            tooltip=["on words without an aligned word, first input", "on words without an aligned word, second input"],
        )
        st.altair_chart(chart, width="content")
    unmatched = [
        [words[k].text for k in side]
        for words, side in zip(
            comparison.words, (comparison.alignment.first_alone, comparison.alignment.second_alone), strict=True
        )
    ]
    alone_texts = [
        f"{name} alone: {', '.join(word_texts)}"
        for name, word_texts in zip(("first", "second"), unmatched, strict=True)
        if word_texts
    ]
    partners = f"{len(comparison.alignment.pairs)} words (including special tokens) are aligned"
    st.caption(plain(" · ".join([partners, *alone_texts])))
    names = [str(Head(layer, head)) for layer, head in np.ndindex(comparison.change.cosine.shape)]
    pick_and_link(inputs.name, names, current_view="", key="go_on")


def head_rows(values: np.ndarray, name: str) -> pd.DataFrame:
    """Return one row per head from an array [layer, head]."""
    places = [{"layer": layer, "head": head} for layer, head in np.ndindex(values.shape)]
    return pd.DataFrame(places).assign(**{name: np.asarray(values, dtype=float).flatten()})


def show_choices(choices: Any, names: tuple[str, str] = ("first", "second")) -> str:
    """Show the classes or most likely tokens of two runs; return how the prediction changed, or ""."""
    if not choices:
        st.info(
            "This checkpoint cannot make a prediction for this input. Use a fine-tuned classifier, or a language "
            "model and a sentence with its mask token."
        )
        return ""
    table = pd.DataFrame(
        {
            "": [plain(choice.name) for choice in choices],
            names[0]: [choice.before for choice in choices],
            names[1]: [choice.after for choice in choices],
        }
    )
    form: dict[str, Any] = {name: st.column_config.NumberColumn(format="percent") for name in names}
    if len(choices) == 1:
        table[names[0]], table[names[1]] = [choices[0].logit_before], [choices[0].logit_after]
        form = {}
    show_table(table, column_config=form)
    likeliest = capture.comparing.predicted(choices)
    if likeliest is None:
        return ""
    first, then = likeliest
    if first.name == then.name:
        return f"The prediction stays {first.name} ({first.before:.0%} and {then.after:.0%})."
    return f"The prediction changes from {first.name} ({first.before:.0%}) to {then.name} ({then.after:.0%})."


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
        checkpoint = resources.opened(name)
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
            "Choose at least one word under “From” (queries) and at least one word under “To” (keys). Attention from "
            "these queries to these keys is blocked."
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
