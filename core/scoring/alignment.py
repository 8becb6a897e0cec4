"""Alignment of the words of two inputs, and the change of each attention map between them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import InputError

# ---------------------------------------------------------------- word alignment by cross attention


Links = Sequence[tuple[int, int]]  # (source word, target word), from 0


def hits(guessed: Int[np.ndarray, "guess word"], links: Links) -> Bool[np.ndarray, "guess linked"]:
    """Return, for each target word with a gold link, whether its guessed source word is correct. A guess is correct if
    the gold alignment links the two words."""
    linked, gold_links = sorted({target for _, target in links}), set(links)
    right = [[(int(row[target]), target) in gold_links for target in linked] for row in guessed]
    return np.array(right, dtype=bool).reshape(len(guessed), len(linked))


class PositionTable:
    """A word alignment baseline that guesses the source word of each target word from word positions alone.

    The guess for target word t of T in a source of S words is the source word most often linked to it in training
    examples; if (t, T, S) does not occur there, the word at the same relative position.
    """

    def __init__(self, rows: Sequence[tuple[int, int, Links]]) -> None:
        """Count links in training examples, given as (number of source words, number of target words, links)."""
        counts: dict[tuple[int, int, int], Counter[int]] = {}
        for sources, targets, links in rows:
            for source, target in links:
                counts.setdefault((target, targets, sources), Counter())[source] += 1
        self.most = {
            key: min(counter, key=lambda offset: (-counter[offset], offset)) for key, counter in counts.items()
        }

    def guesses(self, sources: int, targets: int) -> Int[np.ndarray, " word"]:
        """Return the index of the guessed source word for each target word. The source must have at least one word."""
        diagonal = np.rint(np.arange(targets) * (sources - 1) / max(targets - 1, 1)).astype(int)
        return np.array([self.most.get((k, targets, sources), diagonal[k]) for k in range(targets)])


@dataclass(frozen=True)
class WordAlignment:
    """An alignment of the words of two inputs, with the indices of aligned pairs and of unaligned words."""

    pairs: tuple[tuple[int, int], ...]
    first_alone: tuple[int, ...]
    second_alone: tuple[int, ...]


def align_words(
    first: Sequence[str],
    second: Sequence[str],
    sentences: tuple[Sequence[int | None], Sequence[int | None]] | None = None,
) -> WordAlignment:
    """Align identical words of two inputs in order, ignoring case. If a span of words was replaced by a span of the
    same length, their words are aligned one by one.

    `sentences` has the sentence of each word of both inputs; words align only within a sentence. None marks special
    tokens, which are aligned in order.
    """
    marks = sentences or ([0] * len(first), [0] * len(second))
    pairs: list[tuple[int, int]] = []
    for sentence in dict.fromkeys([*marks[0], *marks[1]]):
        places = [[k for k, mark in enumerate(side) if mark == sentence] for side in marks]
        if sentence is None:
            if len(places[0]) != len(places[1]):  # those of a pair and of a single sentence: the first and the last
                places = [side[:1] + side[1:][-1:] for side in places]
            pairs += zip(*places, strict=False)
            continue
        words = [[texts[k].lower() for k in indices] for texts, indices in zip((first, second), places, strict=True)]
        for kind, a, b, c, d in SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes():
            if kind == "equal" or (kind == "replace" and b - a == d - c):
                pairs += list(zip(places[0][a:b], places[1][c:d], strict=True))
    pairs.sort()
    paired = [{pair[side] for pair in pairs} for side in (0, 1)]
    alone = [tuple(k for k in range(len(texts)) if k not in paired[s]) for s, texts in enumerate((first, second))]
    return WordAlignment(tuple(pairs), alone[0], alone[1])


@dataclass(frozen=True)
class MapChange:
    """The difference between the attention maps that each head has for two inputs.

    Attributes:
        cosine: similarity of the maps over aligned rows and columns, each row normalised to 1 there, 0 to 1; NaN if no
            row has weight there.
        first_elsewhere: mean fraction of the weight of aligned rows on unaligned words of the first input.
    """

    cosine: Float[np.ndarray, "layer head"]
    first_elsewhere: Float[np.ndarray, "layer head"]
    second_elsewhere: Float[np.ndarray, "layer head"]


def map_change(
    first: Float[np.ndarray, "layer head word word"],
    second: Float[np.ndarray, "layer head other other"],
    alignment: WordAlignment,
) -> MapChange:
    """Compare the attention maps between words of two inputs, on their aligned words only. Raises InputError if no
    words are aligned."""
    if not alignment.pairs:
        raise InputError(
            "The maps of two inputs can be compared only if the inputs share words; these inputs share none. Change "
            "fewer words."
        )
    sides = [list(side) for side in zip(*alignment.pairs, strict=True)]
    preserved, elsewhere = [], []
    for maps, places in zip((first, second), sides, strict=True):
        part = maps[:, :, places][..., places].astype(np.float64)
        mass = part.sum(-1, keepdims=True)
        nothing = len(places) == maps.shape[-1]  # every word has a partner; rows sum to 1 only to rounding
        elsewhere.append(np.zeros(maps.shape[:2]) if nothing else 1 - mass[..., 0].mean(-1))
        scaled = np.divide(part, mass, out=np.zeros_like(part), where=mass > 1e-12)
        preserved.append(scaled.reshape(*scaled.shape[:2], -1))
    bottom = np.linalg.norm(preserved[0], axis=-1) * np.linalg.norm(preserved[1], axis=-1)
    together = (preserved[0] * preserved[1]).sum(-1)
    cosine = np.divide(together, bottom, out=np.full(bottom.shape, np.nan), where=bottom > 0)
    cosine[(preserved[0] == preserved[1]).all(-1) & (bottom > 0)] = 1.0  # what is the same is so exactly
    return MapChange(np.minimum(cosine, 1.0), np.clip(elsewhere[0], 0, 1), np.clip(elsewhere[1], 0, 1))
