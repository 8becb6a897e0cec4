"""Pairs of a language model: two sentences with one place to fill, the word that fits the first, and a foil.

A line of a file of pairs with four columns is such a pair. A masked model fills its mask, written [MASK]; a decoder
writes the word after the sentence, which ends before it. m is the logit of the word less that of its foil there.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import capture, studies
from ...errors import InputError
from ...reading import lines_of, read_text
from ...tasks.glue import task_of
from ..ablation import disabling

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint
    from ...models.encoding import Encoding
    from .circuit import CircuitOptions

MASK = "[MASK]"
WITHOUT_WORDS, WITH_WORDS = 2, 4


def columns_of(path: str) -> list[list[str]]:
    """The lines of a file of pairs, each in its two or four columns.

    Raises:
        InputError: it cannot be read, or a line has another number of columns than the first.
    """
    try:
        lines = lines_of(read_text(path, given=True))
    except OSError as error:
        raise InputError(
            f"A file of pairs is text in UTF-8, a tab between two sentences; {path} cannot be read: name another."
        ) from error
    split = [[part.strip() for part in line.split("\t")] for line in lines if line.strip()]
    if not split:
        raise InputError(f"A file of pairs has a pair in every line; {path} has no line: write some.")
    wanted = WITH_WORDS if len(split[0]) == WITH_WORDS else WITHOUT_WORDS
    for number, parts in enumerate(split, 1):
        if len(parts) != wanted or not all(parts):
            raise InputError(
                "Every line of a file of pairs has two sentences with a tab between, then a word and its foil "
                f"in all or none; line {number} has not: mend it."
            )
    return split


def names_words(path: str | None) -> bool:
    """Whether the lines of a file of pairs end in a word and its foil, for a language model to choose between."""
    return path is not None and len(columns_of(path)[0]) == WITH_WORDS


def fills_words(options: "CircuitOptions") -> bool:
    """Whether the pairs of a study name words that a language model fills in."""
    return names_words(options.pairs_file)


def opened(options: "CircuitOptions") -> disabling.Opened:
    """The classifier of the options, or the language model where pairs name words.

    Raises:
        CheckpointError: it has no such head.
    """
    if not fills_words(options):
        return disabling.opened(options)
    model = studies.worker_cache.get_checkpoint(options.checkpoint, head="language")
    return disabling.Opened(model, task_of(options.task), ())


def encoded(checkpoint: "Checkpoint", texts: tuple[str, str | None]) -> "Encoding":
    """A text as the checkpoint reads it, with its own mask where [MASK] is written."""
    mask = checkpoint.tokenizer.mask_token or MASK
    return checkpoint.encode(texts[0].replace(MASK, mask), texts[1])


def place_of(checkpoint: "Checkpoint", encoding: "Encoding") -> int:
    """Where the word is filled in: a decoder's last token, or the one mask.

    Returns:
        The position, from 0.

    Raises:
        InputError: a masked model's sentence has no mask, or several.
    """
    if checkpoint.causal:
        return len(encoding) - 1
    places = [k for k, piece in enumerate(encoding.ids) if piece == checkpoint.tokenizer.mask_token_id]
    if len(places) != 1:
        raise InputError(
            f'A sentence with a word to fill in has one {MASK}; "{encoding.text[:60]}" has {len(places)}: mend it.'
        )
    return places[0]


def piece_of(checkpoint: "Checkpoint", word: str) -> int:
    """The vocabulary's number of a word that is one piece after a space: a byte-level mask takes the space with it.

    Args:
        word: without spaces.

    Raises:
        InputError: it is several pieces, or none, or unknown.
    """
    tokenizer = checkpoint.tokenizer
    pieces = tokenizer.encode(f" {word}", add_special_tokens=False)
    if len(pieces) != 1 or pieces[0] == tokenizer.unk_token_id:
        raise InputError(
            f'A word and its foil are one piece each; "{word[:40]}" is {len(pieces)} or unknown: take another.'
        )
    return int(pieces[0])


def measured(
    checkpoint: "Checkpoint", sides: "Sequence[Sequence[Encoding]]", words: Sequence[tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The logit of every word less its foil's, in A and in B.

    Args:
        sides: the sentences A, then the sentences B, one a pair.

    Returns:
        m of A and of B, then the numbers of words and of foils in the vocabulary. *Shape:* (pair,) each.

    Raises:
        InputError: a word is not one piece, a foil is the word itself, or a sentence has no place to fill.
    """
    pieces = np.array([[piece_of(checkpoint, word) for word in both] for both in words])
    if (pieces[:, 0] == pieces[:, 1]).any():
        number = int((pieces[:, 0] == pieces[:, 1]).argmax()) + 1
        raise InputError(f"A foil is another word; line {number} has the same twice: mend it.")
    at, found = np.arange(len(pieces)), []
    for encodings in sides:
        places = [place_of(checkpoint, encoding) for encoding in encodings]
        logits = capture.logits.answers(checkpoint, encodings, places).double().cpu().numpy()
        found.append(logits[at, pieces[:, 0]] - logits[at, pieces[:, 1]])
    return found[0], found[1], pieces[:, 0], pieces[:, 1]
