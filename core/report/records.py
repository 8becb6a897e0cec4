"""The rows of a report as records: steps, values, claims, and a number for every head drawn.

The store keeps them as rows of one kind each; `rows_of` and `records_of` are each other's inverse.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from ..store.rows import Row, plain
from ..studies.records import record_of


@dataclass(frozen=True)
class StepRecord:
    """One step of the plan. error: why it left nothing; seconds: in workers, together."""

    part: str
    study: str
    checkpoint: str
    task: str | None
    title: str
    run: str | None
    error: str
    options: dict[str, Any]
    weights_hash: str | None = None
    created: str | None = None
    code_version: str | None = None
    dtype: str | None = None
    device: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class ValueRecord:
    """A printed number and ours, or one of both.

    Attributes:
        source, published, reading_error: the printed number, and the error of reading it off a picture.
        value, low, high: ours, with its 95 % interval.
        verdict, why: how the two agree; "" where nothing was printed.
    """

    exhibit: str
    checkpoint: str
    task: str | None
    item: str
    condition: str
    source: str | None
    published: float | None
    reading_error: float | None
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    of: str | None
    run: str | None
    note: str | None
    position: float | None
    verdict: str
    why: str


@dataclass(frozen=True)
class ClaimRecord:
    """What one claim's test says of one checkpoint.

    Attributes:
        needed: how many rows would decide what is undecided; None where it is decided, or no number would.
        statistic, low, high: what was tested with its interval, where it is one number.
        seeds: of fine-tuning behind a sentence about what fine-tuning changes; None of others.
    """

    claim: str
    exhibit: str
    source: str
    section: str
    sentence: str
    known_error: str
    checkpoint: str
    task: str | None
    outcome: str
    said: str
    n: int | None
    run: str | None
    needed: int | None = None
    statistic: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    seeds: int | None = None
    needed_seeds: int | None = None


@dataclass(frozen=True)
class HeadRecord:
    """A head's number in the picture of an exhibit. label: what it is."""

    exhibit: str
    checkpoint: str
    task: str | None
    label: str
    run: str | None
    layer: int
    head: int
    value: float | None
    low: float | None
    high: float | None
    n: int | None


@dataclass(frozen=True)
class Records:
    """A whole report, or the part of it that is about one exhibit."""

    steps: Sequence[StepRecord] = ()
    values: Sequence[ValueRecord] = ()
    claims: Sequence[ClaimRecord] = ()
    heads: Sequence[HeadRecord] = ()

    def about(self, exhibit: str) -> "Records":
        """What is about one exhibit."""
        return Records(
            (),
            [value for value in self.values if value.exhibit == exhibit],
            [claim for claim in self.claims if claim.exhibit == exhibit],
            [head for head in self.heads if head.exhibit == exhibit],
        )

    def by_claim(self) -> dict[str, list[ClaimRecord]]:
        """The outcomes of each claim, in the claims' order."""
        ids = dict.fromkeys(outcome.claim for outcome in self.claims)
        return {id: [outcome for outcome in self.claims if outcome.claim == id] for id in ids}

    @property
    def seconds(self) -> float:
        """Seconds that workers took for all steps together."""
        return sum(step.seconds or 0 for step in self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps or self.values or self.claims or self.heads)


R = TypeVar("R", StepRecord, ValueRecord, ClaimRecord, HeadRecord)


def rows_of(records: Records) -> list[Row]:
    """Records as rows, as the store keeps them."""
    by_kind: dict[str, Sequence[StepRecord | ValueRecord | ClaimRecord | HeadRecord]] = {
        "step": records.steps,
        "value": records.values,
        "claim": records.claims,
        "head": records.heads,
    }
    return [plain({"kind": kind, **asdict(record)}) for kind, several in by_kind.items() for record in several]


def records_of(rows: Iterable[Row]) -> Records:
    """The records of stored rows; columns that a report of an earlier version lacks are None."""
    all_rows = list(rows)
    return Records(
        _read(StepRecord, "step", all_rows),
        _read(ValueRecord, "value", all_rows),
        _read(ClaimRecord, "claim", all_rows),
        _read(HeadRecord, "head", all_rows),
    )


def _read(record: type[R], kind: str, rows: Sequence[Row]) -> list[R]:
    blank = dict.fromkeys(column.name for column in fields(record))
    return [record_of(record, blank | row) for row in rows if row["kind"] == kind]
