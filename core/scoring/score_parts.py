"""Attention scores taken apart: which pair of contributions decides where a head looks.

A score is s[i, j] = sum over a, b of q_a[i] . k_b[j] * scale, with contributions a to the query and b to the key
(core.capture.contributions). Within a row only differences count, so a term's **score share** is the covariance of
the term with the whole score over the keys that a query sees, over the score's variance: shares of all pairs add up
to 1 and may be negative (the regression of a sum on its terms; Elhage et al. 2021 for the split). Rows and inputs are
pooled: sums of covariances over sums of variances. Every key counts the same, or as much as its weight.
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
    """Covariance of every pair's term with the whole score, summed over queries, for each way that keys count.

    Args:
        centred: the whole scores, centred under each way (`centred_scores`).

    Returns:
        Of each way: *Shape:* (batch, head, a, b), squared units of scores. With `score_variance` below it they are
        shares.
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
    """Covariances of contributions, where some stood for the whole query and the whole key.

    Args:
        pairs: covariances with the score (`covariances`), in which at the places of `left_over` the whole query and the
            whole key stood for their contribution. Written to where they are float64.
        left_over: these places, of a and of b (`HeadInputs.left_over`). None: every contribution has its own
            covariance.

    Returns:
        float64; at these places what is left of the whole without all others.
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
    """Every key's share of a row's count times its score less the row's mean.

    Args:
        weights: how much each key counts, also in the mean; rows sum to 1 over visible keys. None: all that are visible
            count the same.

    Returns:
        Units of scores; 0 at invisible keys, and rows sum to 0.
    """
    counts = visible.to(scores.dtype) if weights is None else weights * visible
    counts = counts / counts.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
    held = scores.masked_fill(~visible, 0.0)
    return counts * (held - (counts * held).sum(-1, keepdim=True))


def score_variance(
    centred: Float[Tensor, "batch head query key"], scores: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head"]:
    """The variance of scores over visible keys, summed over queries.

    Args:
        centred: `centred_scores` of them.

    Returns:
        Squared units of scores, 0 and above.
    """
    return (centred * scores.masked_fill(centred == 0, 0.0)).sum((-2, -1))


def cell_terms(
    query: Float[Tensor, "a dim"],
    keys: Float[Tensor, "b key dim"],
    key: int,
    visible: Bool[Tensor, " key"],
    *,
    scaling: float,
) -> Float[Tensor, "a b"]:
    """The terms of one cell, each less its mean over the keys that the query sees.

    Returns:
        Units of scores; they add up to the cell's score less its row's mean.

    Raises:
        InputError: the query does not see the key.
    """
    if not bool(visible[key]):
        raise InputError(f"A cell is taken apart where its query sees its key; key {key + 1} is not seen: choose one.")
    return query @ (keys[:, key] - keys[:, visible].mean(1)).mT * scaling


# ---------------------------------------------------------------- does removing it do what the share says?


def map_distances(
    maps: Float[Tensor, "map batch head query key"], full: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "map head"]:
    """Mean over rows and inputs of the Jensen-Shannon distance between maps and the head's own.

    Args:
        maps: several maps of each head, rows sum to 1.
        full: the head's own map of the same inputs, rows sum to 1.

    Returns:
        Base 2, square root. *Range:* 0 to 1; rows that are equal up to float32's rounding are exactly 0 apart.
    """
    middle, own = (maps + full) / 2, torch.special.entr(full)
    entries = torch.special.entr(middle) - (torch.special.entr(maps) + own) / 2
    divergence = entries.sum(-1) / np.log(2)  # entries are subtracted before they are added up
    return divergence.masked_fill(divergence < ROUNDING, 0.0).sqrt().mean((1, 3))
