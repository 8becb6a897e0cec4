"""What a decoder writes on, kept so that moving over its tokens computes nothing again."""

from typing import TYPE_CHECKING

import streamlit as st

from core import capture, models
from core.models.present import stamp_of
from pages.parts.generation.asking import Prompt
from pages.parts.shell import resources
from pages.parts.shell.messages import plain
from pages.parts.shell.sized_cache import SizedCache

if TYPE_CHECKING:
    from core.capture.generating import Generated, GenerationStep


def generated(name: str, prompt: Prompt) -> "Generated":
    """What a decoder writes on from a prompt or a chat. Raises CheckpointError, InputError."""
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

    with st.spinner("Writing on ..."):
        generation = _generations().get((name, prompt, stamp_of(name)), make, lambda generation: generation.size)
    placeholder.empty()
    return generation


@st.cache_resource(show_spinner=False)
def _generations() -> "SizedCache[Generated]":
    return SizedCache(lambda: resources.MAPS_ROOM // 4)
