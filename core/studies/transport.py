"""Conversion of partial results to JSON and back: frozen dataclasses of numbers, text, arrays and records.

Arrays are restored bit for bit, and other values in their declared type. Accumulators have `packed` and `unpacked`.
"""

import base64
import enum
import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import JobError

R = TypeVar("R")
ARRAY, NOT_FINITE = "array", "not finite"  # keys that mark values without a JSON type


def encode(value: Any) -> Any:
    """Convert a partial result, or a value inside one, to JSON-serialisable types. Raises TypeError if impossible."""
    if isinstance(value, np.ndarray):
        whole = np.ascontiguousarray(value)
        data = base64.b64encode(whole.tobytes()).decode()
        return {ARRAY: data, "dtype": whole.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return encode(value.item())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value) if field.init}
    if hasattr(value, "packed"):
        return encode(value.packed())
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: encode(item) for key, item in value.items()}
        return [[encode(key), encode(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {NOT_FINITE: repr(value)}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(
        f"A partial result must consist of numbers, text, arrays and records; got {type(value).__name__}. Report "
        "this bug."
    )


def decode(kind: Any, value: Any) -> Any:
    """Convert JSON that `encode` has written back to a value of the type `kind`."""
    if isinstance(value, dict) and ARRAY in value and "dtype" in value:
        flat = np.frombuffer(base64.b64decode(value[ARRAY]), dtype=np.dtype(value["dtype"]))
        return flat.reshape(value["shape"]).copy()
    if isinstance(value, dict) and list(value) == [NOT_FINITE]:
        return float(next(iter(value.values())))
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return decode(inner[0], value)
    if origin in (Union, types.UnionType):
        return None if value is None else decode(_arm(inner, value), value)
    if isinstance(origin or kind, type) and is_dataclass(origin or kind) and isinstance(value, dict):
        hints = _hints(kind)
        found = {name: decode(hints[name], item) for name, item in value.items() if name in hints}
        try:
            return kind(**found)
        except TypeError as error:
            raise JobError(
                "A stored partial result must have the fields of this version of the program; this result has "
                f"those of another version ({error}). Start the job again."
            ) from error
    if hasattr(kind, "unpacked"):
        return kind.unpacked(decode(Any, value))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    return _items(origin or kind, inner, value)


@lru_cache(maxsize=256)
def _hints(kind: Any) -> dict[str, Any]:
    """Return the declared types of a record's fields. All fields of a generic record have the type of its parameter."""
    record, inner = get_origin(kind) or kind, get_args(kind)
    hints = get_type_hints(record, include_extras=True)
    return {field.name: hints[field.name][inner] if inner else hints[field.name] for field in fields(record)}


def _items(kind: Any, inner: tuple[Any, ...], value: Any) -> Any:
    """Decode lists, tuples and mappings item by item; return any other value unchanged."""
    if isinstance(value, dict):
        return {key: decode(inner[1] if inner else Any, item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return {decode(inner[0], key): decode(inner[-1], item) for key, item in value}
    if isinstance(kind, type) and hasattr(kind, "_make"):  # a named tuple
        return kind._make(value)
    if kind is tuple and inner and inner[-1] is not Ellipsis:
        return tuple(decode(each, item) for each, item in zip(inner, value, strict=True))
    items = [decode(inner[0] if inner else Any, item) for item in value]
    return items if kind is list or not isinstance(kind, type) else tuple(items)


def _arm(inner: tuple[Any, ...], value: Any) -> Any:
    """Return which of several declared types a value has."""
    arms = [arm for arm in inner if arm is not type(None)]
    if isinstance(value, dict):
        return next((arm for arm in arms if is_dataclass(arm)), arms[0])
    if isinstance(value, list):
        return next((arm for arm in arms if get_origin(arm) in (list, tuple)), arms[0])
    return next((arm for arm in arms if isinstance(arm, type) and isinstance(value, arm)), arms[0])
