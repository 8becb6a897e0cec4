"""What a fine-tuning run is: the settings, the presets with their sources, the four initialisations."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from .. import config
from ..errors import InputError
from ..models.poolings import POOLINGS

INITIALISATIONS = {
    "pretrained": "pre-trained, fine-tuned",
    "random": "random normal, fine-tuned",
    "frozen": "pre-trained and frozen, head trained",
    "untrained": "pre-trained, head untrained",
}


def check_initialisation(name: str) -> None:
    """Raises InputError where it is none of INITIALISATIONS."""
    if name not in INITIALISATIONS:
        raise InputError(
            f"An initialisation is one of {', '.join(INITIALISATIONS)}; {name!r} is none of them: choose one."
        )


PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Seeds:
    """The seeds of a run.

    Attributes:
        head: of initial weights of the head (and of the rest, from random weights).
    """

    head: int
    rows: int
    order: int

    @classmethod
    def all(cls, seed: int) -> "Seeds":
        """One number for all three seeds."""
        return cls(seed, seed, seed)


@dataclass(frozen=True)
class Recipe:
    """Settings of a run.

    Attributes:
        learning_rate: peak; it warms up over the first `warm_up` share of the steps.
        warm_up: share of the steps, 0 to 1.
        decay: "linear": the rate falls to 0 behind the warm-up; "none": it stays at its peak.
        weight_decay: AdamW's, none on biases and LayerNorm.
        clip: the gradient's greatest l2 norm.
        dropout: rate, 0 to 0.99; None keeps the checkpoint's own.
        max_length: pieces of a row at most, special tokens included.
        train_last: only the last N layers (and pooler and head) learn; None is all.
        reset_last: the last N layers start from fresh N(0, 0.02) weights.
        train_limit: train rows at most, drawn with the seed; None is all.
        dev_limit: dev rows at most, the same for every seed; None is all.
        bucketed: whether a batch has rows of similar lengths; otherwise rows are in random order.
        pad_to: positions that batches are padded to; 0 pads a batch to its longest row.
        keep: weights of the "last" epoch, or of the "best" by the task's metric on dev.
        precision: "float32", or "bfloat16" for the matrix products of training (weights, losses and the measurements on
            dev stay float32): two to four times as fast on processors that compute in it, and refused on a CPU that
            would only emulate it.

    Raises:
        InputError: a setting is out of its range, or none of its values.
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
        for name, value, known in (
            ("decay", self.decay, ("linear", "none")),
            ("keep", self.keep, ("last", "best")),
            ("pooling", self.pooling, POOLINGS),
            ("precision", self.precision, PRECISIONS),
        ):
            if value not in known:
                raise InputError(f"{name} is one of {', '.join(known)}; {value!r} is none of them: choose one.")

    @classmethod
    def of(cls, preset: str = "paper", changes: Mapping[str, Any] | None = None) -> "Recipe":
        """A preset with some settings changed; InputError on unknown names."""
        if preset not in PRESETS:
            raise InputError(f"A preset is one of {', '.join(PRESETS)}; {preset!r} is none of them: choose one.")
        changes = dict(changes or {})
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(changes) - known):
            raise InputError(f"Settings are {', '.join(sorted(known))}; {unknown[0]!r} is none of them.")
        return replace(PRESETS[preset], **changes)

    def as_options(self) -> dict[str, Any]:
        """Every setting, as JSON can hold it."""
        return asdict(self)


def _within(name: str, value: int | float | None, low: int | float, high: int | float) -> None:
    if value is not None and not low <= value <= high:
        raise InputError(f"{name} must lie between {low:g} and {high:g}; seen {value:g}: change it.")


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
    # ours: the bundled checkpoints are 25 times smaller than BERT and want larger steps
    "small": Recipe(learning_rate=5e-4),
    # learns the bundled rows (docs/explanation/fine-tuning.md): layer 1 of the encoder attends to [CLS] itself
    "bundled": Recipe(learning_rate=5e-4, epochs=6, pooling="mean"),
    # ours: after three epochs they tell words from words, but do not compare those of two sentences yet
    "long": Recipe(learning_rate=3e-4, batch=16, epochs=10),
    # Turc et al. 2019 fine-tune encoders of 4 to 67 million parameters for 4 epochs, at 3e-4 to 3e-5, batch 8 to 128
    "compact": Recipe(learning_rate=1e-4, epochs=4),
}
AUTO = "auto"


def preset_for(checkpoint: str) -> str:
    """The preset that a checkpoint learns by when none is named: the bundled encoder's own, `small` for the other
    bundled ones, else the paper's.

    Source:
        docs/explanation/fine-tuning.md, where the recipes were compared."""
    if checkpoint == config.ENCODER:
        return "bundled"
    folder = config.BUNDLED_MODELS / checkpoint
    return "small" if folder.parent == config.BUNDLED_MODELS and folder.is_dir() else "paper"


PRESET_NOTES = {
    "paper": "batch 32, 3 epochs, 5e-5 with warm-up and linear decay, 128 word pieces (Kovaleva et al.)",
    "replication": "Adam 1e-3 without schedule or dropout, at most 3,000 train and 500 dev rows (GPT-2 replication)",
    "small": "as the paper's, but 5e-4: for small checkpoints like the bundled ones",
    "bundled": "as small, 6 epochs, reading the mean over tokens: for the bundled encoder on the bundled rows",
    "compact": "batch 32, 4 epochs, 1e-4: for compact encoders like MiniLM (Turc et al. 2019)",
    "long": "batch 16, 10 epochs, 3e-4: for small checkpoints on pairs whose words must be compared",
}
