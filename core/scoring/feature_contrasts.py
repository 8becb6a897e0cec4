"""Is it the feature, or the place where it stands? Log weights of its tokens, the query and the distance taken out.

A head of one distance, or of places, has weights A[q, k] whose logarithm is a part for the query and one for the
distance k - q. In

    ln A[q, k] - ln A[q, o] - ln A[q+t, k+t] + ln A[q+t, o+t]

each query and each distance comes once with either sign, so that what is left is what the keys get: k, a token of the
feature, less o, k+t and o+t, which have it not. An input's contrast is the mean over drawn k, o, t and q.

What a word is (noun, verb, the first of its sentence) explains much of its role (subject, object): for features that
are roles, o is of the kind of k and o+t of that of k+t, so that a head that looks at nouns does not look at subjects.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from core.scoring.link_contrasts import FLOOR, NOTHING

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
    contrasts stay within kinds."""

    of: Int[np.ndarray, " key"]
    roles: Bool[np.ndarray, " feature"]


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
    rng, length = np.random.default_rng(list(seed)), tokens.shape[1]
    plain = np.zeros(length, dtype=bool)
    plain[list(ordinary)] = True
    drawn = [
        [_drawn(row, role, plain, kinds.of, rng) for role, row in zip(kinds.roles.tolist(), tokens, strict=True)]
        for _ in WAYS
    ]
    first, other = (np.array([[draw[k] for draw in way] for way in drawn]).reshape(2, -1, TRIED) for k in (0, 1))
    step = rng.integers(-length + 1, length, first.shape)
    query = rng.choice(list(ordinary) or [0], first.shape)
    query[1] = classifying
    queries = np.stack([query, query + step], -1)
    keys = np.stack([first, other, first + step, other + step], -1)
    fits = (first >= 0) & (step != 0) & (queries[..., 1] >= 0) & (queries[..., 1] < length)
    fits &= ((keys >= 0) & (keys < length)).all(-1)
    keys, queries = keys.clip(0, length - 1), queries.clip(0, length - 1)
    row = np.arange(len(tokens))[:, None, None]
    fits &= plain[keys].all(-1) & plain[queries[..., 1]] & ~tokens[row, keys[..., 1:]].any(-1)
    moved = kinds.of[keys[..., 2:]]
    fits &= ~kinds.roles[:, None] | ((moved[..., 0] == moved[..., 1]) & (moved[..., 0] >= 0))
    if causal:
        fits &= (keys[..., :2] <= queries[..., :1]).all(-1)
    best = np.argsort(~fits, axis=-1, kind="stable")[..., :DRAWS]
    queries, keys = (np.take_along_axis(cells, best[..., None], 2) for cells in (queries, keys))
    return Rhombi(queries, keys, np.take_along_axis(fits, best, 2))


def _drawn(
    tokens: Bool[np.ndarray, " key"], role: bool, plain: Bool[np.ndarray, " key"], kinds: Int[np.ndarray, " key"],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Tokens of the feature, and others (of the same kind, of a role); -1 where there is no other."""
    nothing = np.full(TRIED, -1)
    having, lacking = np.flatnonzero(tokens & plain), np.flatnonzero(~tokens & plain)
    if not len(having) or not len(lacking):
        return nothing, nothing
    first = rng.choice(having, TRIED)
    if not role:
        return first, rng.choice(lacking, TRIED)
    alike = (kinds[lacking] == kinds[first][:, None]) & (kinds[first] >= 0)[:, None]  # [draw, lacking]
    chosen = np.where(alike, rng.random(alike.shape), -1.0).argmax(1)
    fits = alike.any(1)
    return np.where(fits, first, -1), np.where(fits, lacking[chosen], -1)


def contrasts(
    weights: Float[Tensor, "batch head query key"], drawn: Sequence[Rhombi]
) -> Float[np.ndarray, "batch head way feature"]:
    """Mean contrast over each input's draws, in natural logarithms; NaN where no draw fits."""
    logs = weights.double().clamp_min(FLOOR).log().cpu().numpy()
    found = []
    for own, cells in zip(logs, drawn, strict=True):
        (here, there), keys = np.moveaxis(cells.queries, -1, 0), np.moveaxis(cells.keys, -1, 0)
        value = own[:, here, keys[0]] - own[:, here, keys[1]] - own[:, there, keys[2]] + own[:, there, keys[3]]
        with np.errstate(invalid="ignore"):
            mean = (value * cells.fits).sum(-1) / cells.fits.sum(-1)
        found.append(np.where(np.abs(mean) < NOTHING, 0.0, mean))
    return np.stack(found)
