"""The rows of a report as records: steps, values, claims, and numbers of heads for heatmaps."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from ..store.findings import Number
from ..store.rows import Row, plain
from ..studies.records import record_of

REPORT = "reproduce"  # the study under which reports are stored


@dataclass(frozen=True)
class StepRecord:
    """A stored step of a report. If the step has no results, `error` states the reason."""

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
    """A measured number, a published number, or both for comparison.

    Attributes:
        source, published, reading_error: the published number, and the error of reading it from a plot.
        value, low, high: the measured number with its 95 % interval.
        verdict, why: how they compare; "" without a published number.
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

    @property
    def number(self) -> Number:
        item = " ".join(part for part in (self.item, self.condition, self.task) if part)
        return Number(item, f"{self.exhibit}, {self.checkpoint}", self.value, self.low, self.high, None, self.n)


@dataclass(frozen=True)
class ClaimRecord:
    """The stored outcome of testing one claim on one checkpoint.

    Attributes:
        needed: number of examples that would decide an undecided claim; None if decided, or no number would.
        statistic, low, high: the tested number with its interval, if it is one number.
        seeds: number of fine-tuning seeds, for claims about changes by fine-tuning; otherwise None.
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
    """The value of one head in a heatmap of the report. `label` is the name of the quantity."""

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
    """The content of a whole report, or of its section about one figure or table."""

    steps: Sequence[StepRecord] = ()
    values: Sequence[ValueRecord] = ()
    claims: Sequence[ClaimRecord] = ()
    heads: Sequence[HeadRecord] = ()

    def about(self, exhibit: str) -> "Records":
        return Records(
            (),
            [value for value in self.values if value.exhibit == exhibit],
            [claim for claim in self.claims if claim.exhibit == exhibit],
            [head for head in self.heads if head.exhibit == exhibit],
        )

    def by_claim(self) -> dict[str, list[ClaimRecord]]:
        ids = dict.fromkeys(outcome.claim for outcome in self.claims)
        return {id: [outcome for outcome in self.claims if outcome.claim == id] for id in ids}

    @property
    def seconds(self) -> float:
        return sum(step.seconds or 0 for step in self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps or self.values or self.claims or self.heads)


R = TypeVar("R", StepRecord, ValueRecord, ClaimRecord, HeadRecord)


def rows_of(records: Records) -> list[Row]:
    """Convert the records of a report to rows for the store."""
    by_kind: dict[str, Sequence[StepRecord | ValueRecord | ClaimRecord | HeadRecord]] = {
        "step": records.steps,
        "value": records.values,
        "claim": records.claims,
        "head": records.heads,
    }
    return [plain({"kind": kind, **asdict(record)}) for kind, several in by_kind.items() for record in several]


def records_of(rows: Iterable[Row]) -> Records:
    """Convert the stored rows of a report to records. Columns that are missing in older reports become None."""
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
