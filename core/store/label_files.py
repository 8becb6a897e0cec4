"""Files of labels: one event per row, with the metadata of its map and optionally the weights of the map.

JSONL (one JSON object per line, weights in base64) and Parquet (weights as bytes) have the same columns, so importing
an export yields the same events, maps and classes. A row written by hand needs only map_id, class, class_set and
annotator.
"""

import base64
import binascii
import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from ..reading import decoded, encoding_of, json_line, lines_of, open_file, read_text
from ..writing import replacing, write_whole
from .database import Database
from .label_checks import (
    EVENT,
    MAP,
    checked_event,
    checked_map,
    contradiction,
    say_alike,
    time_of,
    whole_numbers,
)
from .labels import (
    add_events,
    add_history,
    add_maps,
    all_events,
    annotators,
    class_history,
    maps_of,
    refusals,
    store_maps,
    stored_at,
    stored_facts,
)
from .rows import Row, to_json

ENDINGS = (".jsonl", ".parquet")
LARGEST = 512 * 2**20  # bytes of a file, and of an unpacked Parquet file
MOST_ROWS = 200_000  # of a file; the papers' annotators made a few thousand labels
_FACTS = [column for column in MAP if column.name not in ("map_id", "stored")]
_WHOLE = (pa.field("map_stored", pa.timestamp("us")), pa.field("class_events", pa.string()))
COLUMNS = pa.schema([*EVENT, *_FACTS, *_WHOLE])
_BAD = (ValueError, TypeError, KeyError, ArithmeticError, RecursionError, pa.ArrowException)


@dataclass(frozen=True)
class Imported:
    """The result of importing a label file. `refused` lists invalid rows as (row number from 1, reason), and `notes`
    are messages for the user."""

    rows: int
    new: int
    already: int
    maps: int
    refused: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# ---------------------------------------------------------------- export


def exported(db: Database, class_set: str | None = None, *, weights: bool = True) -> Iterator[Row]:
    """Yield every label event of a class set with the metadata of its attention map, oldest first.

    If `weights` is True, the first event of each map has its weights (bytes) and time of storing. The first event of
    each class set has the history of its classes. Other values are None.
    """
    events = all_events(db, class_set)
    maps = {row["map_id"]: row for row in maps_of(db, list(dict.fromkeys(event["map_id"] for event in events)))}
    classes, times, told = class_history(db), stored_at(db), set()
    for event in events:
        about = maps[event["map_id"]]
        facts = {column.name: about[column.name] for column in _FACTS} | {"map_stored": times[event["map_id"]]}
        if not weights or event["map_id"] in told:
            facts |= {"weights": None, "map_stored": None}
        history = classes.pop(event["class_set"], None)
        told.add(event["map_id"])
        yield event | facts | {"class_events": to_json(history) if history else None}


def export_labels(db: Database, file: Path, class_set: str | None = None, *, weights: bool = True) -> int:
    """Export labels to a file, and return the number of label events. By default, all class sets are exported.

    `weights`: whether to include the weights of maps. Raises InputError if the file has another ending or cannot be
    written.
    """
    ending, rows = _ending(file), list(exported(db, class_set, weights=weights))
    if ending == ".parquet":
        write_rows(file, rows)
    else:
        write_lines(file, rows)
    return len(rows)


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write label events to a Parquet file for an export, atomically."""
    texts = [{**row, **{name: json.dumps(row[name]) for name in ("tokens", "separators")}} for row in rows]
    with replacing(file) as part:
        pq.write_table(pa.Table.from_pylist(texts, schema=COLUMNS), part)


def as_line(row: Mapping[str, Any]) -> str:
    """Return a label event as one line of JSON for an export. Fields without a value are left out."""

    def text(value: Any) -> str:
        return value.isoformat() if isinstance(value, datetime) else base64.b64encode(value).decode()

    return json.dumps({k: v for k, v in row.items() if v is not None}, default=text, ensure_ascii=False) + "\n"


def _ending(file: Path) -> str:
    if file.suffix.lower() not in ENDINGS:
        raise InputError(f"A file of labels must end in {' or '.join(ENDINGS)}; got {file.name[:120]}. Rename it.")
    return file.suffix.lower()


# ---------------------------------------------------------------- import


@dataclass(frozen=True)
class _Incoming:
    """A row of a file. number: from 1; event: checked; row: as read; by_hand: it names no batch."""

    number: int
    event: Row
    row: Row
    by_hand: bool


def import_labels(db: Database, file: Path, *, keep_rest: bool = True) -> Imported:
    """Import labels from a file. Labels that are stored already are skipped.

    If `keep_rest` is False, one invalid row prevents the import. Raises InputError if the file cannot be read or is
    larger than LARGEST or MOST_ROWS; RightsError unless the user is an admin.
    """
    db.person.must("admin", "import labels")
    ending, data = _ending(file), read_bytes(file)
    rows = list(_parquet_rows(data, file) if ending == ".parquet" else _lines(data, file))
    if data and not rows and ending != ".parquet":
        raise InputError(
            f"A file of labels must have a JSON object on each line; {file.name[:80]} has only empty lines. Export the "
            "labels again."
        )
    return import_rows(db, rows, batch_of(data), keep_rest=keep_rest)


def batch_of(data: bytes) -> str:
    """Return the batch ID of a label file. The ID contains a hash of the file contents."""
    return "file-" + hashlib.sha256(data).hexdigest()[:16]


def import_rows(
    db: Database,
    incoming: Iterable[bytes | Row | BaseException],
    batch: str,
    *,
    keep_rest: bool = True,
    defaults: Mapping[str, Any] | None = None,
) -> Imported:
    """Import label events. Each item of `incoming` is JSON text, a dictionary, or the exception raised while reading
    the event."""
    db.person.must("admin", "import labels")
    rows, refused, number = [], [], 0
    for number, given in enumerate(incoming, start=1):
        try:
            rows.append(_usable(given, dict(defaults or {}), batch, number))
        except InputError as error:
            refused.append((number, str(error)))
        except _BAD as error:
            why = " ".join(str(error).split())[:120]
            refused.append((number, f"A row must be JSON in UTF-8; this one cannot be read ({why}). Correct it."))
    if refused and not keep_rest:
        return Imported(number, 0, 0, 0, sorted(refused))
    try:
        with db.write() as cursor:
            for row in rows:
                if "class_events" in row.row:
                    try:
                        add_history(cursor, row.event["class_set"], row.row["class_events"])
                    except InputError as error:
                        refused.append((row.number, str(error)))
            maps = _store_their_maps(cursor, rows, refused)
            good = _without(rows, refused)
            reasons = refusals(cursor, [row.event for row in good])
            refused += [(good[index].number, reason) for index, reason in reasons.items()]
            first_lines: dict[Any, int] = {}
            for row in _without(good, refused):
                event = row.event
                opinion = (event["class_set"], event["map_id"], event["annotator"], event["pass"], event["kind"])
                key = opinion if row.by_hand else event["event"]
                if key in first_lines:
                    refused.append((
                        row.number,
                        f"A label must be in the file only once; row {first_lines[key]} has the same one. "
                        "Keep one of them.",
                    ))  # fmt: skip
                first_lines.setdefault(key, row.number)
            if refused and not keep_rest:
                raise RefusedError
            events = [row.event for row in _without(good, refused)]
            new = add_events(cursor, events)
    except RefusedError:
        return Imported(number, 0, 0, 0, sorted(refused))
    return Imported(number, new, len(events) - new, maps, sorted(refused), _notes(db, rows))


def read_bytes(file: Path) -> bytes:
    """Return the contents of a label file as bytes. Raises InputError if the file is unreadable or too large."""
    try:
        with open_file(file) as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise InputError(
            f"A file of labels must be readable; {str(file)[:200]} cannot be opened "
            f"({getattr(error, 'strerror', None) or error}). Check its name."
        ) from error
    if len(data) > LARGEST:
        raise InputError(
            f"A file of labels must not be larger than {LARGEST >> 20} MB; {file.name[:120]} is larger. Split it."
        )
    return data


def _lines(data: bytes, file: Path) -> Iterator[bytes]:
    """Return lines in UTF-8; a line in another encoding is refused alone."""
    encoding = encoding_of(data)
    if encoding != "utf-8":  # byte order mark, or UTF-16
        data = data.removeprefix(BOM_UTF8) if encoding == "utf-8-sig" else decoded(data, file.name).encode()
    lines = [line for line in data.split(b"\n") if line.strip()]
    _bounded(len(lines))
    return iter(lines)


def _bounded(rows: int) -> None:
    if rows > MOST_ROWS:
        raise InputError(f"A file of labels must have at most {MOST_ROWS:,} rows; this file has {rows:,}. Split it.")


def _parquet_rows(data: bytes, file: Path) -> Iterator[Row | BaseException]:
    """Yield rows, or the error of a row that cannot be converted."""
    try:
        source = pq.ParquetFile(pa.BufferReader(data))
        about = source.metadata
        _bounded(about.num_rows)
        size = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        if size > LARGEST:
            raise InputError(
                f"A file of labels must not be larger than {LARGEST >> 20} MB when unpacked; {file.name[:120]} has "
                f"{size >> 20} MB. Split the file."
            )
        table = source.read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"A file that ends in .parquet must be Parquet; {file.name[:120]} cannot be read. Export the labels again."
        ) from error
    if not table.num_rows and "map_id" not in table.column_names:  # a database without labels exports only columns
        raise InputError(
            f"A file of labels must have a column map_id; the Parquet file {file.name[:80]} has neither rows nor this "
            "column. Export the labels again."
        )
    return _rows_of(table)


def _rows_of(table: pa.Table) -> Iterator[Row | BaseException]:
    for batch in table.to_batches(1000):
        try:
            yield from batch.to_pylist()
        except _BAD:  # a time or text that Python cannot represent: find its row
            for number in range(batch.num_rows):
                try:
                    yield batch.slice(number, 1).to_pylist()[0]
                except _BAD as error:
                    yield error


def _usable(line: Any, defaults: Row, batch: str, number: int) -> _Incoming:
    """Return one row as an event with the metadata of its map. Raises an error that names the reason."""
    if isinstance(line, BaseException):
        raise line
    row = json_line(line.decode("utf-8")) if isinstance(line, bytes) else line
    if not isinstance(row, dict):
        raise InputError(f"A row of a label file must be a JSON object; got {str(row)[:60]!r}. Correct the row.")
    row = {name: value for name, value in whole_numbers(row).items() if value is not None}
    for name in ("tokens", "separators", "class_events"):
        if isinstance(row.get(name), str):
            row[name] = json.loads(row[name])
    by_hand = "batch" not in row and "event" not in row
    unsaid = {"kind": "label"} | ({"batch": batch, "sequence": number, "way": "file"} if by_hand else {})
    row = unsaid | defaults | row
    for name in ("map_id", "class_set", "annotator"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise InputError(
                f'A label must have the text field "{name}"; got {str(row.get(name))[:60]!r}. Correct the field.'
            )
    if isinstance(row.get("weights"), str):
        try:
            row["weights"] = base64.b64decode(row["weights"], validate=True)
        except binascii.Error as error:
            raise InputError(
                "Attention weights must be float16 numbers in base64; the weights of this row cannot be decoded from "
                "base64. Export the labels again."
            ) from error
    event = checked_event(row)
    if row.get("event", event["event"]) != event["event"]:
        raise InputError(
            f'The field "event" must contain the batch and sequence number of its row ({event["event"]}); got '
            f"{str(row['event'])[:60]!r}. Correct the field or leave it out."
        )
    return _Incoming(number, event, row, by_hand)


class RefusedError(Exception):
    """Exception that rolls back an import if a row is invalid and `keep_rest` is False."""


def _notes(db: Database, rows: list[_Incoming]) -> list[str]:
    """Return messages about names that were read differently or look like another stored name."""
    given = {str(row.row["annotator"]): str(row.event["annotator"]) for row in rows}
    merged = sorted(f"{said!r} as {name!r}" for said, name in given.items() if said != name)
    notes = [f"E-mail addresses are compared without case and spaces: {', '.join(merged)[:400]}."] if merged else []
    sentence = say_alike(annotators(db), among=set(given.values()))
    return notes + ([sentence] if sentence else [])


def _without(rows: list[_Incoming], refused: list[tuple[int, str]]) -> list[_Incoming]:
    bad = {number for number, _ in refused}
    return [row for row in rows if row.number not in bad]


def _store_their_maps(cursor: Any, rows: list[_Incoming], refused: list[tuple[int, str]]) -> int:
    """Store the maps that rows contain; metadata of stored maps must match."""
    known = stored_facts(cursor, list({row.event["map_id"] for row in rows}))
    new: dict[str, Row] = {}
    for row in _without(rows, refused):
        name = row.event["map_id"]
        try:
            if name in known:
                if why := contradiction(row.row, known[name]):
                    raise InputError(why)
            elif "weights" in row.row:
                facts = {column.name: row.row.get(column.name) for column in (MAP.field("map_id"), *_FACTS)}
                given = row.row.get("map_stored")
                stored = None if given is None else time_of(given, f"the map of row {row.number}")
                new[name] = checked_map(facts | {"stored": stored})
                known[name] = new[name]
            else:
                raise InputError(
                    f"A row without weights must refer to a stored map; got {name[:60]!r}. Add the "
                    "weights, or correct the map_id."
                )
        except InputError as error:
            refused.append((row.number, str(error)))
    return add_maps(cursor, list(new.values()))


# ---------------------------------------------------------------- folders of maps with label files


def read_maps(folder: Path) -> list[Row]:
    """Read the attention maps in a folder with the files maps.jsonl and maps.npz.

    Maps without texts get [CLS], [SEP] and numbers as tokens.
    """
    rows = [json.loads(line) for line in lines_of(read_text(folder / "maps.jsonl"))]
    with open_file(folder / "maps.npz") as stream, np.load(stream, allow_pickle=False) as weights:
        return [
            {"tokens": _places(row)} | row | {"weights": weights[row["map_id"]].astype("<f2").tobytes()} for row in rows
        ]


def _places(row: Row) -> list[str]:
    """Return placeholder tokens for a map without text."""
    names = {0: "[CLS]"} | dict.fromkeys(row["separators"], "[SEP]")
    return [names.get(position, str(position)) for position in range(row["length"])]


def import_folder(db: Database, folder: Path) -> list[Imported]:
    """Import the attention maps in a folder, and the labels in its files labels-*.jsonl. Data that are already stored
    are skipped."""
    db.person.must("admin", "import labels")
    if not (folder / "maps.npz").is_file():
        return []
    store_maps(db, read_maps(folder))
    return [import_labels(db, file) for file in sorted(folder.glob("labels-*.jsonl"))]


def write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows to a JSON Lines file atomically. Raises InputError if the file cannot be written."""
    write_whole(file, "".join(as_line(row) for row in rows))
