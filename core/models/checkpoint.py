"""An opened checkpoint: the model, its tokenizer, and properties that every experiment needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Int

from ..attention import Head, all_heads
from ..errors import CheckpointError, InputError
from .encoding import Encoding, Span, spelled
from .family import Family, family_in
from .head_sets import HeadSet, Windows, attending_layers, head_sets, windows_of
from .tokenizing import split

LONGEST_TEXT = 200_000  # characters; more is refused before the tokenizer sees it


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model in eval mode together with its tokenizer. Several sessions can share a checkpoint.

    Attributes:
        model: a PreTrainedModel, or a classifier of this project around one.
        weights_hash: SHA-256 of the files, if it was opened from files.
        revision: the requested revision of a hub ID, or None.
        notes: sentences about what was left out or replaced at opening.
        sharpness: by attention call, a factor per head that multiplies its scores.
    """

    name: str
    model: Any  # a PreTrainedModel; transformers' classes are loosely typed too
    tokenizer: Any
    weights_hash: str = ""
    revision: str | None = None
    notes: tuple[str, ...] = ()
    sharpness: Mapping[int, torch.Tensor] = field(default_factory=dict)

    @cached_property
    def family(self) -> Family:
        return family_in(self.model.config)

    @cached_property
    def sets(self) -> tuple[HeadSet, ...]:
        """Return the sets of attention heads: encoder, decoder and cross-attention, or one set of all heads."""
        return head_sets(self.model.config, self.family, attending_layers(self.model))

    def head_set(self, part: str = "") -> HeadSet:
        """Return the set of heads with the given name, such as "encoder"; "" is the first set. Raises CheckpointError
        if the name is unknown."""
        for head_set in self.sets:
            if part in ("", head_set.part):
                return head_set
        raise CheckpointError(
            f"Only an encoder-decoder has heads called {part}; this checkpoint has one set of heads: name them like "
            "L1H2."
            if len(self.sets) == 1
            else f"The part of an encoder-decoder must be one of {', '.join(own.part for own in self.sets)}; got "
            f"{part!r}. Choose one."
        )

    @cached_property
    def windows(self) -> Windows:
        """Return the attention window of each layer: how many keys a query can see, including its own position. None
        means no limit in a layer, and () means no limit in any layer."""
        return windows_of(self.model.config)

    @property
    def layers(self) -> int:
        """Return the number of layers in the model, or in the encoder of an encoder-decoder."""
        return self.sets[0].layers

    @property
    def heads(self) -> int:
        """Return the number of attention heads per layer in the model, or in the encoder of an encoder-decoder."""
        return self.sets[0].heads

    @property
    def attending(self) -> tuple[int, ...]:
        """Return the zero-based layers that have attention in a hybrid model such as Jamba; () for other models."""
        return self.sets[0].attending

    @property
    def all_heads(self) -> list[Head]:
        """Return all attention heads, layer by layer; for an encoder-decoder, only the heads of the encoder."""
        return all_heads(self.layers, self.heads, self.attending)

    @property
    def calls(self) -> int:
        return sum(len(head_set.calls) for head_set in self.sets)

    @property
    def causal(self) -> bool:
        return self.family.causal

    @property
    def dtype(self) -> str:
        return str(next(self.model.parameters()).dtype).removeprefix("torch.")

    @property
    def size(self) -> int:
        return sum(weights.numel() * weights.element_size() for weights in self.model.parameters())

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def labels(self) -> dict[int, str] | None:
        """Return the class names of a sequence classifier in the order of its outputs; None for other models."""
        architectures = type(self.model).__name__
        return dict(self.model.config.id2label) if "SequenceClassification" in architectures else None

    @cached_property
    def max_length(self) -> int:
        """Return the largest number of tokens that an input may have, including special tokens."""
        known = learned_positions(self.model)
        if not known:
            limits = [getattr(self.model.config, name, None) for name in self.family.positions]
            known = [int(limit) for limit in limits if limit]
        limit = getattr(self.tokenizer, "model_max_length", None)
        if limit and 0 < limit < 1_000_000:
            known.append(int(limit))
        return min(known, default=512)

    @cached_property
    def token_types(self) -> int:
        """Return the number of token types (segment IDs). If it is 0 or 1, sentences are not distinguished."""
        if self.model.config.model_type == "xlnet":  # relative segments, without a table
            return 3
        return int(getattr(self.model.config, "type_vocab_size", None) or 0)

    @property
    def takes_token_types(self) -> bool:
        """Return whether both the model and its tokenizer use token types (segment IDs)."""
        return self.token_types > 1 and "token_type_ids" in self.tokenizer.model_input_names

    def encode(self, text: str, pair: str | None = None, *, max_length: int | None = None) -> Encoding:
        """Tokenize a sentence or a pair of sentences, and add the special tokens of the model.

        Longer inputs are truncated at the end of the longer sentence; `Encoding.cut` counts the tokens. Raises
        InputError if the text is empty or longer than LONGEST_TEXT characters, or no token fits.

        Args:
            pair: the second sentence; for an encoder-decoder, the input of the decoder (`Encoding.target`).
            max_length: in tokens including special tokens, at most that of the checkpoint.
        """
        for name, value in (("sentence", text), ("target" if self.family.translates else "second sentence", pair)):
            if value is not None and not value.strip():
                raise InputError(f"The {name} must contain visible text; it is empty. Enter some text.")
            if value is not None and len(value) > LONGEST_TEXT:
                raise InputError(
                    f"The {name} must have at most {LONGEST_TEXT:,} characters; got {len(value):,}. Shorten it, "
                    "or split it into several examples."
                )
            if value is not None and not _is_encodable(value):
                raise InputError(
                    f"The {name} must be valid Unicode text; it contains an unpaired surrogate (half of a character). "
                    "Remove this character."
                )
        limit = min(max_length or self.max_length, self.max_length)
        if self.family.translates:
            encoding = replace(_encode(self.tokenizer, text, None, limit, adds_start=False), target=self.target(pair))
        else:
            encoding = _encode(self.tokenizer, text, pair, limit, adds_start=self.causal)
        encoding = self.fitted(encoding)
        if not encoding.ordinary:
            if encoding.cut:
                raise InputError(
                    "The token limit must leave room for at least one token besides the special tokens; the limit is "
                    f"{limit}. Raise the limit, or model_max_length in tokenizer_config.json."
                )
            raise InputError(
                "A text must have at least one token; this text has none. Type a text with visible characters."
            )
        return encoding

    def inputs(self, encodings: Sequence[Encoding]) -> dict[str, Int[torch.Tensor, "batch _"]]:
        """Return the keyword arguments for the model's forward method, for a batch of inputs with equal length."""
        given = {"input_ids": [encoding.ids for encoding in encodings]}
        given["attention_mask"] = [(1,) * len(encoding) for encoding in encodings]
        if self.takes_token_types:
            given["token_type_ids"] = [encoding.segments for encoding in encodings]
        targets = [encoding.target.ids for encoding in encodings if encoding.target is not None]
        if targets and self.labels is None:  # a classifier's decoder gets the input itself
            given["decoder_input_ids"] = targets
        return {name: torch.tensor(rows, device=self.device) for name, rows in given.items()}

    def fitted(self, encoding: Encoding) -> Encoding:
        """Return an encoding that the model can process. If the tokenizer uses token types that the model does not
        have, all token types become 0.

        Raises CheckpointError if the model has no embedding for a token.
        """
        rows = embedding_rows(self.model)
        largest = max(encoding.ids, default=0)
        if rows is not None and largest >= rows:
            token = encoding.tokens[encoding.ids.index(largest)]
            raise CheckpointError(
                f"Every token must have an embedding; the token {token!r} has the ID {largest}, but {self.name} has "
                f"only {rows:,} embeddings. After adding tokens, call model.resize_token_embeddings(len(tokenizer)) "
                "and train the new embeddings."
            )
        if self.takes_token_types and max(encoding.segments, default=0) < self.token_types:
            return encoding
        return replace(encoding, segments=(0,) * len(encoding))

    def target(self, text: str | None) -> Encoding:
        """Tokenize a target text for a decoder. Raises CheckpointError if the config defines no start token."""
        config = self.model.config
        start = getattr(config, "decoder_start_token_id", None)
        if start is None:
            raise CheckpointError(
                f"An encoder-decoder must define the start token of its decoder; config.json of {self.name} "
                "has no decoder_start_token_id. Add it (0 for T5, 2 for BART)."
            )
        return started(self.tokenizer, text or "", int(start), self.max_length)


# ---------------------------------------------------------------- pieces


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def started(tokenizer: Any, text: str, start: int, limit: int) -> Encoding:
    """Tokenize a text (which may be empty) with a start token and no other special tokens."""
    part = split(tokenizer, text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    room = max(limit - 1, 0)
    own = part["input_ids"][:room]
    return Encoding(
        text=text,
        pair=None,
        ids=(start, *own),
        segments=(0,) * (1 + len(own)),
        offsets=(None, *(visible_span(span, text) for span in part["offset_mapping"][:room])),
        tokens=tuple(spelled(tokenizer, [start, *own])),
        sentence=(None, *(0 for _ in own)),
        first=0,
        separators=(),
        cut=len(part["input_ids"]) - len(own),
    )


def _encode(tokenizer: Any, text: str, pair: str | None, limit: int, *, adds_start: bool) -> Encoding:
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"The tokenizer must report character offsets; {type(tokenizer).__name__} does not. Save a fast "
            "tokenizer with this checkpoint."
        )
    if adds_start and tokenizer.num_special_tokens_to_add(pair=True) == 0:
        return _with_start(tokenizer, text, pair, limit)
    return _with_template(tokenizer, text, pair, limit)


def _with_template(tokenizer: Any, text: str, pair: str | None, limit: int) -> Encoding:
    """Encoders: the tokenizer's own template; pairs are truncated by `longest_first`, as in the papers."""
    whole = split(tokenizer, text, pair, truncation=False, verbose=False)
    encoded = split(
        tokenizer, text, pair, truncation="longest_first", max_length=limit, return_offsets_mapping=True, verbose=False
    )
    batch = encoded.encodings[0]
    ids, sequence = encoded["input_ids"], batch.sequence_ids
    separators = tuple(
        k for k, token_id in enumerate(ids) if sequence[k] is None and token_id == tokenizer.sep_token_id
    )
    first = 0 if ids and sequence[0] is None else None
    return Encoding(
        text=text,
        pair=pair,
        ids=tuple(ids),
        segments=tuple(encoded.get("token_type_ids", [0] * len(ids))),
        tokens=tuple(spelled(tokenizer, ids)),
        sentence=tuple(sequence),
        first=first,
        separators=separators,
        offsets=tuple(
            None if sequence[k] is None else visible_span(span, pair if sequence[k] else text)
            for k, span in enumerate(encoded["offset_mapping"])
        ),
        cut=len(whole["input_ids"]) - len(ids),
    )


def _with_start(tokenizer: Any, text: str, pair: str | None, limit: int) -> Encoding:
    """Decoders without special tokens: BOS, the sentence, and end-of-text before a second sentence."""
    start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    if start is None:
        raise CheckpointError(
            "The tokenizer of a decoder must define a beginning-of-text or end-of-text token; this tokenizer has "
            "neither. Set bos_token or eos_token in its tokenizer_config.json."
        )
    between = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else start
    parts = [
        split(tokenizer, side, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        for side in (text, pair)
        if side is not None
    ]
    kept = _longest_first([len(part["input_ids"]) for part in parts], limit - len(parts))
    ids: list[int] = [start]
    offsets: list[Span | None] = [None]
    sentence: list[int | None] = [None]
    for number, (part, room) in enumerate(zip(parts, kept, strict=True)):
        if number:
            ids, offsets, sentence = [*ids, between], [*offsets, None], [*sentence, None]
        ids += part["input_ids"][:room]
        offsets += [visible_span(span, (text, pair)[number]) for span in part["offset_mapping"][:room]]
        sentence += [number] * room
    separators = () if len(parts) == 1 else (1 + kept[0],)
    return Encoding(
        text=text,
        pair=pair,
        ids=tuple(ids),
        segments=(0,) * len(ids),
        offsets=tuple(offsets),
        tokens=tuple(spelled(tokenizer, ids)),
        sentence=tuple(sentence),
        first=0,
        separators=separators,
        cut=sum(len(part["input_ids"]) for part in parts) - sum(kept),
    )


def visible_span(span: tuple[int, int], text: str | None) -> tuple[int, int]:
    """Return the span of a token without surrounding white space, or the last character of a white-space token."""
    start, end = span
    while start < end - 1 and text and text[start].isspace():
        start += 1
    while start < end - 1 and text and text[end - 1].isspace():
        end -= 1
    return start, end


def _longest_first(lengths: list[int], room: int) -> list[int]:
    """Return how many tokens of each sentence remain if tokens of the longer one are removed until they fit."""
    kept = list(lengths)
    while sum(kept) > max(room, 0):
        longest = max(range(len(kept)), key=lambda k: (kept[k], k))
        kept[longest] -= 1
    return kept


# ---------------------------------------------------------------- tables of embeddings

_POSITION_TABLES = {
    "position_embeddings", "position_embedding", "embed_positions", "embed_position", "pos_embeddings", "pos_embed",
    "positions_embed", "wpe",
}  # fmt: skip
_NOT_TEXT = ("vision", "visual", "image", "audio", "video", "speech", "patch")


def learned_positions(model: Any) -> list[int]:
    """Return how many tokens each table of position embeddings supports. The result is empty if there is no such table.

    RoBERTa-like tables start after their padding index, BART-like ones at an offset.
    """
    lengths = []
    for name, module in model.named_modules():
        is_table = hasattr(module, "padding_idx") and name.rpartition(".")[2] in _POSITION_TABLES
        table = getattr(module, "weight", None)  # XGLM's sinusoids have none and grow with the text
        if is_table and table is not None and not any(word in name.lower() for word in _NOT_TEXT):
            offset, padding = getattr(module, "offset", None), module.padding_idx
            if not isinstance(offset, int):
                offset = 0 if padding is None else int(padding) + 1
            lengths.append(len(table) - offset)  # I-BERT's table is not an nn.Embedding
    return lengths


def embedding_rows(model: Any) -> int | None:
    """Return the number of rows in the token embedding table of a model; None if it has no such table."""
    transformer = model if hasattr(model, "get_input_embeddings") else getattr(model, "base", model)
    try:
        table = transformer.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        return None
    weight = getattr(table, "weight", None)
    return int(weight.shape[0]) if isinstance(weight, torch.Tensor) and weight.ndim == 2 else None
