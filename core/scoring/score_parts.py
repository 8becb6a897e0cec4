"""Decomposition of attention scores: which pairs of contributions determine where a head attends.

A score is s[i, j] = sum over a, b of q_a[i] . k_b[j] * scale, with contributions a to the query and b to the key
(core.capture.contributions). Within a row, only differences matter, so the **score share** of a term is its covariance
with the whole score over visible keys, divided by the variance of the score. Shares of all pairs add up to 1 and may be
negative (regression of a sum on its terms; Elhage et al. 2021 for the decomposition). Rows and inputs are pooled as
sums of covariances / sums of variances. Keys count equally, or in proportion to their weight.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import InputError
from .counterparts import ROUNDING

Weighting = Literal["even", "attention"]
WEIGHTINGS: tuple[Weighting, ...] = ("even", "attention")
HEADS_AT_ONCE = 4  # of one input, whose products then stay in the processor's cache


def covariances(
    query: Float[Tensor, "a batch head query dim"],
    key: Float[Tensor, "b batch head key dim"],
    centred: Sequence[Float[Tensor, "batch head query key"]],
    *,
    scaling: float,
) -> list[Float[Tensor, "batch head a b"]]:
    """Split each attention score into parts, one for each pair of query and key contributions. Return the covariance of
    each part with the whole score.

    There is one tensor for each weighting of keys (`centred`), summed over queries, in squared units of scores. Divided
    by `score_variance`, the covariances are shares.
    """
    batch, heads, queries = centred[0].shape[:3]
    ways = torch.cat(list(centred), 2)  # [batch, head, way query, key]
    products = query.new_empty((batch, heads, len(query), len(centred) * len(key)))
    for row in range(batch):
        for start in range(0, heads, HEADS_AT_ONCE):
            chunk = slice(start, start + HEADS_AT_ONCE)
            every_key = key[:, row, chunk].permute(1, 2, 0, 3).flatten(2)  # one product for all b: [head, key, b dim]
            along_keys = torch.bmm(ways[row, chunk], every_key)  # sum_j w s' k_b[j]
            by_part = along_keys.view(-1, len(centred), queries, len(key), key.shape[-1]).transpose(2, 3)
            first = query[:, row, chunk].transpose(0, 1).flatten(2)  # [head, a, query dim]
            torch.bmm(first, by_part.flatten(3).flatten(1, 2).mT, out=products[row, chunk])
    return list(products.mul_(scaling).unflatten(3, (len(centred), -1)).unbind(3))


def without_others(
    pairs: Float[Tensor, "batch head a b"], left_over: tuple[int, int] | None
) -> Float[Tensor, "batch head a b"]:
    """Replace the covariances of the whole query and key with covariances of their remainders. A remainder is the whole
    minus all other contributions.

    `pairs` are `covariances` with the whole query and key at `left_over` (None: unchanged). Float64 input is modified
    in place.
    """
    pairs = pairs.double()
    if left_over is not None:
        a, b = left_over
        pairs[:, :, a] = 2 * pairs[:, :, a] - pairs.sum(2)
        pairs[..., b] = 2 * pairs[..., b] - pairs.sum(3)
    return pairs


def centred_scores(
    scores: Float[Tensor, "batch head query key"],
    visible: Bool[Tensor, "#batch #head query key"],
    weights: Float[Tensor, "batch head query key"] | None = None,
) -> Float[Tensor, "batch head query key"]:
    """Subtract the weighted mean of each row from its attention scores, and multiply the result by the weights.

    Weights sum to 1 over visible keys (None: equal weights); masked keys get 0.
    """
    counts = visible.to(scores.dtype) if weights is None else weights * visible
    counts = counts / counts.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
    held = scores.masked_fill(~visible, 0.0)
    return counts * (held - (counts * held).sum(-1, keepdim=True))


def score_variance(
    centred: Float[Tensor, "batch head query key"], scores: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head"]:
    """Return the variance of attention scores over the visible keys, summed over queries, in squared units of
    scores."""
    return (centred * scores.masked_fill(centred == 0, 0.0)).sum((-2, -1))


def cell_terms(
    query: Float[Tensor, "a dim"],
    keys: Float[Tensor, "b key dim"],
    key: int,
    visible: Bool[Tensor, " key"],
    *,
    scaling: float,
) -> Float[Tensor, "a b"]:
    """Split one attention score into terms, one for each pair of query and key contributions. Each term is relative to
    its mean over visible keys.

    The terms add up to the score minus the row mean. Raises InputError if the query does not see the key.
    """
    if not bool(visible[key]):
        raise InputError(
            f"The query must be able to attend to the key; key {key + 1} is hidden from this query. Choose another key."
        )
    return query @ (keys[:, key] - keys[:, visible].mean(1)).mT * scaling


# ---------------------------------------------------------------- does removing it do what the share says?


def map_distances(
    maps: Float[Tensor, "map batch head query key"], full: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "map head"]:
    """Return the Jensen-Shannon distance between each map and the map `full` of the same head, averaged over rows. The
    logarithm has base 2, and rows that are equal up to float32 rounding have distance 0."""
    middle, own = (maps + full) / 2, torch.special.entr(full)
    entries = torch.special.entr(middle) - (torch.special.entr(maps) + own) / 2
    divergence = entries.sum(-1) / np.log(2)  # entries are subtracted before they are added up
    return divergence.masked_fill(divergence < ROUNDING, 0.0).sqrt().mean((1, 3))
