"""Jensen-Shannon distances between the rows of heads, and a plot of them (Clark et al. 2019, Fig 6).

JS(P, Q) = H((P + Q) / 2) - (H(P) + H(Q)) / 2, in nats, between the rows of two heads for the same query and input,
smoothed as 0.999 p + 0.001 / n. Clark et al. sum it over all queries and inputs; the mean per row is also available.
The plot uses metric multidimensional scaling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Float
from torch import Tensor

from ..attention import Head, all_heads
from ..errors import InputError
from ..map_sums import MapSums, Needs, log_into
from .heads import CACHED

# ---------------------------------------------------------------- near-duplicate heads


@dataclass(frozen=True)
class Group:
    """A group of near-duplicate heads, and the mean distance between any two of them."""

    heads: tuple[Head, ...]
    middle: Head
    distance: float


def groups_of(distances: Float[np.ndarray, "head head"], heads: Sequence[Head], *, within: float) -> list[Group]:
    """Group similar heads by average linkage. Return clusters of two or more heads, the most similar first.

    Clusters are merged while their mean distance is at most the fraction `within` of the mean over all pairs of heads.
    Raises InputError unless it is between 0 and 1.
    """
    if not 0 < within < 1:
        raise InputError(
            "The distance limit for near-duplicate heads must be above 0 and below 1, as a fraction of the mean "
            f"distance between heads; got {within}. Choose a value in that range."
        )
    apart = scipy.spatial.distance.squareform(distances, checks=False)
    if not apart.size or not apart.any():
        return []
    label = scipy.cluster.hierarchy.fcluster(
        scipy.cluster.hierarchy.linkage(apart, "average"), within * apart.mean(), criterion="distance"
    )
    groups = []
    for cluster in np.unique(label):
        members = np.flatnonzero(label == cluster)
        if len(members) > 1:
            between = distances[np.ix_(members, members)].sum(1) / (len(members) - 1)
            named = tuple(heads[member] for member in members.tolist())
            groups.append(Group(named, named[int(between.argmin())], float(between.mean())))
    return sorted(groups, key=lambda group: (group.distance, group.heads))


def matched(group: Group, heads: Sequence[Head], *, draws: int, seed: int) -> list[list[Head]]:
    """Draw random sets of heads outside a group. Each set has as many heads in each layer as the group. If a layer has
    too few such heads, heads of any layer are added. Return an empty result if too few heads are outside the group."""
    chance, matches = np.random.default_rng([seed, *(heads.index(head) for head in group.heads)]), []
    outside = set(heads) - set(group.heads)
    for _ in range(draws if len(outside) >= len(group.heads) else 0):
        chosen: list[Head] = []
        for layer in sorted({head.layer for head in group.heads}):
            in_layer = sum(head.layer == layer for head in group.heads)
            chosen += _some(chance, sorted(head for head in outside if head.layer == layer), in_layer)
        missing = len(group.heads) - len(chosen)
        chosen += _some(chance, sorted(outside - set(chosen)), missing)
        matches.append(sorted(chosen))
    return matches


def _some(chance: np.random.Generator, heads: list[Head], most: int) -> list[Head]:
    return [heads[k] for k in chance.permutation(len(heads))[:most]]


SMOOTHING = 0.001
STARTS, MOST_STEPS, TOLERANCE = 5, 1000, 1e-10  # settings of the scaling in Clark et al.


class HeadDistances:
    """An observer that computes the Jensen-Shannon divergence between the attention rows of each pair of heads.

    Distances to heads of layers without attention are NaN. `queries` rows are drawn from each input (None: all).
    """

    def __init__(
        self, layers: int, heads: int, attending: Sequence[int] = (), *, queries: int | None = None, seed: int = 0
    ):
        self.queries, self.seed = queries, seed
        self.last = max(attending, default=layers - 1)
        seen = np.array([head.layer * heads + head.head for head in all_heads(layers, heads, attending)])
        self.seen = np.ix_(seen, seen)
        self.sums = np.full((layers * heads, layers * heads), np.nan)
        self.sums[self.seen] = 0
        self.rows = 0
        self._held: list[Tensor] = []
        self._rows = torch.empty(0)
        self._numbers: Sequence[int] = ()

    def take(self, numbers: Sequence[int]) -> "HeadDistances":
        """Set the inputs of the next model run, given as their indices in the study."""
        self._numbers = numbers
        return self

    def update(self, layer: int, weights: Float[Tensor, "batch head query key"], inputs: list[int]) -> None:
        """Store a random sample of the attention rows in one layer. After the last layer, compute the distances."""
        length = weights.shape[-1]
        if not self._held:  # the same for all layers of a batch
            self._rows = torch.tensor([self._drawn(self._numbers[k], length) for k in inputs], device=weights.device)
        rows = weights.permute(0, 2, 3, 1)[torch.arange(len(inputs), device=weights.device)[:, None], self._rows]
        self._hold(layer, rows.permute(3, 0, 1, 2).reshape(weights.shape[1], -1, length))

    def update_layers(self, weights: Float[Tensor, "batch layer_head query key"], inputs: list[int]) -> None:
        self.update(self.last, weights, inputs)

    def needs(self, inputs: list[int], queries: int, keys: int) -> list[Needs] | None:
        """Request random attention rows of each long input. Return None to request whole maps, if all rows are compared
        or there are attention sinks."""
        if self.queries is None or queries != keys:
            return None
        return [Needs(rows=tuple(self._drawn(self._numbers[k], queries))) for k in inputs]

    def update_sums(self, layer: int, sums: Sequence[MapSums], inputs: list[int]) -> None:
        self._hold(layer, torch.cat([torch.from_numpy(layer_sums.rows) for layer_sums in sums], 1))

    def _hold(self, layer: int, rows: Float[Tensor, "head row key"]) -> None:
        self._held.append(rows)
        if layer == self.last:
            held, self._held = torch.cat(self._held), []
            self.sums[self.seen] += js_sums(held).double().cpu().numpy()
            self.rows += held.shape[1]

    def _drawn(self, number: int, length: int) -> list[int]:
        if self.queries is None or length <= self.queries:
            return list(range(length))
        chance = np.random.default_rng([self.seed, number])
        return np.sort(chance.choice(length, self.queries, replace=False)).tolist()

    def result(self) -> Float[np.ndarray, "head head"]:
        """Return the distance between each pair of heads, averaged over attention rows. NaN if there are no rows. The
        attribute `sums` contains the sums over rows, which Clark et al. report."""
        return self.sums / self.rows if self.rows else np.full_like(self.sums, np.nan)


def js_sums(rows: Float[Tensor, "head row key"]) -> Float[Tensor, "head head"]:
    """Return the Jensen-Shannon divergence between each pair of heads, in nats, summed over smoothed attention rows."""
    half = (((1 - SMOOTHING) * rows + SMOOTHING / rows.shape[-1]) / 2).flatten(1)
    entropies = _entropies(2 * half) / 2
    heads, together = len(half), max(1, CACHED // half.numel())  # some heads with all that follow
    above = rows.new_zeros(heads, heads)
    for start in range(0, heads, together):
        chunk = slice(start, start + together)
        mixtures = half[chunk, None] + half[start:]
        above[chunk, start:] = _entropies(mixtures) - entropies[chunk, None] - entropies[start:]
    above = above.clamp_min_(0).triu_(1)
    return above + above.T


def js_between(first: Float[Tensor, "head row key"], second: Float[Tensor, "head row key"]) -> Float[Tensor, " head"]:
    """Return, for each head, the Jensen-Shannon divergence between its rows in two sets of maps, in nats, summed over
    rows."""
    halves = [(((1 - SMOOTHING) * rows + SMOOTHING / rows.shape[-1]) / 2).flatten(1) for rows in (first, second)]
    entropies = sum(_entropies(2 * half) / 2 for half in halves)
    return (_entropies(halves[0] + halves[1]) - entropies).clamp_min(0)


def _entropies(rows: Float[Tensor, "*head entry"]) -> Float[Tensor, "*head"]:
    """-sum p ln p over entries above 0."""
    return -log_into(torch.empty_like(rows), rows).mul_(rows).sum(-1)


def picture(distances: Float[np.ndarray, "head head"], *, seed: int = 0) -> tuple[np.ndarray, float]:
    """Return two-dimensional coordinates [head, 2] that preserve the distances between heads as well as possible. Also
    return Kruskal's stress.

    Metric multidimensional scaling, the best of STARTS starts. Stress is 0 for a perfect fit and above 0.2 for a poor
    one.
    """
    from sklearn.manifold import MDS  # 1 s of start-up

    if not distances.any():
        return np.zeros((len(distances), 2)), 0.0  # all alike, or one head
    scaling = MDS(
        2,
        metric="precomputed",
        n_init=STARTS,
        init="random",
        max_iter=MOST_STEPS,
        eps=TOLERANCE,
        random_state=seed % 2**32,
        normalized_stress=False,
    )
    places = scaling.fit_transform(distances)
    gaps = np.sqrt(((places[:, None] - places) ** 2).sum(-1))
    size = float((distances**2).sum())
    return places, float(np.sqrt(((gaps - distances) ** 2).sum() / size)) if size else 0.0
