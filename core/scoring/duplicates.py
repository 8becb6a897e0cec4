"""Groups of near-duplicate heads, and other heads to compare them with.

Clark et al. (2019, section 6) see heads of one layer cluster by Jensen-Shannon distance; are such heads "functional
duplicates", so that one stands in for the other? Then a group costs more together than its heads cost one at a time,
added up, and random heads of the same layers tell what that many heads cost anyway.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
from jaxtyping import Float

from ..attention import Head, all_heads
from ..errors import InputError


@dataclass(frozen=True)
class Group:
    """Near-duplicate heads.

    Attributes:
        heads: in order.
        distance: mean between two of them, in the unit of the distances that they were found by.
    """

    heads: tuple[Head, ...]
    middle: Head
    distance: float


def groups_of(distances: Float[np.ndarray, "head head"], heads: int, *, within: float) -> list[Group]:
    """Clusters of two heads or more by average linkage.

    Args:
        distances: between every two heads, layer by layer; symmetric, of any unit.
        within: two clusters are joined while the mean distance between their heads is at most this share of the mean
            between any two heads.

    Returns:
        The closest first; empty where all distances are 0, or there is one head.

    Raises:
        InputError: `within` is not above 0 and below 1.
    """
    if not 0 < within < 1:
        raise InputError(
            f"Near-duplicates are closer than heads are on average: a share between 0 and 1, not {within}."
        )
    apart = scipy.spatial.distance.squareform(distances, checks=False)
    if not apart.size or not apart.any():
        return []
    label = scipy.cluster.hierarchy.fcluster(
        scipy.cluster.hierarchy.linkage(apart, "average"), within * apart.mean(), criterion="distance"
    )
    members = [np.flatnonzero(label == cluster) for cluster in np.unique(label)]
    groups = [_group(distances, group, heads) for group in members if len(group) > 1]
    return sorted(groups, key=lambda group: (group.distance, group.heads))


def _group(distances: Float[np.ndarray, "head head"], members: np.ndarray, heads: int) -> Group:
    between = distances[np.ix_(members, members)].sum(1) / (len(members) - 1)
    group = [Head(*divmod(int(member), heads)) for member in members]
    return Group(tuple(group), group[int(between.argmin())], float(between.mean()))


def matched(group: Group, layers: int, heads: int, *, draws: int, seed: int) -> list[list[Head]]:
    """Random other heads, as many of each layer as the group has; of any layer where its own has too few left.

    Returns:
        One list of heads a draw, in order; empty where fewer heads are left than the group has.
    """
    chance, matches = np.random.default_rng([seed, *(head.layer * heads + head.head for head in group.heads)]), []
    outside = set(all_heads(layers, heads)) - set(group.heads)
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
