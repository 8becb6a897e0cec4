"""Distances between all heads of two checkpoints on common inputs, and between these heads and random weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ...capture.common_rows import (
    CommonInput,
    CommonRows,
    RowBlock,
    blocks,
    common_tokens,
    common_words,
    drawn_queries,
    split_alike,
    take_rows,
)
from ...errors import InputError
from ...models.checkpoint import Checkpoint
from ...models.classifier import random_copy
from ...models.encoding import Encoding
from ...scoring.counterparts import (
    SimilaritySums,
    entropy_factors,
    mean_distances,
    mean_entropy,
    sharpened,
    similarity_sums,
)
from ..attention.inputs import SourceText

TOKENS, WORDS = "tokens", "words"
LEAST_UNITS = 3  # shared tokens or words; with fewer, all heads look alike
MOST_UNKNOWN = 0.5  # share of a text's tokens that a vocabulary may lack


@dataclass(frozen=True)
class CommonInputs:
    """Inputs that two checkpoints can both encode, with the tokens or words that are the same in both encodings."""

    keys: str
    backward: bool
    numbers: np.ndarray
    first: tuple[Encoding, ...]
    other: tuple[Encoding, ...]
    common: tuple[CommonInput, ...]
    queries: tuple[list[int], ...]

    def part(self, chosen: Sequence[int]) -> "CommonInputs":
        picked = [tuple(values[k] for k in chosen) for values in (self.first, self.other, self.common, self.queries)]
        return CommonInputs(self.keys, self.backward, self.numbers[list(chosen)], *picked)  # type: ignore[arg-type]

    def rows_of_first(self, checkpoint: Checkpoint) -> list[RowBlock]:
        return self._rows(checkpoint, self.first, [common.first for common in self.common])

    def rows_of_other(self, checkpoint: Checkpoint) -> list[RowBlock]:
        return self._rows(checkpoint, self.other, [common.other for common in self.common])

    def _rows(self, checkpoint: Checkpoint, encodings: Sequence[Encoding], groups: Sequence[Any]) -> list[RowBlock]:
        lengths = [len(encoding) for encoding in encodings]
        observer = CommonRows(checkpoint, lengths, groups, self.queries, backward=self.backward)
        return blocks(take_rows(checkpoint, encodings, observer))


def common_inputs(
    first: Checkpoint, other: Checkpoint, sources: Sequence[SourceText], *, queries: int | None, seed: int
) -> CommonInputs:
    """Select the inputs for which two checkpoints share enough tokens or words to compare their attention maps.

    `queries` is the number of tokens or words per input that are compared as queries (None: all). Raises InputError if
    a vocabulary lacks most of the texts, or no input has words in common.
    """
    encodings = [(first.encode(source.text, source.pair), other.encode(source.text, source.pair)) for source in sources]
    for checkpoint, side in ((first, 0), (other, 1)):
        share = float(np.mean([pair[side].unknown for pair in encodings]))
        if share > MOST_UNKNOWN:
            raise InputError(
                f"Both checkpoints must know most tokens of the inputs; {checkpoint.name} does not know {share:.0%} of "
                "them. Choose inputs in the language of this checkpoint, with --task or --text."
            )
    keys = TOKENS if all(split_alike(*pair) for pair in encodings) else WORDS
    backward = first.causal != other.causal
    common = [(common_tokens if keys == TOKENS else common_words)(*pair) for pair in encodings]
    chosen = [k for k, shared in enumerate(common) if len(shared.first) >= LEAST_UNITS]
    if not chosen:
        raise InputError(
            f"At least one input must have {LEAST_UNITS} words that both checkpoints delimit in the same way; no input "
            f"has so many for {first.name} and {other.name}. Choose longer inputs whose words are separated by spaces."
        )
    drawn = tuple(
        drawn_queries(
            len(common[k].first),
            queries=queries,
            backward=first.causal or other.causal,
            seed=(seed, sources[k].number),
        )
        for k in chosen
    )
    return CommonInputs(
        keys,
        backward,
        np.array([sources[k].number for k in chosen]),
        tuple(encodings[k][0] for k in chosen),
        tuple(encodings[k][1] for k in chosen),
        tuple(common[k] for k in chosen),
        drawn,
    )


def distances(first: Sequence[RowBlock], other: Sequence[RowBlock]) -> np.ndarray:
    """Compute the mean Jensen-Shannon distances between the heads of two checkpoints, as [input, head, head]."""
    count = sum(len(set(block.inputs)) for block in first)
    means = np.zeros((count, len(first[0].rows), len(other[0].rows)), dtype=np.float32)
    with torch.no_grad():
        for mine, theirs in zip(first, other, strict=True):
            numbers = list(dict.fromkeys(mine.inputs))
            local = torch.tensor([numbers.index(number) for number in mine.inputs])
            means[numbers] = mean_distances(mine.rows, theirs.rows, local).numpy()
    return means


def compared(first: Checkpoint, other: Checkpoint, inputs: CommonInputs) -> SimilaritySums:
    """Compute the similarities between all heads of two checkpoints, summed over the inputs."""
    measured = distances(inputs.rows_of_first(first), inputs.rows_of_other(other))
    return similarity_sums(measured, inputs.numbers)


def beside_random(
    first: Checkpoint, other: Checkpoint, inputs: CommonInputs, seeds: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the similarity of each head to all heads of another checkpoint and to the most similar random head.

    Each random head is scaled to the mean row entropy of the head at the same position, because random weights attend
    nearly uniformly. `seeds` has one seed per draw. *Shape:* (head, other head), (draw, head).
    """
    mine, theirs = inputs.rows_of_first(first), inputs.rows_of_other(other)
    sums = similarity_sums(distances(mine, theirs), inputs.numbers).similarity()
    entropy = mean_entropy([block.rows for block in theirs])
    drawn = []
    for seed in seeds:
        random = inputs.rows_of_other(random_copy(other, seed=seed))
        factors = entropy_factors([block.rows for block in random], entropy)
        scaled = [replace(block, rows=sharpened(block.rows, factors)) for block in random]
        drawn.append(1 - distances(mine, scaled).mean(0).min(1))
    return sums, np.stack(drawn)
