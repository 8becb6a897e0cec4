"""Result records: one frozen dataclass for each kind of stored row.

A field is stored in the column of the same name, unless its metadata state otherwise. A field without a default must be
in the row; a field with a default may be missing.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from operator import attrgetter
from types import UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

import numpy as np

from ..attention import Head
from ..errors import StoreError
from ..interval import Estimate
from ..store.findings import Number

R = TypeVar("R")
S = TypeVar("S", bound="Result")
Read = Callable[[Mapping[str, Any]], Any]
Write = Callable[[Any], dict[str, Any]]


def column(name: str, default: Any = MISSING) -> Any:
    """Declare a record field whose column name, such as "class", is not a valid Python name."""
    return field(metadata={"column": name}, default=default)


def stated(default: Any = None) -> Any:
    """Declare a record field that is stored even if it has its default value. Rows of earlier versions may lack it."""
    return field(default=default, metadata={"stated": True})


@dataclass(frozen=True)
class Figure:
    """How findings and plots show a record: which field is the number, and how the number is described.

    Attributes:
        value: field of the number; None if the record overrides `numbers`.
        words: description of the measurement, with fields in braces. Parts between bars are left out if empty or
            repeated.
        whose: what the number belongs to, in the same form; "" for the head of the record, otherwise its name.
    """

    value: str | None
    words: str
    whose: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Base class of result records. Each record is stored as one row."""

    BY: ClassVar[str] = "kind"
    KINDS: ClassVar[tuple[str, ...]] = ()
    FIGURE: ClassVar[Figure | None] = None

    @classmethod
    def of(cls: type[R], row: Mapping[str, Any]) -> R:
        """Convert a stored row to a record. Raises StoreError if the row lacks a required column."""
        return record_of(cls, row)

    def as_row(self) -> dict[str, Any]:
        """Convert the record to a row. Default values are left out, except in fields declared with `stated()`."""
        named = len(self.KINDS) == 1 and self.BY not in type(self).__dataclass_fields__
        row: dict[str, Any] = {self.BY: self.KINDS[0]} if named else {}
        for known in known_fields(type(self)):  # type: ignore[arg-type]  # a class can be hashed
            value = getattr(self, known.name)
            if known.write is not None:
                row |= known.write(value)
            elif known.stated or known.required or value != known.default:
                row[known.column] = value
        return row

    @classmethod
    def among(cls: type[S], rows: Iterable[Mapping[str, Any]]) -> list[S]:
        """Convert the rows of this record type to records, in order. Raises StoreError if a row lacks a column."""
        return [cls.of(row) for row in rows if not cls.KINDS or row.get(cls.BY) in cls.KINDS]

    def columns(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def numbers(self) -> list[Number]:
        if self.FIGURE is None or self.FIGURE.value is None:
            return []
        value = getattr(self, self.FIGURE.value)
        return [self.number(value, self.FIGURE.words, getattr(self, "low", None), getattr(self, "high", None))]

    def number(self, value: float | None, words: str, low: float | None, high: float | None) -> Number:
        """Combine a value of this record with its description, confidence interval, p-value and sample size."""
        told = defaultdict(str, {name: "" if known is None else known for name, known in vars(self).items()})
        parts = [" ".join(part.format_map(told).split()) for part in words.split("|")]
        corrected = getattr(self, "q", None)
        whose = self.FIGURE.whose if self.FIGURE else ""
        return Number(
            " ".join(whose.format_map(told).split()) or self._head_or_name,
            " ".join(dict.fromkeys(part for part in parts if part)),
            value,
            low,
            high,
            getattr(self, "p", None) if corrected is None else corrected,
            getattr(self, "n", None),
        )

    @property
    def _head_or_name(self) -> str:
        layer, head = getattr(self, "layer", None), getattr(self, "head", None)
        if layer is not None and head is not None:
            return str(Head(layer, head))
        return str(getattr(self, "name", "") or getattr(self, "checkpoint", "") or "all")


def records_among(kinds: Sequence[type[Result]], rows: Iterable[Mapping[str, Any]]) -> Iterator[Result]:
    """Convert each row to the last record class in `kinds` that matches it. Rows that match no class are skipped."""
    for row in rows:
        if (kind := record_kind(kinds, row)) is not None:
            with contextlib.suppress(StoreError):  # stored by an earlier version
                yield kind.of(row)


def record_kind(kinds: Sequence[type[Result]], row: Mapping[str, Any]) -> type[Result] | None:
    """Return the last record class in `kinds` that matches the row, or None if no class matches."""
    return next((kind for kind in reversed(kinds) if not kind.KINDS or row.get(kind.BY) in kind.KINDS), None)


def record_of(kind: type[R], row: Mapping[str, Any]) -> R:
    """Convert a row to a record of the dataclass `kind`. Raises StoreError that names a missing column."""
    values: dict[str, Any] = {}
    for known in known_fields(kind):  # type: ignore[arg-type]  # a class can be hashed
        if known.read is not None:
            values[known.name] = known.read(row)
        elif known.column in row:
            values[known.name] = known.value(row[known.column])
        elif known.required:
            raise StoreError(
                f'A row of {kind.__name__} must have the column "{known.column}"; this row has '
                f"{', '.join(map(str, row)) or 'none'}. It may come from an earlier version. Run the study "
                "again."
            )
    return kind(**values)


def picked(records: Iterable[R], **wanted: object) -> list[R]:
    """Return the records whose fields have the given values."""
    left = list(records)
    for name, value in wanted.items():  # one at a time: a report asks 2,000 times for a few of thousands of values
        value_of = attrgetter(name)
        left = [record for record in left if value_of(record) == value]
    return left


# ---------------------------------------------------------------- behind it


@dataclass(frozen=True)
class _Field:
    """A field of a record class. `number`: int or float, if numeric; `write`: for several columns."""

    name: str
    column: str
    required: bool
    read: Read | None
    number: type[int] | type[float] | None
    write: Write | None
    stated: bool
    default: Any

    def value(self, value: Any) -> Any:
        """Convert a stored value to the type of its field, for example 1 to 1.0 or NaN to None."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and value != value:
            return None
        if self.number is float and type(value) is int:
            return float(value)
        return int(value) if self.number is int and isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=256)
def known_fields(kind: type) -> tuple[_Field, ...]:
    """Return the fields of a record class with their columns, default values and conversions."""
    hints = get_type_hints(kind)
    return tuple(
        _Field(
            known.name,
            known.metadata.get("column", known.name),
            known.default is MISSING and known.default_factory is MISSING,
            known.metadata.get("read"),
            _number(hints[known.name]),
            known.metadata.get("write"),
            known.metadata.get("stated", False),
            known.default,
        )
        for known in fields(kind)
    )


def _number(hint: Any) -> type[int] | type[float] | None:
    """Return int or float if the field holds a number (or None), otherwise None."""
    kinds = set(get_args(hint)) - {type(None)} if isinstance(hint, UnionType) else {hint}
    return next((kind for kind in (float, int) if kinds == {kind}), None)


# ---------------------------------------------------------------- rows with a value and its interval


V = TypeVar("V", bound="Valued")


@dataclass(frozen=True, kw_only=True)
class Valued(Result):
    """Base class of records with a value, its 95 % confidence interval and sample size. Undefined values are None."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    note: str | None = None

    @property
    def estimate(self) -> Estimate:
        """Return the value with its confidence interval. If the value is undefined, return 0 without an interval."""
        return Estimate(float(self.value or 0.0), self.low, self.high)

    @classmethod
    def defined(cls: type[V], rows: Iterable[Mapping[str, Any]]) -> list[V]:
        return [record for record in cls.among(rows) if record.value is not None]
