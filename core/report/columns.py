"""A record from a stored row: the columns of its fields' names."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

R = TypeVar("R")


def record_of(kind: type[R], row: Mapping[str, Any]) -> R:
    """A record of the dataclass `kind`; None where a row has no such column."""
    columns = {one.name: _number(row.get(one.name), one.type) for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**columns)


def _number(value: Any, kind: Any) -> Any:
    """JSON does not tell 1.0 from 1."""
    return float(value) if type(value) is int and kind in (float, float | None) else value
