"""What a worker answers, as a record: it comes in JSON's own types, because no class is ever pickled."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..store.rows import Row
from ..studies.records import Result


@dataclass(frozen=True, kw_only=True)
class Answer(Result):
    """What a worker answers.

    Attributes:
        rows: of a unit, or of a summary.
        provenance: of a unit's rows.
        options: of a division, completed by the study's defaults.
        error: why there is nothing else, in a sentence; None where there is.
        deaths: workers that died in the unit before.
    """

    rows: Sequence[Row] | None = None
    provenance: Row | None = None
    options: Row | None = None
    units: Sequence[Row] = ()
    error: str | None = None
    seconds: float = 0.0
    worker: str = ""
    deaths: int = 0
