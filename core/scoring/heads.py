"""One number per head and input: how much of its attention goes where, and how spread it is.

Every function takes weights [..., query, key] of one input (numpy or torch, rows sum to 1) and returns [...], so
[layer, head, query, key] gives [layer, head]. Nothing is written to. NaN means that the score is undefined there:
one token only, no separator, or a place that a causal query cannot see. (Clark et al. 2019, section 3; Kovaleva et
al. 2019, section 4.1 name these targets.)
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float


class HeadScore(NamedTuple):
    """A score as pages offer it. label: how it is shown. meaning: one line. causal: whether decoders have it."""

    label: str
    meaning: str
    causal: bool = True


HEAD_SCORES = {
    "previous": HeadScore("to previous", "mean weight on the token before the query"),
    "next": HeadScore("to next", "mean weight on the token after the query", causal=False),
    "first": HeadScore("to first", "mean weight on the first token ([CLS] or the start token)"),
    "separator": HeadScore("to separator", "mean weight on all separators together"),
    "entropy": HeadScore("entropy", "spread of a row: 0 one token, 1 evenly over all it sees"),
}


def to_offset(weights: Float[Any, "*heads query key"], offset: int, *, causal: bool = False) -> Float[Any, "*heads"]:
    """Mean over queries i of A[i, i + offset], over the queries that have such a key.

    causal: without query 0, which can look at itself alone. Range 0 to 1; NaN when no query is left, and for
    offset > 0 in causal models, which cannot look ahead.
    """
    if abs(offset) >= weights.shape[-1] or (causal and offset > 0):
        return weights.sum(-1).sum(-1) * float("nan")
    weights = weights[..., 1:, 1:] if causal and offset == 0 else weights
    return weights.diagonal(offset, -2, -1).mean(-1) if weights.shape[-1] else weights.sum(-1).sum(-1) * float("nan")


def to_keys(
    weights: Float[Any, "*heads query key"], keys: Sequence[int], *, causal: bool = False
) -> Float[Any, "*heads"]:
    """Mean over queries i of sum over `keys` j of A[i, j].

    causal: only over queries that see one of the keys and something else besides (i >= min(keys), i > 0). Range 0
    to 1; NaN without keys or without such queries.
    """
    if not len(keys):
        return weights.sum(-1).sum(-1) * float("nan")
    start = max(1, min(keys)) if causal else 0
    if start >= weights.shape[-2]:
        return weights.sum(-1).sum(-1) * float("nan")
    return weights[..., start:, :][..., list(keys)].sum(-1).mean(-1)


def entropy(
    weights: Float[Any, "*heads query key"], *, causal: bool = False, normalised: bool = True
) -> Float[Any, "*heads"]:
    """Mean over queries i of -sum_j A[i, j] ln A[i, j], in nats; normalised: each row over ln of the keys it sees.

    A causal query i sees i + 1 keys, any other sees all. Range 0 to 1 (normalised) or 0 to ln(length). Rows that see
    one key have no spread to speak of and are left out; NaN when no row is left.
    """
    rows = row_entropies(weights)
    return normalised_mean(rows, causal=causal) if normalised else mean_of_rows(rows, causal=causal)


def row_entropies(weights: Float[Any, "*heads query key"]) -> Float[Any, "*heads query"]:
    """-sum_j A[i, j] ln A[i, j] of every row, in nats; 0 to ln(length)."""
    if isinstance(weights, np.ndarray):
        return -(weights * np.log(np.maximum(weights, 1e-30))).sum(-1)
    return -(weights * weights.clamp_min(1e-30).log()).sum(-1)


def mean_of_rows(rows: Float[Any, "*heads query"], *, causal: bool) -> Float[Any, "*heads"]:
    """Mean over queries of a number of each row; of causal models without query 0, whose one weight is always 1."""
    rows = rows[..., 1:] if causal else rows
    return rows.mean(-1) if rows.shape[-1] else rows.sum(-1) * float("nan")


def normalised_mean(rows: Float[Any, "*heads query"], *, causal: bool) -> Float[Any, "*heads"]:
    """Mean over queries of entropies over ln of the number of keys seen, without rows that see one key."""
    length = rows.shape[-1]
    start = 1 if causal else 0
    if length < 2:
        return rows.sum(-1) * float("nan")
    seen = np.arange(start + 1, length + 1) if causal else np.full(length, length)
    share = 1 / np.log(seen) / (length - start)
    return rows[..., start:] @ (share.astype(rows.dtype) if isinstance(rows, np.ndarray) else rows.new_tensor(share))


def head_scores(
    weights: Float[Any, "*heads query key"], *, first: int | None, separators: Sequence[int], causal: bool
) -> dict[str, Float[Any, "*heads"]]:
    """All scores of HEAD_SCORES on one input, by name. first, separators: positions, as in Encoding."""
    found: dict[str, Callable[[], Any]] = {
        "previous": lambda: to_offset(weights, -1, causal=causal),
        "next": lambda: to_offset(weights, 1, causal=causal),
        "first": lambda: to_keys(weights, [0 if first is None else first], causal=causal),
        "separator": lambda: to_keys(weights, separators, causal=causal),
        "entropy": lambda: entropy(weights, causal=causal),
    }
    return {name: score() for name, score in found.items()}
