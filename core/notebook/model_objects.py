"""A model object that somebody has loaded, as a checkpoint of ours: observed, and left exactly as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import models
from ..attention import AttentionMaps
from ..capture.running import capture
from ..errors import CheckpointError, InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding


def checkpoint_of(model: Any, tokenizer: Any = None) -> Checkpoint:
    """A checkpoint around a loaded model and its tokenizer, or one that is opened.

    Args:
        model: an object that from_pretrained returned, or a checkpoint's name or folder.
        tokenizer: of the loaded model; not used with a name or folder.

    Returns:
        The checkpoint; a loaded model's is named after what it was loaded from, else after its family.

    Raises:
        CheckpointError: `model` is no Transformer of the transformers library that reads text, or its tokenizer is
            missing or has tokens without an embedding.
    """
    if isinstance(model, str):
        return models.opening.open_checkpoint(model)
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if not kind or not hasattr(model, "set_attn_implementation"):
        raise CheckpointError(
            "Maps are of a model of the transformers library (or a checkpoint's name); "
            f"{type(model).__name__} is none: give the object that from_pretrained returned."
        )
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise CheckpointError(
            f"A loaded model needs its tokenizer to read a text; {type(tokenizer).__name__} was given: "
            "show(model, tokenizer, text)."
        )
    name = str(getattr(model.config, "_name_or_path", "") or kind)
    models.refusals.refuse_no_text(model.config, name)
    models.refusals.refuse_other_vocabulary(model, tokenizer, name)
    return Checkpoint(name, model, tokenizer)


@contextmanager
def borrowed(checkpoint: Checkpoint) -> Iterator[None]:
    """The model in eval mode while the block runs; its attention implementation and modes are put back afterwards.

    So it does not matter which implementation somebody chose before, nor that they switch it between two calls.
    """
    model = checkpoint.model
    training = [module for module in model.modules() if module.training]
    before = model.config._attn_implementation
    model.eval()
    try:
        yield
    finally:
        if model.config._attn_implementation != before:
            model.set_attn_implementation(before)
        for module in training:
            module.training = True


def maps_of(checkpoint: Checkpoint, encoding: Encoding) -> AttentionMaps:
    """All maps of one input.

    Args:
        checkpoint: its model is put into eval mode for the pass, and left as it was.

    Raises:
        CheckpointError: some layers do not go through transformers' attention interface (as when somebody replaced a
            layer or its forward), so that their maps cannot be seen.
    """
    with borrowed(checkpoint):
        return capture(checkpoint, encoding)


def encode(checkpoint: Checkpoint, text: str, pair: str | None = None, *, most: int | None = None) -> Encoding:
    """Split a text into pieces; with a tokenizer that has no character offsets too, then without words.

    Args:
        pair: the second one; None for a single text.
        most: pieces, special tokens included; longer inputs are cut. None for as many as the model takes.

    Raises:
        InputError: a text is empty or blank.
    """
    if checkpoint.tokenizer.is_fast:
        return checkpoint.encode(text, pair, max_length=most)
    if not text.strip() or (pair is not None and not pair.strip()):
        raise InputError("A sentence must have at least one visible character; it is empty: type a text.")
    return _without_offsets(checkpoint, text, pair, min(most or checkpoint.max_length, checkpoint.max_length))


def _without_offsets(checkpoint: Checkpoint, text: str, pair: str | None, limit: int) -> Encoding:
    """What a tokenizer written in Python says; offsets of ordinary pieces are empty spans."""
    tokenizer = checkpoint.tokenizer
    whole = tokenizer(text, pair, truncation=False, verbose=False)["input_ids"]
    given = tokenizer(text, pair, truncation="longest_first", max_length=limit, return_special_tokens_mask=True,
                      return_token_type_ids=True, verbose=False)  # fmt: skip
    ids, special = given["input_ids"], given["special_tokens_mask"]
    segments = given.get("token_type_ids") or [0] * len(ids)
    mark = getattr(tokenizer, "sep_token_id", None)
    mark = tokenizer.eos_token_id if mark is None else mark
    encoding = Encoding(
        text=text,
        pair=pair,
        ids=tuple(ids),
        segments=tuple(segments),
        tokens=tuple(str(token) for token in tokenizer.convert_ids_to_tokens(ids)),
        offsets=tuple(None if out else (0, 0) for out in special),
        sentence=tuple(None if out else segment for out, segment in zip(special, segments, strict=True)),
        first=0 if ids and special[0] else None,
        separators=tuple(k for k, token_id in enumerate(ids) if special[k] and token_id == mark),
        cut=len(whole) - len(ids),
    )
    return checkpoint.fitted(encoding)


def must_have_words(checkpoint: Checkpoint) -> None:
    """Raises CheckpointError where the tokenizer cannot say which characters a piece is of."""
    if not checkpoint.tokenizer.is_fast:
        raise CheckpointError(
            "Maps between words need a tokenizer with character offsets; "
            f"{type(checkpoint.tokenizer).__name__} has none: show pieces (words=False), or load the fast tokenizer."
        )
