"""Where the numbers of a unit come from, as every study says it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.store.runs import Provenance

if TYPE_CHECKING:
    from core.models.checkpoint import Checkpoint


def provenance(
    checkpoint: "Checkpoint", row_ids: Sequence[str], *, dtype: str | None = None, split: str | None = None
) -> Provenance:
    """Of what was seen of these rows. dtype: of the arithmetic, where it is not the checkpoint's. split: of the rows,
    where the study's options have none."""
    return Provenance(
        weights_hash=checkpoint.weights_hash,
        row_ids=tuple(row_ids),
        device=str(checkpoint.device),
        dtype=dtype or checkpoint.dtype,
        split=split,
    )
