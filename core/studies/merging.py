"""Merging of partial results, declared by the types of their fields.

| type of a field | how it merges |
|---|---|
| `Positions` | positions of examples in the task; the arrays of the record are sorted by them |
| `PerExample`, `PerExampleFirst` | joined along the last (first) axis; in the order of the units without `Positions` |
| `AllOf[T]` | a tuple of numbers or texts, one per example, joined likewise |
| `Summed[T]` | added: numbers, arrays, accumulators, dictionaries by key, tuples element by element |
| `Smallest[T]`, `Largest[T]` | the smallest (largest) value |
| `OfFirst[T]` | the value of the first unit; those of others differ by rounding alone |
| `Annotated[tuple[T, ...], MergedBy(...)]` | records with equal keys are merged, each as its own type declares |
| `Annotated[tuple[T, ...], SortedBy(...)]` | records are joined and sorted by these fields |
| a tuple of records | joined in the order of the units |
| a record | merged field by field |
| anything else | must be equal in all partial results that have it; None and empty arrays do not count |
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache, reduce
from operator import attrgetter
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import JobError

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Joined:
    """Marks a field whose arrays are concatenated when partial results are merged."""

    axis: int = -1
    key: bool = False
    per_key: bool = False


class Added:
    """Marks a field that is summed when partial results are merged."""


class Least:
    """Marks a field that takes the smallest value when partial results are merged."""


class Most:
    """Marks a field that takes the largest value when partial results are merged."""


class First:
    """Marks a field that keeps the value of the first partial result when partial results are merged."""


class SortedBy:
    """Marks a tuple of records. When merged, such tuples are joined, and the records are sorted by the named fields."""

    def __init__(self, *names: str) -> None:
        self.key = attrgetter(*names)


class MergedBy:
    """Marks a tuple of records. Records with equal keys are merged, after sorting by key and `order` if it is given."""

    def __init__(self, *names: str, order: str | None = None) -> None:
        self.key, self.order = attrgetter(*names), attrgetter(*names, order) if order else None


MARKS = (Joined, Added, Least, Most, First, SortedBy, MergedBy)
Positions = Annotated[np.ndarray, Joined(key=True)]
PerExample = Annotated[np.ndarray, Joined()]
PerExampleFirst = Annotated[np.ndarray, Joined(axis=0)]
AllOf = Annotated[tuple[T, ...], Joined(per_key=True)]
Summed = Annotated[T, Added()]
Smallest = Annotated[T, Least()]
Largest = Annotated[T, Most()]
OfFirst = Annotated[T, First()]


def merged(partials: Sequence[P]) -> P:
    """Merge partial results according to their field types. Raises JobError if fields that must be equal differ."""
    kind = type(partials[0])
    declared = _declared(kind)  # type: ignore[arg-type]  # a class can be hashed
    key = next((name for name, how in declared.items() if isinstance(how, Joined) and how.key), None)
    measured, order = partials, None
    if key is not None:  # sums in floating point depend on the order too
        known = [partial for partial in partials if (at := getattr(partial, key)) is not None and len(at)]
        if known:
            measured = sorted(known, key=lambda partial: getattr(partial, key).tolist())
            order = np.argsort(np.concatenate([getattr(partial, key) for partial in measured]), kind="stable")
            partials = [*measured, *(partial for partial in partials if all(partial is not one for one in known))]
    values: dict[str, Any] = {}
    for name, how in declared.items():
        found = [getattr(partial, name) for partial in partials]
        if isinstance(how, Joined) and isinstance(found[0], np.ndarray | None):
            arrays = [array for partial in measured if (array := getattr(partial, name)) is not None]
            values[name] = np.concatenate(arrays, axis=how.axis) if arrays else None
            if arrays and order is not None:
                values[name] = values[name].take(order, axis=how.axis)
        elif isinstance(how, Joined) and how.per_key and order is not None:
            items = [item for partial in measured for item in getattr(partial, name)]
            values[name] = tuple(items[k] for k in order)
        else:
            values[name] = _merged_values(f"{kind.__name__}.{name}", how, found)
    return replace(partials[0], **values)  # type: ignore[type-var]


def _merged_values(name: str, how: Any, values: list[Any]) -> Any:
    known = [value for value in values if value is not None and not (isinstance(value, np.ndarray) and not value.size)]
    if not known:
        return values[0]
    first, *others = known
    if isinstance(how, Added):
        return reduce(added, others, copy.deepcopy(first)) if others else first
    if isinstance(how, Least):
        return min(known)
    if isinstance(how, Most):
        return max(known)
    if isinstance(how, First):
        return first
    if isinstance(how, Joined):
        return tuple(item for value in values for item in value)
    if isinstance(how, SortedBy):
        return tuple(sorted((record for value in values for record in value), key=how.key))
    if isinstance(how, MergedBy):
        records = [record for value in values for record in value]
        groups: dict[Any, list[Any]] = {}
        for record in sorted(records, key=how.order) if how.order else records:
            groups.setdefault(how.key(record), []).append(record)
        return tuple(merged(group) for group in groups.values())
    if is_dataclass(first):
        return merged(known)
    for other in others:
        if not (np.array_equal(first, other) if isinstance(first, np.ndarray) else first == other):
            raise JobError(
                f"All units of a job must have the same {name}; got {first!r} and {other!r}. Start the job again."
            )
    return first


def added(first: Any, second: Any) -> Any:
    """Add two values of the same type. If they are accumulators, the first is changed in place."""
    if hasattr(first, "merge"):
        return first.merge(second)
    if isinstance(first, Mapping):
        both = {key: added(first[key], second[key]) for key in first.keys() & second.keys()}
        return {key: both.get(key, value) for key, value in (first | second).items()}
    if isinstance(first, tuple):
        return tuple(added(one, other) for one, other in zip(first, second, strict=True))
    return first + second


@lru_cache(maxsize=256)
def _declared(kind: type) -> dict[str, Any]:
    """Return how each field of a record merges; None if its values must be equal."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _marker(hints[field.name]) for field in fields(kind) if field.init}


def _marker(hint: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next((mark for mark in inner[1:] if isinstance(mark, MARKS)), None)
    if origin is tuple:
        return Joined() if is_dataclass(get_origin(inner[0]) or inner[0]) or isinstance(inner[0], TypeVar) else None
    return next((mark for arm in inner if get_origin(arm) is Annotated and (mark := _marker(arm))), None)
