"""The rows of a task that a fine-tuned checkpoint never saw, by what its training log says of those that it did."""

from functools import lru_cache

from ... import models
from ...errors import InputError
from ...tasks.glue import TaskRow, drawn, fingerprint, read_rows
from ...tasks.unseen import unseen
from ...tuning.saved_checkpoints import training_log


def rows_unseen_by(
    checkpoint: str, task: str, data: str | None, limit: int | None = None, seed: int = 0
) -> list[TaskRow]:
    """Dev rows, and train rows that were left out of the fine-tuning and share nothing with what was not.

    Args:
        data: where its rows are.
        limit: at most so many; None: all.

    Returns:
        The rows, at most `limit` of them.

    Raises:
        InputError: nobody knows what it saw.
    """
    return drawn(_every(str(models.opening.locate(checkpoint)), task, data), limit, seed)


@lru_cache(maxsize=4)
def _every(folder: str, task: str, data: str | None) -> tuple[TaskRow, ...]:
    facts = training_log(models.opening.local(folder))
    recipe, seeds = facts.get("recipe", {}), facts.get("seeds", {})
    train = read_rows(task, "train", folder=data)
    learned = drawn(train, recipe.get("train_limit"), seeds.get("rows", 0))
    if facts.get("train_rows_hash") != fingerprint(learned):
        raise InputError(
            f"What a checkpoint never saw is told by what it was fine-tuned on; {folder} was not fine-tuned on these "
            f"train rows of {task}: give the task and the data of its fine-tuning, or take the split dev."
        )
    return tuple(unseen(read_rows(task, "dev", folder=data), train, learned))
