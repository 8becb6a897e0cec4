"""Settings of fine-tuning runs: recipe, presets with sources, and the four initialisations."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .. import config
from ..errors import check_choice, check_range
from ..models.encoding import POOLINGS

INITIALISATIONS = {
    "pretrained": "pre-trained, fine-tuned",
    "random": "random normal, fine-tuned",
    "frozen": "pre-trained and frozen, head trained",
    "untrained": "pre-trained, head untrained",
}


def check_initialisation(name: str) -> None:
    """Raise InputError if the name of an initialisation is unknown."""
    check_choice("An initialisation", name, INITIALISATIONS)


PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Seeds:
    """The seeds of a training run: for the weights of the output layer, the sample of examples and the batch order."""

    head: int
    rows: int
    order: int

    @classmethod
    def all(cls, seed: int) -> "Seeds":
        return cls(seed, seed, seed)


@dataclass(frozen=True)
class Recipe:
    """The settings of a fine-tuning run. Raises InputError for an invalid value.

    Attributes:
        learning_rate: peak; warms up over the first `warm_up` fraction of the steps.
        decay: "linear" to 0 after the warm-up, or "none".
        weight_decay: of AdamW; not on biases and LayerNorm.
        clip: largest l2 norm of the gradient.
        dropout: 0 to 0.99; None for that of the checkpoint.
        max_length: tokens of an example including special tokens.
        train_last: train only the last N layers with pooler and head; None for all.
        reset_last: reset the last N layers to N(0, 0.02) weights.
        train_limit: number of train examples, sampled with the seed; None for all.
        dev_limit: number of dev examples, the same for every seed; None for all.
        bucketed: whether batches have examples of similar lengths.
        pad_to: positions of a batch; 0 for its longest example.
        keep: weights of the "last" epoch, or of the "best" one by the metric of the task on dev.
        precision: "float32", or "bfloat16" for matrix products in training (weights, losses and dev metrics remain
            float32); two to four times as fast on processors that support it, and refused on others.
    """

    learning_rate: float = 5e-5
    batch: int = 32
    epochs: int = 3
    warm_up: float = 0.1
    decay: str = "linear"
    weight_decay: float = 0.01
    clip: float = 1.0
    dropout: float | None = None
    max_length: int = 128
    pooling: str = "auto"
    train_last: int | None = None
    reset_last: int = 0
    train_limit: int | None = None
    dev_limit: int | None = None
    bucketed: bool = True
    pad_to: int = 0
    keep: str = "last"
    precision: str = "float32"

    def __post_init__(self) -> None:
        _within("learning_rate", self.learning_rate, 0.0, 1.0)
        _within("batch", self.batch, 1, 4096)
        _within("epochs", self.epochs, 1, 1000)
        _within("warm_up", self.warm_up, 0.0, 1.0)
        _within("weight_decay", self.weight_decay, 0.0, 1.0)
        _within("clip", self.clip, 1e-6, 1e6)
        _within("dropout", self.dropout, 0.0, 0.99)
        _within("max_length", self.max_length, 8, 100_000)
        _within("pad_to", self.pad_to, 0, 100_000)
        _within("train_last", self.train_last, 0, 1000)
        _within("reset_last", self.reset_last, 0, 1000)
        _within("train_limit", self.train_limit, 1, 10**9)
        _within("dev_limit", self.dev_limit, 1, 10**9)
        check_choice("decay", self.decay, ("linear", "none"))
        check_choice("keep", self.keep, ("last", "best"))
        check_choice("pooling", self.pooling, POOLINGS)
        check_choice("precision", self.precision, PRECISIONS)

    @classmethod
    def of(cls, preset: str = "paper", changes: Mapping[str, Any] | None = None) -> "Recipe":
        """Return a preset recipe with some settings changed. Raises InputError for an unknown preset or setting."""
        check_choice("A preset", preset, PRESETS)
        changes = dict(changes or {})
        check_choice("A setting", sorted(changes), sorted(field.name for field in fields(cls)))
        return replace(PRESETS[preset], **changes)


def _within(name: str, value: int | float | None, low: int | float, high: int | float) -> None:
    if value is not None:
        check_range(f"The setting {name}", value, low, high)


PRESETS = {
    # Kovaleva et al. 2019: batch 32, 3 epochs; learning rate and warm-up are the defaults of their run_classifier
    "paper": Recipe(),
    # Lalwani 2024: Adam at 1e-3, no schedule, no dropout, at most 3,000 and 500 rows; STS-B printed as squared error
    "replication": Recipe(
        learning_rate=1e-3,
        warm_up=0.0,
        decay="none",
        weight_decay=0.0,
        dropout=0.0,
        train_limit=3000,
        dev_limit=500,
    ),
    # ours: the bundled checkpoints are 25 times smaller than BERT and need larger steps
    "small": Recipe(learning_rate=5e-4),
    # learns the bundled rows (docs/explanation/fine-tuning.md): layer 1 of the encoder attends to [CLS] itself
    "bundled": Recipe(learning_rate=5e-4, epochs=6, pooling="mean"),
    # ours: after three epochs, they do not compare the words of two sentences yet
    "long": Recipe(learning_rate=3e-4, batch=16, epochs=10),
    # Turc et al. 2019 fine-tune encoders of 4 to 67 million parameters for 4 epochs, at 3e-4 to 3e-5, batch 8 to 128
    "compact": Recipe(learning_rate=1e-4, epochs=4),
}
AUTO = "auto"


def preset_for(checkpoint: str) -> str:
    """Return the default recipe for a checkpoint: "bundled" for the bundled encoder, otherwise "small" or "paper"."""
    if checkpoint == config.ENCODER:
        return "bundled"
    folder = config.BUNDLED_MODELS / checkpoint
    return "small" if folder.parent == config.BUNDLED_MODELS and folder.is_dir() else "paper"


PRESET_NOTES = {
    "paper": "batch 32, 3 epochs, learning rate 5e-5 with warm-up and linear decay, 128 tokens (Kovaleva et al.)",
    "replication": "Adam with learning rate 1e-3, without schedule or dropout, at most 3,000 train and 500 dev "
    "examples (GPT-2 replication)",
    "small": "recipe paper with learning rate 5e-4, for small checkpoints such as the bundled ones",
    "bundled": "recipe small with 6 epochs and mean pooling, for the bundled encoder on the bundled examples",
    "compact": "batch 32, 4 epochs, learning rate 1e-4, for compact encoders such as MiniLM (Turc et al. 2019)",
    "long": "batch 16, 10 epochs, learning rate 3e-4, for small checkpoints on pairs whose words must be compared",
}
