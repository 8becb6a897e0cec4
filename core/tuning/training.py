"""The training loop: warm-up and linear decay, clipped gradients, dev metrics each epoch, resumable at any step.

A resumed run yields the same weights as an uninterrupted one: the order of batches depends on (seed, epoch), and the
saved state has weights, optimizer, random state and step.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..config import code_version
from ..errors import CheckpointError, InputError, TrainingStoppedError
from ..models.checkpoint import Checkpoint
from ..models.classifier import padding_id
from ..models.memory import arithmetic
from ..reading import open_file
from ..tasks.glue import Task
from ..tasks.metrics import is_constant, metrics
from ..writing import replacing
from .batches import Example, batches, collate
from .model import logits_of, loss_of, predictions
from .recipe import Recipe
from .saved_checkpoints import LOG, replace_folder

# ---------------------------------------------------------------- state of an unfinished run


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Save the state of a training run to a file atomically."""
    with replacing(path, CheckpointError) as part:
        torch.save(state, part)


def load_state(path: Path, identity: str) -> dict[str, Any] | None:
    """Load the saved state of the training run with this identity, or return None. No code in the file is executed."""
    if not path.is_file():
        return None
    try:
        with open_file(path, given=True) as stream:
            state = torch.load(stream, map_location="cpu", weights_only=True)
    except Exception:  # a truncated state raises many errors; training then starts again
        return None
    return state if isinstance(state, dict) and state.get("identity") == identity else None


SAVE_EVERY_SECONDS = 20.0


@dataclass
class Log:
    """The log of a training run, with its steps, losses and metrics.

    Attributes:
        steps: of the whole run; 0 if nothing is trained.
        epochs: epoch, step and dev metrics after each epoch; the first entry is before training.
        best: epoch of the retained weights, from 1; 0 before any.
    """

    steps: int
    losses: list[float] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    best: int = 0

    @property
    def step(self) -> int:
        return len(self.losses)

    @property
    def seconds_left(self) -> float | None:
        """Estimate the seconds until training ends, or return None before the first step."""
        return self.seconds / self.step * (self.steps - self.step) if self.step else None


@dataclass(frozen=True)
class TrainingOutcome:
    """A finished training run: its model, metrics and log.

    Attributes:
        predicted: labels or scores of the dev examples, in order.
        metrics: on dev; None if undefined.
        constant: whether all predictions are equal.
    """

    model: nn.Module
    log: Log
    predicted: list[int] | list[float]
    metrics: dict[str, float | None]
    constant: bool


OnStep = Callable[[Log], None]


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Return the learning rate at a step (counted from 0), as a fraction of the peak learning rate."""
    warm = int(recipe.warm_up * steps)
    if step < warm:
        return (step + 1) / warm
    return 1.0 if recipe.decay == "none" else max(0.0, (steps - step) / max(1, steps - warm))


def optimizer_of(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """Create an AdamW optimizer that applies weight decay to matrices only."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)  # one pass over each weight


@dataclass
class Fit:
    """A training run, started by `run()`.

    Attributes:
        base: checkpoint from which `model` was created.
        seed: for the order of batches and dropout.
        state: file that makes the run resumable, or None.
        identity: must match a saved state.
        on_step: called with the log.
        save_every: seconds between saved states.
    """

    base: Checkpoint
    task: Task
    model: nn.Module
    train: Sequence[Example]
    dev: Sequence[Example]
    recipe: Recipe
    seed: int
    state: Path | None = None
    identity: str = ""
    on_step: OnStep | None = None
    should_stop: Callable[[], bool] | None = None
    save_every: float = SAVE_EVERY_SECONDS

    def run(self) -> TrainingOutcome:
        """Train the model, unless all its parameters are frozen, and evaluate it on dev.

        Raises TrainingStoppedError if stopped, InputError for a precision that this processor would only emulate.
        """
        learns = any(parameter.requires_grad for parameter in self.model.parameters())
        self.lengths = [len(example) for example in self.train]
        a_pass = len(self._batches(0)) if learns else 0
        self.log = Log(steps=a_pass * self.recipe.epochs)
        self.best: dict[str, Tensor] | None = None
        self.device = next(self.model.parameters()).device
        self._check_precision()
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.seed)
            self.optimizer = optimizer_of(self.model, self.recipe) if learns else None
            self._resume()
            if not self.log.epochs:
                self._measure(0)
            for epoch in range(len(self.log.epochs) - 1, self.recipe.epochs if learns else 0):
                self._epoch(epoch, a_pass)
        return self._outcome()

    def _check_precision(self) -> None:
        if self.recipe.precision == "bfloat16" and arithmetic(self.device, torch.bfloat16) != torch.bfloat16:
            raise InputError(
                "Precision bfloat16 needs a processor that supports it; this processor can only emulate it, ten times "
                "slower. Choose precision float32."
            )

    def _batches(self, epoch: int) -> list[list[int]]:
        return batches(self.lengths, self.recipe.batch, seed=self.seed, epoch=epoch, bucketed=self.recipe.bucketed)

    def _epoch(self, epoch: int, a_pass: int) -> None:
        saved = time.monotonic()
        for chosen in self._batches(epoch)[self.log.step - epoch * a_pass :]:
            if self.should_stop is not None and self.should_stop():
                self._save()
                raise TrainingStoppedError(
                    f"Fine-tuning was cancelled after step {self.log.step} of {self.log.steps}. Start the "
                    "same run again to continue."
                )
            self._step(chosen)
            if time.monotonic() - saved > self.save_every:
                self._save()
                saved = time.monotonic()
        self._measure(epoch + 1)
        self._save()

    def _step(self, chosen: list[int]) -> None:
        began, step = time.monotonic(), self.log.step
        self.model.train()
        inputs, labels = collate(
            [self.train[k] for k in chosen],
            padding=padding_id(self.base),
            segments=self.base.takes_token_types,
            pad_to=self.recipe.pad_to,
            device=self.device,
        )
        rate = self.recipe.learning_rate * learning_rate(self.recipe, step, self.log.steps)
        assert self.optimizer is not None  # noqa: S101 - what learns has one
        optimizer = self.optimizer
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.recipe.precision == "bfloat16"):
            logits = self.model(**inputs).logits
        loss = loss_of(self.task, logits.float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in self.model.parameters() if p.requires_grad], self.recipe.clip)
        optimizer.step()
        self.log.losses.append(float(loss.detach()))
        self.log.seconds += time.monotonic() - began
        if self.on_step is not None:
            self.on_step(self.log)

    def _measure(self, epoch: int) -> None:
        """Evaluate on dev after an epoch; retain the best weights if requested, never those of epoch 0."""
        scores = metrics(self.task, [example.label for example in self.dev], self._predict())
        self.log.epochs.append({"epoch": epoch, "step": self.log.step, **scores})
        if self.recipe.keep == "best" and epoch and epoch == max(range(1, epoch + 1), key=self._rank):
            self.best = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
            self.log.best = epoch
        elif self.recipe.keep == "last":
            self.log.best = epoch
        if self.on_step is not None:
            self.on_step(self.log)

    def _rank(self, epoch: int) -> float:
        """Higher is better; an undefined correlation is worst."""
        value = self.log.epochs[epoch].get(self.task.metric)
        return float("-inf") if value is None else value

    def _predict(self) -> list[int] | list[float]:
        return predictions(self.task, logits_of(self.model, self.base, self.dev))

    def _outcome(self) -> TrainingOutcome:
        if self.best is not None:
            self.model.load_state_dict(self.best)
        self.model.eval()
        predicted = self._predict()
        scores = metrics(self.task, [example.label for example in self.dev], predicted)
        return TrainingOutcome(self.model, self.log, predicted, scores, is_constant(predicted))

    # ------------------------------------------------------------ state on disk

    def _save(self) -> None:
        if self.state is not None:
            save_state(
                self.state,
                {
                    "identity": self.identity,
                    "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict() if self.optimizer else {},
                    "random": torch.get_rng_state(),
                    "random_cuda": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
                    "log": vars(self.log),
                    "best": self.best or {},
                },
            )

    def _resume(self) -> None:
        state = load_state(self.state, self.identity) if self.state is not None else None
        if state is None or self.optimizer is None:
            return
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        if self.device.type == "cuda" and state.get("random_cuda") is not None:
            torch.cuda.set_rng_state(state["random_cuda"], self.device)
        self.log, self.best = Log(**state["log"]), state["best"] or None


# ---------------------------------------------------------------- saving a checkpoint


def save_tuned(folder: Path, outcome: TrainingOutcome, base: Checkpoint, facts: dict[str, Any]) -> None:
    """Save a fine-tuned checkpoint: weights, config with label names, tokenizer and training log.

    `facts` are further metadata in JSON types. An existing folder is replaced once the new one is complete. Raises
    CheckpointError if it cannot be written.
    """
    written = {
        "kind": "fine-tuned",
        "base": base.name,
        "base_hash": base.weights_hash,
        **facts,
        "metrics": outcome.metrics,
        "constant_predictions": outcome.constant,
        "epochs": outcome.log.epochs,
        "kept_epoch": outcome.log.best,
        "losses": [round(loss, 5) for loss in outcome.log.losses],
        "seconds": round(outcome.log.seconds, 2),
        "code_version": code_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }

    def fill(part: Path) -> None:
        model: Any = outcome.model
        model.save_pretrained(part, safe_serialization=True)
        base.tokenizer.save_pretrained(part)
        (part / LOG).write_text(json.dumps(written, indent=1), encoding="utf-8")

    replace_folder(folder, fill)
