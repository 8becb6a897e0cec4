"""Attention scores taken apart: which pair of contributions decides where a head looks.

A score is s[i, j] = sum over a, b of q_a[i] . k_b[j] * scale, with contributions a to the query and b to the key
(core.capture.contributions). Within a row only differences count, so a term's **score share** is the covariance of
the term with the whole score over the keys that a query sees, over the score's variance: shares of all pairs add up
to 1 and may be negative (the regression of a sum on its terms; Elhage et al. 2021 for the split). Rows and inputs are
pooled: sums of covariances over sums of variances. Every key counts the same, or as much as its weight.
"""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from core.errors import InputError

Weighting = Literal["even", "attention"]
WEIGHTINGS: tuple[Weighting, ...] = ("even", "attention")


def covariances(
    query: Float[Tensor, "a batch head query dim"],
    key: Float[Tensor, "b batch head key dim"],
    scores: Float[Tensor, "batch head query key"],
    visible: Bool[Tensor, "#batch #head query key"],
    *,
    scaling: float,
    weights: Float[Tensor, "batch head query key"] | None = None,
) -> Float[Tensor, "batch head a b"]:
    """Covariance of every pair's term with the whole score, summed over queries.

    Args:
        query, key: contributions to the queries and the keys.
        scores: the whole scores. *Shape:* (batch, head, query, key).
        visible: which keys a query sees; the others count nothing.
        scaling: of products of queries and keys.
        weights: how much each key counts, rows sum to 1 over visible keys; None: all that are visible the same.

    Returns:
        *Shape:* (batch, head, a, b), squared units of scores. With `score_variance` below it they are shares.
    """
    centred = centred_scores(scores, visible, weights)
    every_key = key.permute(1, 2, 3, 0, 4).flatten(3)  # one product for all b: [batch, head, key, b dim]
    along_keys = torch.matmul(centred, every_key).unflatten(3, (len(key), -1))  # sum_j w s' k_b[j]
    first, second = query.permute(1, 2, 0, 3, 4).flatten(3), along_keys.transpose(2, 3).flatten(3)
    return torch.matmul(first, second.mT) * scaling


def centred_scores(
    scores: Float[Tensor, "batch head query key"],
    visible: Bool[Tensor, "#batch #head query key"],
    weights: Float[Tensor, "batch head query key"] | None = None,
) -> Float[Tensor, "batch head query key"]:
    """Every key's share of a row's count times its score less the row's mean; 0 at invisible keys; rows sum to 0.

    weights: as for `covariances`; the mean is weighted likewise.
    """
    counts = visible.to(scores.dtype) if weights is None else weights * visible
    counts = counts / counts.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
    held = scores.masked_fill(~visible, 0.0)
    return counts * (held - (counts * held).sum(-1, keepdim=True))


def score_variance(
    centred: Float[Tensor, "batch head query key"], scores: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head"]:
    """The variance of scores over visible keys, summed over queries; centred: `centred_scores` of them. 0 and above."""
    return (centred * scores.masked_fill(centred == 0, 0.0)).sum((-2, -1))


def cell_terms(
    query: Float[Tensor, "a dim"],
    keys: Float[Tensor, "b key dim"],
    key: int,
    visible: Bool[Tensor, " key"],
    *,
    scaling: float,
) -> Float[Tensor, "a b"]:
    """The terms of one cell, each less its mean over the keys that the query sees; they add up to the centred score.

    Args:
        query: contributions to the query of one head.
        keys: contributions to all its keys.
        key: the cell's key.
        visible: which keys the query sees.

    Raises:
        InputError: the query does not see the key.
    """
    if not bool(visible[key]):
        raise InputError(f"A cell is taken apart where its query sees its key; key {key + 1} is not seen: choose one.")
    return query @ (keys[:, key] - keys[:, visible].mean(1)).mT * scaling


# ---------------------------------------------------------------- does removing it do what the share says?


def map_distances(
    maps: Float[Tensor, "map batch head query key"], whole: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "map head"]:
    """Mean Jensen-Shannon distance (base 2, square root; 0 to 1) between maps and the head's own, over rows."""
    middle = (maps + whole) / 2
    entropies = [torch.special.entr(rows).sum(-1) for rows in (middle, maps, whole.expand_as(maps))]
    divergence = (entropies[0] - (entropies[1] + entropies[2]) / 2).clamp(min=0) / np.log(2)
    return divergence.sqrt().mean((1, 3))
