"""Where the numbers of a unit come from, as every study says it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..store.runs import Provenance

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint


def provenance(
    checkpoint: "Checkpoint", row_ids: Sequence[str], *, dtype: str | None = None, split: str | None = None
) -> Provenance:
    """Return the provenance of numbers measured on these examples; fields that are None come from the options.

    dtype: if it is not the checkpoint's. split: if the options have none.
    """
    return Provenance(
        weights_hash=checkpoint.weights_hash,
        row_ids=tuple(row_ids),
        device=str(checkpoint.device),
        dtype=dtype or checkpoint.dtype,
        split=split,
    )


def provenance_of_run(options: Mapping[str, Any], said: Mapping[str, Any]) -> Provenance:
    """Return the provenance of a run: fields from its options (several checkpoints or tasks joined), then from its
    units."""
    named = {name: options.get(name) for name in ("checkpoint", "task", "split", "seed", "dtype", "operator")}
    for name in ("checkpoint", "task"):
        several = options.get(f"{name}s")
        if named[name] is None and isinstance(several, (list, tuple)):
            named[name] = ", ".join(map(str, several))
    return Provenance().with_changes({k: v for k, v in (named | dict(said)).items() if v is not None})
