"""Words of two inputs side by side: which are partners, and how far each head's map moved between them."""

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
    """Whether each guess's source word is one that the target word is linked to.

    Args:
        guessed: of each guess (a head, or positions alone) the source word of every target word.

    Returns:
        Of the target words that have a link, in order.
    """
    linked, gold_links = sorted({target for _, target in links}), set(links)
    right = [[(int(row[target]), target) in gold_links for target in linked] for row in guessed]
    return np.array(right, dtype=bool).reshape(len(guessed), len(linked))


class PositionTable:
    """The best guess from positions alone.

    For target word t of T in a source of S words, it is the source word that is linked to it most often in rows that
    are not scored; where (t, T, S) is not among them, the same share of the way.
    """

    def __init__(self, rows: Sequence[tuple[int, int, Links]]) -> None:
        """Count the links of rows that are not scored.

        Args:
            rows: words of the source, words of the target, and their links.
        """
        counts: dict[tuple[int, int, int], Counter[int]] = {}
        for sources, targets, links in rows:
            for source, target in links:
                counts.setdefault((target, targets, sources), Counter())[source] += 1
        self.most = {
            key: min(counter, key=lambda offset: (-counter[offset], offset)) for key, counter in counts.items()
        }

    def guesses(self, sources: int, targets: int) -> Int[np.ndarray, " word"]:
        """A source word for each target word.

        Args:
            sources: words of the source, at least 1.

        Returns:
            *Range:* 0 to sources - 1.
        """
        diagonal = np.rint(np.arange(targets) * (sources - 1) / max(targets - 1, 1)).astype(int)
        return np.array([self.most.get((k, targets, sources), diagonal[k]) for k in range(targets)])


@dataclass(frozen=True)
class WordAlignment:
    """Words of two inputs by number, as partners or alone.

    Attributes:
        pairs: (word of the first, word of the second), in order.
        first_alone: words of the first without a partner.
        second_alone: words of the second without a partner.
    """

    pairs: tuple[tuple[int, int], ...]
    first_alone: tuple[int, ...]
    second_alone: tuple[int, ...]


def align_words(
    first: Sequence[str],
    second: Sequence[str],
    sentences: tuple[Sequence[int | None], Sequence[int | None]] | None = None,
) -> WordAlignment:
    """Identical words in order are partners, and a replaced run of words with one of the same number, one to one.

    Such a run is a swapped word and its replacement. Words are compared by difflib without their case.

    Args:
        sentences: of both inputs which sentence each word is in; words are partners only within the same one. None
            marks special tokens, partners by their order. Without it all words are in one sentence.

    Returns:
        Partners, and the words that have none.
    """
    marks = sentences or ([0] * len(first), [0] * len(second))
    pairs: list[tuple[int, int]] = []
    for sentence in dict.fromkeys([*marks[0], *marks[1]]):
        places = [[k for k, mark in enumerate(side) if mark == sentence] for side in marks]
        if sentence is None:
            pairs += list(zip(*places, strict=False)) if len(places[0]) == len(places[1]) else _ends(*places)
            continue
        words = [[texts[k].lower() for k in indices] for texts, indices in zip((first, second), places, strict=True)]
        for kind, a, b, c, d in SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes():
            if kind == "equal" or (kind == "replace" and b - a == d - c):
                pairs += list(zip(places[0][a:b], places[1][c:d], strict=True))
    pairs.sort()
    paired = [{pair[side] for pair in pairs} for side in (0, 1)]
    alone = [tuple(k for k in range(len(texts)) if k not in paired[s]) for s, texts in enumerate((first, second))]
    return WordAlignment(tuple(pairs), alone[0], alone[1])


def _ends(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    """Special tokens of a pair beside a sentence alone: the first with the first, the last with the last."""
    if not first or not second:
        return []
    ends = [(first[0], second[0])]
    return [*ends, (first[-1], second[-1])] if min(len(first), len(second)) > 1 else ends


@dataclass(frozen=True)
class MapChange:
    """How far each head's map moved between two inputs.

    Attributes:
        cosine: of the maps over aligned rows and columns, each row scaled to sum to 1 there. *Range:* 0 (nothing in
            common) to 1 (the same); NaN where no row has weight there.
        first_elsewhere: mean share of the aligned rows' weight on words of the first without a partner. *Range:* 0 to
            1.
    """

    cosine: Float[np.ndarray, "layer head"]
    first_elsewhere: Float[np.ndarray, "layer head"]
    second_elsewhere: Float[np.ndarray, "layer head"]


def map_change(
    first: Float[np.ndarray, "layer head word word"],
    second: Float[np.ndarray, "layer head other other"],
    alignment: WordAlignment,
) -> MapChange:
    """Compare word maps of two inputs where their words are partners.

    Args:
        first: maps between words, rows sum to 1.

    Raises:
        InputError: no word has a partner.
    """
    if not alignment.pairs:
        raise InputError("Maps are compared on words that both inputs have; these have none: change fewer words.")
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
