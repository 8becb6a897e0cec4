"""The bundled record: results measured on the bundled checkpoints, read together with the user's database.

`python -m data.recipes.record` makes it from the database of a report: two Parquet files and a note on their origin. It
is read-only here, and optional. Studies of probes and subnetworks that it lacks have bundled examples
(`data.recipes.example_probes`).
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from .. import config
from ..errors import InputError, StoreError
from ..reading import read_text
from ..study_names import current_name
from .rows import Row, from_json

if TYPE_CHECKING:
    import pandas as pd

LARGEST_TEXT = 16 << 20  # bytes of the record's note
NEEDED = ("run", "study", "options", "row_ids", "created", "code_version")  # columns of its runs
RUNS, ROWS, ABOUT = "run.parquet", "row.parquet", "about.json"
FORM = 1  # format of the record's tables; other formats are not read
EXAMPLES = config.DATA / "examples" / "probes.json"


def about() -> Row | None:
    """Return a description of the bundled results, such as date and code version; None if there are no bundled
    results."""
    file = config.RECORD / ABOUT
    if not file.is_file():
        return None
    with _reading(file):
        return dict(json.loads(read_text(file, most=LARGEST_TEXT)))


def runs(study: str | None = None) -> "pd.DataFrame":
    """Return a data frame of the bundled runs, newest first. Runs that pages show by default precede all other runs.

    Columns as in `core.store.runs.runs`, with the duration of the units (`seconds`) and their `size`. A study that the
    record lacks has its example, if there is one.
    """
    import pandas as pd  # imported here because it takes 0.4 s at start

    table = _whole(config.RECORD)
    if study is None:
        return table
    mine = table[table["study"] == current_name(study)]
    example = _examples().get(current_name(study)) if mine.empty else None
    return mine if example is None else pd.DataFrame([example[0]])


def one_run(run: str) -> Row | None:
    """Return a bundled run, with its options and example IDs as JSON text; None if the ID is unknown."""
    if example := _example(run):
        return example[0]
    table = _whole(config.RECORD)
    mine = table[table["run"] == run]
    return None if mine.empty else {str(name): value for name, value in mine.iloc[0].items()}


def run_rows(run: str) -> list[Row]:
    """Return the result rows of a bundled run, in order. The result is empty if the ID is unknown."""
    if example := _example(run):
        return example[1]
    if one_run(run) is None:
        return []
    file = config.RECORD / ROWS
    with _reading(file):
        rows = _rows(file, file.stat().st_mtime_ns).get(run)
        bodies = rows.sort_by("position")["body"].to_pylist() if rows else []
        return [dict(row) for row in from_json(f"[{','.join(bodies)}]")]


@lru_cache(maxsize=1)
def _rows(file: Path, changed: int) -> dict[str, pa.Table]:
    """Return all rows by run, 30 MB of text; the rows of a run are contiguous in the file."""
    table = pq.read_table(file, columns=["run", "position", "body"])
    runs = table["run"].to_pylist()
    starts = [i for i, run in enumerate(runs) if i == 0 or run != runs[i - 1]]
    parts: dict[str, list[pa.Table]] = {}
    for start, end in zip(starts, [*starts[1:], len(runs)], strict=True):
        parts.setdefault(runs[start], []).append(table.slice(start, end - start))
    return {run: pa.concat_tables(those) for run, those in parts.items()}


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Raise a StoreError with one message for a damaged or altered file of the record."""
    try:
        yield
    except (
        InputError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        pa.ArrowException,
    ) as error:
        raise StoreError(
            f"The bundled results must be readable; their file {file.name} is damaged. Get the folder of bundled "
            "results from the repository again, or set ATLAS_RECORD to an empty folder."
        ) from error


def _whole(folder: Path) -> "pd.DataFrame":
    """Return the checked runs. Raises StoreError for a damaged record or another format."""
    known = about()
    if known is not None:
        with _reading(folder / ABOUT):
            hashes = tuple(dict(known.get("sha256") or {}).items())
        _as_made(folder, hashes, json.dumps(known.get("form", FORM)), *map(_changed, _tables(folder)))
    return _runs(folder)


@lru_cache(maxsize=4)
def _as_made(folder: Path, hashes: tuple[tuple[str, str], ...], form: str, *changed: int) -> None:
    """Compare tables with the recorded hashes, once for each state (`changed`: times)."""
    if form != str(FORM):
        raise StoreError(
            f"The bundled results must have format {FORM}; got format {form}. Get the folder of bundled results that "
            "belongs to this version, or set ATLAS_RECORD to an empty folder."
        )
    for file in _tables(folder):
        told = dict(hashes).get(file.name)
        if not file.is_file():
            raise StoreError(
                f"The bundled results must be complete; their file {file.name} is missing. Get the folder of bundled "
                "results from the repository again, or set ATLAS_RECORD to an empty folder."
            )
        if told is not None and hash_of(file) != told:
            raise StoreError(
                f"The bundled results must be unchanged; the SHA-256 of their file {file.name} differs. Get the folder "
                "of bundled results from the repository again, or set ATLAS_RECORD to an empty folder."
            )


def hash_of(file: Path) -> str:
    """Return the SHA-256 hash of a file as hex digits. It is recomputed only if the file has changed."""
    return _hash(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _hash(file: Path, changed: int) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def version() -> str:
    """Return a cache key that changes whenever the bundled results change."""
    return " ".join([str(config.RECORD), *(str(_changed(file)) for file in _tables(config.RECORD))])


def _tables(folder: Path) -> tuple[Path, Path]:
    return folder / RUNS, folder / ROWS


def _changed(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else 0


@lru_cache(maxsize=4)
def _runs(folder: Path) -> "pd.DataFrame":
    import pandas as pd  # imported here because it takes 0.4 s at start

    if not (folder / RUNS).is_file():
        return pd.DataFrame(columns=["run", "study"])
    with _reading(folder / RUNS):
        table = pq.read_table(folder / RUNS).to_pandas()
        if lacking := [name for name in NEEDED if name not in table]:
            raise KeyError(lacking[0])
        return table.assign(study=table["study"].map(current_name))


def _example(run: str) -> tuple[Row, list[Row]] | None:
    return next((example for example in _examples().values() if example[0]["run"] == run), None)


@lru_cache(maxsize=1)
def _examples() -> dict[str, tuple[Row, list[Row]]]:
    """Return the examples by study: run and rows."""
    if not EXAMPLES.is_file():
        return {}
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    import pandas as pd  # imported here because it takes 0.4 s at start

    unknown = dict.fromkeys(("weights_hash", "split", "row_ids", "dtype", "operator", "device", "size", "seconds"))
    known = {}
    for study, example in examples.items():
        options = example["options"]
        tasks = options.get("tasks") or [options.get("task")]
        run = unknown | {
            "run": f"example-{study}",
            "study": study,
            "title": f"{study} of {options['checkpoint']}",
            "checkpoint": options["checkpoint"],
            "task": ", ".join(task for task in tasks if task) or None,
            "seed": options.get("seed"),
            "options": json.dumps(options),
            "code_version": example["code_version"],
            "created": pd.Timestamp(example["created"]).tz_localize(None),
            "rows": len(example["rows"]),
        }
        known[study] = (run, example["rows"])
    return known
