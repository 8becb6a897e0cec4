"""Training of pattern classifiers: trees, the network of the paper or of the replication, a baseline, or a mean of two.

Kovaleva et al. section 4.1: Adam at 1e-3, batches of 64, 200 epochs, cross-entropy. Two options differ: the learning
rate falls to zero over the last epochs (so that no held-out map selects an epoch), and splits are by input, because
maps of one input are similar.
"""

import itertools
import json
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64
from safetensors.torch import load, save, save_file
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn.functional import cross_entropy

from ..errors import InputError, TrainingStoppedError, check_choice, check_range
from ..models.memory import has_bfloat16
from ..reading import read_bytes
from .evaluation import macro_f1
from .forest import Growth, Parts, fit_forest, parts
from .raster import SMALLEST, rasterize, training_size

# ---------------------------------------------------------------- logistic-regression baseline


OFFSETS = (-2, -1, 0, 1, 2)  # key minus query
BANDS = 8  # blocks on each side of the coarse image
STATISTICS = (
    *(f"mass at offset {k:+d}" for k in OFFSETS),
    "first column",
    "last column",
    "strongest column",
    "second column",
    "strongest inner column",
    "columns above 3x uniform",
    "entropy over ln of visible keys",
    "largest weight",
    "mean of row maxima",
    "lower-left half",
    "two blocks best cut",
    "first half of keys",
    "column variation",
    "row variation",
    *(f"coarse {r},{c}" for r in range(BANDS) for c in range(BANDS)),
)

Map = Float[np.ndarray, "_query _key"]  # square; each map has its own length


def statistics(attention: Map) -> Float64[np.ndarray, " statistic"]:
    """Return statistics of one attention map, in the order of STATISTICS."""
    weights = np.asarray(attention, dtype=np.float64)
    columns = weights.mean(0)
    return np.concatenate(
        [
            [_diagonal(weights, k) for k in OFFSETS],
            _columns(columns),
            _spread(weights),
            [
                np.tril(weights, -1).sum() / len(weights),
                _best_blocks(weights),
                weights[:, : (len(weights) + 1) // 2].sum() / len(weights),
                columns.std() * len(columns) / (1 + columns.std() * len(columns)),
                weights.std(0).mean(),
            ],
            _coarse(weights).ravel(),
        ]
    )


def features(maps: Sequence[Map]) -> Float64[np.ndarray, "map statistic"]:
    """Return statistics of several attention maps, with one row per map."""
    return np.stack([statistics(weights) for weights in maps])


def _diagonal(weights: np.ndarray, offset: int) -> float:
    """Return the mean weight at key = query + offset."""
    line = np.diagonal(weights, offset) if abs(offset) < len(weights) else np.zeros(0)
    return float(line.mean()) if line.size else 0.0


def _columns(columns: np.ndarray) -> list[float]:
    ordered = np.sort(columns)[::-1]
    inner = columns[1:-1]
    return [
        columns[0],
        columns[-1],
        ordered[0],
        ordered[1] if len(ordered) > 1 else 0.0,
        inner.max() if inner.size else 0.0,
        float((columns > 3 / len(columns)).mean()),
    ]


def _spread(weights: np.ndarray) -> list[float]:
    positive = np.clip(weights, 1e-12, None)
    entropy = -(weights * np.log(positive)).sum(-1)
    visible = np.maximum((weights > 0).sum(-1), 2)
    return [float((entropy / np.log(visible)).mean()), float(weights.max()), float(weights.max(-1).mean())]


def _best_blocks(weights: np.ndarray) -> float:
    """Return the largest mean mass within two blocks on the diagonal minus its chance level, over all cuts."""
    length = len(weights)
    if length < 4:
        return 0.0
    total = np.zeros((length + 1, length + 1))
    total[1:, 1:] = weights.cumsum(0).cumsum(1)
    cuts = np.arange(2, length - 1)
    inside = total[cuts, cuts] + total[-1, -1] - total[cuts, -1] - total[-1, cuts] + total[cuts, cuts]
    chance = (cuts**2 + (length - cuts) ** 2) / length
    return float(((inside - chance) / length).max())


def _coarse(weights: np.ndarray) -> np.ndarray:
    """Return BANDS x BANDS mean weights times the length of a band, so that uniform maps are 1/BANDS everywhere."""
    edges = np.linspace(0, len(weights), BANDS + 1)
    overlap = np.clip(
        np.minimum(edges[1:, None], np.arange(1, len(weights) + 1))
        - np.maximum(edges[:-1, None], np.arange(len(weights))),
        0,
        None,
    )
    return overlap @ weights @ overlap.T / (len(weights) / BANDS)


# ---------------------------------------------------------------- the published convolutional networks


NETWORKS = ("paper", "replication")
REPLICATION_CHANNELS = (1, 8, 16, 16, 16, 32, 32, 64, 64)
REPLICATION_SMALLEST_SIDE = 3  # a 3 x 3 kernel without padding needs this many rows


class PaperNetwork(nn.Module):
    """The convolutional network of Kovaleva et al. (2019). It maps attention maps [map, 1, size, size], of size 32 or
    larger, to class scores."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Conv2d(64, 16, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(16, classes, 1),
            nn.Flatten(),
        )
        for part in self.layers:
            if isinstance(part, nn.Conv2d):
                nn.init.xavier_normal_(part.weight)
                nn.init.zeros_(part.bias)  # type: ignore[arg-type]

    def forward(self, maps: Float[torch.Tensor, "map 1 size size"]) -> Float[torch.Tensor, "map classes"]:
        return self.layers(maps)


class ReplicationNetwork(nn.Module):
    """The convolutional network of the replication study. It maps attention maps [map, 1, size, size] to class scores.

    The authors use size 1024, which eight strides reduce to 3 x 3. For smaller maps, convolutions use stride 1 once a
    stride would leave fewer than 3 rows.
    """

    def __init__(self, classes: int, size: int = 1024) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        side = size
        for before, after in itertools.pairwise(REPLICATION_CHANNELS):
            strided = (side - 3) // 2 + 1
            keeps = strided < REPLICATION_SMALLEST_SIDE
            parts += [
                nn.Conv2d(before, after, 3, stride=1 if keeps else 2, padding=1 if keeps else 0),
                nn.BatchNorm2d(after),
                nn.ReLU(),
            ]
            side = side if keeps else strided
        self.layers = nn.Sequential(*parts, nn.Flatten(), nn.Linear(REPLICATION_CHANNELS[-1] * side * side, classes))

    def forward(self, maps: Float[torch.Tensor, "map 1 size size"]) -> Float[torch.Tensor, "map classes"]:
        return self.layers(maps)


def build(name: str, classes: int, size: int) -> nn.Module:
    """Create an untrained classifier network by name. Raises InputError if the name is unknown, or if the map size is
    smaller than SMALLEST."""
    if size < SMALLEST:
        raise InputError(
            f"Attention maps for neural networks must have at least {SMALLEST} tokens; got {size}. Pad the maps."
        )
    if name == "paper":
        return PaperNetwork(classes)
    if name == "replication":
        return ReplicationNetwork(classes, size)
    raise InputError(f'A pattern network must be one of {", ".join(NETWORKS)}; got "{name[:60]}". Choose one of them.')


def parameters(network: nn.Module) -> int:
    """Return the number of trainable parameters in a neural network."""
    return sum(weights.numel() for weights in network.parameters())


CLASSIFIER_KINDS = ("trees", *NETWORKS, "baseline", "both")
FOREST = "forest."  # prefix of the trees' arrays
BASELINE = "baseline."  # prefix of the baseline's tensors
FEWEST_A_CLASS = 2
CALIBRATION_PARTS = 3  # parts of the heads of one checkpoint, each held out in turn
Soft = Float[np.ndarray, "_map _class"]
OnEpoch = Callable[["Epoch"], bool]  # called after every epoch; False stops the training


@dataclass(frozen=True)
class ClassifierRecipe:
    """The training settings for a pattern classifier.

    Attributes:
        kind: "trees" on length-independent statistics, calibrated on held-out checkpoints; "paper", "replication",
            "baseline", or "both": mean probability of the network of the paper and the baseline.
        epochs, batch, rate: of a network; rate is the learning rate of Adam.
        class_weights: weight classes inversely to their frequency ("balanced" in scikit-learn).
        falling: last fraction of the epochs in which the rate falls to zero; 0 is the constant rate of the paper.
        size: raster size; None for the longest map.
    """

    kind: str = "paper"
    epochs: int = 200
    batch: int = 64
    rate: float = 1e-3
    class_weights: bool = False
    falling: float = 0.25
    size: int | None = None
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("A pattern classifier", self.kind, CLASSIFIER_KINDS)
        check_range("The number of epochs", self.epochs, 1)
        check_range("The number of maps per batch", self.batch, 2)
        check_range("The number of folds", self.folds, 2)
        check_range("The fraction of the epochs in which the learning rate decays", self.falling, 0, 1)


@dataclass(frozen=True)
class Epoch:
    """One training epoch: the mean loss in nats, and the macro F1 on the training maps."""

    number: int
    of: int
    loss: float
    f1: float


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained classifier of attention patterns. `tensors` contains its weights by name."""

    classes: tuple[str, ...]
    recipe: ClassifierRecipe
    size: int
    tensors: dict[str, torch.Tensor]
    cropped: int = 0

    @property
    def crops(self) -> bool:
        return self.recipe.kind in (*NETWORKS, "both")

    @cached_property
    def _networks(self) -> dict[torch.dtype, nn.Module]:
        return {}

    def network(self, dtype: torch.dtype = torch.float32) -> nn.Module:
        if dtype not in self._networks:
            network = build(network_of(self.recipe.kind), len(self.classes), self.size)
            network.load_state_dict({k: v for k, v in self.tensors.items() if not k.startswith(BASELINE)})
            self._networks[dtype] = _channels_last(network.to(dtype)).eval()
        return self._networks[dtype]

    def as_bytes(self) -> bytes:
        """Return the classifier in safetensors format. The header contains its classes, recipe and size."""
        about = {"classes": self.classes, "recipe": asdict(self.recipe), "size": self.size, "cropped": self.cropped}
        return save({k: v.contiguous() for k, v in self.tensors.items()}, metadata={"classifier": json.dumps(about)})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Classifier":
        """Load a classifier from safetensors bytes. Raises InputError if the bytes are not a classifier."""
        try:
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            about = json.loads(header["__metadata__"]["classifier"])
            tensors = load(data)
        except Exception as error:  # safetensors, json and unicode raise different errors
            raise InputError(
                "A pattern classifier must be a safetensors file written by this app; this file has another format. "
                "Train or export the classifier again."
            ) from error
        return cls(
            tuple(about["classes"]), ClassifierRecipe(**about["recipe"]), about["size"], tensors, about["cropped"]
        )


def _channels_last(network: nn.Module) -> nn.Module:
    """Convert to channels-last memory format, which is faster on CPUs."""
    layout: Any = {"memory_format": torch.channels_last}
    return network.to(**layout)


def check_labels(labels: Sequence[str], classes: Sequence[str], groups: Sequence[str], *, folds: int) -> None:
    """Raise InputError if there are too few labelled maps to train and evaluate a classifier."""
    counts = Counter(labels)
    used = [name for name in classes if counts[name]]
    if len(used) < 2:
        raise InputError(
            f"Training needs labels of at least two classes; got {len(labels)} labels of "
            f"{', '.join(used) or 'none'}. Label maps of another class."
        )
    short = [f"{name} has {counts[name]}" for name in used if counts[name] < FEWEST_A_CLASS]
    if short:
        raise InputError(
            f"Every class in use must have at least {FEWEST_A_CLASS} labelled maps; {', '.join(short)}. Label "
            "more maps of each such class, or merge it into another class."
        )
    if len(set(groups)) < folds:
        raise InputError(
            f"Cross-validation with {folds} folds needs maps of at least {folds} different inputs; got "
            f"{len(set(groups))}. Label maps of more inputs."
        )


def folds(
    labels: Sequence[str], groups: Sequence[str], *, count: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the train and test indices for stratified, grouped cross-validation. All maps of a group are on the same
    side."""
    split = StratifiedGroupKFold(n_splits=count, shuffle=True, random_state=seed % 2**32)
    with warnings.catch_warnings():  # a class may have fewer maps than folds
        warnings.filterwarnings("ignore", message="The least populated class in y", category=UserWarning)
        return list(split.split(np.zeros(len(labels)), list(labels), list(groups)))


@dataclass(frozen=True)
class Known:
    """Optional information about the training maps of a classifier, for example their heads and checkpoints.

    Attributes:
        soft: class probabilities to fit, if several people labelled the maps; None for one class per map.
        origins: checkpoint of each map, for the calibration of trees; None for one checkpoint.
        heads: head of each map; maps of one checkpoint are calibrated in parts without common heads. None if unknown.
    """

    soft: Soft | None = None
    origins: Sequence[str] | None = None
    heads: Sequence[str] | None = None
    measured: np.ndarray | None = None

    def apart(self, maps: int) -> list[str]:
        """Return the calibration group of each training map. Maps of the same group are held out together. Groups are
        checkpoints or, if there is only one checkpoint, sets of heads."""
        origins = list(self.origins or [""] * maps)
        if len(set(origins)) > 1 or self.heads is None:
            return origins
        order = {name: number for number, name in enumerate(sorted(set(self.heads)))}
        return [str(order[name] % CALIBRATION_PARTS) for name in self.heads]


@dataclass(frozen=True)
class Course:
    """Options for monitoring and resuming the training of a classifier. After every epoch, the training state is saved
    to the file `state`."""

    on_epoch: OnEpoch | None = None
    state: Path | None = None


def fit(
    maps: Sequence[Map],
    labels: Sequence[str],
    classes: Sequence[str],
    recipe: ClassifierRecipe,
    *,
    known: Known = Known(),
    course: Course = Course(),
) -> Classifier:
    """Train a classifier of attention patterns. Raises TrainingStoppedError if `on_epoch` returns False."""
    soft = known.soft
    numbers = torch.tensor([list(classes).index(label) for label in labels])
    size = recipe.size or training_size([len(attention) for attention in maps])
    recipe = replace(recipe, size=size)
    fitted = parts(numbers.numpy(), len(classes), soft)
    baseline = _fit_baseline(maps, fitted, len(classes), recipe) if recipe.kind in ("baseline", "both") else {}
    if recipe.kind == "baseline":
        return Classifier(tuple(classes), recipe, size, baseline)
    if recipe.kind == "trees":
        arrays = fit_forest(
            maps,
            numbers.numpy(),
            classes,
            known=fitted,
            origins=known.apart(len(maps)),
            growth=Growth(seed=recipe.seed),
            measured=known.measured,
        )
        tensors = {FOREST + name: torch.from_numpy(value.copy()) for name, value in arrays.items()}
        return Classifier(tuple(classes), recipe, size, tensors)
    pictures, cropped = rasterize(maps, size)
    inputs = torch.from_numpy(pictures)[:, None].to(memory_format=torch.channels_last)
    weights = _class_weights(numbers, len(classes)) if recipe.class_weights else None
    targets = numbers if soft is None else torch.from_numpy(np.asarray(soft, dtype=np.float32))
    network = _train(_Pictures(inputs, numbers, targets, weights), len(classes), recipe, course)
    return Classifier(tuple(classes), recipe, size, dict(network.state_dict()) | baseline, cropped)


def network_of(kind: str) -> str:
    """Return the name of the neural network, such as "paper", that a classifier of the given kind uses."""
    return "paper" if kind == "both" else kind


def _class_weights(numbers: torch.Tensor, classes: int) -> torch.Tensor:
    """Return n / (classes in use * n of the class), as scikit-learn's "balanced"; 0 for a class without maps."""
    counts = torch.bincount(numbers, minlength=classes).float()
    return torch.where(counts > 0, len(numbers) / ((counts > 0).sum() * counts.clamp(min=1)), torch.zeros(()))


@dataclass(frozen=True)
class _Pictures:
    """Training data: images [map, 1, side, side], class indices, targets (or probabilities), class weights."""

    inputs: torch.Tensor
    numbers: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor | None


def _train(pictures: _Pictures, classes: int, recipe: ClassifierRecipe, course: Course) -> nn.Module:
    state = course.state
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        network = _channels_last(build(network_of(recipe.kind), classes, pictures.inputs.shape[-1])).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=recipe.rate)
    for epoch in range(_resume(network, optimizer, state), recipe.epochs):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * _rate(epoch, recipe)
        order = torch.from_numpy(np.random.default_rng([recipe.seed, epoch]).permutation(len(pictures.numbers)))
        numbers, loss_sum, confusion = pictures.numbers, 0.0, None
        for batch in order.split(recipe.batch):
            if len(batch) < 2 and len(order) > 1:
                continue  # batch normalisation needs two maps
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=has_bfloat16()):
                logits = network(pictures.inputs[batch]).float()
            loss = cross_entropy(logits, pictures.targets[batch], weight=pictures.weights)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            loss_sum += float(loss.detach()) * len(batch)
            pairs = numbers[batch] * logits.shape[1] + logits.argmax(1)
            counts = torch.bincount(pairs, minlength=logits.shape[1] ** 2)
            confusion = counts if confusion is None else confusion + counts
        square = confusion.reshape(logits.shape[1], -1).numpy() if confusion is not None else np.zeros((1, 1), int)
        done = Epoch(epoch + 1, recipe.epochs, loss_sum / len(numbers), float(macro_f1(square[None])[0]))
        if state:
            # Write the state atomically.
            tensors = {f"network.{name}": value.contiguous() for name, value in network.state_dict().items()}
            for index, slots in optimizer.state_dict()["state"].items():
                tensors |= {
                    f"optimizer.{index}.{name}": torch.as_tensor(value).contiguous() for name, value in slots.items()
                }
            part = state.with_name(state.name + ".part")
            save_file(tensors | {"epoch": torch.tensor([epoch + 1])}, part)
            part.replace(state)
        if course.on_epoch and course.on_epoch(done) is False:
            raise TrainingStoppedError(f"Training was stopped after epoch {epoch + 1} of {recipe.epochs}")
    return network.eval()


def _rate(epoch: int, recipe: ClassifierRecipe) -> float:
    left = (recipe.epochs - epoch) / recipe.epochs
    return min(1.0, left / recipe.falling) if recipe.falling else 1.0


def _resume(network: nn.Module, optimizer: torch.optim.Optimizer, state: Path | None) -> int:
    """Load a saved state; return the number of finished epochs, 0 without a state."""
    if state is None or not state.is_file():
        return 0
    tensors = load(read_bytes(state, given=True))
    network.load_state_dict({k.removeprefix("network."): v for k, v in tensors.items() if k.startswith("network.")})
    slots: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, slot = name.split(".")
            slots.setdefault(int(index), {})[slot] = value
    optimizer.load_state_dict(optimizer.state_dict() | {"state": slots})
    return int(tensors["epoch"])


def _fit_baseline(maps: Sequence[Map], known: Parts, classes: int, recipe: ClassifierRecipe) -> dict[str, torch.Tensor]:
    """Fit a logistic regression on standardised statistics; return its tensors."""
    scaler = StandardScaler().fit(features(maps))
    model = LogisticRegression(max_iter=2000, class_weight="balanced" if recipe.class_weights else None)
    model.fit(scaler.transform(features(maps))[known.maps], known.numbers, sample_weight=known.weights)
    weight = np.zeros((classes, len(scaler.mean_)))
    bias = np.full(classes, -np.inf)
    if len(model.classes_) == 2:  # scikit-learn has one row for two classes
        weight[model.classes_[1]], bias[model.classes_] = model.coef_[0], [0.0, model.intercept_[0]]
    else:
        weight[model.classes_], bias[model.classes_] = model.coef_, model.intercept_
    arrays = {"weight": weight, "bias": bias, "mean": scaler.mean_, "scale": scaler.scale_}
    return {BASELINE + name: torch.from_numpy(value) for name, value in arrays.items()}
