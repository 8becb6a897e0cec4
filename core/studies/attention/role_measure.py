"""Roles of heads on a checkpoint: on a task's rows, and on random words that come twice."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...capture.copying import copying
from ...capture.running import BATCH_TOKENS, Observer, run
from ...capture.words import groups_of
from ...errors import InputError
from ...map_sums import MapSums, Needs
from ...models.checkpoint import Checkpoint
from ...models.encoding import Encoding
from ...scoring.intervals import EVERY_LAYER
from ...scoring.repeated_tokens import RepeatedTokens, repeated_tokens
from ...scoring.role_blocks import RoleBlocks
from ...scoring.roles import Role, RoleMeans, RolePositions
from .partials import InputOffset, RoleSums
from .passes import Prepared

ON_REPEATS: tuple[Role, ...] = ("duplicate", "prefix")


class RoleMeasure:
    """Roles of every head on one checkpoint."""

    tags = True

    def __init__(self, checkpoint: Checkpoint):
        self.checkpoint = checkpoint
        self.roles = RoleMeans(checkpoint.layers, checkpoint.heads)
        self.copying = np.zeros((0, 0))
        self._places: list[RolePositions] = []
        self._numbers: list[int] = []
        self._blocks: dict[int, RoleBlocks] = {}

    def take(self, inputs: Sequence[Prepared]) -> list[Observer]:
        """Find where each input's targets are."""
        self._places = [role_positions_of(ready, causal=self.checkpoint.causal) for ready in inputs]
        self._numbers = [ready.number for ready in inputs]
        return [self]

    def update(self, layer: int | slice, weights: Any, inputs: list[int]) -> None:
        """One layer's maps [batch, head, query, key]; inputs with equal places together."""
        maps = weights.double().cpu().numpy()
        groups: dict[RolePositions, list[int]] = {}
        for row, number in enumerate(inputs):
            groups.setdefault(self._places[number], []).append(row)
        for places, rows in groups.items():
            self.roles.update_layer(layer, maps[rows], places, [self._numbers[inputs[row]] for row in rows])

    def update_layers(self, weights: Any, inputs: list[int]) -> None:
        """All layers' maps [batch, layer and head, query, key]."""
        self.update(EVERY_LAYER, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Of long inputs blocks of queries, which are added up one layer after the other."""
        if queries != keys:
            return None
        self._begin(inputs)
        return [Needs(blocks=partial(self._take, number)) for number in inputs]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        """One layer without its maps: its blocks have gone by."""
        blocks = np.stack([self._blocks[number].result() for number in inputs])
        self.roles.add(layer, blocks, [self._numbers[number] for number in inputs])
        self._begin(inputs)

    def _begin(self, inputs: Sequence[int]) -> None:
        self._blocks = {number: RoleBlocks(self.checkpoint.heads, self._places[number]) for number in inputs}

    def _take(self, number: int, head: int, start: int, weights: Any) -> None:
        self._blocks[number].take(head, start, weights)

    def repeats(self, *, sequences: int, period: int, seed: int) -> None:
        """Random words twice, `sequences` times, each beside a control without repeats; and the copying scores.

        Raises InputError where the vocabulary has too few words.
        """
        checkpoint = self.checkpoint
        words, ends = whole_words(checkpoint), _ends(checkpoint)
        drawn = [
            repeated_tokens(
                words, period, seed=seed * 1_000_003 + k, before=ends[0], after=ends[1], causal=checkpoint.causal
            )
            for k in range(sequences)
        ]
        most = max(1, BATCH_TOKENS // (2 * drawn[0].places.length))
        for start in range(0, sequences, most):
            part = drawn[start : start + most]
            encodings = [
                _encoding(ids, sequence, checkpoint) for sequence in part for ids in (sequence.ids, sequence.control)
            ]
            run(checkpoint, encodings, [_Pairs(self.roles, part[0].places, start)])
        values = copying(checkpoint)
        self.copying = np.zeros((0, 0)) if values is None else values

    def sums(self, at: InputOffset) -> RoleSums:
        """The sums over all inputs so far, and copying scores; at: which inputs they are of."""
        shape = (self.checkpoint.layers, self.checkpoint.heads)
        return RoleSums(at, *shape, self.checkpoint.causal, self.roles.means, self.copying)


class _Pairs:
    """Observes sequences and their controls, one after the other in a batch of one length."""

    def __init__(self, roles: RoleMeans, places: RolePositions, first: int):
        self.roles, self.places, self.first = roles, places, first

    def update(self, layer: int | slice, weights: Any, inputs: list[int]) -> None:
        """One layer's maps [batch, head, query, key], even inputs with repeats, odd ones without."""
        maps = weights.double().cpu().numpy()[np.argsort(inputs)]
        pairs = len(maps) // 2
        self.roles.update_layer(
            layer, maps[::2], self.places, range(self.first, self.first + pairs), control=maps[1::2], only=ON_REPEATS
        )

    def update_layers(self, weights: Any, inputs: list[int]) -> None:
        """All layers' maps [batch, layer and head, query, key]."""
        self.update(EVERY_LAYER, weights, inputs)


def role_positions_of(ready: Prepared, *, causal: bool) -> RolePositions:
    """Separators, the least frequent word, and the dependencies of an input, as positions of its pieces."""
    encoding, links = ready.encoding, []
    for sentence, tagged in enumerate(ready.tagged):
        for word, (start, end) in zip(tagged.words, tagged.spans, strict=True):
            governor = tagged.spans[word.head]
            if governor != (start, end) and word.dep != "punct":
                links += [
                    (a, b)
                    for a in encoding.pieces(start, end, sentence)
                    for b in encoding.pieces(*governor, sentence)
                    if a != b
                ]
    return RolePositions(
        len(encoding),
        encoding.first or 0,
        tuple(encoding.separators),
        causal=causal,
        rare=_rare(encoding),
        links=tuple(dict.fromkeys(links)),
    )


def _rare(encoding: Encoding) -> tuple[int, ...]:
    """The word of the most pieces, or of the highest number in the vocabulary: those are the least frequent.

    Vocabularies of sub-words are built by joining what is frequent first. None where an input has one word only.
    """
    words = [word for word in groups_of(encoding) if encoding.offsets[word[0]] is not None]
    lettered = [word for word in words if any(encoding.tokens[k].strip("Ġ▁# ").isalnum() for k in word)]
    if len(lettered) < 2:
        return ()
    rarity = [(len(word), max(encoding.ids[k] for k in word)) for word in lettered]
    return tuple(lettered[rarity.index(max(rarity))])


def whole_words(checkpoint: Checkpoint) -> list[int]:
    """Vocabulary numbers of pieces that are words of letters on their own."""
    marked = ("Ġ", "▁")
    vocabulary: dict[str, int] = checkpoint.tokenizer.get_vocab()
    starts = any(piece.startswith(marked) for piece in vocabulary)
    words = [
        number
        for piece, number in vocabulary.items()
        if (piece.startswith(marked) if starts else not piece.startswith("##"))
        and len(word := piece.lstrip("Ġ▁")) > 2
        and word.isascii()
        and word.isalpha()
    ]
    if not words:
        raise InputError(
            f"Repeated tokens need a vocabulary with whole words; that of {checkpoint.name} has none: choose another."
        )
    return sorted(words)


def _ends(checkpoint: Checkpoint) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the checkpoint's tokenizer puts before and after a sentence."""
    plain = checkpoint.encode("word")
    ordinary = plain.ordinary
    return plain.ids[: ordinary[0]], plain.ids[ordinary[-1] + 1 :]


def _encoding(ids: tuple[int, ...], tokens: RepeatedTokens, checkpoint: Checkpoint) -> Encoding:
    nothing, length = (None,) * len(ids), len(ids)
    first = tokens.places.first if checkpoint.encode("word").first is not None else None
    return Encoding("", None, ids, (0,) * length, ("",) * length, nothing, nothing, first, tokens.places.separators)
