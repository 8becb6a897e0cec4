"""Groups of alike maps that a person can label together."""

import hashlib
from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..patterns.clusters import cluster_maps, components
from ..patterns.raster import from_float16
from ..patterns.shapes import shapes
from ..store import labels
from ..store.database import Database

GROUP = 24  # maps, at most
SMALLEST = 3  # maps of a cluster
AT_ONCE = 1000  # maps; Ward's clustering needs memory for all pairs


def alike_maps(db: Database, names: Sequence[str]) -> list[list[str]]:
    """Group stored attention maps by similarity, with at most GROUP maps per group.

    More than AT_ONCE maps are clustered in random parts. Too few maps to cluster, and equal maps, are returned in
    groups of one.
    """
    shuffled = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    found: list[list[str]] = []
    for start in range(0, len(shuffled), AT_ONCE):
        rows = labels.maps_of(db, shuffled[start : start + AT_ONCE])
        statistics = shapes([from_float16(row["weights"], row["length"]) for row in rows])
        try:
            found += [[rows[k]["map_id"] for k in group] for group in groups(statistics)]
        except InputError:
            found += [[row["map_id"]] for row in rows]
    return found


def groups(statistics: np.ndarray) -> list[np.ndarray]:
    """Group attention maps by the similarity of their statistics, and return the indices in each group."""
    from scipy.cluster.hierarchy import leaves_list, ward  # 0.2 s of start-up

    nearest = cluster_maps(statistics, smallest=SMALLEST).nearest
    rank = np.argsort(leaves_list(ward(components(statistics))))
    found = []
    for cluster in range(nearest.max() + 1):
        members = np.flatnonzero(nearest == cluster)
        found += np.array_split(members[np.argsort(rank[members])], -(-len(members) // GROUP))
    return found
