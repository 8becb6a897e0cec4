"""Effective attention: what is left of a map when the part that cannot reach the output is taken away.

A head's output is A T, T = E W^V H with the value's bias left out (Brunner et al. 2020, section 3). Whatever part of a
row of A lies in the left null space LN(T) changes nothing. Effective attention is A - Proj_LN(T)(A), row by row, which
is A U U^T with U the left singular vectors of T whose singular values are not 0. Its rows need not sum to 1 and may be
negative. With at most d_v tokens and T of full row rank it is A itself. H, the head's slice of the output projection,
can be left out when it has full row rank, because it does not change LN(T); `core.capture.values` hands over E W^V.

In a causal model query i reaches keys 0..i only, so its row is projected with T[:i + 1]; projecting the whole map would
put mass on the future.
"""

import numpy as np
from jaxtyping import Float

TOLERANCE = 1e-10  # of singular values, relative to the largest
EXACT = 1e-13  # of a row's output, relative to the largest value
REFINEMENTS = 3


def effective_attention(
    weights: Float[np.ndarray, "query key"], values: Float[np.ndarray, "key dim"], *, causal: bool = False
) -> Float[np.ndarray, "query key"]:
    """A - Proj_LN(T)(A), so that effective @ T equals A @ T.

    Args:
        weights: A of one head, rows sum to 1; not written to.
        values: T, or E W^V, of the head's keys, without bias; not written to.
        causal: whether query i reaches keys 0..i only.

    Returns:
        float64; may be negative, and rows need not sum to 1. A single token is its own effect.
    """
    maps, reach = weights.astype(np.float64), values.astype(np.float64)
    if not causal:
        basis = _basis(reach)
        return maps @ basis @ basis.T
    effective = np.zeros_like(maps)
    identified = _full_rank_rows(reach)
    effective[:identified] = maps[:identified]  # their prefixes have full row rank: nothing is lost
    left = np.arange(identified, len(maps))
    if identified:  # longer prefixes have full column rank
        effective[left], is_solved = _projected(maps[left], reach, left)
        left = left[~is_solved]
    for query in left:
        basis = _basis(reach[: query + 1])
        effective[query, : query + 1] = maps[query, : query + 1] @ basis @ basis.T
    return effective


def correlation(
    weights: Float[np.ndarray, "query key"], effective: Float[np.ndarray, "query key"], *, causal: bool = False
) -> float:
    """Pearson's r between the raw and the effective weights of one map.

    Args:
        weights: attention weights, rows sum to 1.
        effective: as `effective_attention` gives them.
        causal: whether only keys up to the query are compared.

    Returns:
        *Range:* -1 to 1; NaN where either does not vary (one token).
    """
    visible = np.tril_indices(len(weights)) if causal else ...
    raw, left = weights[visible].ravel(), effective[visible].ravel()
    if min(np.ptp(raw), np.ptp(left)) < 1e-12:
        return float("nan")
    return float(np.corrcoef(raw, left)[0, 1])


def mass_by_type(maps: Float[np.ndarray, "query key"], types: dict[str, tuple[int, ...]]) -> dict[str, float]:
    """Mean over queries of the sum over each type's keys (Clark et al.'s mean attention to a token type).

    Returns:
        By type; NaN of a type without keys. *Range:* of raw weights 0 to 1, and disjoint types that cover all keys add
            to 1; of effective ones unbounded, also negative.
    """
    return {name: float(maps[:, list(keys)].sum(1).mean()) if keys else float("nan") for name, keys in types.items()}


def _basis(values: np.ndarray) -> np.ndarray:
    """Orthonormal basis [key, rank] of the column space of values."""
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    return left[:, sizes > TOLERANCE * max(sizes.max(initial=0), np.finfo(float).tiny)]


def _projected(
    rows: Float[np.ndarray, "query key"], values: Float[np.ndarray, "key dim"], queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each query's row projected on the columns of its prefix of values, and which rows came out exact.

    Solves all normal equations at once, which is several times faster than a decomposition a query, and refines the
    solutions until each row's output is its row's.
    """
    grams = np.cumsum(values[:, :, None] * values[:, None, :], axis=0)[queries]
    visible = np.arange(len(values)) <= queries[:, None]
    target = rows @ values
    projected = np.zeros_like(rows)
    try:
        inverse = np.linalg.inv(grams)
    except np.linalg.LinAlgError:
        return projected, np.zeros(len(rows), dtype=bool)
    for _ in range(REFINEMENTS):
        projected += (inverse @ (target - projected @ values)[:, :, None])[:, :, 0] @ values.T * visible
    off = np.abs(projected @ values - target).max(1, initial=0)
    return projected, off <= EXACT * np.abs(values).max(initial=0)


def _full_rank_rows(values: np.ndarray) -> int:
    """How many first rows are surely linearly independent together: all up to the dimension, or 0."""
    rows = min(values.shape)
    return rows if _basis(values[:rows]).shape[1] == rows else 0
