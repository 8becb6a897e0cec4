"""Two inputs of one checkpoint: the first is typed, the second made from it or typed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from core import models
from core.tasks.perturbations import KINDS, PerturbationChoice, Perturbed, Text, perturb
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import plain
from pages.parts.widgets import pickers

if TYPE_CHECKING:
    from core.models.encoding import Encoding

KIND = "negate"  # that the view opens with


@dataclass(frozen=True)
class TwoInputs:
    """The checkpoint and both inputs. note: how the second was made."""

    name: str
    checkpoint: Any
    first: "Encoding"
    second: "Encoding"
    texts: tuple[Text, Text]
    note: str


def pick_two() -> TwoInputs | None:
    """Widgets for both inputs; None until there is something to compare. Raises InputError where the second cannot be
    made."""
    view_context = context.now()
    name, text, pair = view_context.checkpoint, view_context.text or "", view_context.pair_or_none
    left, right = st.columns([2, 3])
    kinds = list(KINDS)
    kind = url.pick(
        left.selectbox,
        "The second input is made by",
        kinds,
        key="kind",
        default=KIND,
        format_func=lambda way: f"{way}: {KINDS[way].meaning}",
    )
    with right:
        word, seed, typed = _told(kind)
    if not name or not text:
        st.info("Type a sentence to begin.", icon=":material/edit:")
        return None
    checkpoint = opened(name)
    mask = getattr(checkpoint.tokenizer, "mask_token", None)
    perturbed = perturb(kind, text, pair, seed=seed, choice=PerturbationChoice(word, mask, typed))
    first, second = Text(text, pair), perturbed.made
    encodings = [
        checkpoint.encode(input_text.text, input_text.pair, max_length=resources.PIECES_SHOWN)
        for input_text in (first, second)
    ]
    _say(perturbed)
    return TwoInputs(name, checkpoint, encodings[0], encodings[1], (first, second), perturbed.note)


def _told(kind: str) -> tuple[str, int, Text | None]:
    """What a kind may be told: a word, another draw, or the input itself."""
    if kind == "typed":
        text = pickers.pick_text("Second input", key="text2")
        pair = pickers.pick_text("Its second sentence (optional)", key="pair2")
        return "", 0, Text(text, pair or None)
    word = ""
    if kind.startswith("name") or kind in ("drop", "mask", "synonym"):
        word = pickers.pick_text("Word (empty: one is drawn)", key="word").strip()
    seed = st.number_input(
        "Draw", 0, 1000, 0, key="draw", bind="query-params", help="Another number draws another name, word or order."
    )
    return word, int(seed), None


def _say(perturbed: Perturbed) -> None:
    pair = f" · {perturbed.made.pair}" if perturbed.made.pair else ""
    st.markdown(f"**Second input:** {plain(perturbed.made.text)}{plain(pair)}  \n{plain(perturbed.note)}")


def opened(name: str) -> Any:
    """The checkpoint with the head it was saved with: classes, words, or none."""
    plain_name, revision = resources.split_revision(name)
    return resources.checkpoint(name, models.kinds.saved_head(plain_name, revision=revision))
