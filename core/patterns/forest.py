"""Random forest on length-independent statistics, calibrated on held-out checkpoints.

Extremely randomised trees (Geurts et al. 2006, scikit-learn) split statistics of `shapes` at random values, so
thresholds are not fitted to one checkpoint. Trees are stored as arrays. The temperature (Guo et al. 2017) is fitted on
held-out checkpoints. If further models lower the loss there, their probabilities are averaged with those of the forest:
kernel and logistic regression for the bundled class sets, which also have statistics of each sentence, and boosted
trees for other class sets.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from scipy.linalg import solve
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from ..codebook.registry import BERT, GPT2
from ..errors import InputError
from .shapes import NAMES, OF_ALL, SENTENCE_NAMES, shapes, statistics
from .synthetic import synthetic_maps
from .synthetic_causal import synthetic_causal_maps

# ---------------------------------------------------------------- synthetic maps for rare classes of BERT's set


ENOUGH = 60  # least maps of a class, labelled and synthetic
OUTSIDE = 0.06  # largest fraction of weight retained on keys of the other sentence
Map = Float[np.ndarray, "_query _key"]
Random = np.random.Generator


def planted(
    maps: Sequence[Map], labels: Sequence[str], classes: Sequence[str], *, enough: int = ENOUGH, seed: int = 0
) -> tuple[list[Map], list[str]]:
    """Create synthetic attention maps of rare pattern classes by modifying the given maps. Returns the new maps and
    their classes.

    Vertical+Diagonal combines a column map and a line; Block restricts a map without a line to squares. `enough` is the
    number of maps of a class, labelled and synthetic. Empty for other class sets, or if labelled maps lack the parts.
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
    """Shorten an attention map to `length` tokens: the first token, a random run of neighbouring tokens, and the last
    token. Rows of the result sum to 1. A map that is short enough is returned unchanged."""
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
    """Return two squares on the diagonal, with the columns of [CLS] and [SEP] weakened."""
    length = len(attention)
    cut = int(rng.integers(max(1, length // 4), max(2, 3 * length // 4)))
    weights = attention.astype(np.float64) ** rng.uniform(0.3, 1.0)
    weights[:, [0, -1]] *= rng.uniform(0, 0.5)
    inside = np.zeros((length, length), dtype=bool)
    inside[:cut, :cut] = inside[cut:, cut:] = True
    return _normalised(np.where(inside, weights, weights * rng.uniform(0, OUTSIDE)) + 1e-6)


# ---------------------------------------------------------------- gradient-boosted trees


ROUNDS, RATE, LEAVES, RIDGE = 50, 0.1, 15, 1.0
BINS = 64  # bins of a statistic: a third of the time of scikit-learn's 255
PREFIX = "boosted_"
Arrays = dict[str, np.ndarray]
Probabilities = Float64[np.ndarray, "map class"]


@dataclass(frozen=True)
class Examples:
    """Training examples for boosted trees: the statistics and the class of each attention map."""

    measured: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray | None = None


def fit_boosted(examples: Examples, classes: int, *, rounds: int = ROUNDS, seed: int = 0) -> Arrays:
    """Fit gradient-boosted trees, and return their parameters as arrays. The result is empty if all examples have the
    same class."""
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
    # With two classes only one is summed
    present = model.classes_ if model.n_trees_per_iteration_ > 1 else model.classes_[1:]
    base = np.full(classes, -np.inf)
    base[model.classes_] = 0.0
    base[present] = np.ravel(model._baseline_prediction)
    numbers = present.tolist()
    trees: list[tuple[np.ndarray, int]] = [
        (tree.nodes, number) for step in model._predictors for tree, number in zip(step, numbers, strict=True)
    ]
    # Nodes of all trees in sequence. left, right: node indices, a leaf's own for leaves; root, of: first node and
    # class of each tree
    sizes = [len(nodes) for nodes, _ in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    start = np.repeat(roots, sizes)
    all_nodes = np.concatenate([nodes for nodes, _ in trees])
    node_numbers, leaf = np.arange(len(all_nodes)), all_nodes["is_leaf"].astype(bool)
    nodes: Arrays = {
        "feature": np.where(leaf, 0, all_nodes["feature_idx"]).astype(np.int16),
        "threshold": np.where(leaf, 0.0, all_nodes["num_threshold"]).astype(np.float64),
        "left": np.where(leaf, node_numbers, all_nodes["left"] + start).astype(np.int32),
        "right": np.where(leaf, node_numbers, all_nodes["right"] + start).astype(np.int32),
        "value": np.where(leaf, all_nodes["value"], 0.0).astype(np.float32),
        "root": roots.astype(np.int32),
        "of": np.array([number for _, number in trees], dtype=np.int16),
        "base": base,
    }
    if edges is not None:
        # Thresholds between bins become values of the statistics; 0 for leaves.
        inner = nodes["left"] != np.arange(len(nodes["left"]))
        chosen = zip(nodes["feature"], nodes["threshold"], inner, strict=True)
        nodes["threshold"] = np.array([edges[of][int(place)] if splits else 0.0 for of, place, splits in chosen])
    return {PREFIX + name: values for name, values in nodes.items()}


def _edges(measured: np.ndarray) -> list[np.ndarray]:
    """Return the split candidates of each statistic; with weights, scikit-learn's own search would dominate the fit."""
    inner = np.quantile(measured, np.linspace(0, 1, BINS + 1)[1:-1], axis=0, method="lower")
    return [np.unique(column) for column in inner.T]


def _binned(measured: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """Return the bin of each value: the number of edges below it."""
    columns = [np.searchsorted(of, values) for of, values in zip(edges, measured.T, strict=True)]
    return np.stack(columns, axis=1).astype(np.float32)


def has_boosted(arrays: Arrays) -> bool:
    """Return whether the arrays of a stored classifier contain boosted trees."""
    return PREFIX + "root" in arrays


def boosted_probabilities(
    arrays: Arrays, measured: Float[np.ndarray, "map statistic"]
) -> Float64[np.ndarray, "map class"]:
    """Return the class probabilities of attention maps, predicted by boosted trees whose parameters are given as
    arrays. The probability is 0 for classes without training examples."""
    trees = {name: arrays[PREFIX + name] for name in ("feature", "threshold", "left", "right", "value", "root", "of")}
    leaves = _leaves(trees, measured.astype(np.float32))
    logits = np.tile(arrays[PREFIX + "base"].astype(np.float64), (len(measured), 1))
    for number in np.unique(trees["of"]):
        logits[:, number] += trees["value"][leaves[trees["of"] == number]].sum(0, dtype=np.float64)
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _leaves(trees: Arrays, places: np.ndarray) -> Int[np.ndarray, "tree map"]:
    columns = np.arange(len(places))
    at = np.repeat(trees["root"][:, None], len(places), axis=1)
    while True:
        below = places[columns, trees["feature"][at]] <= trees["threshold"][at]
        following = np.where(below, trees["left"][at], trees["right"][at])
        if (following == at).all():
            return at
        at = following


# ---------------------------------------------------------------- kernel and logistic regression

KERNEL, LINEAR = "kernel_", "linear_"  # prefixes of their arrays
WIDTH, PENALTY = 0.25, 0.3  # of the Gaussian kernel of the mean squared difference, and of the weights
CLIPPED = 4.0  # deviations, beyond which a statistic of an unseen checkpoint says no more
LEAST = 0.003  # of a predicted probability
STRENGTH, STEPS, TOLERANCE = 0.1, 200, 1e-3  # of the logistic regression
CAUSAL_STRENGTH = 0.03  # for decoders, which have fewer labelled maps


def fit_regressions(
    measured: np.ndarray, shares: np.ndarray, weights: np.ndarray, real: int, *, strength: float = STRENGTH
) -> Arrays:
    """Fit a kernel ridge regression and a logistic regression from map statistics to class probabilities [map, class].
    Return their parameters as arrays. The statistics are standardised by the mean and standard deviation of the first
    `real` maps, which are not synthetic."""
    spread = {"centre": measured[:real].mean(0), "deviation": measured[:real].std(0) + 1e-3}
    arrays = {KERNEL + name: values for name, values in spread.items()}
    scaled = _places(measured, arrays)
    maps, numbers = np.nonzero(shares >= SMALLEST_PART)
    model = LogisticRegression(C=strength, max_iter=STEPS, tol=TOLERANCE)
    model.fit(scaled[maps], numbers, sample_weight=shares[maps, numbers] * weights[maps])
    arrays |= {LINEAR + "weights": model.coef_, LINEAR + "bias": model.intercept_}
    arrays[LINEAR + "classes"] = model.classes_
    places = scaled.astype(np.float16)
    mean = np.average(shares, axis=0, weights=weights)
    kernel = _kernel(places, places)
    kernel[np.diag_indices_from(kernel)] += PENALTY / weights
    fitted = solve(kernel, (shares - mean).astype(np.float32), assume_a="pos", overwrite_a=True, check_finite=False)
    return arrays | {KERNEL + "places": places, KERNEL + "weights": fitted, KERNEL + "mean": mean}


def _places(measured: np.ndarray, arrays: Arrays) -> np.ndarray:
    """Return standardised statistics: the first ones of each map, and those of its sentences."""
    centre, rest = arrays[KERNEL + "centre"], len(SENTENCE_NAMES)
    known = np.concatenate([measured[:, : len(centre) - rest], measured[:, -rest:]], axis=1)
    return np.clip((known - centre) / arrays[KERNEL + "deviation"], -CLIPPED, CLIPPED)


def _kernel(places: np.ndarray, others: np.ndarray) -> np.ndarray:
    places, others = places.astype(np.float32), others.astype(np.float32)
    found = places @ (2 * others.T)  # one array, because memory takes most of the time
    found -= (places**2).sum(1)[:, None]
    found -= (others**2).sum(1)
    np.minimum(found, 0, out=found)
    found *= WIDTH / places.shape[1]
    return np.exp(found, out=found)


def kernel_probabilities(arrays: Arrays, measured: np.ndarray) -> Probabilities:
    """Return the class probabilities of attention maps, predicted by a kernel ridge regression whose parameters are
    given as arrays. The probability is 0 for classes without training examples."""
    mean = arrays[KERNEL + "mean"]
    found = mean + _kernel(_places(measured, arrays), arrays[KERNEL + "places"]) @ arrays[KERNEL + "weights"]
    found = np.where(mean > 0, np.maximum(found, LEAST), 0)
    return found / found.sum(1, keepdims=True)


def linear_probabilities(arrays: Arrays, measured: np.ndarray) -> Probabilities:
    """Return the class probabilities of attention maps, predicted by a logistic regression whose parameters are given
    as arrays. The probability is 0 for classes without training examples."""
    logits = _places(measured, arrays) @ arrays[LINEAR + "weights"].T + arrays[LINEAR + "bias"]
    found = np.zeros((len(measured), len(arrays[KERNEL + "mean"])))
    found[:, arrays[LINEAR + "classes"]] = softmax(logits, axis=1)
    return found


# ---------------------------------------------------------------- forest

TREES = 150
SMALLEST_LEAF, LEAF_BESIDE_SYNTHETIC = 3, 5  # the latter keeps the file small
STATISTICS_A_SPLIT = 24
FLOOR = 0.002  # added to each probability, so that none is 0
TEMPERATURES = (0.3, 3.0)
SHRINKAGE = 0.1  # shrinkage of correlations between statistics, for a stable inverse
FARTHEST = 0.99  # a map is outside if it is farther away than this fraction of the training maps
BORDERS, BORDER_SHARE, BORDER_WEIGHT = 600, 0.25, 0.3  # synthetic maps near borders; most weight of all, and of one
CAUSAL_WEIGHT, BALANCE = 0.05, 0.75  # of a synthetic decoder map; power of a decoder class's inverse frequency
FEWEST_TREES = 30
Statistics = Float64[np.ndarray, "map statistic"]


@dataclass(frozen=True)
class Growth:
    """Settings for fitting a random forest and further models. `rounds` is the number of boosting rounds; if it is 0,
    only the forest is fitted."""

    trees: int = TREES
    seed: int = 0
    rounds: int = ROUNDS


SMALLEST_PART = 0.05  # least probability of a class in a soft label


@dataclass(frozen=True)
class Parts:
    """Weighted training examples of a classifier, one for each likely class of each map. `soft` has the probabilities
    of all classes, including those too small for a training example."""

    maps: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray | None = None
    soft: np.ndarray | None = None

    def of(self, places: np.ndarray) -> "Parts":
        """Return the training examples of the maps with the given indices. The maps in the result are renumbered from
        0."""
        new = np.full(int(self.maps.max()) + 1, -1)
        new[places] = np.arange(len(places))
        is_kept = new[self.maps] >= 0
        weights, soft = (
            None if values is None else values[kept]
            for values, kept in ((self.weights, is_kept), (self.soft, np.asarray(places)))
        )
        return Parts(new[self.maps][is_kept], self.numbers[is_kept], weights, soft)

    def shares(self, maps: int, classes: int) -> Float64[np.ndarray, "map class"]:
        """Return the class probabilities (soft label) of each attention map, as an array whose rows sum to 1."""
        if self.soft is not None:
            return self.soft
        given = np.zeros((maps, classes))
        given[self.maps, self.numbers] = 1.0
        return given


def parts(numbers: Int[np.ndarray, " map"], classes: int, soft: Float[np.ndarray, "map class"] | None = None) -> Parts:
    """Return weighted training examples, one for each map. With soft labels, each likely class of a map is one example.

    Raises InputError if soft labels do not match maps and classes.
    """
    if soft is None:
        return Parts(np.arange(len(numbers)), numbers)
    if np.shape(soft) != (len(numbers), classes):
        raise InputError(
            f"Soft labels must be an array of {len(numbers)} maps by {classes} classes; got the shape "
            f"{' by '.join(map(str, np.shape(soft)))}. Compute the soft labels from the labels of these maps."
        )
    places, class_numbers = np.nonzero(np.asarray(soft) >= SMALLEST_PART)
    return Parts(places, class_numbers, np.asarray(soft)[places, class_numbers], np.asarray(soft, dtype=float))


@dataclass(frozen=True)
class _Labelled:
    """Maps with statistics [map, statistic] and class indices [map]; known: training parts."""

    maps: Sequence[Map]
    measured: np.ndarray
    numbers: np.ndarray
    known: Parts


def fit_forest(
    maps: Sequence[Map],
    numbers: Int[np.ndarray, " map"],
    classes: Sequence[str],
    *,
    known: Parts | None = None,
    origins: Sequence[str],
    growth: Growth = Growth(),
    measured: Statistics | None = None,
) -> Arrays:
    """Fit a random forest and its calibration temperature, and store the distribution of the training maps for outlier
    detection.

    `known` are soft labels from `parts` (None: one class per map). `origins` is the calibration group of each map, as
    returned by `Known.apart`. With one origin, the maps are divided into three groups.
    """
    known = known or parts(numbers, len(classes))
    measured = _statistics(maps, measured)
    labels = [classes[k] for k in numbers]
    extra, names = planted(maps, labels, classes, seed=growth.seed)
    with threadpool_limits(limits=1):  # on a busy machine, small products of two threads take many times as long
        held_out = _held_out(_Labelled(maps, measured, numbers, known), classes, origins, growth)
        temperature, both = _calibrated(held_out)
        rounds = growth.rounds if both else 0
        arrays = _grown(measured, known, extra, names, classes, replace(growth, rounds=rounds))
    arrays["temperature"] = np.array(temperature)
    return arrays


def _statistics(maps: Sequence[Map], measured: Statistics | None = None) -> Float64[np.ndarray, "map needed_statistic"]:
    """Return the statistics of maps, without those of causal maps if there are none."""
    measured = statistics(maps) if measured is None else measured
    return measured if measured[:, OF_ALL : len(NAMES)].any() else _of_encoders(measured)


def _of_encoders(measured: Statistics) -> Float64[np.ndarray, "map needed_statistic"]:
    return np.concatenate([measured[:, :OF_ALL], measured[:, len(NAMES) :]], axis=1)


def _grown(
    measured: np.ndarray,
    known: Parts,
    extra: Sequence[Map],
    names: Sequence[str],
    classes: Sequence[str],
    growth: Growth,
) -> Arrays:
    """Return the trees and the further models fitted to real and synthetic maps, and the spread of the real ones."""
    near, likely, share = _near_borders(measured.shape[1], classes, len(measured))
    added = statistics(extra)
    added = added if measured.shape[1] == added.shape[1] else _of_encoders(added)
    of_extra = np.eye(len(classes))[[list(classes).index(name) for name in names]].reshape(-1, len(classes))
    shares = np.concatenate([known.shares(len(measured), len(classes)), of_extra, likely])
    maps = np.concatenate([measured, added, near])
    of_trees = maps[:, : -len(SENTENCE_NAMES)]
    trust = np.concatenate([np.ones(len(measured) + len(extra)), np.full(len(near), share)])
    causal = tuple(classes) == GPT2.names
    if causal:
        shares, trust = _balanced(shares, trust)
    places, labels = np.nonzero(shares >= SMALLEST_PART)
    weights = shares[places, labels] * trust[places]
    forest = ExtraTreesClassifier(
        min(growth.trees, max(FEWEST_TREES, growth.trees // 3)) if len(near) else growth.trees,
        min_samples_leaf=LEAF_BESIDE_SYNTHETIC if len(near) else SMALLEST_LEAF,
        max_features=min(STATISTICS_A_SPLIT, of_trees.shape[1]),
        random_state=growth.seed % 2**32,
    ).fit(of_trees[places].astype(np.float32), labels, sample_weight=weights)
    arrays = _nodes(forest, len(classes)) | _spread(of_trees[: len(measured)])
    if not growth.rounds:
        return arrays
    if len(near):
        strength = CAUSAL_STRENGTH if causal else STRENGTH
        return arrays | fit_regressions(maps, shares, trust, len(measured), strength=strength)
    examples = Examples(of_trees[places], labels, None if known.weights is None else weights)
    return arrays | fit_boosted(examples, len(classes), rounds=growth.rounds, seed=growth.seed)


def _balanced(shares: Probabilities, trust: np.ndarray) -> tuple[Probabilities, np.ndarray]:
    """Return shares and weights with more weight on rare classes, because another checkpoint has other frequencies."""
    mass = (shares * trust[:, None]).sum(0)
    scaled = shares * (mass.sum() / len(mass) / np.maximum(mass, 1)) ** BALANCE
    total = scaled.sum(1)
    return scaled / total[:, None], trust * total


def _near_borders(count: int, classes: Sequence[str], labelled: int) -> tuple[Statistics, Probabilities, float]:
    """Return `count` statistics and the class probabilities of synthetic maps near borders, and the weight of each."""
    if tuple(classes) not in (BERT.names, GPT2.names):
        return np.zeros((0, count)), np.zeros((0, len(classes))), 0.0
    causal = tuple(classes) == GPT2.names
    measured, likely = _of_borders(causal)
    measured = measured if measured.shape[1] == count else _of_encoders(measured)
    most = CAUSAL_WEIGHT if causal else BORDER_WEIGHT
    return measured, likely, min(most, BORDER_SHARE * labelled / BORDERS)


@lru_cache(maxsize=2)
def _of_borders(causal: bool) -> tuple[Statistics, Probabilities]:
    maps, likely = (synthetic_causal_maps if causal else synthetic_maps)(BORDERS, 0)
    return statistics(maps), likely


def _nodes(forest: ExtraTreesClassifier, classes: int) -> Arrays:
    """Return the nodes of all trees in sequence. left, right: node indices, a leaf's own; root: of each tree."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    roots, start = [], 0
    for estimator in forest.estimators_:
        tree = estimator.tree_
        node_numbers, leaf = np.arange(tree.node_count), tree.children_left < 0
        value = np.zeros((tree.node_count, classes))
        value[:, forest.classes_] = tree.value[:, 0] / tree.value[:, 0].sum(1, keepdims=True)
        parts["feature"].append(np.where(leaf, 0, tree.feature).astype(np.int16))
        # Largest float32 not above each threshold, so that x <= t is unchanged for every float32 x
        near = tree.threshold.astype(np.float32)
        parts["threshold"].append(np.where(near > tree.threshold, np.nextafter(near, np.float32(-np.inf)), near))
        parts["left"].append((np.where(leaf, node_numbers, tree.children_left) + start).astype(np.int32))
        parts["right"].append((np.where(leaf, node_numbers, tree.children_right) + start).astype(np.int32))
        parts["value"].append(value.astype(np.float16))
        roots.append(start)
        start += tree.node_count
    return {name: np.concatenate(nodes) for name, nodes in parts.items()} | {"root": np.array(roots, dtype=np.int32)}


def _of_forest(forest: Arrays, measured: np.ndarray) -> Probabilities:
    places, columns = measured.astype(np.float32), np.arange(len(measured))
    at = np.repeat(forest["root"][:, None], len(measured), axis=1)  # [tree, map]
    while True:
        below = places[columns, forest["feature"][at]] <= forest["threshold"][at]
        following = np.where(below, forest["left"][at], forest["right"][at])
        if (following == at).all():
            return forest["value"][at].astype(np.float64).mean(0)
        at = following


def _spread(measured: np.ndarray) -> Arrays:
    """Return mean, deviation and inverse correlations of the statistics, and the distance limit for outside maps."""
    centre, deviation = measured.mean(0), measured.std(0) + 1e-3
    scaled = (measured - centre) / deviation
    correlations = (1 - SHRINKAGE) * (scaled.T @ scaled) / len(scaled) + SHRINKAGE * np.eye(scaled.shape[1])
    statistics = {"centre": centre, "deviation": deviation, "precision": np.linalg.inv(correlations).astype(np.float32)}
    return statistics | {"farthest": np.array(np.quantile(_distances(statistics, measured), FARTHEST))}


def _of_all(arrays: Arrays, measured: np.ndarray, of_forest: Probabilities) -> Probabilities | None:
    """Return the mean of the forest's class probabilities and those of the further models of a classifier, if any."""
    if KERNEL + "centre" in arrays:
        models = (of_forest, kernel_probabilities(arrays, measured), linear_probabilities(arrays, measured))
        return softmax(np.mean([np.log(one + FLOOR) for one in models], axis=0), axis=1)
    return (of_forest + boosted_probabilities(arrays, measured)) / 2 if has_boosted(arrays) else None


def _distances(forest: Arrays, measured: np.ndarray) -> Float64[np.ndarray, " map"]:
    """Return the Mahalanobis distance of each map from the training maps."""
    measured = measured[:, : len(forest["centre"])]  # older forests have fewer statistics
    scaled = (measured - forest["centre"]) / forest["deviation"]
    return np.sqrt(np.clip(((scaled @ forest["precision"].astype(np.float64)) * scaled).sum(1), 0, None))


def _heated(raw: Probabilities, temperature: float) -> Probabilities:
    powered = (raw + FLOOR) ** (1 / temperature)
    return powered / powered.sum(1, keepdims=True)


@dataclass(frozen=True)
class _HeldOut:
    """Left-out maps' probabilities; of_all: None without further models; truth: label probabilities [map, class]."""

    of_forest: Probabilities
    of_all: Probabilities | None
    truth: Probabilities

    def of(self, both: bool) -> Probabilities:
        """Return the class probabilities from all models together. Use only the random forest if `both` is False or
        there is no other model."""
        return self.of_all if both and self.of_all is not None else self.of_forest


def _held_out(labelled: _Labelled, classes: Sequence[str], origins: Sequence[str], growth: Growth) -> list[_HeldOut]:
    """Return out-of-fold probabilities for the maps of each origin, largest first; thirds of maps for one origin.

    Further models, which take most of the time, are dropped once they have not lowered the loss.
    """
    maps, measured, numbers = labelled.maps, labelled.measured, labelled.numbers
    truth = labelled.known.shares(len(maps), len(classes))
    smaller = replace(growth, trees=max(30, growth.trees // 3))
    names = np.array(list(origins))
    if len(set(names)) == 1:
        names = np.array([str(k % 3) for k in range(len(names))])
    held_out: list[_HeldOut] = []
    for name, _ in Counter(sorted(names)).most_common():
        training, out = np.flatnonzero(names != name).tolist(), np.flatnonzero(names == name)
        extra, planted_names = planted(
            [maps[k] for k in training], [classes[int(numbers[k])] for k in training], classes, seed=growth.seed
        )
        grown = _grown(
            measured[training], labelled.known.of(np.asarray(training)), extra, planted_names, classes, smaller
        )
        of_forest = _of_forest(grown, measured[out])
        held_out.append(_HeldOut(of_forest, _of_all(grown, measured[out], of_forest), truth[out]))
        if smaller.rounds and not _calibrated(held_out)[1]:
            smaller = replace(smaller, rounds=0)
    return held_out


def _calibrated(held_out: Sequence[_HeldOut]) -> tuple[float, bool]:
    """Return the temperature and whether to use the further models: what minimises the out-of-fold loss."""
    temperature, loss = _temperature(held_out, both=False)
    if any(fold.of_all is None for fold in held_out):
        return temperature, False
    of_both, less = _temperature(held_out, both=True)
    return (of_both, True) if less < loss else (temperature, False)


def _temperature(held_out: Sequence[_HeldOut], *, both: bool) -> tuple[float, float]:
    """Return the temperature that minimises the out-of-fold loss (nats, origins weighted equally), and the loss."""

    def loss(temperature: float) -> float:
        return float(
            np.mean([-(fold.truth * np.log(_heated(fold.of(both), temperature))).sum(1).mean() for fold in held_out])
        )

    found = minimize_scalar(loss, bounds=TEMPERATURES, method="bounded")
    return float(found.x), float(found.fun)


def forest_probabilities(
    forest: Arrays, maps: Sequence[Map], measured: Statistics | None = None
) -> tuple[Probabilities, Bool[np.ndarray, " map"]]:
    """Return the calibrated class probabilities of each attention map, and whether the map is outside the training
    distribution (an outlier)."""
    if measured is None:  # only the regressions use the statistics of sentences
        measured = statistics(maps) if KERNEL + "centre" in forest else shapes(maps)
    outside = _distances(forest, measured) > float(forest["farthest"])
    of_forest = _of_forest(forest, measured)
    of_all = _of_all(forest, measured, of_forest)
    raw = of_forest if of_all is None else of_all
    return _heated(raw, float(forest["temperature"])), outside
