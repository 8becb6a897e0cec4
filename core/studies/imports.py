"""Runs that come in from a file: whether their rows and options are of the types that their study declares."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ..errors import InputError, JobError
from .lookup import find_study
from .records import Result, known_fields, record_kind

_WRONG_TYPE = ("_type", "_parsing", "finite_number", "literal_error")  # ends of the kinds of errors that pydantic names


def check_run(study: str, options: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Check a run of another database before it is stored. Columns and studies that are not known here are left alone.

    Raises InputError if a row lacks a column, or if a row or an option has a value of another type than declared.
    """
    try:
        known = find_study(study)
    except JobError:
        return
    check_options(study, known.options, options)
    for row in rows:
        kind = record_kind(known.kinds, row)
        if kind is not None:
            _check_row(study, kind, row)


def check_options(study: str, kind: type, options: Mapping[str, Any]) -> None:
    """Raise InputError if an option has another type than the study declares; its own rules are not asked."""
    known = {one.name: options[one.name] for one in fields(kind) if one.name in options}
    try:
        TypeAdapter(kind).validate_python(known)
    except ValidationError as error:
        wrong = [one for one in error.errors() if one["loc"] and one["type"].endswith(_WRONG_TYPE)]
        if wrong:
            raise InputError(
                f"The option {wrong[0]['loc'][0]} of {study} cannot be {str(wrong[0]['input'])[:40]!r}: "
                f"{wrong[0]['msg']}. Export the run again."
            ) from error
    except TypeError as error:  # of what an option makes of a value, before its type is looked at
        raise InputError(
            f"The options of {study} must have the types it declares; {error}. Export the run again."
        ) from error


def _check_row(study: str, kind: type[Result], row: Mapping[str, Any]) -> None:
    hints = _hints(kind)
    for known in known_fields(kind):
        if known.read is not None:
            try:
                known.read(row)
            except Exception as error:  # whatever reading columns of a wrong type raises
                raise InputError(
                    f"The columns of {known.name} must be as {study} writes them; got {str(dict(row))[:60]} "
                    f"({str(error)[:60]}). Export the run again."
                ) from error
        elif known.column in row:
            value = known.value(row[known.column])
            if value is None and known.number is float:  # undefined
                continue
            if known.number is int and isinstance(value, bool):
                continue
            if type(value) is known.number and math.isfinite(value):  # most columns of most rows
                continue
            if why := _misfit(kind, known.name, hints[known.name], value):
                raise InputError(
                    f"{known.column} of a row of {study} cannot be {str(value)[:40]!r}: {why}. Export the run again."
                )
        elif known.required:
            raise InputError(
                f"A row of {study} must have the column {known.column!r}; got {', '.join(map(str, row))[:60] or 'none'}"
                ". Export the run again."
            )


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@lru_cache(maxsize=4096)
def _adapter(kind: type, name: str) -> "TypeAdapter[Any]":
    return TypeAdapter(_hints(kind)[name])


def _misfit(kind: type, name: str, hint: Any, value: Any) -> str:
    """Why a JSON value cannot be of the declared type; "" if it can."""
    if hint is Any:
        return ""
    try:
        _adapter(kind, name).validate_json(json.dumps(value, allow_nan=False), strict=True)
    except ValidationError as error:
        wrong = [one for one in error.errors() if one["type"].endswith(_WRONG_TYPE)]
        return wrong[0]["msg"] if wrong else ""
    except ValueError:
        return "it is not a finite number"
    return ""
