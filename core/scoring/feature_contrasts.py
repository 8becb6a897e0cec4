"""Is it the feature, or the place where it stands? Log weights of its tokens, the query and the distance taken out.

A head of one distance, or of places, has weights A[q, k] whose logarithm is a part for the query and one for the
distance k - q. In

    ln A[q, k] - ln A[q, o] - ln A[q+t, k+t] + ln A[q+t, o+t]

each query and each distance comes once with either sign, so that what is left is what the keys get: k, a token of the
feature, less o, k+t and o+t, which have it not. An input's contrast is the mean over drawn k, o, t and q.

What a word is (noun, verb, the first of its sentence) explains much of its role (subject, object): for features that
are roles, o is of the kind of k and o+t of that of k+t, so that a head that looks at nouns does not look at subjects.
Words that come again are more often nouns than not: cells whose query and key are the same word are left out, so that
a head that looks at the same word does not look at nouns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .link_contrasts import means_over_draws

DRAWS = 16  # of each feature of an input
TRIED = 64  # drawn for them
WAYS = ("any query", "the classifying token")


@dataclass(frozen=True)
class Rhombi:
    """Cells of one input's contrasts; what draws that do not fit have in their cells means nothing.

    Attributes:
        queries: positions of q and q+t; from any ordinary query and from the classifying token, as WAYS says.
        fits: draws whose cells are inside, and of which k carries the feature and the others do not.
    """

    queries: Int[np.ndarray, "way feature draw two"]
    keys: Int[np.ndarray, "way feature draw four"]
    fits: Bool[np.ndarray, "way feature draw"]


@dataclass(frozen=True)
class Kinds:
    """What kind of word stands at each position, and which features are to be compared within kinds.

    Attributes:
        of: number of the kind of a position's word, -1 for none.
        roles: which features are roles of words, whose contrasts stay within kinds.
        words: number of the word at a position, the same for words that are spelled alike, -1 for none; None leaves no
            cell out.
    """

    of: Int[np.ndarray, " key"]
    roles: Bool[np.ndarray, " feature"]
    words: Int[np.ndarray, " key"] | None = None


class Marked(NamedTuple):
    """An input that draws are made of."""

    tokens: Bool[np.ndarray, "feature key"]
    ordinary: Sequence[int]
    kinds: Kinds
    classifying: int
    seed: tuple[int, ...]


def rhombi_of_inputs(inputs: Sequence[Marked], *, causal: bool) -> list[Rhombi]:
    """At most DRAWS for each feature of each input, from any ordinary query and from the classifying token.

    Args:
        inputs: of one length and the same features; each is drawn by its own seed whatever it is drawn with.
        causal: whether keys must not come after their queries.

    Returns:
        One an input, in their order.
    """
    tokens = np.stack([marked.tokens for marked in inputs])
    plain = np.zeros((len(inputs), tokens.shape[-1]), dtype=bool)
    for row, marked in zip(plain, inputs, strict=True):
        row[list(marked.ordinary)] = True
    shape = (len(inputs), len(WAYS), tokens.shape[1], DRAWS)
    queries, keys = (np.zeros((*shape, cells), dtype=int) for cells in (2, 4))
    is_filled = np.zeros(shape, dtype=bool)
    compared = (tokens & plain[:, None]).any(-1) & (~tokens & plain[:, None]).any(-1)  # with what others can be
    if compared.any():
        drawn = _Drawn(inputs, tokens, plain, np.nonzero(compared))
        group, cells = drawn.fitting(causal=causal)  # ascending
        counts = np.bincount(group, minlength=len(drawn.number) * len(WAYS))
        rank = np.arange(len(group)) - (np.cumsum(counts) - counts)[group]
        is_early = rank < DRAWS
        row, way = np.divmod(group[is_early], len(WAYS))
        cell = (drawn.number[row], way, drawn.feature[row], rank[is_early])
        keys[cell], queries[cell], is_filled[cell] = cells[is_early, :4], cells[is_early, 4:], True
    return [Rhombi(*rhombi) for rhombi in zip(queries, keys, is_filled, strict=True)]


class _Drawn:
    """Draws of each row (a feature of an input) and way, whether they fit or not."""

    def __init__(self, inputs: Sequence[Marked], tokens: np.ndarray, plain: np.ndarray, rows: tuple[np.ndarray, ...]):
        self.number, self.feature = rows
        self.own, self.plain = tokens[rows], plain
        self.kinds = np.stack([marked.kinds.of for marked in inputs])
        self.roles = np.stack([marked.kinds.roles for marked in inputs])[rows]
        nothing = np.full(tokens.shape[-1], -1)
        self.words = np.stack([nothing if marked.kinds.words is None else marked.kinds.words for marked in inputs])
        shape = (4, len(WAYS), tokens.shape[1], TRIED)
        drawn = np.empty((len(inputs), *shape))
        for numbers, marked in zip(drawn, inputs, strict=True):
            np.random.default_rng(list(marked.seed)).random(out=numbers)
        chance = drawn[self.number, :, :, self.feature].swapaxes(0, 1)  # [four, row, way, draw]
        self.first = _chosen(self.own & plain[self.number], chance[0])
        self.other = self._others(chance[1])
        self.step = (chance[2] * (2 * tokens.shape[-1] - 1)).astype(int) - tokens.shape[-1] + 1
        self.query = _chosen(plain[self.number], chance[3])
        self.query[:, 1] = np.array([marked.classifying for marked in inputs])[self.number, None]

    def _others(self, chance: Float[np.ndarray, "row way draw"]) -> Int[np.ndarray, "row way draw"]:
        """Tokens without the feature, of a role those of the kind of `first`; -1 where there is none."""
        lacking = ~self.own & self.plain[self.number]
        alternatives, roles = _chosen(lacking, chance), np.flatnonzero(self.roles)
        if len(roles):
            role, position = np.nonzero(self.own[roles] & self.plain[self.number[roles]])
            ranks = np.zeros((len(roles), self.own.shape[1]), dtype=int)
            ranks[role, position] = np.arange(len(role))
            kinds = self.kinds[self.number[roles]][role]  # of each token of a role the other tokens of its kind
            kind = kinds[np.arange(len(role)), position][:, None]
            alike = lacking[roles][role] & (kinds == kind) & (kind >= 0)
            token = ranks[np.arange(len(roles))[:, None, None], self.first[roles]]
            alternatives[roles] = np.where(alike.any(1)[token], _positions(alike, token, chance[roles]), -1)
        return alternatives

    def fitting(self, *, causal: bool) -> tuple[Int[np.ndarray, " draw"], Int[np.ndarray, "draw six"]]:
        """The draws that are as they should be: of which row and way each is, and its cells (k, o, k+t, o+t, q, q+t).
        What costs little leaves most of them out before the rest is looked at."""
        length = self.own.shape[1]
        fits = (self.other >= 0) & (self.step != 0)
        for positions in (self.first, self.other, self.query):
            fits &= (positions + self.step >= 0) & (positions + self.step < length)
        at = np.flatnonzero(fits)
        first, alternative, step, query = (part.ravel()[at] for part in (self.first, self.other, self.step, self.query))
        group = at // TRIED
        row = group // len(WAYS)
        number = self.number[row]
        cells = np.stack([first, alternative, first + step, alternative + step, query, query + step])
        moved = self.kinds[number, cells[2:4]]
        valid = (self.plain[number, cells[[2, 3, 5]]] & ~self.own[row, cells[1:4]]).all(0)
        valid &= ~self.roles[row] | ((moved[0] == moved[1]) & (moved[0] >= 0))
        valid &= ~_of_one_word(self.words[number, cells])
        if causal:
            valid &= (cells[:2] <= query).all(0)
        return group[valid], cells[:, valid].T


def _of_one_word(words: Int[np.ndarray, "six draw"]) -> Bool[np.ndarray, " draw"]:
    """Whether a query is the same word as one of its two keys; of the words of k, o, k+t, o+t, q and q+t."""
    query, moved = words[4], words[5]
    return (((words[:2] == query) & (query >= 0)) | ((words[2:4] == moved) & (moved >= 0))).any(0)


def _chosen(
    among: Bool[np.ndarray, "row key"], chance: Float[np.ndarray, "row way draw"]
) -> Int[np.ndarray, "row way draw"]:
    """Positions of each row, all as likely. chance: from 0 to 1."""
    return _positions(among, np.arange(len(among))[:, None, None], chance)


def _positions(
    among: Bool[np.ndarray, "set key"], of: Int[np.ndarray, "row _ _"], chance: Float[np.ndarray, "row way draw"]
) -> Int[np.ndarray, "row way draw"]:
    """A position of the set that each draw is of; any where the set has none."""
    order = np.argsort(~among, axis=1, kind="stable")
    return order[of, (chance * among.sum(1)[of]).astype(int)]


@dataclass(frozen=True)
class RhombusCells:
    """The cells of the draws of some inputs that fit, one after another; found once and used for every layer.

    Attributes:
        queries: positions of its cells' queries, with the signs of SIGNS.
        starts: the first draw of each group (input, way, feature) that has any.
        filled: numbers of these groups among all, counted through `shape`.
    """

    batch: Int[np.ndarray, " draw"]
    queries: Int[np.ndarray, "draw four"]
    keys: Int[np.ndarray, "draw four"]
    starts: Int[np.ndarray, " group"]
    filled: Int[np.ndarray, " group"]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, drawn: Sequence[Rhombi]) -> "RhombusCells":
        """The cells of the draws of each input of a batch."""
        fits = np.stack([cells.fits for cells in drawn])
        queries = np.stack([cells.queries for cells in drawn])[fits]
        keys = np.stack([cells.keys for cells in drawn])[fits]
        groups = np.flatnonzero(fits) // fits.shape[-1]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        batch = groups // (fits.shape[1] * fits.shape[2])
        return cls(batch, queries[:, [0, 0, 1, 1]], keys, starts, groups[starts], fits.shape[:3])

    def of_input(self, number: int) -> Int[np.ndarray, "cell 2"]:
        """The cells of one input's draws, draw after draw."""
        in_batch = self.batch == number
        return np.stack([self.queries[in_batch].ravel(), self.keys[in_batch].ravel()], -1)


SIGNS = np.array([1.0, -1.0, -1.0, 1.0])


def contrasts_of(
    weights: Float[np.ndarray, "four draw head"], cells: RhombusCells
) -> Float[np.ndarray, "batch way feature head"]:
    """Mean contrast over each input's draws.

    Args:
        weights: of the cells of each draw, in the order of SIGNS.

    Returns:
        Natural logarithms, above 0 where the feature's tokens get more; NaN where no draw fits.
    """
    contrasts = np.full((int(np.prod(cells.shape)), weights.shape[-1]), np.nan)
    if len(cells.starts):
        contrasts[cells.filled] = means_over_draws(weights, SIGNS, cells.starts)
    return contrasts.reshape(*cells.shape, -1)
