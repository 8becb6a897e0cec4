"""The record that ships: `python -m data.recipes.record FROM_REPORT ...` makes data/record from a report's database.

FROM_REPORT is the database that `python -m core reproduce` left (data/atlas.duckdb of the folder it ran in); those that
other studies left may stand beside it. Every run in them goes into the record, the newest of the same study,
checkpoint, task and options; paths are written from the project's folder, and a path of anywhere else is refused. Of
runs on rows or sentences from a folder (GLUE's, FrameNet's) no text goes into it.
"""

import argparse
import base64
import binascii
import json
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from core import config
from core.errors import InputError
from core.report import recorded_report, report
from core.report.plan import PART_STEPS
from core.report.records import rows_of
from core.store import jobs, runs
from core.store.database import Database
from core.store.rows import Row, from_json, to_json
from core.store.shipped_record import ABOUT, FORM, ROWS, RUNS, hash_of
from core.writing import write_whole

SAME = ["study", "checkpoint", "task", "options"]
TEXTS: dict[str, object] = {"text": "", "pair": "", "frame": None, "target": "", "elements": []}  # of rows not ours
LEVEL = 19  # of compression: a fifth smaller than the usual 3, in half a minute
FURTHER_SEEDS = r"-pretrained-s[1-9]\d*-"  # in the folder of a checkpoint that a run is of
OTHER_ROWS = r'"split": "(?:train|unseen)"'  # of a run that looks at more rows for one sentence of the report
LARGE = (
    "features",
    "budget",
)  # studies of thousands of rows a run, whose numbers keep DIGITS digits: float32 has no more
DIGITS = 7
ELSEWHERE = re.compile(r'"(/(?!/)[\w.-]+/[^"]*|[A-Za-z]:\\\\[^"]*)"')  # a path from a machine's root


def made(databases: Sequence[Path], out: Path, note: str, *, add: bool = False) -> dict[str, int]:
    """Write the record of all databases into `out`; returns how many runs and rows it has.

    add: the runs of the record in `out` stay, save those that a database has anew. Errors: InputError.
    """
    every_run, every_row = zip(*(_of_database(database) for database in databases), strict=True)
    known = _newest(pd.concat(every_run, ignore_index=True))
    rows = pd.concat(every_row, ignore_index=True).drop_duplicates(["run", "position"])
    rows = rows[rows["run"].isin(known["run"])]
    if add:
        known, rows = _beside(out, known, rows)
    return _stored(known, rows, out, note)


def joined(out: Path, checkpoint: str, note: str) -> dict[str, int]:
    """Put one report in place of all those that the record in `out` has of a checkpoint: their steps, today's rules.

    Errors: InputError where it has none.
    """
    config.RECORD = out
    records = report.records_of(recorded_report.recorded_evidence([checkpoint]))
    known, rows = pd.read_parquet(out / RUNS), pd.read_parquet(out / ROWS)
    parts = known[(known["study"] == recorded_report.REPORT) & (known["checkpoint"] == checkpoint)]
    newest = parts.sort_values("created").iloc[-1].to_dict()
    tasks = sorted({step.task for step in records.steps if step.task})
    bodies = [to_json(row) for row in rows_of(records)]
    measured = {step.part for step in records.steps}
    whole = newest | {
        "run": uuid.uuid4().hex, "title": f"Report on {checkpoint}", "task": ", ".join(tasks), "rows": len(bodies),
        "options": to_json(
            from_json(newest["options"]) | {"tasks": tasks, "parts": [part for part in PART_STEPS if part in measured]}
        ),
        "size": parts["size"].sum(), "seconds": parts["seconds"].sum(),
    }  # fmt: skip
    others = ~known["run"].isin(parts["run"])
    known = pd.concat([known[others], pd.DataFrame([whole])], ignore_index=True)
    rows = rows[~rows["run"].isin(parts["run"])]
    mine = pd.DataFrame([(whole["run"], k, body) for k, body in enumerate(bodies)], columns=rows.columns)
    return _stored(known, pd.concat([rows, mine], ignore_index=True), out, note)


def _stored(known: pd.DataFrame, rows: pd.DataFrame, out: Path, note: str) -> dict[str, int]:
    out.mkdir(parents=True, exist_ok=True)
    first = json.loads((out / ABOUT).read_text(encoding="utf-8")).get("first", "") if (out / ABOUT).is_file() else ""
    known = _ordered(known, first)
    large = rows["run"].isin(known["run"][known["study"].isin(LARGE)])
    rows = rows.assign(body=rows["body"].mask(large, rows["body"][large].map(_shortened)))
    _write(known, out / RUNS)
    _write(rows, out / ROWS)
    hashes = {"form": FORM, "sha256": {name: hash_of(out / name) for name in (RUNS, ROWS)}}
    write_whole(out / ABOUT, json.dumps(_about(known, note, first) | hashes, indent=1, ensure_ascii=False) + "\n")
    return {"runs": len(known), "rows": len(rows)}


def _shortened(body: str) -> str:
    """A row with numbers of DIGITS digits."""
    return to_json({
        name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
        for name, value in from_json(body).items()
    })  # fmt: skip


def _ordered(known: pd.DataFrame, first: str) -> pd.DataFrame:
    """Runs as pages open on them: of the checkpoint `first` before the others ("": of any), those of a fine-tuning's
    further seeds after the first seed's, those on other rows than dev after these, the newest first."""
    places = known.assign(
        _other=~known["checkpoint"].fillna("").str.contains(first, regex=False),
        _further=known["options"].str.contains(FURTHER_SEEDS),
        _rows=known["options"].str.contains(OTHER_ROWS),
    ).sort_values(["_other", "_further", "_rows", "created"], ascending=[True, True, True, False], kind="stable")
    return places.drop(columns=["_other", "_further", "_rows"]).reset_index(drop=True)


def _newest(known: pd.DataFrame) -> pd.DataFrame:
    """The newest run of the same study, checkpoint, task and options; a better classifier makes no other options."""
    asked = [
        to_json({k: v for k, v in from_json(text).items() if k not in recorded_report.CLASSIFIERS})
        for text in known["options"]
    ]
    newest = known.assign(options=asked).sort_values("created", ascending=False, kind="stable").drop_duplicates(SAME)
    return known.loc[newest.index].sort_index()


def _of_database(database: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs of a database that go into the record, and their rows."""
    root = f"{database.expanduser().resolve().parents[1]}/"
    with Database(database) as db:
        known = runs.runs(db).drop_duplicates(SAME)
        known = known[known["rows"] > 0]
        work = pd.DataFrame([_work(db, run) for run in known["run"]], columns=["size", "seconds"], index=known.index)
        bodies = [
            (run, k, _row_text(_without_texts(row, options), root))
            for run, options in zip(known["run"], map(from_json, known["options"]), strict=True)
            for k, row in enumerate(runs.run_rows(db, run))
        ]
    known = pd.concat([known, work], axis=1)
    for name in known.select_dtypes(include=["object", "string"]):
        known[name] = [_moved(text, root) for text in known[name]]
    return known, pd.DataFrame(bodies, columns=["run", "position", "body"])


def _without_texts(row: Row, options: Row) -> Row:
    """A row of a run on somebody else's rows without their words: ids, places and numbers are facts."""
    theirs = dict(TEXTS) if options.get("data") or options.get("sentences") else {}
    theirs |= {"note": ""} if options.get("treebank") else {}  # has words of its test part
    return row | {name: none for name, none in theirs.items() if name in row}


def _beside(out: Path, known: pd.DataFrame, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """These runs and rows, and those of the record in `out` of which there is no newer one."""
    runs_of_both = _newest(pd.concat([known, pd.read_parquet(out / RUNS)], ignore_index=True))
    there = pd.read_parquet(out / ROWS)
    rows_of_both = pd.concat([rows, there[~there["run"].isin(rows["run"])]], ignore_index=True)  # a run once
    return runs_of_both, rows_of_both[rows_of_both["run"].isin(runs_of_both["run"])]


def _row_text(row: Row, root: str) -> str:
    """Return a row as JSON without the folder that the report ran in. Raises InputError if another path is left."""
    image = {"levels": row["levels"]} if _has_image(row) else {}
    text = str(_moved(to_json(row | dict.fromkeys(image, "")), root))
    return to_json(from_json(text) | image) if image else text


def _has_image(row: Row) -> bool:
    """Return True if `levels` is an image of `side` x `side` bytes in base64, which may begin as a path does."""
    try:
        return len(base64.b64decode(row.get("levels", ""), validate=True)) == row.get("side", 0) ** 2 > 0
    except (binascii.Error, TypeError, ValueError):
        return False


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
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(
        table, file, compression="zstd", compression_level=LEVEL, row_group_size=10_000, use_dictionary=["run"]
    )  # no two bodies are alike


def _about(known: pd.DataFrame, note: str, first: str) -> dict[str, object]:
    newest = known.sort_values("created").iloc[-1]
    return ({"first": first} if first else {}) | {
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
    parser.add_argument("--join", metavar="CHECKPOINT", help="make one report of all those on this checkpoint")
    parser.add_argument("--note", default="", help="what a reader must know of these numbers")
    asked = parser.parse_args()
    counts = made(asked.databases, asked.out, asked.note, add=asked.add)
    if asked.join:
        counts = joined(asked.out, asked.join, asked.note)
    print(f"{counts['runs']} runs with {counts['rows']} rows in {asked.out}")


if __name__ == "__main__":
    main()
