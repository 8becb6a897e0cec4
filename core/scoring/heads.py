"""Scores of a head on one input: how much attention goes where, and how spread it is.

Functions take weights [..., query, key] (numpy or torch, rows sum to 1) and return [...]. NaN means that a score is
undefined: a single token, no separator, or a position that a causal query cannot see. Targets follow Clark et al. 2019,
section 3, and Kovaleva et al. 2019, section 4.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Real

from ..map_sums import MapSums, Needs, keys_as_values, log_into


@dataclass(frozen=True)
class SpecialPositions:
    """The positions of the special tokens in one input."""

    first: int
    separators: tuple[int, ...]
    classifying: int


@dataclass(frozen=True)
class MapBatch:
    """Attention maps and special tokens of inputs with equal length, from which head scores are computed."""

    weights: Any
    places: Sequence[SpecialPositions]
    causal: bool

    @cached_property
    def row_entropies(self) -> Any:
        """Return the entropy of every attention row, in nats."""
        return row_entropies(self.weights)

    def to_offset(self, offset: int) -> Any:
        """Return the attention of each head from a query to the token at the given offset, averaged over queries."""
        return to_offset(self.weights, offset, causal=self.causal)

    def to_set(self, number: int) -> Any:
        """Return the mean attention to the first token (set number 0) or to the separators (set number 1)."""
        keys = [special_keys(at)[number] for at in self.places]
        if len(set(keys)) == 1:
            return to_keys(self.weights, keys[0], causal=self.causal)
        total = self.weights.sum(-1).sum(-1)
        for key_set in dict.fromkeys(keys):
            chosen = [k for k, own in enumerate(keys) if own == key_set]
            total[chosen] = to_keys(self.weights[chosen], key_set, causal=self.causal)
        return total

    @property
    def mean_distance(self) -> Any:
        """Return the mean attention distance of each head, in tokens."""
        return mean_distance(self.weights, causal=self.causal)


@dataclass(frozen=True)
class SumBatch:
    """Sums over the maps of long inputs. Head scores from these sums equal those from whole maps (`MapBatch`)."""

    sums: Sequence[MapSums]
    places: Sequence[SpecialPositions]
    causal: bool

    @cached_property
    def row_entropies(self) -> Float[np.ndarray, "batch head query"]:
        return np.stack([layer_sums.entropies for layer_sums in self.sums])

    def to_offset(self, offset: int) -> Float[np.ndarray, "batch head"]:
        """Return the mean attention A[i, i + offset] over queries i; NaN if no query i has a key i + offset."""
        rows = np.stack([layer_sums.offsets[:, OFFSETS.index(offset)] for layer_sums in self.sums])
        rows = rows[..., 1:] if self.causal and offset == 0 else rows
        defined = ~np.isnan(rows[0, 0])
        if not defined.any() or (self.causal and offset > 0):
            return np.full(rows.shape[:2], np.nan)
        return rows[..., defined].mean(-1, dtype=np.float64)

    def to_set(self, number: int) -> Float[np.ndarray, "batch head"]:
        """Return the mean attention to the first token (`number` 0) or to the separators (`number` 1). NaN if there are
        no such tokens, or if no query can attend to both these and other tokens."""
        return np.stack(
            [self._to_set(layer_sums, at, number) for layer_sums, at in zip(self.sums, self.places, strict=True)]
        )

    def _to_set(self, layer_sums: MapSums, at: SpecialPositions, number: int) -> Float[np.ndarray, " head"]:
        keys = special_keys(at)[number]
        start = max(1, min(keys, default=0)) if self.causal else 0
        rows = layer_sums.values[:, start:, number]
        if not keys or not rows.shape[1]:
            return np.full(len(rows), np.nan)
        return rows.mean(-1, dtype=np.float64)

    @property
    def mean_distance(self) -> Float[np.ndarray, "batch head"]:
        """Return the attention distance sum_j A[i, j] |i - j| in tokens, averaged over queries i; NaN if a causal map
        has only one token."""
        rows = np.stack([layer_sums.distances for layer_sums in self.sums])  # query 0 of a causal map adds nothing
        return rows.sum(-1, dtype=np.float64) / ((rows.shape[-1] - self.causal) or float("nan"))


OFFSETS = (-1, 0, 1)
CACHED = 2**17  # weights that stay in the processor's cache together


def special_keys(at: SpecialPositions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the keys to which attention is measured separately: the first token, and the separators."""
    return (at.first,), at.separators


def special_needs(at: SpecialPositions, keys: int) -> Needs:
    """Return a request for the sums from which `SumBatch` computes head scores."""
    sets = keys_as_values(special_keys(at), keys)
    return Needs(entropy=True, distance=True, offsets=OFFSETS, values=sets)


def to_offset(weights: Float[Any, "*heads query key"], offset: int, *, causal: bool = False) -> Float[Any, "*heads"]:
    """Return the mean attention A[i, i + offset] over queries i; NaN if there are no such pairs. In causal maps,
    offsets above 0 have no pairs, and offset 0 leaves out query 0."""
    if abs(offset) >= weights.shape[-1] or (causal and offset > 0):
        return weights.sum(-1).sum(-1) * float("nan")
    weights = weights[..., 1:, 1:] if causal and offset == 0 else weights
    return weights.diagonal(offset, -2, -1).mean(-1) if weights.shape[-1] else weights.sum(-1).sum(-1) * float("nan")


def to_keys(
    weights: Float[Any, "*heads query key"], keys: Sequence[int], *, causal: bool = False
) -> Float[Any, "*heads"]:
    """Return the total attention to the given keys, averaged over queries; NaN if there are no queries or keys.

    `causal` uses only queries that see one of the keys and another key (i >= min(keys), i > 0).
    """
    if not len(keys):
        return weights.sum(-1).sum(-1) * float("nan")
    start = max(1, min(keys)) if causal else 0
    if start >= weights.shape[-2]:
        return weights.sum(-1).sum(-1) * float("nan")
    return weights[..., start:, :][..., list(keys)].sum(-1).mean(-1)


def row_entropies(weights: Float[Any, "*heads query key"]) -> Float[Any, "*heads query"]:
    """Return the entropy of every row, -sum_j A[i, j] ln A[i, j], in nats."""
    if isinstance(weights, np.ndarray):
        return -(weights * np.log(np.maximum(weights, 1e-30))).sum(-1)
    if weights.dim() < 4 or weights.device.type != "cpu" or weights.numel() <= CACHED:
        logs = weights.clamp_min(1e-30)  # fresh memory would cost more than log
        terms = log_into(logs, logs).mul_(weights)
        if terms.dim() == 3 and terms.stride(0) == 1:  # heads side by side in memory: a product is faster than a sum
            return (terms.new_full((1, terms.shape[2]), -1) @ terms.permute(1, 2, 0))[:, 0].T
        return terms.sum(-1).neg_()
    rows = weights.new_empty(weights.shape[:-1])
    for k, maps in enumerate(weights):  # one input at a time stays in the processor's cache
        rows[k] = row_entropies(maps)
    return rows


def mean_of_rows(rows: Float[Any, "*heads query"], *, causal: bool) -> Float[Any, "*heads"]:
    """Return the mean over queries of one value per row; NaN if there are no queries. If `causal`, query 0 is left
    out."""
    rows = rows[..., 1:] if causal else rows
    return rows.mean(-1) if rows.shape[-1] else rows.sum(-1) * float("nan")


def normalised_mean(
    rows: Float[Any, "*heads query"], *, causal: bool, visible_keys: Real[np.ndarray, "*layers query"] | None = None
) -> Float[Any, "*heads"]:
    """Return entropy / ln(number of visible keys), averaged over queries. The range is from 0 (all attention on one
    key) to 1 (uniform attention).

    Queries that see only one key are left out; NaN without queries. `rows` are entropies in nats. `visible_keys` of
    None: the whole sentence, or up to the query.
    """
    if visible_keys is not None:
        several = np.broadcast_to(visible_keys > 1, rows.shape)
        spread = np.where(several, rows / np.log(np.maximum(visible_keys, 2)), 0.0).sum(-1)
        return np.divide(spread, several.sum(-1), out=np.full(spread.shape, np.nan), where=several.any(-1))
    length = rows.shape[-1]
    start = 1 if causal else 0
    if length < 2:
        return rows.sum(-1) * float("nan")
    visible_keys = np.arange(start + 1, length + 1) if causal else np.full(length, length)
    share = 1 / np.log(visible_keys) / (length - start)
    return rows[..., start:] @ (share.astype(rows.dtype) if isinstance(rows, np.ndarray) else rows.new_tensor(share))


def mean_distance(weights: Float[Any, "*heads query key"], *, causal: bool = False) -> Float[Any, "*heads"]:
    """Return the attention distance sum_j A[i, j] |i - j| in tokens, averaged over queries i; NaN for a single token of
    a causal model. If `causal`, query 0 is left out."""
    position = np.arange(weights.shape[-1])
    gaps = np.abs(position[:, None] - position)  # query 0 of a causal map adds nothing
    queries = (len(position) - 1 if causal else len(position)) or float("nan")
    if len(position) > LONG:
        if isinstance(weights, np.ndarray):
            return np.einsum("...qk,qk->...q", weights, gaps.astype(weights.dtype)).sum(-1) / queries
        row_sums, offsets = weights.new_empty(weights.shape[:-1]), weights.new_tensor(gaps)
        for number, maps in enumerate(weights.reshape(-1, *gaps.shape)):  # one map at a time, to save memory
            row_sums.view(-1, len(position))[number] = (maps * offsets).sum(-1)
        return row_sums.sum(-1) / queries
    gaps = gaps.ravel()
    if isinstance(weights, np.ndarray):
        return weights.reshape(*weights.shape[:-2], -1) @ gaps.astype(weights.dtype) / queries
    if weights.dim() == 4 and weights.stride(1) == 1:  # heads side by side in memory: no copy
        rows = weights.new_tensor(gaps).reshape(len(position), 1, -1) @ weights.permute(0, 2, 3, 1)
        return rows.sum((1, 2)) / queries
    return weights.flatten(-2) @ weights.new_tensor(gaps) / queries


LONG = 256  # tokens: among more, one sum of all weights of a map in float32 loses the third digit


def classifying_entropy(maps: MapBatch | SumBatch) -> Float[Any, "batch head"]:
    """Return the entropy, in nats, of the attention row of the token from which a classifier predicts."""
    return maps.row_entropies[np.arange(len(maps.places)), :, [places.classifying for places in maps.places]]
