"""Score shares of every head over inputs, in one pass that keeps no map: what decides where heads look.

`ShareSums` reduces the contributions of each layer (core.capture.contributions) to moments of score shares: by pair of
groups, by group on the side of the query and of the key, by single earlier head on either side, and by sort over both
sides. `removal` asks whether taking a contribution away does to the map what its terms foretell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ...capture.contributions import HeadInputs, take_head_inputs
from ...capture.contributors import Component
from ...capture.sums import FrozenNorm
from ...errors import InputError
from ...models.checkpoint import Checkpoint
from ...models.encoding import Encoding
from ...scoring.ratio_moments import RatioMoments
from ...scoring.score_parts import (
    WEIGHTINGS,
    Weighting,
    centred_scores,
    covariances,
    map_distances,
    score_variance,
    without_others,
)
from .records import Removal

ANY = "any"  # the other side, summed
SIDES = ("query", "key")


@dataclass(frozen=True)
class PartName:
    """Which part of the scores a share is of.

    Attributes:
        level: "pair" of groups, "query" or "key" (a group on this side, whatever the other), "query head" or "key head"
            (a single earlier head), "sort" (the mean of both sides).
    """

    level: str
    query_part: str
    key_part: str


@dataclass(frozen=True)
class LayerShares:
    """Moments of the score shares of a layer's heads. weighting: how keys count (core.scoring.score_parts)."""

    layer: int
    weighting: Weighting
    names: tuple[PartName, ...]
    moments: RatioMoments

    def merge(self, other: "LayerShares") -> "LayerShares":
        """Of the inputs of both."""
        return replace(self, moments=self.moments.merge(other.moments))


class ShareSums:
    """What `take_head_inputs` hands its layers to; `layers` are the sums so far, by layer and weighting."""

    def __init__(self) -> None:
        self.layers: dict[tuple[int, Weighting], LayerShares] = {}

    def take(self, inputs: HeadInputs, numbers: list[int]) -> None:
        """Add a layer of a batch."""
        for weighting, shares in zip(WEIGHTINGS, layer_shares(inputs), strict=True):
            before = self.layers.get((inputs.layer, weighting))
            self.layers[inputs.layer, weighting] = before.merge(shares) if before else shares


def layer_shares(inputs: HeadInputs) -> list[LayerShares]:
    """The moments of one layer of a batch, for each weighting."""
    counts = [inputs.weights if weighting == "attention" else None for weighting in WEIGHTINGS]
    every = [centred_scores(inputs.scores, inputs.visible, weights) for weights in counts]
    pairs = covariances(inputs.query, inputs.key, every, scaling=inputs.scaling)
    place = () if inputs.bias is None else (Component("position"),)  # a bias of the scores is of places on both sides
    collected = _collected((*inputs.query_components, *place), (*inputs.key_components, *place))
    shares = []
    for weighting, centred, terms in zip(WEIGHTINGS, every, pairs, strict=True):
        own = without_others(terms, inputs.left_over)
        if inputs.bias is not None:
            own = nn.functional.pad(own, (0, 1, 0, 1))
            own[..., -1, -1] = (centred * inputs.bias).sum((-2, -1))
        whole = score_variance(centred, inputs.scores).double().cpu().numpy()
        moments = RatioMoments.of(collected.of(own.cpu().numpy()), whole)
        shares.append(LayerShares(inputs.layer, weighting, collected.names, moments))
    return shares


@dataclass(frozen=True)
class _Collected:
    """How pairs of contributions are added up to parts: pairs of groups first, then those of one side.

    Attributes:
        query_groups, key_groups: which contributions a group has. *Shape:* (contribution, group).
        query, key: which parts of one side a contribution adds to. *Shape:* (contribution, part).
    """

    names: tuple[PartName, ...]
    query_groups: np.ndarray
    key_groups: np.ndarray
    query: np.ndarray
    key: np.ndarray

    def of(self, pairs: Float[np.ndarray, "input head a b"]) -> Float[np.ndarray, "input head part"]:
        """All parts."""
        grouped = self.query_groups.T @ pairs @ self.key_groups
        by_side = pairs.sum(3) @ self.query + pairs.sum(2) @ self.key
        return np.concatenate([grouped.reshape(*pairs.shape[:2], -1), by_side], 2)


@lru_cache(maxsize=64)
def _collected(query: tuple[Component, ...], key: tuple[Component, ...]) -> _Collected:
    """Pairs of groups, then groups, single heads and sorts of either side."""
    groups = [list(dict.fromkeys(component.group for component in side)) for side in (query, key)]
    pairs = [PartName("pair", first, second) for first in groups[0] for second in groups[1]]
    of_query = [_of_query(component) for component in query]
    of_key = [_of_key(component) for component in key]
    sides = list(dict.fromkeys(name for parts in (*of_query, *of_key) for name in parts))
    return _Collected(
        (*pairs, *sides),
        *(
            np.array([[component.group == group for group in own] for component in side], float)
            for side, own in zip((query, key), groups, strict=True)
        ),
        *(np.array([[parts.get(name, 0.0) for name in sides] for parts in side]) for side in (of_query, of_key)),
    )


def _of_query(component: Component) -> dict[PartName, float]:
    named = {PartName("query", component.group, ANY): 1.0, PartName("sort", component.sort, ANY): 0.5}
    return named | ({PartName("query head", component.label, ANY): 1.0} if component.kind == "head" else {})


def _of_key(component: Component) -> dict[PartName, float]:
    named = {PartName("key", ANY, component.group): 1.0, PartName("sort", component.sort, ANY): 0.5}
    return named | ({PartName("key head", ANY, component.label): 1.0} if component.kind == "head" else {})


def share_sums(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], *, part: str = "", by_head: bool = False
) -> list[LayerShares]:
    """Score shares of every head over these inputs, by layer and weighting. Raises InterventionError as
    `take_head_inputs`."""
    sums = ShareSums()
    take_head_inputs(checkpoint, encodings, sums.take, part=part, by_head=by_head, by_difference=True)
    return [sums.layers[key] for key in sorted(sums.layers)]


# ---------------------------------------------------------------- does removing it do what its terms foretell?


def removal(checkpoint: Checkpoint, encodings: Sequence[Encoding], *, part: str = "") -> list[Removal]:
    """What taking each group away does to every head's maps, two passes over the inputs.

    Args:
        encodings: the inputs, at least one.
        part: which set of heads of an encoder-decoder; "" is the first.

    Raises:
        InputError: positions are turned into the queries (rotary) or added to the scores, where a mean over positions
            is no contribution; or there are no inputs.
        InterventionError: as `take_head_inputs`.
    """
    if not encodings:
        raise InputError("Contributions are removed on inputs; none were given: name rows.")
    means = _Means()
    take_head_inputs(checkpoint, encodings, means.take, part=part, norms=True)
    if not means.has_positions:
        raise InputError(
            f"Contributions are replaced by their mean over positions where positions are embeddings; "
            f"{checkpoint.family.model_type} puts them into the scores: its score shares stand without this check."
        )
    sums = _RemovalSums(means)
    take_head_inputs(checkpoint, encodings, sums.take, part=part, norms=True)
    return [sums.result(layer, len(encodings)) for layer in sorted(sums.distances)]


class _Means:
    """Mean contributions over inputs and positions, by layer and side.

    "scaled": as queries and keys have them, divided by the norm's spread at each position; "projected": not divided, so
    that a contribution that is the same at every position before the norm is its own mean; "before": as the norm's
    input has them.
    """

    def __init__(self) -> None:
        self.sums: dict[tuple[int, str, str, Component], Tensor] = {}
        self.counts: dict[int, int] = {}
        self.has_positions = False

    def take(self, inputs: HeadInputs, numbers: list[int]) -> None:
        self.counts[inputs.layer] = self.counts.get(inputs.layer, 0) + inputs.query.shape[1] * inputs.query.shape[3]
        for side, components, states, norm in _sides(inputs):
            self.has_positions |= any(component.kind == "position" for component in components)
            self._add(inputs.layer, side, "scaled", components, states.sum((1, 3)))
            if norm is not None:
                spread = norm.spread[:, None, :, None]
                projected = torch.stack([(state * spread).sum((0, 2)) for state in states])
                self._add(inputs.layer, side, "projected", components, projected)
                self._add(inputs.layer, side, "before", norm.components, norm.parts.sum((1, 2)))

    def _add(self, layer: int, side: str, which: str, components: Sequence[Component], sums: Tensor) -> None:
        for component, value in zip(components, sums, strict=True):
            key = (layer, side, which, component)
            self.sums[key] = self.sums[key] + value if key in self.sums else value

    def mean(self, layer: int, side: str, which: str, component: Component) -> Tensor:
        return self.sums[layer, side, which, component] / self.counts[layer]


def _sides(
    inputs: HeadInputs,
) -> list[tuple[str, tuple[Component, ...], Tensor, FrozenNorm | None]]:
    return [
        ("query", inputs.query_components, inputs.query, inputs.query_norm),
        ("key", inputs.key_components, inputs.key, inputs.key_norm),
    ]


class _RemovalSums:
    """Distances between maps with and without each contribution, summed over inputs."""

    def __init__(self, means: _Means) -> None:
        self.means = means
        self.distances: dict[int, np.ndarray] = {}  # [foretold or held or recomputed, part, head]
        self.names: dict[int, tuple[str, ...]] = {}

    def take(self, inputs: HeadInputs, numbers: list[int]) -> None:
        rows, names = [], []
        for side, components, _, norm in _sides(inputs):
            for number, component in enumerate(components):
                names.append(f"{component.label} in the {side}")
                changed = torch.stack([self._map(inputs, side, number, how, norm) for how in range(3)])
                rows.append(map_distances(changed, inputs.weights))
        sums = torch.stack(rows, 1).double().cpu().numpy() * inputs.query.shape[1]
        self.names[inputs.layer] = tuple(names)
        self.distances[inputs.layer] = self.distances.get(inputs.layer, 0) + sums

    def _map(self, inputs: HeadInputs, side: str, number: int, how: int, norm: FrozenNorm | None) -> Tensor:
        """The map without a contribution: its terms left out (0), its mean instead (1), and the scale anew (2)."""
        is_query = side == "query"
        states, component = getattr(inputs, side), getattr(inputs, f"{side}_components")[number]
        whole = (inputs.whole_query if is_query else inputs.whole_key) - states[number]
        if how == 2 and norm is None:
            whole = torch.full_like(whole, torch.nan)
        elif how == 2 and norm is not None and component in norm.components:
            whole = self._rescaled(inputs, side, component, whole, norm)
        elif how:  # behind the norm, as its own bias, a contribution has no scale to compute again
            whole = whole + self.means.mean(inputs.layer, side, "scaled", component)[None, :, None]
        scores = (whole @ inputs.whole_key.mT if is_query else inputs.whole_query @ whole.mT) * inputs.scaling
        return torch.softmax(scores.masked_fill(~inputs.visible, -torch.inf), -1)

    def _rescaled(self, inputs: HeadInputs, side: str, component: Component, rest: Tensor, norm: FrozenNorm) -> Tensor:
        """The norm of all other contributions and of the mean of this one before the norm, projected."""
        states, components = getattr(inputs, side), getattr(inputs, f"{side}_components")
        before, projected = (self.means.mean(inputs.layer, side, which, component) for which in ("before", "projected"))
        behind = states[[number for number, name in enumerate(components) if name not in norm.components]].sum(0)
        spread, anew = norm.spread[:, None, :, None], norm.spread_with(component, before)[:, None, :, None]
        return (rest - behind) * (spread / anew) + projected[None, :, None] / anew + behind

    def result(self, layer: int, n: int) -> Removal:
        foretold, held, recomputed = self.distances[layer] / n
        return Removal(layer, self.names[layer], foretold, held, recomputed, n)
