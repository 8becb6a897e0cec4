"""Where the numbers of a unit come from, as every study says it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..store.runs import Provenance

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint


def provenance(
    checkpoint: "Checkpoint", row_ids: Sequence[str], *, dtype: str | None = None, split: str | None = None
) -> Provenance:
    """Where numbers come from that were measured on these rows.

    Args:
        row_ids: of the task's rows, in the order used.
        dtype: of the arithmetic, where it is not the checkpoint's.
        split: of the rows, where the study's options have none.

    Returns:
        The provenance; fields that are None are left to the options.
    """
    return Provenance(
        weights_hash=checkpoint.weights_hash,
        row_ids=tuple(row_ids),
        device=str(checkpoint.device),
        dtype=dtype or checkpoint.dtype,
        split=split,
    )


def provenance_of_run(options: Mapping[str, Any], said: Mapping[str, Any]) -> Provenance:
    """Of a whole run.

    Args:
        options: of the study by name, as JSON; those named as fields of Provenance (checkpoint, task, split, seed,
            dtype, operator) say so, and `checkpoints` and `tasks` are joined.
        said: fields that its units said, which win.

    Returns:
        The provenance that is stored with the run.
    """
    named = {name: options.get(name) for name in ("checkpoint", "task", "split", "seed", "dtype", "operator")}
    for name in ("checkpoint", "task"):
        several = options.get(f"{name}s")
        if named[name] is None and isinstance(several, (list, tuple)):
            named[name] = ", ".join(map(str, several))
    return Provenance().with_changes({k: v for k, v in (named | dict(said)).items() if v is not None})
