"""The training loop: warm-up and linear decay, clipped gradients, dev metrics each epoch, resumable at any step.

A run that was killed and started again gives the weights of one that was not: the order of batches follows from
(seed, epoch), and the state on disk holds weights, optimizer, random state and step.
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
from ..errors import AtlasError, InputError
from ..models.arithmetic import arithmetic
from ..models.checkpoint import Checkpoint
from ..models.classifier import padding_id
from ..tasks.glue import Task
from ..tasks.metrics import is_constant, metrics
from .batches import Example, batches, collate
from .files import replace_folder, write_whole
from .model import logits_of, loss_of, predictions
from .recipe import Recipe
from .saved_checkpoints import LOG

# ---------------------------------------------------------------- state of an unfinished run


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write the state of a run whole or not at all: an interrupted write leaves the one before."""
    write_whole(path, lambda part: torch.save(state, part))


def load_state(path: Path, identity: str) -> dict[str, Any] | None:
    """The state that a run with this identity left, or None. Read without running any code it may hold."""
    if not path.is_file():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # a state cut short has many errors; training then starts at the beginning
        return None
    return state if isinstance(state, dict) and state.get("identity") == identity else None


SAVE_EVERY_SECONDS = 20.0


class CancelledError(AtlasError):
    """The user stopped the run; what it learned so far is on disk and the next start takes it up."""


@dataclass
class Log:
    """What happened in a run so far.

    Attributes:
        steps: of the whole run, 0 where nothing learns.
        epochs: epoch, step and dev metrics after each epoch; the first entry is before training.
        best: the epoch whose weights are kept, from 1; 0 before any is.
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
        """Seconds that the rest takes by the pace so far; None before the first step."""
        return self.seconds / self.step * (self.steps - self.step) if self.step else None


@dataclass(frozen=True)
class TrainingOutcome:
    """A finished run.

    Attributes:
        predicted: labels or scores of the dev rows, in order.
        metrics: on dev, by name; None where one is undefined.
        constant: whether all dev rows are predicted alike.
    """

    model: nn.Module
    log: Log
    predicted: list[int] | list[float]
    metrics: dict[str, float | None]
    constant: bool


OnStep = Callable[[Log], None]


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """The share of the peak rate at a step: it rises over the warm-up, then falls to 0 where decay is linear.

    Args:
        step: 0 the first.

    Returns:
        *Range:* 0 to 1.
    """
    warm = int(recipe.warm_up * steps)
    if step < warm:
        return (step + 1) / warm
    return 1.0 if recipe.decay == "none" else max(0.0, (steps - step) / max(1, steps - warm))


def optimizer_of(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices only (none on biases and LayerNorm, as in the paper's script)."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)  # one pass over each weight


@dataclass
class Fit:
    """One run: `Fit(...).run()`.

    Attributes:
        base: what `model` was made from.
        model: what learns, where `requires_grad` is set.
        seed: of the batches' order, and of dropout's masks.
        state: the file that makes the run resumable; None: it is not.
        identity: what must be equal for a state on disk to be taken up.
        on_step: called with the log.
        save_every: seconds between two writes of the state.
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
        """Train, unless nothing learns, and measure on dev.

        Raises CancelledError when asked to stop, InputError for a precision that this processor would only emulate.
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
                "Training in bfloat16 needs a processor that computes in it, and this one would only emulate it, ten "
                "times slower: choose precision float32."
            )

    def _batches(self, epoch: int) -> list[list[int]]:
        return batches(self.lengths, self.recipe.batch, seed=self.seed, epoch=epoch, bucketed=self.recipe.bucketed)

    def _epoch(self, epoch: int, a_pass: int) -> None:
        saved = time.monotonic()
        for chosen in self._batches(epoch)[self.log.step - epoch * a_pass :]:
            if self.should_stop is not None and self.should_stop():
                self._save()
                raise CancelledError(
                    f"Cancelled after step {self.log.step} of {self.log.steps}; start the same run again to go on."
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
        """Dev metrics after an epoch; the weights of the best are kept aside where the recipe asks for it.

        Epoch 0, before any step, is measured and never the best: what is handed on was trained.
        """
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
    """Save weights (safetensors), config with label names, tokenizer, and training.json: log, metrics and provenance.

    Args:
        folder: where to; one that is there already is replaced only when the new one is complete.
        outcome: the model, its log and its metrics on dev.
        facts: task, initialisation, seed, recipe and what the rows were, as JSON can hold it.

    Raises:
        CheckpointError: the folder cannot be written; what was there stays.
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
