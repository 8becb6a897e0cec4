"""Cross attention as word alignment: how often a head finds the word that is translated, beside position alone."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

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
