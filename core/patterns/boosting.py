"""Gradient-boosted trees on length-free statistics, beside the forest: what one sees least the other often sees.

Fitted by scikit-learn (histogram boosting, Ke et al. 2017) and kept as plain arrays, which any numpy walks. Whether
they have a say is decided in each training on its own maps (`forest`).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int
from sklearn.ensemble import HistGradientBoostingClassifier

ROUNDS, RATE, LEAVES, RIDGE = 50, 0.1, 15, 1.0
BINS = 64  # of a statistic, where a tree may split it: a third of the time of scikit-learn's 255
PREFIX = "boosted_"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Examples:
    """What boosted trees are fitted to.

    Attributes:
        measured: statistics of each example. *Shape:* (example, statistic).
        numbers: class number of each. *Shape:* (example,).
        weights: of each; None: all alike. *Shape:* (example,).
    """

    measured: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray | None = None


def fit_boosted(examples: Examples, classes: int, *, rounds: int = ROUNDS, seed: int = 0) -> Arrays:
    """Arrays of boosted trees; none where all examples are of one class. classes: how many the set has."""
    if len(set(examples.numbers.tolist())) < 2:
        return {}
    measured = examples.measured.astype(np.float32)
    edges = None if examples.weights is None else _edges(measured)
    model = HistGradientBoostingClassifier(
        max_iter=rounds,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        l2_regularization=RIDGE,
        max_bins=BINS,
        early_stopping=False,
        random_state=seed % 2**32,
    ).fit(measured if edges is None else _binned(measured, edges), examples.numbers, sample_weight=examples.weights)
    present = model.classes_ if model.n_trees_per_iteration_ > 1 else model.classes_[1:]  # of two classes one is summed
    base = np.full(classes, -np.inf)
    base[model.classes_] = 0.0
    base[present] = np.ravel(model._baseline_prediction)
    numbers = present.tolist()
    trees = [(tree.nodes, number) for step in model._predictors for tree, number in zip(step, numbers, strict=True)]
    nodes = _nodes(trees) | {"base": base}
    if edges is not None:
        nodes["threshold"] = _of_statistics(nodes, edges)
    return {PREFIX + name: values for name, values in nodes.items()}


def _edges(measured: np.ndarray) -> list[np.ndarray]:
    """Of each statistic the values, between BINS even parts, where a tree may split it. With weights scikit-learn looks
    for them in a loop that takes most of a fit, so it gets numbers of bins instead."""
    inner = np.quantile(measured, np.linspace(0, 1, BINS + 1)[1:-1], axis=0, method="lower")
    return [np.unique(column) for column in inner.T]


def _binned(measured: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """The number of each value's bin: how many edges lie below it."""
    columns = [np.searchsorted(of, values) for of, values in zip(edges, measured.T, strict=True)]
    return np.stack(columns, axis=1).astype(np.float32)


def _of_statistics(nodes: Arrays, edges: list[np.ndarray]) -> np.ndarray:
    """Thresholds between numbers of bins as values of the statistics; a leaf's stay 0."""
    inner = nodes["left"] != np.arange(len(nodes["left"]))
    chosen = zip(nodes["feature"], nodes["threshold"], inner, strict=True)
    return np.array([edges[of][int(place)] if splits else 0.0 for of, place, splits in chosen])


def _nodes(trees: list[tuple[np.ndarray, int]]) -> Arrays:
    """Every tree's nodes one after another. left, right: node numbers, a leaf's are its own. root, of: of each tree its
    first node and the class that it adds to."""
    sizes = [len(nodes) for nodes, _ in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    start = np.repeat(roots, sizes)
    all_nodes = np.concatenate([nodes for nodes, _ in trees])
    node_numbers, leaf = np.arange(len(all_nodes)), all_nodes["is_leaf"].astype(bool)
    return {
        "feature": np.where(leaf, 0, all_nodes["feature_idx"]).astype(np.int16),
        "threshold": np.where(leaf, 0.0, all_nodes["num_threshold"]).astype(np.float64),
        "left": np.where(leaf, node_numbers, all_nodes["left"] + start).astype(np.int32),
        "right": np.where(leaf, node_numbers, all_nodes["right"] + start).astype(np.int32),
        "value": np.where(leaf, all_nodes["value"], 0.0).astype(np.float32),
        "root": roots.astype(np.int32),
        "of": np.array([number for _, number in trees], dtype=np.int16),
    }


def has_boosted(arrays: Arrays) -> bool:
    """Whether a classifier has boosted trees: earlier versions stored none."""
    return PREFIX + "root" in arrays


def boosted_probabilities(
    arrays: Arrays, measured: Float[np.ndarray, "map statistic"]
) -> Float64[np.ndarray, "map class"]:
    """Class probabilities by boosted trees.

    Args:
        arrays: of the trees, named as `fit_boosted` gives them.
        measured: statistics of each map, those that the trees were fitted to.

    Returns:
        *Range:* 0 to 1; rows sum to 1. 0 for a class without examples.
    """
    trees = {name: arrays[PREFIX + name] for name in ("feature", "threshold", "left", "right", "value", "root", "of")}
    leaves = _leaves(trees, measured.astype(np.float32))
    logits = np.tile(arrays[PREFIX + "base"].astype(np.float64), (len(measured), 1))
    for number in np.unique(trees["of"]):
        logits[:, number] += trees["value"][leaves[trees["of"] == number]].sum(0, dtype=np.float64)
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _leaves(trees: Arrays, places: np.ndarray) -> Int[np.ndarray, "tree map"]:
    """The leaf of each map in each tree."""
    columns = np.arange(len(places))
    at = np.repeat(trees["root"][:, None], len(places), axis=1)
    while True:
        below = places[columns, trees["feature"][at]] <= trees["threshold"][at]
        following = np.where(below, trees["left"][at], trees["right"][at])
        if (following == at).all():
            return at
        at = following
