"""What is known of a pattern classifier, as pages say it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.store.rows import Row
from core.studies.records import record_of


@dataclass(frozen=True)
class HeldOut:
    """Scores on maps that a classifier did not see. on: of what; rows: all that its study measured; maps: each map."""

    macro_f1: float
    on: str = "unseen inputs"
    rows: Sequence[Row] = ()
    maps: Sequence[Row] = ()


@dataclass(frozen=True)
class KnownClassifier:
    """A classifier that is stored or ships. labels: how many it was trained on."""

    title: str
    labels: int
    classes: Sequence[str]
    scores: Mapping[str, Any]

    @classmethod
    def of(cls, row: Row) -> "KnownClassifier":
        """The record of what the store, or the file beside the bundled one, says."""
        return record_of(cls, row)

    @property
    def held_out(self) -> HeldOut:
        """How good it is."""
        return record_of(HeldOut, self.scores)
