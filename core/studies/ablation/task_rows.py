"""What the studies of one classifier on a task's rows share: which rows, and units of them."""

import pydantic.dataclasses

from core.studies.ablation import disabling
from core.studies.contract import Unit
from core.studies.options import Classifier, Data, Limit, Seed, Split, TaskName


@pydantic.dataclasses.dataclass(frozen=True)
class RowOptions:
    """Which checkpoint, on which rows of which task."""

    checkpoint: Classifier
    task: TaskName = "sst2"
    data: Data = None
    split: Split = "dev"
    limit: Limit = 500
    seed: Seed = 0


def units_of(options: disabling.DisablingOptions) -> list[Unit]:
    """Slices of the task's rows, `core.studies.ablation.disabling.Slice` each."""
    return [Unit(f"rows-{k}", row_slice, size) for k, (row_slice, size) in enumerate(disabling.slices(options))]
