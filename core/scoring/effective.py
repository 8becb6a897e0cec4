"""Effective attention: a map without the part that cannot affect the output (Brunner et al. 2020, section 3).

The output of a head is A T with T = E W^V H, without the bias of the values. The part of a row of A in the left null
space LN(T) has no effect. Effective attention is A - Proj_LN(T)(A) = A U U^T, where U has the left singular vectors of
T with nonzero singular values. Its rows need not sum to 1 and may be negative. It equals A for at most d_v tokens and T
of full row rank. H, the slice of the output projection, can be left out if it has full row rank, because it does not
change LN(T); `core.capture.projections` returns E W^V. In a causal model, query i attends to keys 0..i, so its row is
projected with T[:i + 1]; projecting the whole map would put weight on future keys.
"""

import numpy as np
from jaxtyping import Float

TOLERANCE = 1e-10  # of singular values, relative to the largest
EXACT = 1e-13  # of a row's output, relative to the largest value
REFINEMENTS = 3


def effective_attention(
    weights: Float[np.ndarray, "query key"], values: Float[np.ndarray, "key dim"], *, causal: bool = False
) -> Float[np.ndarray, "query key"]:
    """Return the effective attention A - Proj_LN(T)(A), as float64. It is the part of the attention map A that affects
    the output A @ T. `values` is either T or E W^V (embeddings times value weights), without bias."""
    maps, reach = weights.astype(np.float64), values.astype(np.float64)
    if not causal:
        basis = _basis(reach)
        return maps @ basis @ basis.T
    effective = np.zeros_like(maps)
    identified = min(reach.shape)  # leading rows that are certainly linearly independent: up to the dimension, or none
    if _basis(reach[:identified]).shape[1] < identified:
        identified = 0
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
    """Return Pearson's r between the raw and effective weights of one attention map. NaN if either set of weights is
    constant. If `causal`, only keys up to the query are compared."""
    visible = np.tril_indices(len(weights)) if causal else ...
    raw, left = weights[visible].ravel(), effective[visible].ravel()
    if min(np.ptp(raw), np.ptp(left)) < 1e-12:
        return float("nan")
    return float(np.corrcoef(raw, left)[0, 1])


def mass_by_type(maps: Float[np.ndarray, "query key"], types: dict[str, tuple[int, ...]]) -> dict[str, float]:
    """Return the attention to each type of key, averaged over queries. NaN if no key has this type. Effective attention
    may be negative or above 1."""
    return {name: float(maps[:, list(keys)].sum(1).mean()) if keys else float("nan") for name, keys in types.items()}


def _basis(values: np.ndarray) -> np.ndarray:
    """Orthonormal basis [key, rank] of the column space of values."""
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    return left[:, sizes > TOLERANCE * max(sizes.max(initial=0), np.finfo(float).tiny)]


def _projected(
    rows: Float[np.ndarray, "query key"], values: Float[np.ndarray, "key dim"], queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of queries projected on the columns of their prefix of values, and which rows are exact.

    Solving all normal equations at once is several times faster than one decomposition per query.
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
