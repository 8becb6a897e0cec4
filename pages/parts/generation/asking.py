"""What a decoder writes on from: a prompt or a chat, how many tokens, and how they are chosen."""

from typing import NamedTuple

import streamlit as st


class Prompt(NamedTuple):
    """text: the prompt, or the user's message of a chat. system: a chat's first message, which may be empty."""

    text: str
    chat: bool = False
    system: str = ""
    new: int = 20
    temperature: float = 0.0
    seed: int = 0


def pick_prompt(text: str) -> Prompt:
    """How to write on from `text`, in a popover."""
    with st.popover("How", icon=":material/tune:", help="Chat, number of tokens, how they are chosen"):
        chat = st.toggle("As a chat, in the checkpoint's own template", key="chat", bind="query-params")
        system = st.text_input("System message", key="chat_system", bind="query-params", disabled=not chat) or ""
        new = st.number_input("New tokens", 1, 512, 20, key="new_tokens", bind="query-params")
        temperature = st.slider(
            "Temperature", 0.0, 2.0, 0.0, 0.1, key="temperature", bind="query-params", help="0: the most probable token"
        )
        seed = st.number_input(
            "Seed", 0, 2**31, 0, key="generation_seed", bind="query-params", disabled=temperature == 0
        )
    return Prompt(text, chat, system, int(new), float(temperature), int(seed))
