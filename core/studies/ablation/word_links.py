"""Links between two sorts of words, as many of each kind at the same distances: what a knockout of words cuts.

Only words of one piece are linked, within one sentence, so that a link is one cell of a map (and its mirror) and
distances are exact. Of several kinds each keeps, at every distance, as many links as the kind with the fewest has.
"""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts load when they are used

from ...errors import InputError
from .records import LinkContrast

if TYPE_CHECKING:
    from torch import Tensor

    from ...models.encoding import Encoding
    from ...tasks.language import TaggedSentence

SORTS = {
    "noun": ("NOUN", "PROPN"), "adjective": ("ADJ",), "preposition": ("ADP",), "verb": ("VERB",), "adverb": ("ADV",),
    "pronoun": ("PRON",), "determiner": ("DET",),
}  # fmt: skip
WORD_LINKS = {
    "noun-adjective": "between nouns and adjectives",
    "noun-preposition": "between nouns and prepositions",
}  # that a page offers; a terminal takes any two sorts
Link = tuple[int, int]


def is_of_words(kind: str) -> bool:
    """Whether a kind of edges is "SORT-SORT". Raises InputError for a sort that is none."""
    first, dash, other = kind.partition("-")
    if not dash:
        return False
    if unknown := [name for name in (first, other) if name not in SORTS]:
        raise InputError(f'Sorts of words are {", ".join(SORTS)}; "{unknown[0]}" is none of them.')
    return True


def links_of(encoding: "Encoding", tagged: Sequence["TaggedSentence"], kind: str) -> list[Link]:
    """Positions (earlier, later) of every two words of one piece that are of these sorts, by sentence."""
    first, other = (SORTS[name] for name in kind.split("-"))
    found = set()
    for number, sentence in enumerate(tagged):
        places = [(word.pos, encoding.pieces(word.start, word.end, number)) for word in sentence.words]
        known = [(pos, pieces[0]) for pos, pieces in places if len(pieces) == 1]
        found |= {
            (min(place, beside), max(place, beside))
            for pos, place in known
            for own, beside in known
            if pos in first and own in other and place != beside
        }
    return sorted(found)


def matched(kinds: Sequence[Sequence[Link]], *, seed: int, text: str) -> list[list[Link]]:
    """Of each kind as many links at every distance as all kinds have there, drawn by seed and text."""
    chance = np.random.default_rng([seed, zlib.crc32(text.encode())])
    counts = [Counter(later - earlier for earlier, later in links) for links in kinds]
    chosen: list[list[Link]] = []
    for links in kinds:
        own: list[Link] = []
        for distance in sorted(counts[0]):
            there = [link for link in links if link[1] - link[0] == distance]
            most = min(count[distance] for count in counts)
            own += [there[k] for k in sorted(chance.choice(len(there), most, replace=False))] if most else []
        chosen.append(own)
    return chosen


def leads(logits: "Tensor", plain: "Tensor") -> np.ndarray:
    """By how much the label that is predicted untouched leads the next one; of a score, the score.

    Args:
        logits: of the model with links cut. *Shape:* (row, label).
        plain: of the untouched model, which say both labels. *Shape:* (row, label).

    Returns:
        Differences of `logits`, below 0 where the order of the two labels turned. *Shape:* (row,), float64.
    """
    if plain.shape[-1] == 1:
        return logits[:, 0].double().numpy()
    best = plain.topk(2, dim=-1).indices
    both = logits.double().gather(-1, best)
    return (both[:, 0] - both[:, 1]).numpy()


def contrasts(task: str, moved: Mapping[str, np.ndarray], links: Mapping[str, np.ndarray]) -> list[LinkContrast]:
    """The first kind beside each other one, on the rows that have links of both.

    Args:
        moved: of each kind how far cutting its links moved each row, whichever way. *Shape:* (row,).
        links: how many were cut of each row, as many of every kind. *Shape:* (row,).

    Returns:
        A record for each kind but the first: the mean difference with its 95 % interval (of t); None without two rows.
    """
    names = list(moved)
    found = []
    for name in names[1:]:
        rows = links[name] > 0
        first, other, n = moved[names[0]][rows], moved[name][rows], int(rows.sum())
        value, half = float((first - other).mean()) if n else None, None
        if n > 1:
            half = float(scipy.stats.t.ppf(0.975, n - 1) * scipy.stats.sem(first - other))
        ends = (None, None) if value is None or half is None else (value - half, value + half)
        found.append(
            LinkContrast(
                task=task, first=names[0], other=name, value=value, low=ends[0], high=ends[1],
                first_moves=float(first.mean()) if n else None, other_moves=float(other.mean()) if n else None,
                links=int(links[name].sum()), n=n,
            )
        )  # fmt: skip
    return found
