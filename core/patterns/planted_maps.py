"""Maps planted to fill rare classes of BERT's set: mixed from parts measured on the labelled maps one trains on.

A checkpoint shows few of some classes (a real BERT-base on single sentences has no Block, the bundled encoder no
Vertical+Diagonal), and a classifier cannot know what it never saw. A planted map is made of measured ones, so its
weights are spread as in real maps, and only its class is by construction. They are trained on and never scored.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from core.codebook.registry import BERT

ENOUGH = 60  # labelled and planted maps of a class together
OUTSIDE = 0.06  # largest weight that a key of the other sentence keeps, as a share of its own
Map = Float[np.ndarray, "_query _key"]
Random = np.random.Generator


def planted(
    maps: Sequence[Map], labels: Sequence[str], classes: Sequence[str], *, enough: int = ENOUGH, seed: int = 0
) -> tuple[list[Map], list[str]]:
    """Planted maps: Vertical+Diagonal of a column map and a line, Block of any map within squares.

    Args:
        maps: labelled ones, whose parts are mixed; rows sum to 1.
        enough: a class gets only as many as it lacks to this number of maps.

    Returns:
        The maps and their classes; none for a class set that lacks these classes, or where the labelled maps lack the
        parts.
    """
    if tuple(classes) != BERT.names:
        return [], []
    rng = np.random.default_rng(seed)
    of = {name: [m for m, label in zip(maps, labels, strict=True) if label == name] for name in BERT.names}
    lines, columns = of["diagonal"], of["vertical"]
    plain = columns + of["heterogeneous"] + of["block"]
    drawn: list[Map] = []
    names: list[str] = []
    if lines and columns:
        lacking = max(0, enough - len(of["vertical+diagonal"]))
        drawn += [_both(rng, _any(rng, lines), _any(rng, columns)) for _ in range(lacking)]
        names += ["vertical+diagonal"] * lacking
    if plain:
        lacking = max(0, enough - len(of["block"]))
        drawn += [_block(rng, _any(rng, plain)) for _ in range(lacking)]
        names += ["block"] * lacking
    return drawn, names


def _any(rng: Random, maps: Sequence[Map]) -> Map:
    return maps[int(rng.integers(len(maps)))]


def _normalised(weights: np.ndarray) -> Map:
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def cropped(rng: Random, weights: Map, length: int) -> Map:
    """The map on its first, its last and neighbouring tokens between, `length` in all, rows summing to 1 again.

    Args:
        rng: draws where the neighbours begin.
        weights: the map, rows sum to 1.
        length: tokens that are left, at least 2.

    Returns:
        The map itself where it is not longer.
    """
    if len(weights) <= length:
        return weights
    start = 1 + int(rng.integers(len(weights) - length + 1))
    places = np.r_[0, start : start + length - 2, len(weights) - 1]
    return _normalised(weights[np.ix_(places, places)] + 1e-6)


def _both(rng: Random, line: Map, columns: Map) -> Map:
    length = min(len(line), len(columns))
    share = rng.uniform(0.35, 0.65) + rng.uniform(-0.15, 0.15, (length, 1))
    return _normalised(share * cropped(rng, line, length) + (1 - share) * cropped(rng, columns, length))


def _block(rng: Random, attention: Map) -> Map:
    """Two squares on the diagonal; columns of [CLS] and [SEP] are weakened, or they would be what the eye sees."""
    length = len(attention)
    cut = int(rng.integers(max(1, length // 4), max(2, 3 * length // 4)))
    weights = attention.astype(np.float64) ** rng.uniform(0.3, 1.0)
    weights[:, [0, -1]] *= rng.uniform(0, 0.5)
    inside = np.zeros((length, length), dtype=bool)
    inside[:cut, :cut] = inside[cut:, cut:] = True
    return _normalised(np.where(inside, weights, weights * rng.uniform(0, OUTSIDE)) + 1e-6)
