"""The record that ships: `python -m data.recipes.record FROM_REPORT ...` makes data/record from a report's database.

FROM_REPORT is the database that `python -m core reproduce` left (data/atlas.duckdb of the folder it ran in); those that
other studies left may stand beside it. Every run in them goes into the record, the newest of the same study,
checkpoint, task and options; paths are written from the project's folder, and a path of anywhere else is refused.
"""

import argparse
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core import config
from core.errors import InputError
from core.store import jobs, runs
from core.store.database import Database
from core.store.rows import to_json
from core.store.shipped import ABOUT, ROWS, RUNS
from core.writing import write_whole

SAME = ["study", "checkpoint", "task", "options"]
ELSEWHERE = re.compile(r'"(/(?!/)[\w.-]+/[^"]*|[A-Za-z]:\\\\[^"]*)"')  # a path from a machine's root


def made(databases: Sequence[Path], out: Path, note: str, *, add: bool = False) -> dict[str, int]:
    """Write the record of all databases into `out`; returns how many runs and rows it has.

    add: the runs of the record in `out` stay, save those that a database has anew. Errors: InputError.
    """
    every_run, every_row = zip(*(_of_database(database) for database in databases), strict=True)
    known, rows = pd.concat(every_run, ignore_index=True), pd.concat(every_row, ignore_index=True)
    if add:
        known, rows = _beside(out, known, rows)
    out.mkdir(parents=True, exist_ok=True)
    _write(known, out / RUNS)
    _write(rows, out / ROWS)
    write_whole(out / ABOUT, json.dumps(_about(known, note), indent=1, ensure_ascii=False) + "\n")
    return {"runs": len(known), "rows": len(rows)}


def _of_database(database: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs of a database that go into the record, and their rows."""
    root = f"{database.expanduser().resolve().parents[1]}/"
    with Database(database) as db:
        known = runs.runs(db).drop_duplicates(SAME)
        known = known[known["rows"] > 0]
        work = pd.DataFrame([_work(db, run) for run in known["run"]], columns=["size", "seconds"], index=known.index)
        bodies = [(run, k, to_json(row)) for run in known["run"] for k, row in enumerate(runs.run_rows(db, run))]
    known = pd.concat([known, work], axis=1)
    for name in known.select_dtypes(include=["object", "string"]):
        known[name] = [_moved(text, root) for text in known[name]]
    return known, pd.DataFrame(
        [(run, k, _moved(body, root)) for run, k, body in bodies], columns=["run", "position", "body"]
    )


def _beside(out: Path, known: pd.DataFrame, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """These runs and rows, and those of the record in `out` of which there is no newer one."""
    runs_of_both = pd.concat([known, pd.read_parquet(out / RUNS)], ignore_index=True)
    outdated = runs_of_both.duplicated(SAME) & (runs_of_both.index >= len(known))
    runs_of_both = runs_of_both[~outdated]
    there = pd.read_parquet(out / ROWS)
    rows_of_both = pd.concat([rows, there[~there["run"].isin(rows["run"])]], ignore_index=True)  # a run once
    return runs_of_both, rows_of_both[rows_of_both["run"].isin(runs_of_both["run"])]


def _moved(text: object, root: str) -> object:
    """Text without the folder that the report ran in. Errors: InputError where another path is left."""
    if not isinstance(text, str):
        return text
    text = text.replace(root, "")
    if left := ELSEWHERE.search(text if text.startswith(("{", "[")) else f'"{text}"'):
        raise InputError(
            f"A record names no folder of a machine; {left[1][:120]} is one: run the report from the project's folder, "
            "with its checkpoints and data inside."
        )
    return text


def _work(db: Database, run: str) -> tuple[int | None, float | None]:
    """How much work a run's units were, and the seconds they took; None where its job is gone."""
    jobs_of_run = db.read("SELECT job FROM job WHERE run = ? LIMIT 1", [run])
    if jobs_of_run.empty:
        return None, None
    done = jobs.progress(db, str(jobs_of_run["job"][0]))
    return int(done["size_done"]), float(done["seconds"])


def _write(frame: pd.DataFrame, file: Path) -> None:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), file, compression="zstd", row_group_size=5_000)


def _about(known: pd.DataFrame, note: str) -> dict[str, object]:
    newest = known.sort_values("created").iloc[-1]
    return {
        "made": f"{datetime.now(UTC):%Y-%m-%d}",
        "code_version": newest["code_version"],
        "studies": sorted(set(known["study"])),
        "note": note,
    }


def main() -> None:
    """Make the record that ships."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", type=Path, nargs="+", metavar="FROM_REPORT")
    parser.add_argument("--out", type=Path, default=config.RECORD)
    parser.add_argument("--add", action="store_true", help="keep the runs of the record that are not measured anew")
    parser.add_argument("--note", default="", help="what a reader must know of these numbers")
    asked = parser.parse_args()
    counts = made(asked.databases, asked.out, asked.note, add=asked.add)
    print(f"{counts['runs']} runs with {counts['rows']} rows in {asked.out}")


if __name__ == "__main__":
    main()
