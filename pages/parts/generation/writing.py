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


def generated(name: str, asked: Prompt) -> "Generated":
    """What a decoder writes on from a prompt or a chat. Raises CheckpointError, InputError."""
    model = resources.checkpoint(name, "language")
    place = st.empty()
    told: list[str] = []

    def tell(step: "GenerationStep") -> None:
        told.append(step.token)
        place.caption(plain("".join(told)))

    def make() -> "Generated":
        if asked.chat:
            turns = [models.chat.Message("system", asked.system)] if asked.system.strip() else []
            prompt = models.chat.encode_chat(model, [*turns, models.chat.Message("user", asked.text)])
        else:
            prompt = model.encode(asked.text)
        return capture.generating.generate(
            model, prompt, new=asked.new, temperature=asked.temperature, seed=asked.seed, on_step=tell
        )

    with st.spinner("Writing on ..."):
        made = _generations().get((name, asked, stamp_of(name)), make, lambda made: made.size)
    place.empty()
    return made


@st.cache_resource(show_spinner=False)
def _generations() -> "SizedCache[Generated]":
    return SizedCache(lambda: resources.MAPS_ROOM // 4)
