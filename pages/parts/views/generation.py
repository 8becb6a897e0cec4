"""Generation: a decoder continues a prompt or a chat, with the attention rows of every new token."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture, models
from core.attention import Head
from core.drawing.panes import scored_pane, telling_head
from core.models.present import stamp_of
from pages.parts.maps import maps_grid
from pages.parts.reports.result_card import show_own_answer
from pages.parts.shell import context, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.shell.resources import SizedCache
from pages.parts.widgets.tables import show_table

if TYPE_CHECKING:
    from core.capture.generating import Generated, GenerationStep


# ---------------------------------------------------------------- what a decoder writes on from


class Prompt(NamedTuple):
    """A prompt, or the user's message of a chat with its first (`system`) message, which may be empty."""

    text: str
    chat: bool = False
    system: str = ""
    new: int = 20
    temperature: float = 0.0
    seed: int = 0


def pick_prompt(text: str) -> Prompt:
    """Ask, in a popover, how to continue `text`."""
    with st.popover(
        "How",
        icon=":material/tune:",
        help="Choose whether to use a chat template, how many tokens to generate, and how to sample them.",
    ):
        chat = st.toggle("Use the chat template of the checkpoint", key="chat", bind="query-params")
        system = st.text_input("System message", key="chat_system", bind="query-params", disabled=not chat) or ""
        new = st.number_input("New tokens", 1, 512, 20, key="new_tokens", bind="query-params")
        temperature = st.slider(
            "Temperature",
            0.0,
            2.0,
            0.0,
            0.1,
            key="temperature",
            bind="query-params",
            help="A temperature of 0 always takes the most probable token. Higher temperatures make less probable "
            "tokens more likely.",
        )
        seed = st.number_input(
            "Seed", 0, 2**31, 0, key="generation_seed", bind="query-params", disabled=temperature == 0
        )
    return Prompt(text, chat, system, int(new), float(temperature), int(seed))


# -------------------- What a decoder writes on, kept so that moving over its tokens computes nothing again


def generated(name: str, prompt: Prompt) -> "Generated":
    """Return the continuation of a prompt or chat. Raises CheckpointError or InputError."""
    model = resources.checkpoint(name, "language")
    placeholder = st.empty()
    written: list[str] = []

    def tell(step: "GenerationStep") -> None:
        written.append(step.token)
        placeholder.caption(plain("".join(written)))

    def make() -> "Generated":
        if prompt.chat:
            turns = [models.chat.Message("system", prompt.system)] if prompt.system.strip() else []
            encoded = models.chat.encode_chat(model, [*turns, models.chat.Message("user", prompt.text)])
        else:
            encoded = model.encode(prompt.text)
        return capture.generating.generate(
            model, encoded, new=prompt.new, temperature=prompt.temperature, seed=prompt.seed, on_step=tell
        )

    with st.spinner("Generating ..."):
        generation = _generations().get((name, prompt, stamp_of(name)), make, lambda generation: generation.size)
    placeholder.empty()
    return generation


@st.cache_resource(show_spinner=False)
def _generations() -> "SizedCache[Generated]":
    return SizedCache(lambda: resources.MAPS_ROOM // 4)


def show_steps(name: str, prompt: Prompt) -> None:
    """Show the generated text, a slider over its tokens, the maps so far, and the newest row. Raises AtlasError."""
    generation = generated(name, prompt)
    written = "".join(step.token for step in generation.steps if not step.ends).replace("·", " ")
    ended = " (end of text)" if generation.steps and generation.steps[-1].ends else ""
    st.markdown(f"**Generated:** {plain(written)}{ended}")
    last = len(generation.steps)
    least = 0 if generation.maps is not None else 1
    step_number = st.slider("After token", least, last, last, key="step", bind="query-params",
                            help="Choose a generated token to see its attention. Each new token adds a row and a "
                                 "column to the attention maps.")  # fmt: skip
    step = generation.steps[step_number - 1] if step_number else None
    maps = generation.grown(step_number)
    pane = scored_pane(name, maps, first=0, separators=())
    caption = f"{prompt.text[:150]}, {step_number} new tokens"
    head = telling_head(pane.scores or {})
    shown = pd.DataFrame()
    if step is not None and not step.ends:
        query = len(generation.prompt) + step_number
        shown = attended(step.rows, maps.keys, query)
        head = str(shown["head"].iloc[0])
        show_own_answer(
            f"What does the model attend to after it has generated “{step.token}”?",
            [f"{name} · one input (n = 1), so no test is possible"],
            _strongest(step, shown),
            f"This weight is in the last row of the map of {head} (position {query}). The sentence next to the map "
            "averages over all rows.",
            key="generation",
        )
    maps_grid.show_kept([pane], caption=caption, head=head, key="generation")
    if step is not None:
        _show_step(step, shown)
    st.caption(
        f"{plain(name)} · {maps.layers} layers of {maps.heads} heads · {len(generation.prompt)} prompt tokens and "
        f"{step_number} generated tokens · {maps.sees} · one input (n = 1), so no test is possible"
    )


def _strongest(step: "GenerationStep", shown: pd.DataFrame) -> str:
    """Return which head attends most strongly from the new token, and to what (from `attended`)."""
    head, token, weight, back = shown[["head", "attends to", "weight", "tokens back"]].iloc[0]
    return (
        f"From “{step.token}”, head {head} has the largest weight of all {len(shown)} heads: {weight:.2f} on “{token}” "
        f"({_distance(back)})."
    )


def _show_step(step: "GenerationStep", shown: pd.DataFrame) -> None:
    """Show the probability of the new token and of others, and the key that each head attends to most."""
    left, right = st.columns([1, 2])
    left.markdown(f"**The model generated “{plain(step.token)}”, which had a probability of {step.probability:.3f}.**")
    show_table(pd.DataFrame(step.likely, columns=["token", "probability"]), container=left, key="likely", height=220)
    if step.ends:
        right.caption("This token ends the text. The model does not read this token, so no head attends from it.")
        return
    right.markdown(f"**Token to which each head attends most from “{plain(step.token)}”**")
    show_table(shown, container=right, key="newest_row", height=220)


def _distance(back: Any) -> str:
    if pd.isna(back):
        return "the attention sink, which is no token"
    return "itself" if back == 0 else f"{back} token{'s' if back > 1 else ''} back"


def attended(rows: np.ndarray, keys: tuple[str, ...], query: int) -> pd.DataFrame:
    """Return the key with the largest weight of each head, the largest first.

    `rows` [layer, head, key] are the weights of the token at position `query`, counted from 1; a key after it is a
    sink.
    """
    layers, heads, length = rows.shape
    to, weight = rows.argmax(-1), rows.max(-1)
    names = keys if len(keys) == length else None
    return (
        pd.DataFrame(
            {
                "head": str(Head(layer, head)),
                "query": query,
                "attends to": names[to[layer, head]] if names else f"position {to[layer, head] + 1}",
                "key": int(to[layer, head]) + 1,
                "tokens back": query - 1 - int(to[layer, head]) if to[layer, head] < query else None,
                "weight": round(float(weight[layer, head]), 4),
            }
            for layer, head in np.ndindex(layers, heads)
        )
        .astype({"tokens back": "Int64"})
        .sort_values("weight", ascending=False)
    )


def show(tools: DeltaGenerator) -> None:
    view_context = context.now()
    with tools:
        prompt = pick_prompt(view_context.text or "")
    if not prompt.text.strip():
        st.info(
            "Type a prompt above and press Enter. The model continues the text, token by token.", icon=":material/edit:"
        )
        return
    with clear_errors():
        show_steps(str(view_context.checkpoint), prompt)
