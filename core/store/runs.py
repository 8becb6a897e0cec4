"""Runs of studies: what was computed, from what, and the rows that came out."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from ..attention import PARTS
from ..config import code_version
from ..errors import StoreError
from . import shipped_record
from .database import Database
from .findings import findings, unpin
from .rows import Row, from_json, insert, marks, quoted, to_json

if TYPE_CHECKING:
    pass


# ---------------------------------------------------------------- the atlas as the store has it


def atlas_rows(
    db: Database, *, checkpoint: str, weights: str | None, task: str | None = None, imported: bool = False
) -> pd.DataFrame:
    """Which head of these weights scored what: one row a head, score and task, from the newest run that measured it.

    Args:
        db: whose view `atlas` is read.
        weights: hash of those that the checkpoint's name leads to now; None where they are not at hand: the weights of
            the newest run then, so that scores of two never mix.
        task: only its scores and those that belong to no task (frames, say); None for all.
        imported: whether those that came in from files, in place of those measured here.

    Returns:
        The columns of the view, by task, score, layer and head.
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
    """How many stored scores of heads of this name are of other weights than these, or do not say of which."""
    rows = db.read(
        """SELECT count(*) AS scores FROM atlas
           WHERE checkpoint = $checkpoint AND $weights IS NOT NULL AND weights_hash IS DISTINCT FROM $weights""",
        {"checkpoint": checkpoint, "weights": weights},
    )
    return int(rows["scores"].iloc[0])


def atlas_stamp(db: Database) -> tuple[int, ...]:
    """How many runs, the newest one's ordinal, how many scores: another triple once scores were stored or deleted."""
    counts = db.read("SELECT count(*), coalesce(max(ordinal), 0), (SELECT count(*) FROM head_score) FROM run")
    return tuple(int(value) for value in counts.iloc[0])


# ----------------------------------------------------------------


# -------------------- Results and findings that are taken away whole, so that they can be put back as they were


RUN_TABLES = ("run", "study_row", "head_score", "part_score")


@dataclass(frozen=True)
class Removed:
    """What was taken away."""

    title: str
    tables: dict[str, pa.Table] = field(default_factory=dict)


def remove_run(db: Database, run: str) -> Removed:
    """Take a stored run away with all its rows. Raises StoreError if unknown; RightsError."""
    removed = Removed(str(one_run(db, run)["title"]), {name: _rows(db, name, "run", run) for name in RUN_TABLES})
    delete_runs(db, [run])
    return removed


def remove_finding(db: Database, finding: str) -> Removed:
    """Take a pinned result away. Raises StoreError if it is gone; RightsError where another pinned it."""
    title = "".join(finding_row.title for finding_row in findings(db, [finding]))
    removed = Removed(title, {"finding": _rows(db, "finding", "finding", finding)})
    unpin(db, finding)
    return removed


def put_back(db: Database, removed: Removed) -> None:
    """Undo the removal. Raises RightsError for a viewer."""
    db.person.must("annotator", "put a result back")
    with db.write() as cursor:
        for name, rows in removed.tables.items():
            cursor.register("removed_rows", rows)
            cursor.execute(f"INSERT INTO {quoted(name)} BY NAME SELECT * FROM removed_rows")  # noqa: S608 - quoted
            cursor.unregister("removed_rows")


def _rows(db: Database, table: str, column: str, value: str) -> pa.Table:
    with db.write() as cursor:  # the reader has no Arrow; nothing is written here
        cursor_rows = cursor.execute(f"SELECT * FROM {quoted(table)} WHERE {quoted(column)} = ?", [value])  # noqa: S608 - quoted
        return cursor_rows.to_arrow_table()


# ----------------------------------------------------------------


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
    """Where a run's numbers come from. row_ids: ids of the task's rows in the order used, or None."""

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
        """A copy with the named fields set; names that are no field are ignored."""
        provenance = {name: value for name, value in changes.items() if name in self.__dataclass_fields__}
        if isinstance(provenance.get("row_ids"), list):
            provenance["row_ids"] = tuple(provenance["row_ids"])
        return replace(self, **provenance)

    def as_row(self) -> Row:
        """The fields as one row that fits in JSON."""
        row = asdict(self)
        row["row_ids"] = None if self.row_ids is None else list(self.row_ids)
        return row


def record_run(
    db: Database, study: str, options: Mapping[str, Any], provenance: Provenance, *, title: str = "", run: str = "",
    imported: bool = False,
) -> str:  # fmt: skip
    """Record that `study` ran with `options`; returns the run's id (`run` where it has one already). imported: whether
    a file of elsewhere says so."""
    run = run or uuid.uuid4().hex
    fields = provenance.as_row()
    values: list[Any] = [run, study, title or study]
    values += [fields[name] for name in ("checkpoint", "weights_hash", "task", "split")]
    values += [None if fields["row_ids"] is None else to_json(fields["row_ids"])]
    values += [fields[name] for name in ("seed", "dtype", "operator", "device")]
    now = datetime.now(UTC).replace(tzinfo=None)
    values += [to_json(dict(options)), fields["code_version"], now, now if imported else None]
    with db.write() as cursor:
        cursor.execute(f"INSERT INTO run ({_RUN}) VALUES ({marks(len(values))})", values)  # noqa: S608 - names and marks only
    return run


def store_rows(db: Database, run: str, rows: Iterable[Row], *, scores: bool = True) -> None:
    """Keep `rows` of `run` after those it has. Rows with statistic, layer, head and value are head scores too, unless
    `scores` is False."""
    rows = list(rows)
    with db.write() as cursor:
        first = cursor.execute("SELECT coalesce(max(position) + 1, 0) FROM study_row WHERE run = ?", [run]).fetchall()
        start = first[0][0]
        bodies = ({"run": run, "position": start + position, "body": to_json(row)} for position, row in enumerate(rows))
        insert(cursor, "study_row", _ROW, bodies)
        of_heads = [row for row in rows if scores and _is_score(row)]
        insert(cursor, "head_score", _SCORE, (_score(run, row) for row in of_heads if row.get("part") not in PARTS))
        of_parts = (_score(run, row) | {"part": row["part"]} for row in of_heads if row.get("part") in PARTS)
        insert(cursor, "part_score", _PART_SCORE, of_parts)


def _is_score(row: Row) -> bool:
    return {"statistic", "layer", "head", "value"} <= row.keys()


def _score(run: str, row: Row) -> Row:
    columns = {name: row.get(name) for name in _SCORE.names if name != "run"}
    feature = columns["feature"]
    of = {"checkpoint": row.get("checkpoint") or row.get("after"), "task": row.get("task")}
    named = {name: None if value is None else str(value) for name, value in of.items()}
    return {**columns, **named, "run": run, "feature": None if feature is None else str(feature)}


def runs(db: Database, study: str | None = None) -> "pd.DataFrame":
    """Which runs are stored, newest first: their provenance, options as JSON text, and `rows`, how many each has."""
    return db.read(
        f"""SELECT {_RUN}, coalesce(rows, 0) AS rows FROM run
            LEFT JOIN (SELECT run, count(*) AS rows FROM study_row GROUP BY run) USING (run)
            WHERE $study IS NULL OR study = $study ORDER BY ordinal DESC""",  # noqa: S608 - our own column names
        {"study": study},
    )


def any_rows(db: Database) -> bool:
    """Whether a run is stored that has rows; asked by a first page, which needs no data frame for it."""
    return bool(db.cursor().execute("SELECT 1 FROM study_row LIMIT 1").fetchall())


def known_runs(db: Database, study: str | None) -> "pd.DataFrame":
    """The runs of a study (None: of all) as `runs` gives them: those measured here, then those of the record that
    ships, then those that came in from files; `source` is "yours", "shipped" or "imported"."""
    import pandas as pd  # a start's 0.4 s

    own_runs = runs(db, study)
    apart = {"yours": own_runs[own_runs["imported"].isna()], "shipped": shipped_record.runs(study),
             "imported": own_runs[own_runs["imported"].notna()]}  # fmt: skip
    both = [table.assign(source=name) for name, table in apart.items() if len(table)]
    return pd.concat(both, ignore_index=True) if both else own_runs.assign(source="yours")


def one_run(db: Database, run: str) -> Row:
    """What is known of `run`, of the database or of the record that ships: study, title, options and the fields of
    Provenance. Raises StoreError if unknown."""
    import pandas as pd  # a start's 0.4 s

    stored = db.read(f"SELECT {_RUN} FROM run WHERE run = ?", [run])  # noqa: S608 - our own column names
    if stored.empty and (recorded := shipped_record.one_run(run)):
        stored = pd.DataFrame([recorded])
    if stored.empty:
        raise StoreError(f"A run must be one of those stored, but {run!r} is not; see the list of runs.")
    row: Row = {str(name): None if pd.isna(value) else value for name, value in stored.iloc[0].items()}
    return row | {"options": from_json(row["options"]), "row_ids": from_json(row["row_ids"])}


def is_imported(db: Database, run: str) -> bool:
    """Whether `run` came in from a file that nothing vouches for."""
    return bool(db.cursor().execute("SELECT 1 FROM run WHERE run = ? AND imported IS NOT NULL", [run]).fetchall())


def run_rows(db: Database, run: str) -> list[Row]:
    """The rows of `run`, of the database or of the record that ships, in order, as they were given."""
    bodies = db.cursor().execute("SELECT body FROM study_row WHERE run = ? ORDER BY position", [run]).fetchall()
    return [from_json(body) for (body,) in bodies] or shipped_record.run_rows(run)


def holder(db: Database, run: str) -> str:
    """What holds `run`, under a name that is other once its rows could be: the database, or the record that ships."""
    own = db.cursor().execute("SELECT 1 FROM run WHERE run = ?", [run]).fetchall()
    return db.id if own else shipped_record.version()


def study_rows(db: Database, run: str) -> "pd.DataFrame":
    """The rows of `run`, in order, one column a key."""
    import pandas as pd  # a start's 0.4 s

    return pd.DataFrame(run_rows(db, run))


def latest_run(db: Database, study: str, **where: str | None) -> str | None:
    """The newest run of `study` that was measured here and whose provenance has these values (checkpoint=, task=,
    operator= ...), or None."""
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
    """Which head scored what: one row a head, statistic, feature and run, with the run's checkpoint, task and date.

    Args:
        statistic: only this one; None for all, as with the next four.

    Returns:
        The newest run first. Columns: run study checkpoint task created statistic feature layer head value low high n
        baseline p q part (of an encoder-decoder the set of heads: encoder, decoder or cross; else None).
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
            "study": study,
            "run": run,
        },
    )


def delete_runs(db: Database, chosen: Sequence[str]) -> None:
    """Remove these runs and all their rows."""
    db.person.must("admin", "delete runs")
    with db.write() as cursor:
        for table in ("study_row", "head_score", "part_score", "run"):
            cursor.execute(f"DELETE FROM {quoted(table)} WHERE run IN (SELECT unnest(?))", [list(chosen)])  # noqa: S608 - quoted
