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

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from core.scoring.link_contrasts import means_over_draws, weights_at

DRAWS = 16  # of each feature of an input
TRIED = 64  # drawn for them
WAYS = ("any query", "the classifying token")


@dataclass(frozen=True)
class Rhombi:
    """Cells of an input's contrasts: of each draw two queries (q, q+t) and four keys (k, o, k+t, o+t). fits: draws
    whose cells are inside and carry the feature, or do not, as they should."""

    queries: Int[np.ndarray, "way feature draw two"]
    keys: Int[np.ndarray, "way feature draw four"]
    fits: Bool[np.ndarray, "way feature draw"]


@dataclass(frozen=True)
class Kinds:
    """What a position is: a number of the kind of its word, -1 for none; and which features are roles of words, whose
    contrasts stay within kinds. words: a number of the word that stands there, alike of words that are spelled alike,
    -1 for none; None leaves no cell out."""

    of: Int[np.ndarray, " key"]
    roles: Bool[np.ndarray, " feature"]
    words: Int[np.ndarray, " key"] | None = None


def rhombi(
    tokens: Bool[np.ndarray, "feature key"],
    ordinary: Sequence[int],
    kinds: Kinds,
    *,
    classifying: int,
    causal: bool,
    seed: Sequence[int],
) -> Rhombi:
    """At most DRAWS for each feature, from any ordinary query and from the classifying token."""
    length, plain = tokens.shape[1], np.zeros(tokens.shape[1], dtype=bool)
    plain[list(ordinary)] = True
    chance = np.random.default_rng(list(seed)).random((4, len(WAYS), len(tokens), TRIED))
    comparable = np.flatnonzero((tokens & plain).any(1) & (~tokens & plain).any(1))  # what others can be compared with
    queries, keys = (np.zeros((len(WAYS), len(tokens), DRAWS, cells), dtype=int) for cells in (2, 4))
    found = np.zeros((len(WAYS), len(tokens), DRAWS), dtype=bool)
    if not len(comparable):
        return Rhombi(queries, keys, found)
    own, roles, chance = tokens[comparable], kinds.roles[comparable], chance[:, :, comparable]
    first = _chosen(own & plain, chance[0])
    other = _others(~own & plain, first, roles, kinds.of, chance[1])
    step = (chance[2] * (2 * length - 1)).astype(int) - length + 1
    query = np.array(list(ordinary))[(chance[3] * len(ordinary)).astype(int)]
    query[1] = classifying
    cells = np.stack([first, other, first + step, other + step, query, query + step], -1)
    fits = (other >= 0) & (step != 0) & ((cells >= 0) & (cells < length)).all(-1)
    cells = cells.clip(0, length - 1)
    row = np.arange(len(comparable))[:, None, None]
    fits &= plain[cells[..., :4]].all(-1) & plain[cells[..., 5]] & ~own[row, cells[..., 1:4]].any(-1)
    moved = kinds.of[cells[..., 2:4]]
    fits &= ~roles[:, None] | ((moved[..., 0] == moved[..., 1]) & (moved[..., 0] >= 0))
    if kinds.words is not None:
        fits &= ~_of_one_word(kinds.words[cells])
    if causal:
        fits &= (cells[..., :2] <= cells[..., 4:5]).all(-1)
    best = np.argsort(~fits, axis=-1, kind="stable")[..., :DRAWS]
    cells = np.take_along_axis(cells, best[..., None], 2)
    keys[:, comparable], queries[:, comparable] = cells[..., :4], cells[..., 4:]
    found[:, comparable] = np.take_along_axis(fits, best, 2)
    return Rhombi(queries, keys, found)


def _of_one_word(words: Int[np.ndarray, "*draw six"]) -> Bool[np.ndarray, "*draw"]:
    """Whether a query is the same word as one of its two keys; of the words of k, o, k+t, o+t, q and q+t."""
    query, moved = words[..., 4:5], words[..., 5:6]
    alike = ((words[..., :2] == query) & (query >= 0)) | ((words[..., 2:4] == moved) & (moved >= 0))
    return alike.any(-1)


def _chosen(
    among: Bool[np.ndarray, "feature key"], chance: Float[np.ndarray, "way feature draw"]
) -> Int[np.ndarray, "way feature draw"]:
    """Positions of each feature's row, all as likely; every row has one. chance: from 0 to 1."""
    order = np.argsort(~among, axis=1, kind="stable")
    return order[np.arange(len(among))[:, None], (chance * among.sum(1)[:, None]).astype(int)]


def _others(
    lacking: Bool[np.ndarray, "feature key"], first: Int[np.ndarray, "way feature draw"],
    roles: Bool[np.ndarray, " feature"], kinds: Int[np.ndarray, " key"], chance: Float[np.ndarray, "way feature draw"],
) -> Int[np.ndarray, "way feature draw"]:  # fmt: skip
    """Tokens without the feature, of a role those of the kind of `first`; -1 where there is none."""
    other = _chosen(lacking, chance)
    if roles.any():
        first_kinds = kinds[first[:, roles]][..., None]
        alike = lacking[roles][:, None] & (kinds == first_kinds) & (first_kinds >= 0)  # [way, role, draw, key]
        counts = alike.cumsum(-1)
        wanted = (chance[:, roles] * counts[..., -1]).astype(int)[..., None]
        other[:, roles] = np.where(counts[..., -1] > 0, (counts > wanted).argmax(-1), -1)
    return other


@dataclass(frozen=True)
class RhombusCells:
    """The cells of the draws of some inputs that fit, one after another; found once and used for every layer.

    batch [draw]: which input; queries, keys [draw, four]: its cells, with the signs of SIGNS. starts: where the draws
    of a group (input, way, feature) begin; filled: which groups have any. shape: of all groups.
    """

    batch: Int[np.ndarray, " draw"]
    queries: Int[np.ndarray, "draw four"]
    keys: Int[np.ndarray, "draw four"]
    starts: Int[np.ndarray, " group"]
    filled: Int[np.ndarray, " group"]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, drawn: Sequence[Rhombi]) -> "RhombusCells":
        """Of the draws of each input."""
        fits = np.stack([cells.fits for cells in drawn])
        queries = np.stack([cells.queries for cells in drawn])[fits]
        keys = np.stack([cells.keys for cells in drawn])[fits]
        groups = np.flatnonzero(fits) // fits.shape[-1]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        batch = groups // (fits.shape[1] * fits.shape[2])
        return cls(batch, queries[:, [0, 0, 1, 1]], keys, starts, groups[starts], fits.shape[:3])

    def of_input(self, number: int) -> Int[np.ndarray, "cell 2"]:
        """The (query, key) of one input's cells."""
        mine = self.batch == number
        return np.stack([self.queries[mine].ravel(), self.keys[mine].ravel()], -1)


SIGNS = np.array([1.0, -1.0, -1.0, 1.0])


def contrasts(
    weights: Float[Tensor, "batch head query key"], drawn: Sequence[Rhombi]
) -> Float[np.ndarray, "batch head way feature"]:
    """Mean contrast over each input's draws, in natural logarithms; NaN where no draw fits."""
    cells = RhombusCells.of(drawn)
    return contrasts_of(weights_at(weights, cells.batch, cells.queries, cells.keys), cells)


def contrasts_of(
    weights: Float[np.ndarray, "head draw four"], cells: RhombusCells
) -> Float[np.ndarray, "batch head way feature"]:
    """The same from the weights of the cells alone."""
    found = np.full((len(weights), int(np.prod(cells.shape))), np.nan)
    if len(cells.starts):
        found[:, cells.filled] = means_over_draws(weights, SIGNS, cells.starts)
    return found.reshape(-1, *cells.shape).swapaxes(0, 1)
