"""Which output of a classifier means which label of a task: read from the checkpoint, by name."""

import re

from ..errors import CheckpointError
from . import own
from .glue import Task, must_have_labels

_GENERIC = re.compile(r"^LABEL_\d+$", re.IGNORECASE)


def label_order(task: Task, labels: dict[int, str] | None) -> tuple[int, ...]:
    """For each output of a checkpoint the label of `task` that it means.

    `order[k]` is the task's label of output k, so `logits[:, [order.index(l) for l in ...]]` is in the task's order.
    Names are compared without case, spaces, hyphens and underscores, and as the TSV form spells them. Names that say
    nothing (LABEL_0, LABEL_1) are taken in the hub's order when there are two; with three the order is a guess between
    six and is refused.

    Args:
        labels: of the checkpoint's outputs by number; None without a classification head.

    Returns:
        Indices into Task.labels; (0,) of a score.

    Raises:
        CheckpointError: no head, another number of labels, or other names.
        InputError: a list without labels.
    """
    must_have_labels(task)
    if labels is None:
        raise CheckpointError(
            f"{task.name} needs a checkpoint with a classification head; this one has none: fine-tune it first."
        )
    names = [labels[k] for k in sorted(labels)]
    if len(names) != task.outputs:
        wanted = "1 output" if task.is_score else f"{task.outputs} labels"
        raise CheckpointError(
            f"{task.name} has {wanted}; the head of this checkpoint has {len(names)} ({', '.join(names)[:100]}): "
            f"choose one fine-tuned on {task.name}."
        )
    if task.is_score:
        return (0,)
    if all(_GENERIC.match(name) for name in names):
        return _generic(task, names)
    return _named(task, names)


def _generic(task: Task, names: list[str]) -> tuple[int, ...]:
    if len(names) > 2:
        raise CheckpointError(
            f"The labels of a checkpoint for {task.name} must be named, because their order differs "
            f"between checkpoints; this one says {', '.join(names)}: write {', '.join(task.labels)} "
            "into id2label of its config.json in its own order."
        )
    return tuple(range(len(names)))


def _named(task: Task, names: list[str]) -> tuple[int, ...]:
    known = {own.plain_label(name): k for spelled in (task.labels, task.spelled) for k, name in enumerate(spelled)}
    order = tuple(known.get(own.plain_label(name), -1) for name in names)
    if sorted(order) != list(range(len(names))):
        raise CheckpointError(
            f"The labels of {task.name} are {', '.join(task.labels)}; the head of this "
            f"checkpoint has {', '.join(names)[:100]}: choose one fine-tuned on {task.name}."
        )
    return order
