"""Two inputs of one checkpoint: the first is typed, the second derived from it or typed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from core import capture, models, studies
from core.attention import Head
from core.tasks.perturbations import PERTURBATIONS, PerturbationChoice, Text, perturb
from pages.parts.charts.encoding import LARGE, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports.result_card import show_own_answer
from pages.parts.shell import context, resources, url
from pages.parts.shell.links import pick_and_link
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import pickers
from pages.parts.widgets.tables import show_table

if TYPE_CHECKING:
    from core.models.encoding import Encoding


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
    checkpoint = opened(name)
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


def opened(name: str) -> Any:
    """Return the checkpoint with the head that it was saved with: classifier, language model, or none."""
    resources.refuse_missing(name)
    plain_name, revision = resources.split_revision(name)
    return resources.checkpoint(name, models.opening.saved_head(plain_name, revision=revision))


# ---------------------------------------------------------------- two inputs side by side


def show_pair() -> None:
    with clear_errors():
        inputs = pick_two()
        if inputs is not None:
            _shown(inputs)


def _shown(inputs: TwoInputs) -> None:
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
            title="Change in the attention map of each head, on words in both inputs",
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
