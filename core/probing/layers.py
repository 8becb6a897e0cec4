"""Probes of all layers at once: linear, or with one hidden layer.

Vectors are standardised on the train split. The linear probe is multinomial logistic regression with the penalty of
scikit-learn (C = 1); both are trained by Adam on shuffled batches read from disk. Mixing weights (Tenney et al. 2019)
are a softmax over layers, trained with one linear probe of the mixture.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

LINEAR, HIDDEN = "linear", "one hidden layer"
HIDDEN_SIZE, BATCH, CHUNK = 64, 256, 2048
EPOCHS = {LINEAR: 14, HIDDEN: 8}
RATES = {LINEAR: 0.02, HIDDEN: 0.004}
LEAST_STEPS, MIX_EPOCHS, REFITS = 400, 8, 5


@dataclass(frozen=True)
class Examples:
    """Word vectors from all layers, with the label of the probed property for each word.

    Attributes:
        vectors: of all rows on disk, [row, layer, hidden].
        labels: class index of each example; -1 for a class that is not in the train split.
    """

    vectors: Any
    rows: Int[np.ndarray, " _"]
    labels: Int[np.ndarray, " _"]
    groups: Int[np.ndarray, " _"]
    types: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, positions: np.ndarray) -> Float[Tensor, "_ layer hidden"]:
        """Return the vectors of the examples at the given positions in all layers, as float32."""
        return torch.from_numpy(np.asarray(self.vectors[self.rows[positions]], dtype=np.float32))


@dataclass(frozen=True)
class Scale:
    """Standardises vectors with the mean and standard deviation of the train split, both as [layer, hidden]."""

    mean: Tensor
    deviation: Tensor

    def __call__(self, vectors: Tensor) -> Tensor:
        return (vectors - self.mean) / self.deviation


def scale_of(train: Examples) -> Scale:
    """Compute the train mean and standard deviation by layer and dimension. A deviation of 0 is replaced with 1."""
    total, squares = torch.zeros(()), torch.zeros(())
    for start in range(0, len(train), CHUNK):
        some = train.batch(np.arange(start, min(len(train), start + CHUNK))).double()
        total, squares = total + some.sum(0), squares + (some**2).sum(0)
    mean = total / len(train)
    deviation = (squares / len(train) - mean**2).clamp(min=0).sqrt()
    return Scale(mean.float(), torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation)).float())


class LayerProbe(nn.Module):
    """One independent probe per layer: a linear probe if `hidden` is 0, otherwise one with `hidden` hidden units."""

    def __init__(self, layers: int, size: int, classes: int, hidden: int = 0) -> None:
        super().__init__()
        inner = hidden or size
        self.hidden = None
        if hidden:
            self.hidden = nn.Parameter(torch.randn(layers, size, hidden) / size**0.5)
            self.hidden_bias = nn.Parameter(torch.zeros(layers, hidden))
        self.weight = nn.Parameter(
            torch.randn(layers, inner, classes) / inner**0.5 if hidden else torch.zeros(layers, inner, classes)
        )
        self.bias = nn.Parameter(torch.zeros(layers, classes))

    def forward(self, vectors: Float[Tensor, "row layer hidden"]) -> Float[Tensor, "layer row class"]:
        """Return the logits of the probe of each layer for the vectors of that layer."""
        states = vectors.transpose(0, 1)
        if self.hidden is not None:
            states = torch.relu(torch.baddbmm(self.hidden_bias[:, None], states, self.hidden))
        return torch.baddbmm(self.bias[:, None], states, self.weight)


def fit(train: Examples, classes: int, kind: str, *, seed: int = 0, scale: Scale | None = None) -> "Fitted":
    """Train one probe for every layer. `scale` standardises the vectors. By default, it is computed from `train`."""
    scale = scale or scale_of(train)
    layers, size = scale.mean.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        probe = LayerProbe(layers, size, classes, HIDDEN_SIZE if kind == HIDDEN else 0)

    def loss(some: np.ndarray) -> Tensor:
        logits, labels = probe(scale(train.batch(some))), torch.from_numpy(train.labels[some])
        fitted = nn.functional.cross_entropy(logits.flatten(0, 1), labels.repeat(layers)) * layers
        return fitted + (probe.weight**2).sum() / (2 * len(train))

    _descend(probe, loss, len(train), EPOCHS[kind], RATES[kind], seed)
    return Fitted(probe, scale)


def _descend(module: nn.Module, loss: Any, rows: int, epochs: int, rate: float, seed: int) -> None:
    """Minimise by Adam on shuffled batches; the rate falls to 0. Few rows get more epochs."""
    optimizer, rng = torch.optim.Adam(module.parameters(), lr=rate), np.random.default_rng(seed)
    per_epoch = max(1, -(-rows // BATCH))
    steps = max(epochs * per_epoch, LEAST_STEPS)
    for step in range(steps):
        if step % per_epoch == 0:
            order = rng.permutation(rows)
        start = (step % per_epoch) * BATCH
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        optimizer.zero_grad()
        loss(order[start : start + BATCH]).backward()
        optimizer.step()


@dataclass(frozen=True)
class Fitted:
    """The trained probes of all layers, with the mean and standard deviation for standardising their input vectors."""

    probe: LayerProbe
    scale: Scale

    def predict(self, examples: Examples) -> Int[np.ndarray, "layer row"]:
        """Return the class that the probe of each layer predicts for each example."""
        chosen = []
        with torch.no_grad():
            for start in range(0, len(examples), CHUNK):
                some = examples.batch(np.arange(start, min(len(examples), start + CHUNK)))
                chosen.append(self.probe(self.scale(some)).argmax(-1).numpy())
        return np.concatenate(chosen, 1)


# ---------------------------------------------------------------- mixing


def mixing_weights(train: Examples, classes: int, *, seed: int = 0, scale: Scale | None = None) -> np.ndarray:
    """Train a linear probe on a weighted sum of all layers, and return the weights of the layers, which sum to 1."""
    scale = scale or scale_of(train)
    layers, size = scale.mean.shape
    probe = nn.ParameterDict({"mix": nn.Parameter(torch.zeros(layers)), "bias": nn.Parameter(torch.zeros(classes)),
                              "weight": nn.Parameter(torch.zeros(size, classes))})  # fmt: skip

    def loss(some: np.ndarray) -> Tensor:
        mixed = torch.einsum("l,bld->bd", probe["mix"].softmax(0), scale(train.batch(some)))
        logits = mixed @ probe["weight"] + probe["bias"]
        return nn.functional.cross_entropy(logits, torch.from_numpy(train.labels[some]))

    _descend(probe, loss, len(train), MIX_EPOCHS, RATES[LINEAR], seed)
    return probe["mix"].detach().softmax(0).numpy().astype(np.float64)


def mixing_refits(train: Examples, classes: int, *, seed: int = 0, refits: int = REFITS) -> np.ndarray:
    """Fit the layer weights repeatedly. Returns [1 + refits, layer]: the fit on all sentences, then fits on bootstrap
    samples of the sentences."""
    scale, rng = scale_of(train), np.random.default_rng(seed)
    weights = [mixing_weights(train, classes, seed=seed, scale=scale)]
    names = np.unique(train.groups)
    by_group = {name: np.flatnonzero(train.groups == name) for name in names.tolist()}
    for refit in range(refits):
        drawn = np.concatenate([by_group[name] for name in rng.choice(names, len(names)).tolist()])
        again = Examples(train.vectors, train.rows[drawn], train.labels[drawn], train.groups[drawn],
                         tuple(train.types[k] for k in drawn))  # fmt: skip
        weights.append(mixing_weights(again, classes, seed=seed + refit, scale=scale))
    return np.stack(weights)


# ---------------------------------------------------------------- controls and baselines


def control_labels(train: Examples, others: Sequence[Examples], *, seed: int = 0) -> list[Int[np.ndarray, " _"]]:
    """Draw a random label for each word type (Hewitt and Liang 2019). Return labels for `train` and each of `others`.

    Labels are drawn with their frequencies in the train split.
    """
    types = sorted({word_type for examples in (train, *others) for word_type in examples.types})
    drawn = np.random.default_rng(seed).choice(train.labels, len(types))
    by_type = dict(zip(types, drawn.tolist(), strict=True))
    return [np.array([by_type[word_type] for word_type in examples.types]) for examples in (train, *others)]


def word_alone(train: Examples, test: Examples) -> Int[np.ndarray, " _"]:
    """Predict the most frequent train label of each test word. For words that are not in `train`, predict the most
    frequent label of all words."""
    counts: dict[str, np.ndarray] = {}
    size = int(train.labels.max()) + 1
    for word_type, label in zip(train.types, train.labels.tolist(), strict=True):
        counts.setdefault(word_type, np.zeros(size))[label] += 1
    commonest = int(np.bincount(train.labels).argmax())
    return np.array([int(counts[word_type].argmax()) if word_type in counts else commonest for word_type in test.types])
