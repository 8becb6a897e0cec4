"""What rows that come from elsewhere must be before they are stored: an export or a run may be changed by anybody.

Maps and label events pass the very checks of those that come from browsers; of all else the kinds of values that pages
and trainings rest on are looked at.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from core.attention import PARTS
from core.errors import InputError
from core.store.class_names import KINDS, known_names
from core.store.label_checks import HEADS, check_class, check_name, checked_event, checked_map
from core.store.pictures import checked_maps, checked_picture
from core.store.rows import Row, quoted

NAMES = frozenset({
    "annotator", "person", "pseudonym", "owner", "class_set", "class", "into_class", "map_id", "event", "undoes",
    "batch", "project", "purpose", "kind", "classifier", "run", "job", "finding", "release", "part", "supersedes",
    "way", "suggestion", "queue_order", "scale",
})  # fmt: skip
BODIES: Mapping[tuple[str, str], type] = MappingProxyType({
    ("run", "options"): dict, ("run", "row_ids"): list, ("study_row", "body"): dict, ("job", "options"): dict,
    ("job_unit", "arguments"): dict, ("project", "recipe"): dict, ("project", "rules"): dict,
    ("project_event", "body"): list, ("classifier", "recipe"): dict, ("classifier", "classes"): list,
    ("classifier", "snapshot"): list, ("classifier", "scores"): dict, ("finding", "numbers"): list,
    ("finding", "pictures"): list, ("frame_release", "skipped"): list, ("frame_annotation", "body"): dict,
})  # fmt: skip
LAST_ORDINAL = 2**52  # of rows that are counted: the next ones need room
_BELONGS = (
    ("label_event", "map_id", "attention_map"),
    ("project_map", "map_id", "attention_map"),
    ("claim", "map_id", "attention_map"),
    ("project_label", "event", "label_event"),
    ("project_map", "project", "project"),
    ("project_event", "project", "project"),
    ("claim", "project", "project"),
)


def check_columns(table: str, rows: pa.Table, columns: list[str]) -> None:
    """InputError unless every column of `rows` is one of the table's `columns`, and none comes twice."""
    names = rows.schema.names
    strange = [name for name in names if name not in columns] or [name for name in names if names.count(name) > 1]
    if strange:
        raise InputError(
            f"A table of an export has the store's columns, each once; {table} has {strange[0][:60]!r}: export again."
        )


def check_rows(table: str, rows: pa.Table) -> None:
    """InputError, naming the table and the reason, where a row cannot be one that this program wrote."""
    check_event = _ROWS.get(table)
    for name in rows.schema.names:
        column = rows.column(name)
        if name in NAMES:
            for text in column.unique().to_pylist():
                check_name(name, text, f"the table {table}")
        elif kind := BODIES.get((table, name)):
            _check_bodies(table, name, column.to_pylist(), kind)
        elif name == "ordinal":
            _check_whole(table, name, column, 1, LAST_ORDINAL)
        elif name in ("layer", "head"):
            _check_whole(table, name, column, 0, HEADS)
    if check_event:
        for row in rows.to_pylist():
            check_event(row)


def check_scores(rows: list[Row]) -> None:
    """InputError where a row of a run is of a layer or head that no model has."""
    for row in rows:
        check_fields(row, "a row of the run")
        for name in ("layer", "head"):
            value = row.get(name)
            if isinstance(value, (int, float)) and not 0 <= value < HEADS:
                raise InputError(f"A {name} is a number from 0 to {HEADS - 1}; a row has {value!r}: correct it.")


def check_whole(cursor: duckdb.DuckDBPyConnection) -> None:
    """InputError where what has come in does not belong together: a label of a map that is not there, say."""
    for table, column, home in _BELONGS:
        lost = cursor.execute(
            f"SELECT {quoted(column)} FROM {quoted(table)} "  # noqa: S608 - quoted
            f"WHERE {quoted(column)} NOT IN (SELECT {quoted(column)} FROM {quoted(home)}) LIMIT 1"
        ).fetchall()
        if lost:
            raise InputError(
                f"Every {column} of {table} must be in {home}; {str(lost[0][0])[:60]!r} of this export is not: "
                "export again."
            )
    pairs = cursor.execute("SELECT DISTINCT class_set, class FROM standing WHERE kind = 'label'").fetchall()
    names = known_names(cursor, {class_set for class_set, _ in pairs})
    for class_set, name in sorted(pairs):
        if name not in names.get(class_set, ()):
            raise InputError(
                f"A label that stands is of a class of its set; {name[:60]!r} is none of {class_set[:60]!r}: where the "
                "export was made, take such labels back with `labels retire`, and export again."
            )


def _check_map(row: Row) -> None:
    subject = f"the map {str(row.get('map_id'))[:40]!r}"
    checked_map(row | {name: _json(row.get(name), subject) for name in ("tokens", "separators")})


def _check_label_event(row: Row) -> None:
    if checked_event(row)["event"] != row["event"]:
        raise InputError(
            f"A label event is called by its batch and sequence, as in tab-1:7; {str(row['event'])[:60]!r} is not: "
            "export again."
        )


def _check_class_event(row: Row) -> None:
    shown = {name: row.get(name) for name in ("into_class", "title", "eye", "colour", "key")}
    check_class(str(row.get("class_set")), str(row.get("class")), **shown)
    if row.get("kind") not in KINDS:
        raise InputError(f"A change of classes is one of {', '.join(KINDS)}; a row has {str(row.get('kind'))[:40]!r}.")


def _check_part(row: Row) -> None:
    if row.get("part") not in PARTS:
        raise InputError(f"A set of heads is one of {', '.join(PARTS)}; part_score has {str(row.get('part'))[:40]!r}.")


def _check_finding(row: Row) -> None:
    for picture in _json(row.get("pictures") or "[]", "finding.pictures"):
        checked_picture(picture)
    if row.get("maps") is not None:
        checked_maps(row["maps"])


_ROWS: Mapping[str, Callable[[Row], None]] = MappingProxyType(
    {
        "attention_map": _check_map,
        "label_event": _check_label_event,
        "class_event": _check_class_event,
        "part_score": _check_part,
        "finding": _check_finding,
    }
)


def _check_bodies(table: str, name: str, texts: list[Any], kind: type) -> None:
    for text in texts:
        if text is not None and not isinstance(_json(text, f"{table}.{name}"), kind):
            wanted = "object" if kind is dict else "list"
            raise InputError(f"{table}.{name} is a JSON {wanted}; a row of this export has {str(text)[:40]!r}.")
        if text is not None and (table, name) == ("study_row", "body"):
            check_fields(_json(text, table), f"{table}.{name}")
        if text is not None and (table, name) == ("finding", "numbers"):
            for number in _json(text, table):
                check_fields(number, f"{table}.{name}")


NUMERIC = frozenset({"value", "low", "high", "baseline", "p", "q"})  # of rows of studies and numbers of findings
WHOLE = frozenset({"layer", "head"})
TEXTS = frozenset({"kind", "statistic", "feature", "checkpoint", "task", "name", "what"})


def check_fields(row: Any, subject: str) -> None:
    """InputError unless a row of a study, or a number of a finding, has the types that every study gives its fields."""
    if not isinstance(row, dict):
        raise InputError(f"A row must be a JSON object; {subject} has {str(row)[:40]!r}: export again.")
    if not {"statistic", "layer", "head", "value"} <= row.keys() and "what" not in row:
        return  # neither a score of a head nor a number of a finding: other rows give these names other types
    for name, value in row.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = (
            is_number if name in NUMERIC else
            is_number and float(value).is_integer() if name in WHOLE else
            isinstance(value, str) if name in TEXTS else True
        )  # fmt: skip
        if value is not None and not fits:
            wanted = "text" if name in TEXTS else "a whole number" if name in WHOLE else "a number"
            raise InputError(f"{name} must be {wanted}; {subject} has {str(value)[:40]!r}: export again.")


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)  # NaN and Infinity, which are no JSON


def _json(text: Any, subject: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"A column of JSON holds JSON; that of {subject} does not: export again.") from error


def _check_whole(table: str, name: str, column: pa.ChunkedArray, least: int, most: int) -> None:
    if not pa.types.is_integer(column.type):
        raise InputError(f"{table}.{name} is a whole number; this export has {column.type}: export again.")
    numbers = np.asarray(column.drop_null())
    if len(numbers) and not (numbers.min() >= least and numbers.max() < most):
        raise InputError(
            f"{table}.{name} lies from {least} to {most - 1}; a row of this export has "
            f"{numbers.min() if numbers.min() < least else numbers.max()}: export again."
        )
