"""Provenance of results: checkpoint, weights, number format and examples."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..store.runs import Provenance

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint


def provenance(
    checkpoint: "Checkpoint", row_ids: Sequence[str], *, dtype: str | None = None, split: str | None = None
) -> Provenance:
    """Return the provenance of results on some examples. None fields are filled from the options of the run.

    `dtype` is required if it differs from that of the checkpoint, and `split` if the options have none.
    """
    return Provenance(
        weights_hash=checkpoint.weights_hash,
        row_ids=tuple(row_ids),
        device=str(checkpoint.device),
        dtype=dtype or checkpoint.dtype,
        split=split,
    )


def provenance_of_run(options: Mapping[str, Any], said: Mapping[str, Any]) -> Provenance:
    """Combine the options of a run and the provenance of its units of work into the provenance of the run."""
    named = {name: options.get(name) for name in ("checkpoint", "task", "split", "seed", "dtype", "operator")}
    for name in ("checkpoint", "task"):
        several = options.get(f"{name}s")
        if named[name] is None and isinstance(several, (list, tuple)):
            named[name] = ", ".join(map(str, several))
    return Provenance().with_changes({k: v for k, v in (named | dict(said)).items() if v is not None})
