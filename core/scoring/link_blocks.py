"""Links between words from blocks of queries: the numbers of `core.scoring.link_batches` without a map that is whole.

Weights and nulls are sums of cells, which add up block by block. Which word is looked at most needs whole rows of
words, a block of them at a time, and of a column the most so far; memory grows with the input's length, not with its
square.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .link_batches import LinkBatch, LinkedWords, Words
from .link_contrasts import Hexagons, by_draw, contrasts_of


def in_order(words: LinkedWords, length: int) -> bool:
    """Whether the words' pieces are all positions one after another, so that blocks of queries hold whole words."""
    return [piece for positions in words.words for piece in positions] == list(range(length))


@dataclass(frozen=True)
class LinkSums:
    """What one layer gave of one input's links.

    Attributes:
        weight: of each link, between words. *Range:* 0 to 1.
        right: 1 where the linked word is looked at most, else 0.
        contrast: of each link, in natural logarithms; 0 where no draw fits.
        total: what the pairs of each null have together, by piece of the key.
    """

    weight: Float[np.ndarray, "link head"]
    right: Float[np.ndarray, "link head"]
    contrast: Float[np.ndarray, "link head"]
    total: Float[np.ndarray, "group head"]


class LinkBlocks:
    """Takes the maps of one input and layer in blocks of queries (`core.map_sums.Needs.blocks`).

    Attributes:
        cells: what its contrasts need beside. *Shape:* (cell, 2).
    """

    def __init__(self, batch: LinkBatch, number: int, heads: int) -> None:
        self.batch, self.number, self.heads = batch, number, heads
        links, pairs = np.flatnonzero(batch.batch == number), np.flatnonzero(batch.pairs[1] == number)
        self.first = np.cumsum([0, *(len(positions) for positions in batch.some[number].words)])
        self.sizes = np.diff(self.first)
        self.query, self.key, self.crossing = batch.query[links], batch.key[links], batch.crossing[links]
        self.links = np.argsort(self.query, kind="stable")
        self.backward = np.flatnonzero(batch.backward[links])
        self.is_forward = ~batch.backward[links]
        self.pairs = pairs[np.argsort(batch.pairs[2][pairs], kind="stable")]
        drawn = batch.hexagons
        self.hexagons = Hexagons(drawn.queries[links], drawn.keys[links], drawn.fits[links])
        cells = self.hexagons.cells
        self.cells = np.stack([cells.queries.ravel(), cells.keys.ravel()], -1)
        self._clear()

    def _clear(self) -> None:
        links, heads = len(self.query), self.heads
        self.weight, self.right = (np.zeros((links, heads), dtype=np.float32) for _ in range(2))
        self.total = np.zeros((len(self.batch.others), heads))
        self.most = np.full((len(self.backward), heads), -np.inf, dtype=np.float32)
        self.unfinished: dict[int, np.ndarray] = {}

    def take(self, head: int, start: int, weights: Any) -> None:
        """Add the rows of a block: of one head the weights [query, key] of the queries from `start` on, in a tensor."""
        block = weights.float().cpu().numpy()[:, : self.first[-1]]
        rows = block[:, self.first[:-1]]  # weight on each word: its first piece, then its others
        for more in range(1, int(self.sizes.max())):
            words = np.flatnonzero(self.sizes > more)
            rows[:, words] += block[:, self.first[words] + more]
        low, high = np.searchsorted(self.first, (start, start + len(rows) - 1), side="right") - 1
        sums = np.add.reduceat(rows, np.maximum(self.first[low : high + 1] - start, 0), axis=0)
        if head in self.unfinished:
            sums[0] += self.unfinished.pop(head)
        if self.first[high + 1] > start + len(rows):  # the block ends within a word
            self.unfinished[head], sums, high = sums[-1], sums[:-1], high - 1
        if len(sums):
            self._read(head, int(low), sums / self.sizes[low : high + 1, None].astype(np.float32))

    def _read(self, head: int, low: int, rows: Float[np.ndarray, "query word"]) -> None:
        """Rows of whole words from number `low` on."""
        links = self.links[_between(self.query[self.links], low, len(rows))]
        self.weight[links, head] = rows[self.query[links] - low, self.key[links]]
        asking = links[self.is_forward[links]]
        reachable = self._seen(self.query[asking, None], np.arange(rows.shape[1]), asking)
        shown = np.where(reachable, rows[self.query[asking] - low], -np.inf)
        self.right[asking, head] = shown.argmax(1) == self.key[asking]
        owner, _, query, key = (part[self.pairs] for part in self.batch.pairs)
        inside = _between(query, low, len(rows))
        by_piece = rows[query[inside] - low, key[inside]] / self.sizes[key[inside]]
        self.total[:, head] += np.bincount(owner[inside], by_piece, len(self.total))
        if len(self.backward):
            self._read_columns(head, low, rows)

    def _read_columns(self, head: int, low: int, rows: Float[np.ndarray, "query word"]) -> None:
        """Which word looks most at the keys of links that are asked of their key."""
        links = self.backward
        queries = np.arange(low, low + len(rows))[:, None]
        reachable = self._seen(self.key[links], queries, links)
        shown = np.where(reachable, rows[:, self.key[links]], -np.inf)
        at = shown.argmax(0)
        most = shown[at, np.arange(len(links))]
        more = most > self.most[:, head]
        self.most[more, head] = most[more]
        self.right[links[more], head] = (at + low == self.query[links])[more]

    def _seen(self, of: Words, words: Words, links: Words) -> Any:
        """Which words may be the answer of these links, which ask of `of`."""
        across = self.crossing[links] if of.ndim == 1 else self.crossing[links, None]
        return self.batch.table.reachable(np.array(self.number), of, words, across)

    def result(self, cells: Float[np.ndarray, "head cell"]) -> LinkSums:
        """What the layer gave; the next one begins.

        Args:
            cells: the weights of the attribute `cells`.

        Returns:
            The input's links in the order of the batch.
        """
        contrast = contrasts_of(by_draw(cells, 6), self.hexagons)
        sums = LinkSums(self.weight, self.right, contrast, self.total)
        self._clear()
        return sums


def _between(ascending: Int[np.ndarray, " word"], low: int, count: int) -> slice:
    """Where the words low to low + count are."""
    first, last = np.searchsorted(ascending, (low, low + count))
    return slice(int(first), int(last))
