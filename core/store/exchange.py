"""Export and import of the database as Parquet, and of single runs as JSON Lines.

DuckDB's COPY is off with external access, so tables are written and read through Arrow.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..attention import PARTS
from ..config import code_version, command_line
from ..errors import InputError, StoreError
from ..reading import lines_of, open_file, read_text
from ..study_names import CURRENT_NAMES
from ..writing import replacing, write_whole
from . import migrations
from .bodies import BODIES, misfit, parsed
from .database import Database
from .findings import checked_maps, checked_picture
from .label_checks import HEADS, check_class, check_name, checked_event, checked_map
from .labels import CLASS_CHANGE_KINDS, known_names
from .rows import Row, from_json, insert_arrow, plain, quoted, to_json
from .runs import Provenance, one_run, record_run, run_rows, store_rows

if TYPE_CHECKING:
    import pandas as pd


# ---------------------------------------------------------------- checking imported rows


NAMES = frozenset({
    "annotator", "person", "pseudonym", "owner", "class_set", "class", "into_class", "map_id", "event", "undoes",
    "batch", "project", "purpose", "kind", "classifier", "run", "job", "finding", "release", "part", "supersedes",
    "way", "suggestion", "queue_order", "scale",
})  # fmt: skip
LAST_ORDINAL = 2**52  # leaves room for later rows
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
    """Raise InputError if imported rows have duplicate columns, or columns that do not exist in the table."""
    names = rows.schema.names
    strange = [name for name in names if name not in columns] or [name for name in names if names.count(name) > 1]
    if strange:
        raise InputError(
            "An exported table may have each column of the same table in the database once, and no others; the column "
            f"{strange[0][:60]!r} of {table} is unknown or duplicated. Export the data again."
        )


def check_rows(table: str, rows: pa.Table) -> None:
    """Raise InputError if an imported row for a database table is invalid. The message names the table and the
    reason."""
    check_event = _ROWS.get(table)
    for name in rows.schema.names:
        column = rows.column(name)
        if name in NAMES:
            for text in column.unique().to_pylist():
                check_name(name, text, f"the table {table}")
        elif (table, name) in BODIES:
            for text in column.to_pylist():
                if why := misfit(table, name, text):
                    raise InputError(f"{why}. Export the data again.")
                if text is not None and (table, name) == ("study_row", "body"):
                    check_fields(json.loads(text), f"{table}.{name}")
                if text is not None and (table, name) == ("finding", "numbers"):
                    for number in json.loads(text):
                        check_fields(number, f"{table}.{name}")
        elif name == "ordinal":
            _check_whole(table, name, column, 1, LAST_ORDINAL)
        elif name in ("layer", "head"):
            _check_whole(table, name, column, 0, HEADS)
    if check_event:
        for row in rows.to_pylist():
            check_event(row)


def check_scores(rows: list[Row]) -> None:
    """Raise InputError if an imported head score has an impossible layer or head index."""
    for row in rows:
        check_fields(row, "a row of the run")
        for name in ("layer", "head"):
            value = row.get(name)
            if isinstance(value, (int, float)) and not 0 <= value < HEADS:
                raise InputError(f"A {name} must be from 0 to {HEADS - 1}; got {value!r}. Correct this row.")


def check_whole(cursor: duckdb.DuckDBPyConnection) -> None:
    """Raise InputError if imported tables are inconsistent, for example if a label refers to a missing attention
    map."""
    for table, column, home in _BELONGS:
        lost = cursor.execute(
            f"SELECT {quoted(column)} FROM {quoted(table)} "  # noqa: S608 - quoted
            f"WHERE {quoted(column)} NOT IN (SELECT {quoted(column)} FROM {quoted(home)}) LIMIT 1"
        ).fetchall()
        if lost:
            raise InputError(
                f"Every {column} in the table {table} must exist in the table {home}; {str(lost[0][0])[:60]!r} does "
                "not. Export the data again."
            )
    pairs = cursor.execute("SELECT DISTINCT class_set, class FROM standing WHERE kind = 'label'").fetchall()
    names = known_names(cursor, {class_set for class_set, _ in pairs})
    for class_set, name in sorted(pairs):
        if name not in names.get(class_set, ()):
            raise InputError(
                f"The class of a label must exist in its class set; {name[:60]!r} does not exist in "
                f"{class_set[:60]!r}. Retract its labels with `labels retire` in the app that exported them, and "
                "export again."
            )


def _check_map(row: Row) -> None:
    subject = f"the map {str(row.get('map_id'))[:40]!r}"
    try:
        lists = {name: parsed(row.get(name)) for name in ("tokens", "separators")}
    except ValueError as error:
        raise InputError(
            f"The tokens and separators of {subject} must be JSON; they cannot be read as JSON. Export the data again."
        ) from error
    checked_map(row | lists)


def _check_label_event(row: Row) -> None:
    if checked_event(row)["event"] != row["event"]:
        raise InputError(
            "The ID of a label event must consist of its batch and sequence number, such as tab-1:7; got "
            f"{str(row['event'])[:60]!r}. Export the data again."
        )


def _check_class_event(row: Row) -> None:
    shown = {name: row.get(name) for name in ("into_class", "title", "eye", "colour", "key")}
    check_class(str(row.get("class_set")), str(row.get("class")), **shown)
    if row.get("kind") not in CLASS_CHANGE_KINDS:
        raise InputError(
            f"The kind of a class change must be one of {', '.join(CLASS_CHANGE_KINDS)}; got "
            f"{str(row.get('kind'))[:40]!r}. Export the data again."
        )


def _check_part(row: Row) -> None:
    if row.get("part") not in PARTS:
        raise InputError(
            f"The column “part” of the table part_score must be one of {', '.join(PARTS)}; got "
            f"{str(row.get('part'))[:40]!r}. Export the data again."
        )


def _check_finding(row: Row) -> None:
    for picture in json.loads(row.get("pictures") or "[]"):
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


NUMERIC = frozenset({"value", "low", "high", "baseline", "p", "q"})  # fields of study rows and of numbers in findings
WHOLE = frozenset({"layer", "head"})
TEXTS = frozenset({"kind", "statistic", "feature", "checkpoint", "task", "name", "what"})


def check_fields(row: Any, subject: str) -> None:
    """Raise InputError if a field of an imported head score or finding number has the wrong type."""
    if not isinstance(row, dict):
        raise InputError(
            f"A row of an export must be a JSON object; got {str(row)[:40]!r} in {subject}. Export the data again."
        )
    if not {"statistic", "layer", "head", "value"} <= row.keys() and "what" not in row:
        return  # neither a head score nor a number of a finding: other rows use these names with other types
    for name, value in row.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = (
            is_number if name in NUMERIC else
            is_number and float(value).is_integer() if name in WHOLE else
            isinstance(value, str) if name in TEXTS else True
        )  # fmt: skip
        if value is not None and not fits:
            wanted = "text" if name in TEXTS else "a whole number" if name in WHOLE else "a number"
            raise InputError(
                f"The field {name} must be {wanted}; got {str(value)[:40]!r} in {subject}. Export the data again."
            )


def _check_whole(table: str, name: str, column: pa.ChunkedArray, least: int, most: int) -> None:
    if not pa.types.is_integer(column.type):
        raise InputError(
            f"The column {table}.{name} must contain whole numbers; got {column.type}. Export the data again."
        )
    numbers = np.asarray(column.drop_null())
    if len(numbers) and not (numbers.min() >= least and numbers.max() < most):
        raise InputError(
            f"The numbers in the column {table}.{name} must be from {least} to {most - 1}; got "
            f"{numbers.min() if numbers.min() < least else numbers.max()}. Export the data again."
        )


MANIFEST = "atlas.json"
BATCH = 10_000  # rows of a table in memory at once
LONGEST_RUN = 256 * 2**20  # bytes of a run file; the largest study of the papers takes 20 MB
RUN_FORMAT = 1
KEY_BYTES = 32
IMPORTED = " · imported, not measured here"  # appended to the description of a finding


def tables(db: Database) -> list[str]:
    """Return the names of all database tables that an export contains."""
    listed = db.read("SELECT table_name AS name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name")
    return [name for name in listed["name"] if name not in ("migration", "store_id")]


def export_all(db: Database, folder: str | Path) -> dict[str, int]:
    """Export all database tables to Parquet files in an empty folder, and return the number of rows in each table.

    Raises InputError if the folder is not empty, and StoreError if it cannot be written.
    """
    folder = Path(folder).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"The folder of an export must be new or empty; got {folder}. Choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = tables(db)
        with db.snapshot() as cursor:
            counts = {name: _write_table(cursor, name, folder / f"{name}.parquet") for name in names}
        manifest = {
            "tables": counts,
            "migrations": [step.number for step in migrations.known()],
            "code_version": code_version(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_whole(folder / MANIFEST, json.dumps(manifest, indent=1), StoreError)
    except OSError as error:
        raise StoreError(
            f"The folder of an export must be writable; {folder} cannot be written to ({error.strerror or error}). "
            "Free space there, or choose another folder."
        ) from error
    return counts


def _write_table(cursor: duckdb.DuckDBPyConnection, name: str, file: Path) -> int:
    reader = cursor.sql(f"SELECT * FROM {quoted(name)}").to_arrow_reader(BATCH)  # noqa: S608 - quoted
    count = 0
    with (
        reader,  # closed after an error as well: an open reader would keep the database open
        replacing(file, StoreError) as part,
        pq.ParquetWriter(part, reader.schema, compression="zstd") as writer,
    ):
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


class CheckRun(Protocol):
    """A function that raises InputError if an imported run does not fit its study. `whole` is True if this program
    version wrote the run."""

    def __call__(self, study: str, options: Row, rows: list[Row], *, whole: bool = True) -> None: ...


def import_all(db: Database, folder: str | Path, *, check_run: CheckRun | None = None) -> dict[str, int]:
    """Import an exported database into an empty database as one transaction, and return the number of rows in each
    table.

    Runs, findings and classifiers are marked as imported. Partial results of unfinished jobs are left out, so that a
    resumed job measures everything here. `check_run` is called with every run. Raises InputError if the folder has no
    export, the export is from newer code, or the database is not empty.
    """
    db.person.must("admin", "import an export")
    folder = Path(folder).expanduser()
    names = tables(db)
    try:
        manifest = json.loads(read_text(folder / MANIFEST))
        unknown = set(manifest["migrations"]) - {step.number for step in migrations.known()}
        exported = list(manifest["tables"])
    except (InputError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"An export must be a folder with {MANIFEST} and Parquet files; got {folder}. Give the folder that "
            f"`{command_line('export')}` wrote."
        ) from error
    if unknown or not all(isinstance(name, str) and name in names for name in exported):
        raise InputError(
            f"An export must come from this version of the program or an earlier one; {folder} comes from a newer "
            "version. Update the program to read this export."
        )
    with db.write() as cursor:
        full = [name for name in names if cursor.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchall()]  # noqa: S608
        if full:
            raise InputError(
                f"An export must be imported into an empty database; the table {full[0]} of {db.path} has rows. "
                "Choose a new file with --db or ATLAS_DB."
            )
        counts = {name: _read_table(cursor, name, folder / f"{name}.parquet") for name in exported}
        for name in ("run", "hypothesis_event"):  # an import may contain invented results
            cursor.execute(f"UPDATE {quoted(name)} SET imported = now()::TIMESTAMP WHERE imported IS NULL")  # noqa: S608
        for table in ("run", "job"):  # an earlier version exported former names of studies
            for former, name in CURRENT_NAMES.items():
                cursor.execute(f"UPDATE {quoted(table)} SET study = ? WHERE study = ?", [name, former])  # noqa: S608 - quoted
        cursor.execute("UPDATE finding SET about = about || $words WHERE NOT ends_with(about, $words)",
                       {"words": IMPORTED})  # fmt: skip
        cursor.execute("UPDATE classifier SET title = title || $words WHERE NOT ends_with(title, $words)",
                       {"words": IMPORTED})  # fmt: skip
        for name in ("job_row", "job_outcome"):
            cursor.execute(f"DELETE FROM {quoted(name)} WHERE job IN (SELECT job FROM job WHERE state <> 'done')")  # noqa: S608
        check_whole(cursor)
        if check_run is not None:
            known = cursor.execute("SELECT run, study, options, code_version FROM run").fetchall()
            for run, study, options, version in known:
                bodies = cursor.execute("SELECT body FROM study_row WHERE run = ? ORDER BY position", [run]).fetchall()
                rows = [from_json(body) for (body,) in bodies]
                check_run(study, from_json(options) or {}, rows, whole=version == code_version())
            for study, asked, options in cursor.execute("SELECT study, asked, options FROM job").fetchall():
                for given in (asked, options):
                    check_run(study, from_json(given), [])
        _advance_sequences(cursor)
    return counts


def _read_table(cursor: duckdb.DuckDBPyConnection, name: str, file: Path) -> int:
    try:
        count = 0
        with open_file(file) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(BATCH):
                rows = pa.Table.from_batches([batch])
                listed = cursor.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = ?", [name])
                check_columns(name, rows, [column for (column,) in listed.fetchall()])
                check_rows(name, rows)
                count += insert_arrow(cursor, name, rows)
    except (OSError, pa.ArrowException, duckdb.Error, ValueError, OverflowError) as error:
        raise InputError(
            f"Every table of an export must be a complete Parquet file; {file} cannot be read as the table {name} "
            f"({str(error).splitlines()[0][:120]}). Export the data again."
        ) from error
    return count


def _advance_sequences(cursor: duckdb.DuckDBPyConnection) -> None:
    """Advance each sequence past the imported numbers."""
    sequences = cursor.execute(
        """SELECT table_name, column_name, regexp_extract(column_default, 'nextval\\(''(\\w+)''', 1)
           FROM duckdb_columns() WHERE column_default LIKE 'nextval%'"""
    ).fetchall()
    past: dict[str, int] = {}  # several tables may share a sequence
    for table, column, sequence in sequences:
        rows = cursor.execute(
            f"SELECT coalesce(max({quoted(column)}), 0) FROM {quoted(table)}"  # noqa: S608 - quoted
        ).fetchall()
        past[sequence] = max(past.get(sequence, 0), rows[0][0])
    for sequence, number in past.items():
        if number > 0:
            cursor.execute("SELECT setval(?, ?)", [sequence, number]).fetchall()


# ---------------------------------------------------------------- one run


def write_run(
    file: Path, study: str, title: str, provenance: Row, rows: Sequence[Row], *, database: Path | None = None
) -> Path:
    """Write the results of a run to a JSON Lines file that `import_run` can read, and return the path of the file.

    With `database`, the run is signed with its key, so that this database imports it as measured here.
    """
    heading = {"atlas_run": RUN_FORMAT, "study": study, "title": title, "provenance": provenance}
    if database is not None:
        heading["seal"] = _seal(heading, rows, _key(database, make=True))
    write_whole(file, "".join(to_json(row) + "\n" for row in [heading, *rows]), StoreError)
    return file


def _key(database: Path, *, make: bool = False) -> bytes:
    """Return the key that signs runs for a database, from a file that only its owner can read; b"" if missing."""
    file = database.with_name(database.name + ".key")
    try:
        if make and not file.exists():
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(secrets.token_bytes(KEY_BYTES))
        return file.read_bytes() if file.exists() else b""
    except OSError:  # read-only folder: the run will be marked as imported
        return b""


def _seal(heading: Row, rows: Sequence[Row], key: bytes) -> str:
    """Return the HMAC-SHA-256 of a run; "" without a key."""
    told = {name: value for name, value in heading.items() if name != "seal"}
    text = json.dumps(plain([told, *rows]), sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest() if len(key) == KEY_BYTES else ""


def export_run(db: Database, run: str, file: Path, *, database: Path | None = None) -> Path:
    """Export a stored run to a JSON Lines file, and return the path of the file. If `database` is given, sign the file
    with the key of this database."""
    known = one_run(db, run)
    heading = {name: value for name, value in known.items() if name not in {"study", "title"}}
    return write_run(file, known["study"], known["title"], heading, run_rows(db, run), database=database)


def read_run(file: Path) -> tuple[Row, list[Row]]:
    """Return the header and the result rows of an exported run file. Raises InputError if the file is unreadable."""
    try:
        if file.stat().st_size > LONGEST_RUN:
            raise InputError(
                f"A file with the results of a run must not be larger than {LONGEST_RUN >> 20} MB; {file.name} is "
                "larger. Import a smaller file."
            )
        lines = lines_of(read_text(file, most=LONGEST_RUN))
        heading, *rows = [parsed(line) for line in lines]
        whole = heading["atlas_run"] == RUN_FORMAT
        if whole and not all(isinstance(row, dict) for row in rows):
            raise TypeError(file.name)
        heading["study"], heading["title"], heading["provenance"]["run"], heading["provenance"]["options"]
    except OSError as error:
        raise InputError(
            f"A run file must be readable; {file} is not ({error.strerror}). Check its path and permissions."
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"A file with the results of a run must be JSON Lines with a header in its first line; {file.name} has "
            "another format. Import an unedited file that this program wrote."
        ) from error
    if not whole:
        raise InputError(
            f"A run file must have the format {RUN_FORMAT}; {file.name} has another format. If a newer version of this "
            "program wrote the file, update this program; otherwise export the run again."
        )
    return heading, rows


def import_run(db: Database, file: Path, *, check_run: CheckRun | None = None) -> str:
    """Import a run from a file unless the run is stored already, and return the ID of the run.

    A run that is not signed with the key of this database is marked as imported. `check_run`: as in `import_all`.
    """
    db.person.must("admin", "import a run")
    heading, rows = read_run(file)
    check_scores(rows)
    if check_run is not None and isinstance(heading["provenance"]["options"], dict):
        is_of_this_version = heading["provenance"].get("code_version") == code_version()
        check_run(str(heading["study"]), heading["provenance"]["options"], rows, whole=is_of_this_version)
    seal = _seal(heading, rows, _key(db.path))
    is_ours = bool(seal) and hmac.compare_digest(str(heading.get("seal")).encode(), seal.encode())
    said: dict[str, Any] = heading["provenance"]
    run = str(said["run"])
    if not db.read("SELECT 1 AS one FROM run WHERE run = ?", [run]).empty:
        return run
    try:
        provenance = Provenance(code_version="unknown").with_changes(said)
        with db.write():
            record_run(db, str(heading["study"]), said["options"], provenance, title=str(heading["title"]), run=run,
                       imported=not is_ours)  # fmt: skip
            store_rows(db, run, rows)
    except (duckdb.Error, pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"A file with the results of a run must have values of the right types; {file.name} has other values "
            f"({str(error)[:100]}). Import an unedited file that this program wrote."
        ) from error
    return run


def runs_folder(db_path: Path) -> Path:
    """Return the folder in which commands save runs while an app has the database locked."""
    return db_path.parent / "runs"


def waiting_runs(db: Database) -> "pd.DataFrame":
    """Return a data frame of the run files next to the database that have not been imported yet, oldest first."""
    import pandas as pd  # imported here because it takes 0.4 s at start

    waiting = []
    for file in sorted(runs_folder(db.path).glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
        try:
            heading, rows = read_run(file)
        except InputError as error:
            waiting.append({"file": str(file), "study": "", "title": file.name, "rows": 0, "error": str(error)})
            continue
        stored = db.read("SELECT 1 AS one FROM run WHERE run = ?", [str(heading["provenance"]["run"])])
        if stored.empty:
            waiting.append(
                {
                    "file": str(file),
                    "study": str(heading["study"]),
                    "title": str(heading["title"]),
                    "rows": len(rows),
                    "error": "",
                }
            )
    return pd.DataFrame(waiting, columns=["file", "study", "title", "rows", "error"])
