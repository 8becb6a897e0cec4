"""Fine-tuning runs that save dev predictions and no checkpoint. An interrupted run resumes from its saved state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import config
from ...errors import InputError
from ...models.checkpoint import Checkpoint
from ...tasks.glue import Task, TaskRow, fingerprint, must_have_labels, read_rows
from ...tuning.batches import Example, encode
from ...tuning.model import initialised, logits_of, predictions
from ...tuning.recipe import Recipe
from ...tuning.training import Fit


@dataclass(frozen=True)
class Bench:
    """The train and dev examples of a task, tokenised for one checkpoint."""

    base: Checkpoint
    task: Task
    train_rows: tuple[TaskRow, ...]
    dev_rows: tuple[TaskRow, ...]
    train: tuple[Example, ...]
    dev: tuple[Example, ...]

    @property
    def gold(self) -> np.ndarray:
        return np.array([row.label for row in self.dev_rows])


def bench(base: Checkpoint, task: Task, recipe: Recipe, data: str | None) -> Bench:
    """Tokenise the train and dev examples of a task. Raises InputError if a split has only one class."""
    train, dev = task_rows(task, recipe, data)
    length = min(recipe.max_length, base.max_length)
    return Bench(
        base, task, tuple(train), tuple(dev), tuple(encode(base, train, length)), tuple(encode(base, dev, length))
    )


def task_rows(task: Task, recipe: Recipe, data: str | None) -> tuple[list[TaskRow], list[TaskRow]]:
    """Load train and dev examples, up to the limits of the recipe. Raises InputError if a split has only one class."""
    must_have_labels(task)
    limits = {"train": recipe.train_limit, "dev": recipe.dev_limit}
    rows_of = {split: read_rows(task, split, folder=data, limit=limit) for split, limit in limits.items()}
    for split, rows in rows_of.items():
        labels = {row.label for row in rows}
        if len(labels) < 2:
            named = task.labels[int(next(iter(labels)))] if task.labels else next(iter(labels))
            raise InputError(
                f"The examples must include at least two different labels; all {len(rows)} {split} examples of "
                f"{task.name} have the label {named!r}. Raise the setting {split}_limit, or use other data."
            )
    return rows_of["train"], rows_of["dev"]


def trial(
    on: Bench, recipe: Recipe, seed: int, key: str, *, before: Callable[[Any], object] | None = None
) -> tuple[Any, np.ndarray]:
    """Fine-tune a model once. Return the model in eval mode with its predictions for the dev examples.

    `seed` sets the initial weights of the classification head and the order of examples. `before` is called with the
    new model, for example to mask weights.
    """
    model: Any = initialised(on.base, on.task, "pretrained", recipe, seed).to(on.base.device)
    if before is not None:
        before(model)
    state = config.settings().runs / "trials" / f"{key}.state"
    identity = f"{key} {on.base.weights_hash} {fingerprint(list(on.train_rows))} {fingerprint(list(on.dev_rows))}"
    outcome = Fit(on.base, on.task, model, on.train, on.dev, recipe, seed, state=state, identity=identity).run()
    state.unlink(missing_ok=True)
    return outcome.model, np.array(outcome.predicted)


def predicted(model: Any, on: Bench) -> np.ndarray:
    """Return the predictions of a fine-tuned model for the dev examples."""
    return np.array(predictions(on.task, logits_of(model, on.base, on.dev)))
