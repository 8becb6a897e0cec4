"""Labels as files: one event a row, with the facts of its map and (if wanted) the map's weights.

JSONL (a JSON object a line, weights in base64) and Parquet (weights as bytes) have the same columns, so reading
back what was written gives the same events. A row made by hand needs only map_id, class, class_set and annotator.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InputError
from core.store.database import Database
from core.store.label_checks import EVENT, MAP, checked_event
from core.store.labels import all_events, maps_of, record_events, store_maps
from core.store.rows import Row

ENDINGS = (".jsonl", ".parquet")
_FACTS = [one for one in MAP if one.name not in ("map_id", "stored")]
COLUMNS = pa.schema([*EVENT, *_FACTS])
Classes = Callable[[str, str], Any]  # (class set, class) -> anything; raises InputError for an unknown one


@dataclass(frozen=True)
class Imported:
    """What became of a file's rows. refused: (row number from 1, reason)."""

    rows: int
    new: int
    already: int
    maps: int
    refused: list[tuple[int, str]] = field(default_factory=list)


# ---------------------------------------------------------------- out


def exported(db: Database, class_set: str | None = None, *, weights: bool = True) -> Iterator[Row]:
    """Every event with its map's facts, oldest first; weights (bytes) with the first event of each map only."""
    events = all_events(db, class_set)
    maps = {row["map_id"]: row for row in maps_of(db, list(dict.fromkeys(event["map_id"] for event in events)))}
    told: set[str] = set()
    for event in events:
        facts = {one.name: maps[event["map_id"]][one.name] for one in _FACTS}
        if not weights or event["map_id"] in told:
            facts["weights"] = None
        told.add(event["map_id"])
        yield event | facts


def export_labels(db: Database, file: Path, class_set: str | None = None, *, weights: bool = True) -> int:
    """Write labels to a .jsonl or .parquet file; returns the number of events."""
    rows = list(exported(db, class_set, weights=weights))
    if _ending(file) == ".parquet":
        texts = [row | {name: json.dumps(row[name]) for name in ("tokens", "separators")} for row in rows]
        pq.write_table(pa.Table.from_pylist(texts, schema=COLUMNS), file)
    else:
        file.write_text("".join(as_line(row) for row in rows), encoding="utf-8")
    return len(rows)


def as_line(row: Mapping[str, Any]) -> str:
    """One row as a line of JSONL; absent values are left out."""

    def text(value: Any) -> str:
        return value.isoformat() if isinstance(value, datetime) else base64.b64encode(value).decode()

    return json.dumps({k: v for k, v in row.items() if v is not None}, default=text, ensure_ascii=False) + "\n"


def _ending(file: Path) -> str:
    if file.suffix.lower() not in ENDINGS:
        raise InputError(
            f"Labels are kept in files that end in {' or '.join(ENDINGS)}; {file.name} does not: rename it."
        )
    return file.suffix.lower()


# ---------------------------------------------------------------- in


def import_labels(
    db: Database, file: Path, classes: Classes, *, keep_rest: bool = True, defaults: Mapping[str, Any] | None = None
) -> Imported:
    """Add the labels of a file; a row that cannot be used is reported with its number and the reason.

    keep_rest: take the other rows all the same; otherwise one bad row leaves the store as it was. defaults: values
    for columns that a row leaves out. Importing a file twice changes nothing.
    """
    db.person.must("admin", "import labels")
    batch = "file-" + hashlib.sha256(_bytes(file)).hexdigest()[:16]
    rows, refused, number = [], [], 0
    for number, found in enumerate(_parquet_rows(file) if _ending(file) == ".parquet" else _lines(file), start=1):
        try:
            rows.append((number, _usable(found, dict(defaults or {}), batch, number, classes)))
        except InputError as error:
            refused.append((number, str(error)))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            refused.append((number, f"A row must be JSON in UTF-8; this one cannot be read ({error})."))
    refused += _duplicates(rows)
    bad = {number for number, _ in refused}
    if refused and not keep_rest:
        return Imported(number, 0, 0, 0, sorted(refused))
    return _stored(
        db, [(number, row) for number, row in rows if number not in bad], refused, number, keep_rest=keep_rest
    )


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(
            f"Labels are read from a file; {file} cannot be opened ({error.strerror}): check its name."
        ) from error


def _lines(file: Path) -> Iterator[Any]:
    for line in file.read_bytes().split(b"\n"):
        if line.strip():
            yield line


def _parquet_rows(file: Path) -> list[Row]:
    try:
        rows = pq.read_table(file).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"A file ending in .parquet must be Parquet; {file.name} cannot be read: export it again."
        ) from error
    for row in rows:
        row |= {name: json.loads(row[name]) for name in ("tokens", "separators") if isinstance(row.get(name), str)}
    return rows


def _usable(found: Any, defaults: Row, batch: str, number: int, classes: Classes) -> Row:
    """One row as an event with its map's facts, or an error whose text is the reason."""
    row = json.loads(found.decode("utf-8")) if isinstance(found, bytes) else found
    if not isinstance(row, dict):
        raise InputError("A row must be a JSON object; this one is not.")
    unsaid = {"kind": "label", "batch": batch, "sequence": number}
    if "event" not in row:  # what we exported says itself how it was labelled, or that nobody said
        unsaid["way"] = "file"
    row = unsaid | defaults | {name: value for name, value in row.items() if value is not None}
    for name in ("map_id", "class_set", "annotator"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise InputError(f'A label needs "{name}" as text; this row has {row.get(name)!r}.')
    if row["kind"] == "label":
        classes(row["class_set"], str(row.get("class")))
    if isinstance(row.get("weights"), str):
        try:
            row["weights"] = base64.b64decode(row["weights"], validate=True)
        except binascii.Error as error:
            raise InputError("Weights must be base64 of float16 numbers; these are not.") from error
    checked_event(row)
    return row


def _duplicates(rows: list[tuple[int, Row]]) -> list[tuple[int, str]]:
    """Rows whose event number comes twice in the file, and hand-made rows that label a map twice."""
    seen: dict[Any, int] = {}
    found = []
    for number, row in rows:
        made_here = str(row["batch"]).startswith("file-")
        key = (
            (row["class_set"], row["map_id"], row["annotator"], row.get("pass", 1), row["kind"])
            if made_here
            else (row["batch"], row["sequence"])
        )
        if key in seen:
            found.append((number, f"The same label stands in row {seen[key]} already; keep one of them."))
        seen.setdefault(key, number)
    return found


class _RefusedError(Exception):
    """Rolls the transaction back when nothing may be kept."""


def _stored(
    db: Database, rows: list[tuple[int, Row]], refused: list[tuple[int, str]], total: int, *, keep_rest: bool
) -> Imported:
    new = already = maps = 0
    try:
        with db.write() as cursor:
            maps = _store_their_maps(db, rows, refused)
            refused += _without_maps(cursor, rows, refused)
            bad = {number for number, _ in refused}
            good = [row for number, row in rows if number not in bad]
            if bad and not keep_rest:
                raise _RefusedError
            new = record_events(db, good).new
            already = len(good) - new
    except _RefusedError:
        return Imported(total, 0, 0, 0, sorted(refused))
    return Imported(total, new, already, maps, sorted(refused))


def _without_maps(cursor: Any, rows: list[tuple[int, Row]], refused: list[tuple[int, str]]) -> list[tuple[int, str]]:
    known = {name for (name,) in cursor.execute("SELECT map_id FROM attention_map").fetchall()}
    told = {number for number, _ in refused}
    return [
        (number, f"No stored map is called {row['map_id'][:60]!r}, and this row brings no weights.")
        for number, row in rows
        if row["map_id"] not in known and number not in told
    ]


def _store_their_maps(db: Database, rows: list[tuple[int, Row]], refused: list[tuple[int, str]]) -> int:
    count = 0
    for number, row in rows:
        if row.get("weights") is None:
            continue
        try:
            count += store_maps(
                db,
                [
                    {one.name: row[one.name] for one in (MAP.field("map_id"), *_FACTS) if one.name in row}
                    | {name: row.get(name) for name in ("split", "seed")}
                ],
            )
        except (InputError, KeyError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            refused.append((number, f"The map of this row cannot be kept: {error}"))
    return count


# ---------------------------------------------------------------- a folder of maps with label files beside it


def read_maps(folder: Path) -> list[Row]:
    """Maps of a folder as `data.recipes.sheets` writes it (maps.jsonl, maps.npz), ready for `store_maps`.

    Maps that come without their texts get [CLS], [SEP] and numbered places for tokens.
    """
    import numpy as np

    rows = [json.loads(line) for line in (folder / "maps.jsonl").read_text(encoding="utf-8").splitlines()]
    with np.load(folder / "maps.npz", allow_pickle=False) as weights:
        return [
            {"tokens": _places(row)} | row | {"weights": weights[row["map_id"]].astype("<f2").tobytes()} for row in rows
        ]


def _places(row: Row) -> list[str]:
    """Tokens of a map whose text is not at hand."""
    known = {0: "[CLS]"} | dict.fromkeys(row["separators"], "[SEP]")
    return [known.get(place, str(place)) for place in range(row["length"])]


def import_folder(db: Database, folder: Path, classes: Classes) -> list[Imported]:
    """Maps of a folder and every labels-*.jsonl in it; nothing changes the second time."""
    db.person.must("admin", "import labels")
    if not (folder / "maps.npz").is_file():
        return []
    store_maps(db, read_maps(folder))
    return [import_labels(db, file, classes) for file in sorted(folder.glob("labels-*.jsonl"))]


def write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows as JSONL."""
    file.write_text("".join(as_line(row) for row in rows), encoding="utf-8")
