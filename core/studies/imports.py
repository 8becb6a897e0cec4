"""Checks that stored or imported rows and options have the types that their study declares."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ..errors import InputError, JobError
from ..store import runs
from ..store.bodies import leave_out
from ..store.database import Database
from ..store.label_checks import HEADS
from ..store.rows import Row, from_json
from .lookup import find_study
from .records import known_fields, record_kind

HEAD_COLUMNS = ("layer", "head")
MOST_REMEMBERED = 64  # runs whose rows were checked
MOST = 2**63  # of whole numbers, which a data frame has in 64 bits
_WRONG_TYPE = ("_type", "_parsing", "finite_number", "literal_error")  # ends of the kinds of errors that pydantic names


def check_run(study: str, options: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, whole: bool = True) -> None:
    """Check the options and rows of an imported run before the run is stored.

    If `whole` is False (for runs of another version), `result_rows` later leaves out rows that lack a column. Raises
    InputError if a row lacks a column, or a value has another type than the study declares.
    """
    try:
        known = find_study(study)
    except JobError:
        return
    check_options(study, known.options, options)
    lacking: list[str] = []
    for row in rows:
        kind = record_kind(known.kinds, row)
        if kind is None:
            continue
        try:
            _check_row(study, kind, row, undefined=True)
        except MissingColumnError as error:
            if whole:
                raise InputError(f"{error}. Export the run again.") from error
            lacking.append(str(error))
        except RowError as error:
            raise InputError(f"{error}. Export the run again.") from error
    if lacking:
        leave_out(
            f"{len(lacking)} rows of a run of {study} from another version are imported but not shown: {lacking[0]}. "
            "Run the study again."
        )


def result_rows(db: Database, run: str) -> list[Row]:
    """Return the rows of a stored run that fit the records of its study. Other rows are left out with a warning."""
    about = runs.study_and_title(db, run)
    texts = runs.row_texts(db, run) if about else []
    if about is None or not texts:
        return runs.run_rows(db, run)
    study, title = about
    rows = [from_json(text) for text in texts]
    key = (study, hashlib.blake2b("\n".join(texts).encode()).digest())
    if key not in _misfits:
        _misfits[key] = _misfits_among(study, rows)
        if len(_misfits) > MOST_REMEMBERED:
            _misfits.pop(next(iter(_misfits)), None)
    misfits = _misfits[key]
    if misfits:
        leave_out(
            f"Left out {len(misfits)} of {len(rows)} rows of the result {title[:80]!r}: "
            f"{next(iter(misfits.values()))}. Run the study again, or import the result again from a sound export."
        )
    return [row for position, row in enumerate(rows) if position not in misfits]


_misfits: dict[tuple[str, bytes], dict[int, str]] = {}  # by study and rows, because a page reads the same rows often


def _misfits_among(study: str, rows: Iterable[Any]) -> dict[int, str]:
    """Return the positions of the rows that do not fit the study, each with the reason."""
    try:
        kinds = find_study(study).kinds
    except JobError:
        kinds = ()
    misfits = {}
    for position, row in enumerate(rows):
        try:
            if not isinstance(row, dict):
                raise RowError(f"A row must be a JSON object; got {str(row)[:40]!r}")
            kind = record_kind(kinds, row)
            if kind is not None:
                _check_row(study, kind, row)
            elif kinds:
                raise RowError(f"A row of the study {study} must match one of its record types; got {str(row)[:60]!r}")
        except RowError as error:
            misfits[position] = str(error)
    return misfits


def check_options(study: str, kind: type, options: Mapping[str, Any]) -> None:
    """Raise InputError if a stored option does not have the type that the study declares for it."""
    known = {one.name: options[one.name] for one in fields(kind) if one.name in options}
    try:
        TypeAdapter(kind).validate_python(known)
    except ValidationError as error:
        wrong = [one for one in error.errors() if one["loc"] and one["type"].endswith(_WRONG_TYPE)]
        if wrong:
            raise InputError(
                f"The option {wrong[0]['loc'][0]} of the study {study} cannot be {str(wrong[0]['input'])[:40]!r}: "
                f"{wrong[0]['msg']}. Export the run again."
            ) from error
    except TypeError as error:  # raised by an option's conversion before the type check
        raise InputError(
            f"The options of the study {study} must have the declared types ({error}). Export the run again."
        ) from error


class RowError(ValueError):
    """Raised if a row does not match the record class of its study."""


class MissingColumnError(RowError):
    """Raised if a row lacks a required column."""


def _check_row(study: str, kind: type, row: Mapping[str, Any], *, undefined: bool = False) -> None:
    """Raise RowError unless a row fits its record type. `undefined` allows null in each column of numbers."""
    hints = _hints(kind)
    for known in known_fields(kind):
        if known.read is not None:
            try:
                known.read(row)
            except Exception as error:  # whatever reading columns of a wrong type raises
                raise RowError(
                    f"The columns of {known.name} must have the types that the study {study} writes; got "
                    f"{str(dict(row))[:60]} ({str(error)[:60]})"
                ) from error
        elif known.column in row:
            value = known.value(row[known.column])
            if value is None and known.number is float:  # undefined
                if hints[known.name] is float and not undefined:
                    raise RowError(
                        f"The column {known.column} in a row of the study {study} must have a value; got an undefined "
                        "one"
                    )
                continue
            if known.number is int and isinstance(value, bool):
                continue
            if type(value) is int and not (0 <= value < HEADS if known.column in HEAD_COLUMNS else abs(value) < MOST):
                shown = value if abs(value) < MOST * MOST else "a very large number"
                raise RowError(
                    f"The column {known.column} in a row of the study {study} must be in its allowed range; got {shown}"
                )
            if type(value) is known.number and math.isfinite(value):  # fast path for most columns
                continue
            if why := _misfit(kind, known.name, hints[known.name], value):
                raise RowError(
                    f"The column {known.column} in a row of the study {study} cannot be {str(value)[:40]!r}: {why}"
                )
        elif known.required:
            raise MissingColumnError(
                f"A row of the study {study} must have the column {known.column!r}; got "
                f"{', '.join(map(str, row))[:60] or 'none'}"
            )


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@lru_cache(maxsize=4096)
def _adapter(kind: type, name: str) -> "TypeAdapter[Any]":
    return TypeAdapter(_hints(kind)[name])


def _misfit(kind: type, name: str, hint: Any, value: Any) -> str:
    """Return why a JSON value cannot have the declared type; "" if it can."""
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
