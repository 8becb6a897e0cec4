"""Chats converted to text by the checkpoint's template, which runs in transformers' sandbox without files or modules.

The template gets only the messages and the names of special tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import CheckpointError, InputError, check_choice
from .checkpoint import LONGEST_TEXT, Checkpoint, visible_span
from .encoding import Encoding, spelled
from .tokenizing import split

ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Message:
    """A chat message with its text and the role of its author: "system", "user" or "assistant"."""

    role: str
    text: str


def chat_text(checkpoint: Checkpoint, messages: Sequence[Message]) -> str:
    """Format a chat with the chat template of a checkpoint, as a prompt that ends where the assistant's answer begins.

    Raises InputError if there are no messages, a message is empty, a role is unknown, or the chat is longer than
    LONGEST_TEXT characters; CheckpointError if there is no template, or it fails or is too long.
    """
    if not messages:
        raise InputError("A chat must have at least one message; got none. Add a message.")
    if empty := [number for number, message in enumerate(messages, 1) if not message.text.strip()]:
        raise InputError(f"Every message of a chat must contain text; message {empty[0]} is empty. Enter its text.")
    for message in messages:
        check_choice("The role of a message", message.role, ROLES)
    if sum(len(message.text) for message in messages) > LONGEST_TEXT:
        raise InputError(f"A chat must have at most {LONGEST_TEXT:,} characters; this chat has more. Shorten it.")
    if not getattr(checkpoint.tokenizer, "chat_template", None):
        raise CheckpointError(
            f"A chat needs a tokenizer with a chat template; {checkpoint.name} has none. Type the prompt as plain "
            "text, or choose a checkpoint that was tuned for chats."
        )
    turns = [{"role": message.role, "content": message.text} for message in messages]
    try:
        text = checkpoint.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # jinja2's own errors, or any error of the template's code
        why = str(error).strip().splitlines()
        raise CheckpointError(
            f"A chat template must be able to format the chat; the template of {checkpoint.name} failed "
            f"({why[0] if why else type(error).__name__}). Type the prompt as plain text, or correct chat_template."
        ) from error
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise CheckpointError(
            f"The text that a chat template produces must have at most {LONGEST_TEXT:,} characters; the text of "
            f"{checkpoint.name} has more. Type the prompt as plain text."
        )
    return text


def encode_chat(checkpoint: Checkpoint, messages: Sequence[Message]) -> Encoding:
    """Tokenize a chat with the chat template of a checkpoint, without truncation. Raises the errors of `chat_text`."""
    text = chat_text(checkpoint, messages)
    encoded = split(checkpoint.tokenizer, text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    spans = encoded["offset_mapping"]
    ids, special = encoded["input_ids"], set(checkpoint.tokenizer.all_special_ids)
    ordinary = [piece not in special for piece in ids]
    return Encoding(
        text=text,
        pair=None,
        ids=tuple(ids),
        segments=(0,) * len(ids),
        tokens=tuple(spelled(checkpoint.tokenizer, ids)),
        offsets=tuple(visible_span(span, text) if own else None for span, own in zip(spans, ordinary, strict=True)),
        sentence=tuple(0 if own else None for own in ordinary),
        first=0 if ids and not ordinary[0] else None,
        separators=tuple(k for k, own in enumerate(ordinary) if not own and k),
    )
