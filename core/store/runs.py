"""Runs of studies: provenance, options, rows and head scores."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..attention import PARTS
from ..config import code_version
from ..errors import StoreError
from ..study_names import current_name
from . import shipped_record
from .bodies import misfit, sound
from .database import Database
from .findings import findings, unpin
from .rows import Row, from_json, insert, insert_arrow, insert_row, now, quoted, to_json

if TYPE_CHECKING:
    import pandas as pd

# ---------------------------------------------------------------- scores of the atlas


def atlas_rows(
    db: Database, *, checkpoint: str, weights: str | None, task: str | None = None, imported: bool = False
) -> "pd.DataFrame":
    """Return a data frame with the newest scores of all attention heads of a checkpoint, sorted by task.

    Args:
        weights: hash of the checkpoint's current weights; None if they are not available, which selects the weights of
            the newest run, so that scores of different weights never mix.
        task: its scores and those without a task (frames, for example); None for all.
        imported: select scores imported from files instead of those measured here.
    """
    return db.read(
        """SELECT * FROM atlas
           WHERE checkpoint = $checkpoint AND ($task IS NULL OR task IS NULL OR task = $task)
             AND (imported IS NOT NULL) = $imported
             AND CASE WHEN $weights IS NOT NULL THEN weights_hash = $weights
                 ELSE weights_hash IS NOT DISTINCT FROM
                      (SELECT weights_hash FROM atlas WHERE checkpoint = $checkpoint
                       AND (imported IS NOT NULL) = $imported ORDER BY created DESC LIMIT 1) END
           ORDER BY task, score, layer, head""",
        {"checkpoint": checkpoint, "task": task, "weights": weights, "imported": imported},
    )


def other_scores(db: Database, *, checkpoint: str, weights: str | None) -> int:
    """Count the stored head scores of a checkpoint whose weights hash is unknown or differs from `weights`. Returns 0
    if `weights` is None."""
    rows = db.read(
        """SELECT count(*) AS scores FROM atlas
           WHERE checkpoint = $checkpoint AND $weights IS NOT NULL AND weights_hash IS DISTINCT FROM $weights""",
        {"checkpoint": checkpoint, "weights": weights},
    )
    return int(rows["scores"].iloc[0])


def atlas_stamp(db: Database) -> tuple[int, ...]:
    """Return a cache key that changes whenever head scores are stored or deleted."""
    counts = db.read("SELECT count(*), coalesce(max(ordinal), 0), (SELECT count(*) FROM head_score) FROM run")
    return tuple(int(value) for value in counts.iloc[0])


# ---------------------------------------------------------------- deleting results so that they can be restored


RUN_TABLES = ("run", "study_row", "head_score", "part_score")


@dataclass(frozen=True)
class Removed:
    """Deleted database rows that can be restored."""

    title: str
    tables: dict[str, pa.Table] = field(default_factory=dict)


def remove_run(db: Database, run: str) -> Removed:
    """Delete a run and its results, and return the deleted rows so that they can be restored."""
    removed = Removed(str(one_run(db, run)["title"]), {name: _rows(db, name, "run", run) for name in RUN_TABLES})
    delete_runs(db, [run])
    return removed


def remove_finding(db: Database, finding: str) -> Removed:
    """Delete a pinned finding, and return the deleted row so that it can be restored."""
    title = "".join(finding_row.title for finding_row in findings(db, [finding]))
    removed = Removed(title, {"finding": _rows(db, "finding", "finding", finding)})
    unpin(db, finding)
    return removed


def put_back(db: Database, removed: Removed) -> None:
    """Restore a deleted run or finding. Raises RightsError if the user is only a viewer."""
    db.person.must("annotator", "restore a result")
    with db.write() as cursor:
        for name, rows in removed.tables.items():
            insert_arrow(cursor, name, rows)


def _rows(db: Database, table: str, column: str, value: str) -> pa.Table:
    return db.arrow(f"SELECT * FROM {quoted(table)} WHERE {quoted(column)} = ?", [value])  # noqa: S608 - quoted


_ROW = pa.schema([("run", pa.string()), ("position", pa.int32()), ("body", pa.string())])
_SCORE = pa.schema(
    [("run", pa.string()), ("statistic", pa.string()), ("feature", pa.string())]
    + [(name, pa.int32()) for name in ("layer", "head")]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
    + [("n", pa.int64())]
    + [(name, pa.float64()) for name in ("baseline", "p", "q")]
    + [(name, pa.string()) for name in ("checkpoint", "task")]
)
_PART_SCORE = _SCORE.append(pa.field("part", pa.string()))
_RUN = """run, study, title, checkpoint, weights_hash, task, split, row_ids, seed, dtype, operator, device, options,
    code_version, created, imported"""


@dataclass(frozen=True)
class Provenance:
    """The checkpoint, data and code with which a run was computed. `row_ids` lists the IDs of the examples in order."""

    checkpoint: str | None = None
    weights_hash: str | None = None
    task: str | None = None
    split: str | None = None
    row_ids: tuple[Any, ...] | None = None
    seed: int | None = None
    dtype: str | None = None
    operator: str | None = None
    device: str | None = None
    code_version: str = ""

    def __post_init__(self) -> None:
        if not self.code_version:
            object.__setattr__(self, "code_version", code_version())

    def with_changes(self, changes: Mapping[str, Any]) -> "Provenance":
        """Return a copy of this provenance in which some fields are changed. Unknown field names are ignored."""
        provenance = {name: value for name, value in changes.items() if name in self.__dataclass_fields__}
        if isinstance(provenance.get("row_ids"), list):
            provenance["row_ids"] = tuple(provenance["row_ids"])
        return replace(self, **provenance)

    def as_row(self) -> Row:
        row = asdict(self)
        row["row_ids"] = None if self.row_ids is None else list(self.row_ids)
        return row


def record_run(
    db: Database, study: str, options: Mapping[str, Any], provenance: Provenance, *, title: str = "", run: str = "",
    imported: bool = False,
) -> str:  # fmt: skip
    """Store a new run of a study without results, and return its ID."""
    run = run or uuid.uuid4().hex
    moment, row = now(), provenance.as_row()
    row |= {"run": run, "study": current_name(study), "title": title or study, "options": to_json(dict(options))}
    row |= {"row_ids": None if row["row_ids"] is None else to_json(row["row_ids"])}
    row |= {"created": moment, "imported": moment if imported else None}
    with db.write() as cursor:
        insert_row(cursor, "run", row)
    return run


def store_rows(db: Database, run: str, rows: Iterable[Row], *, scores: bool = True) -> None:
    """Store result rows of a run. Rows with the keys statistic, layer, head and value are also stored as head scores,
    unless `scores` is False."""
    rows = list(rows)
    with db.write() as cursor:
        first = cursor.execute("SELECT coalesce(max(position) + 1, 0) FROM study_row WHERE run = ?", [run]).fetchall()
        start = first[0][0]
        bodies = ({"run": run, "position": start + position, "body": to_json(row)} for position, row in enumerate(rows))
        insert(cursor, "study_row", _ROW, bodies)
        of_heads = [row for row in rows if scores and {"statistic", "layer", "head", "value"} <= row.keys()]
        insert(cursor, "head_score", _SCORE, (_score(run, row) for row in of_heads if row.get("part") not in PARTS))
        of_parts = (_score(run, row) | {"part": row["part"]} for row in of_heads if row.get("part") in PARTS)
        insert(cursor, "part_score", _PART_SCORE, of_parts)


def _score(run: str, row: Row) -> Row:
    columns = {name: row.get(name) for name in _SCORE.names if name != "run"}
    feature = columns["feature"]
    of = {"checkpoint": row.get("checkpoint") or row.get("after"), "task": row.get("task")}
    named = {name: None if value is None else str(value) for name, value in of.items()}
    return {**columns, **named, "run": run, "feature": None if feature is None else str(feature)}


def runs(db: Database, study: str | None = None) -> "pd.DataFrame":
    """Return a data frame of the stored runs of a study or, by default, of all studies, newest first."""
    listed = db.read(
        f"""SELECT {_RUN}, coalesce(rows, 0) AS rows,
                   json_type(options) = 'OBJECT' AND coalesce(json_type(row_ids), 'ARRAY') = 'ARRAY' AS fits FROM run
            LEFT JOIN (SELECT run, count(*) AS rows FROM study_row GROUP BY run) USING (run)
            WHERE $study IS NULL OR study = $study ORDER BY ordinal DESC""",  # noqa: S608 - our own column names
        {"study": study and current_name(study)},
    )
    for run in listed[~listed["fits"]].to_dict("records"):
        sound("run", f"the result {run['title'][:80]!r}", {name: run[name] for name in ("options", "row_ids")})
    return listed[listed["fits"]].drop(columns="fits").reset_index(drop=True)


def any_rows(db: Database) -> bool:
    """Return whether the database contains any result rows."""
    return bool(db.rows("SELECT 1 FROM study_row LIMIT 1"))


def known_runs(db: Database, study: str | None) -> "pd.DataFrame":
    """Return a data frame of the runs of a study or, if `study` is None, of all studies. Your own runs come first,
    then bundled runs, then imported runs."""
    import pandas as pd  # imported here because it takes 0.4 s at start

    own_runs = runs(db, study)
    apart = {"yours": own_runs[own_runs["imported"].isna()], "shipped": shipped_record.runs(study),
             "imported": own_runs[own_runs["imported"].notna()]}  # fmt: skip
    both = [table.assign(source=name) for name, table in apart.items() if len(table)]
    return pd.concat(both, ignore_index=True) if both else own_runs.assign(source="yours")


def one_run(db: Database, run: str) -> Row:
    """Return a stored or bundled run with its study, title, options and provenance. Raises StoreError if the ID is
    unknown."""
    import pandas as pd  # imported here because it takes 0.4 s at start

    stored = db.read(f"SELECT {_RUN} FROM run WHERE run = ?", [run])  # noqa: S608 - our own column names
    if stored.empty and (recorded := shipped_record.one_run(run)):
        stored = pd.DataFrame([recorded])
    if stored.empty:
        raise StoreError(f"The run must be stored in the database; got {run!r}. Choose a run from the list of runs.")
    row: Row = {str(name): None if pd.isna(value) else value for name, value in stored.iloc[0].items()}
    for name in ("options", "row_ids"):
        if why := misfit("run", name, row[name]):
            raise StoreError(f"The result {row['title'][:80]!r} cannot be read: {why}. Delete it.")
    return row | {"options": from_json(row["options"]), "row_ids": from_json(row["row_ids"])}


def is_imported(db: Database, run: str) -> bool:
    """Return whether a stored run is marked as imported."""
    return bool(db.rows("SELECT 1 FROM run WHERE run = ? AND imported IS NOT NULL", [run]))


def run_rows(db: Database, run: str) -> list[Row]:
    """Return the result rows of a stored or bundled run, in order."""
    return [from_json(text) for text in row_texts(db, run)] or shipped_record.run_rows(run)


def study_and_title(db: Database, run: str) -> tuple[str, str] | None:
    """Return the study and the title of a stored run; None if the database does not contain the run."""
    about = db.rows("SELECT study, title FROM run WHERE run = ?", [run])
    return about[0] if about else None


def row_texts(db: Database, run: str) -> list[str]:
    """Return the result rows of a stored run as JSON text, in order."""
    bodies = db.rows("SELECT body FROM study_row WHERE run = ? ORDER BY position", [run])
    return [body for (body,) in bodies]


def holder(db: Database, run: str) -> str:
    """Return a cache key for the rows of a run: the database ID for a stored run, or a version of the bundled results
    for a bundled run."""
    own = db.rows("SELECT 1 FROM run WHERE run = ?", [run])
    return db.id if own else shipped_record.version()


def latest_run(db: Database, study: str, **where: str | None) -> str | None:
    """Return the ID of the newest run of a study, ignoring imported runs. Runs are filtered by column values in
    `where`, such as checkpoint="gpt2". Return None if no run matches."""
    listed = runs(db, study)
    listed = listed[listed["imported"].isna()]
    for name, value in where.items():
        listed = listed[listed[name] == value] if value is not None else listed
    return None if listed.empty else str(listed["run"].iloc[0])


def head_scores(
    db: Database,
    *,
    statistic: str | None = None,
    feature: str | None = None,
    task: str | None = None,
    study: str | None = None,
    run: str | None = None,
) -> "pd.DataFrame":
    """Return a data frame of the stored head scores that match all arguments, newest run first. An argument of None
    matches all scores.

    Columns: run study checkpoint task created statistic feature layer head value low high n baseline p q part (encoder,
    decoder or cross for an encoder-decoder, otherwise None).
    """
    return db.read(
        """SELECT run, study, run.checkpoint, run.task, created, every_score.* EXCLUDE (run, checkpoint, task)
           FROM every_score JOIN run USING (run)
           WHERE ($statistic IS NULL OR statistic = $statistic) AND ($feature IS NULL OR feature = $feature)
             AND ($task IS NULL OR run.task = $task)
             AND ($study IS NULL OR study = $study) AND ($run IS NULL OR run = $run)
           ORDER BY ordinal DESC, statistic, feature, part, layer, head""",
        {
            "statistic": statistic,
            "feature": feature,
            "task": task,
            "study": study and current_name(study),
            "run": run,
        },
    )


def delete_runs(db: Database, chosen: Sequence[str]) -> None:
    """Delete stored runs and their results."""
    db.person.must("admin", "delete runs")
    with db.write() as cursor:
        for table in RUN_TABLES:
            cursor.execute(f"DELETE FROM {quoted(table)} WHERE run IN (SELECT unnest(?))", [list(chosen)])  # noqa: S608 - quoted
