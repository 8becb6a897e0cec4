"""Two checkpoints over the same inputs, batch by batch, and how much each head's maps differ."""

from collections.abc import Sequence
from typing import Any

from ...capture.running import batches, run
from ...errors import CheckpointError
from ...models.checkpoint import Checkpoint
from ...scoring.change import Change
from ...tasks.glue import TaskRow

BATCH_TOKENS = 1024  # both models' maps of one batch are held together


def compared(
    before: Checkpoint,
    after: Checkpoint,
    rows: Sequence[TaskRow],
    *,
    first: int = 0,
    max_length: int = 128,
) -> Change:
    """How much heads' maps differ between two checkpoints, added up over rows.

    Returns:
        The accumulator, to be merged with that of other rows.

    Raises:
        CheckpointError: the two cannot be compared.
    """
    refuse_different(before, after)
    names = [row.id for row in rows]
    encodings, others = (
        [side.encode(row.text, row.pair, max_length=max_length) for row in rows] for side in (before, after)
    )
    for name, mine, its in zip(names, encodings, others, strict=True):
        if mine.ids != its.ids:
            raise CheckpointError(
                f"Maps can be compared only where both checkpoints split a text alike; row {name} becomes "
                f"{len(mine)} and {len(its)} word pieces or others: choose a checkpoint tuned from {before.name}."
            )
    change = Change(before.layers, before.heads, causal=before.causal)
    for chosen in batches(encodings, BATCH_TOKENS):
        some, kept = [encodings[k] for k in chosen], _Kept()
        run(before, some, [kept])
        run(after, some, [_Against(kept, change, [first + k for k in chosen], [names[k] for k in chosen])])
    return change


class _Kept:
    """The maps of one batch, until the other model's are compared with them."""

    def __init__(self) -> None:
        self.maps: list[Any] = []

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        self.maps.append(weights.clone())


class _Against:
    """Compares each layer of the second model with the one kept of the first."""

    def __init__(self, kept: _Kept, change: Change, numbers: list[int], names: list[str]) -> None:
        self.kept, self.change, self.numbers, self.names = kept, change, numbers, names

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        numbers, names = [self.numbers[k] for k in inputs], [self.names[k] for k in inputs]
        self.change.update(layer, self.kept.maps[layer], weights, numbers, names)


def refuse_different(before: Checkpoint, after: Checkpoint) -> None:
    """CheckpointError unless one can be tuned from the other: one family, one shape."""
    shapes = [(side.layers, side.heads, side.family.model_type) for side in (before, after)]
    if shapes[0] != shapes[1]:
        raise CheckpointError(
            f"A checkpoint is compared with one tuned from it; {before.name} has {shapes[0][0]} layers of "
            f"{shapes[0][1]} heads ({shapes[0][2]}), {after.name} {shapes[1][0]} of {shapes[1][1]} ({shapes[1][2]}): "
            "choose a pair of one family and size."
        )
