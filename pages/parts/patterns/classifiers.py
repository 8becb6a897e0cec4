"""Facts about a pattern classifier, as pages show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.store.rows import Row
from core.studies.records import record_of


@dataclass(frozen=True)
class HeldOut:
    """Scores on held-out maps. `on` is what was held out, `rows` all results of the study, `maps` each map."""

    macro_f1: float
    on: str = "unseen inputs"
    rows: Sequence[Row] = ()
    maps: Sequence[Row] = ()


@dataclass(frozen=True)
class KnownClassifier:
    """A stored or bundled classifier. `labels` is the number of its training labels."""

    title: str
    labels: int
    classes: Sequence[str]
    scores: Mapping[str, Any]

    @classmethod
    def of(cls, row: Row) -> "KnownClassifier":
        """Create the record from the store, or from the file of the bundled classifier."""
        return record_of(cls, row)

    @property
    def held_out(self) -> HeldOut:
        return record_of(HeldOut, self.scores)
