"""What a worker answers, as a record: it comes in JSON's own types, because no class is ever pickled."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.store.rows import Row
from core.studies.records import Result


@dataclass(frozen=True, kw_only=True)
class Answer(Result):
    """rows, provenance: of a unit, or a summary; options, units: of a division, units of a next round too; error: why
    there is nothing. seconds: it took; worker: host and process; deaths: workers that died in the unit before."""

    rows: Sequence[Row] | None = None
    provenance: Row | None = None
    options: Row | None = None
    units: Sequence[Row] = ()
    error: str | None = None
    seconds: float = 0.0
    worker: str = ""
    deaths: int = 0
