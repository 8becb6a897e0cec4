"""Attention to the tokens that carry a feature (Kovaleva et al. 2019, section 4.4 and Fig 6; Clark et al. 2019, 3.2).

Column of a key k: c[k] = mean over queries of A[query, k]; range 0 to 1, and the columns of an input sum to 1. In a
causal model early keys are seen by more queries, so c also comes divided by the number of queries that see the key
instead of all. Definitions, as named choices:

    max                 max over the feature's pieces of c[k]                 (Kovaleva)
    sum                 sum over the feature's pieces of c[k]                 (Clark)
    max-visible         max of c[k] over the queries that see k               (causal models)
    classifying         max over the feature's pieces of A[classifying token, k]  (Kovaleva's Fig 7, last layer)

Inputs without the feature are left out. The null: other tokens of the text, as many, each near the place of one of the
feature's, drawn several times; an effect is a value less its input's null.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from core.scoring.definitions import DEFINITIONS
from core.scoring.intervals import Estimate, Means

NEAREST = 6  # a token of the null is drawn from so many nearest ones
NULLS = 3  # null draws of an input and feature


@dataclass(frozen=True)
class Marks:
    """Where the features of one input are. tokens [feature, key]; nulls [draw, feature, key], a row without any token
    where there were too few others; classifying: position of the token that classifies."""

    tokens: Bool[np.ndarray, "feature key"]
    nulls: Bool[np.ndarray, "draw feature key"]
    classifying: int


def mark(
    tokens: Bool[np.ndarray, "feature key"], ordinary: Sequence[int], *, classifying: int, seed: Sequence[int]
) -> Marks:
    """Marks with their null draws. ordinary: positions that are no special tokens; seed: fixes the draws."""
    chance = np.random.default_rng(list(seed))
    nulls = np.zeros((NULLS, *tokens.shape), dtype=bool)
    for feature, row in enumerate(tokens):
        others = [k for k in ordinary if not row[k]]
        places = np.flatnonzero(row)
        if len(places) and len(others) >= len(places):
            for draw in range(NULLS):
                nulls[draw, feature, _near(places, others, chance)] = True
    return Marks(tokens, nulls, classifying)


def _near(places: np.ndarray, others: list[int], chance: np.random.Generator) -> list[int]:
    left, taken = list(others), []
    for place in chance.permutation(places):
        nearest = sorted(left, key=lambda k: (abs(k - place), k))[:NEAREST]
        taken.append(nearest[int(chance.integers(len(nearest)))])
        left.remove(taken[-1])
    return taken


def columns(
    weights: Float[Tensor, "batch head query key"], *, visible: bool = False
) -> Float[Tensor, "batch head key"]:
    """Mean over queries of the attention to each key; visible: over the queries at or after the key (causal)."""
    length = weights.shape[-1]
    if not visible:
        return weights.mean(2)
    return weights.sum(2) / torch.arange(length, 0, -1, device=weights.device, dtype=weights.dtype)


def most(values: Float[Tensor, "batch head key"], marks: Bool[Tensor, "batch mark key"]) -> Tensor:
    """Largest of the marked keys, [batch, head, mark]; -inf where nothing is marked."""
    return values[:, :, None, :].masked_fill(~marks[:, None], -torch.inf).amax(-1)


def total(values: Float[Tensor, "batch head key"], marks: Bool[Tensor, "batch mark key"]) -> Tensor:
    """Sum over the marked keys, [batch, head, mark]."""
    return torch.einsum("bhk,bmk->bhm", values, marks.to(values.dtype))


class FeatureAttention:
    """Observer: every definition for every feature, its mean over inputs and its mean less the null."""

    def __init__(self, layers: int, heads: int, features: Sequence[str], *, causal: bool, seed: int = 0):
        self.features, self.causal = tuple(features), causal
        self.definitions = [name for name in DEFINITIONS if causal or name != "max-visible"]
        kinds = len(self.definitions) * len(self.features)
        self.means = Means(layers, heads, 2 * kinds, seed=seed)
        self._marks: Sequence[Marks] = ()
        self._numbers: Sequence[int] = ()

    def take(self, marks: Sequence[Marks], numbers: Sequence[int]) -> "FeatureAttention":
        """The inputs of the next run: their marks, and their numbers in the whole study."""
        self._marks, self._numbers = marks, numbers
        return self

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Reduce one layer's maps."""
        some = [self._marks[k] for k in inputs]
        tokens = torch.from_numpy(np.stack([one.tokens for one in some])).to(weights.device)
        nulls = torch.from_numpy(np.stack([one.nulls for one in some])).to(weights.device)
        sums, counts = [], []
        for definition in self.definitions:
            value, null = self._of(definition, weights, tokens, nulls, some)
            sums += [value, value - null]
            counts += [tokens.any(-1), nulls.any(-1).any(1)]
        self.means.update(
            layer,
            torch.cat(sums, -1).double().cpu().numpy(),
            torch.cat(counts, -1).double().cpu().numpy(),
            [self._numbers[k] for k in inputs],
        )

    def _of(
        self, definition: str, weights: Tensor, tokens: Tensor, nulls: Tensor, some: list[Marks]
    ) -> tuple[Tensor, Tensor]:
        """(value, mean over the null's draws) [batch, head, feature] of one definition."""
        if definition == "classifying":
            rows = torch.tensor([one.classifying for one in some], device=weights.device)
            values = weights[torch.arange(len(some), device=weights.device), :, rows]
        else:
            values = columns(weights, visible=definition == "max-visible")
        reduce = total if definition == "sum" else most
        drawn = torch.stack([reduce(values, nulls[:, k]) for k in range(nulls.shape[1])])
        return reduce(values, tokens), drawn.mean(0)

    def merge(self, other: "FeatureAttention") -> None:
        """Add what another observer of other inputs saw."""
        self.means.merge(other.means)

    def result(self) -> dict[tuple[str, str], tuple[Estimate, Estimate]]:
        """(value, effect over the null) of each (definition, feature); each [layer, head, 1]."""
        return by_feature(self, self.means.result())


def by_feature(observer: FeatureAttention, whole: Estimate) -> dict[tuple[str, str], tuple[Estimate, Estimate]]:
    """An estimate of all of an observer's statistics as (value, effect) of each (definition, feature)."""
    width, found = len(observer.features), {}
    for number, definition in enumerate(observer.definitions):
        for k, feature in enumerate(observer.features):
            place = 2 * number * width + k
            found[definition, feature] = (whole.part(place), whole.part(place + width))
    return found
