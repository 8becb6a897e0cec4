"""Registered hypotheses: batches, hypotheses and their events. Rows are only added."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from ..errors import StoreError
from .bodies import sound
from .database import Database
from .rows import Row, from_json, insert_row, now, to_json

Marks = tuple[tuple[str, ...], ...]  # (row ID, hash of its texts, hashes that identify the input, if any)


@dataclass(frozen=True)
class StoredBatch:
    """A batch of hypotheses that were registered together. `thought` describes the examples that suggested the
    hypotheses, and `judged` the test examples. `runs` lists earlier runs on the same model weights, with the number of
    test examples in each run."""

    checkpoint: str
    weights_hash: str
    thought: Row
    judged: Row
    thought_rows: Marks
    judged_rows: Marks
    number: int
    level: float
    runs: tuple[Row, ...] = ()
    annotator: str = ""
    batch: str = ""
    stored: datetime | None = None

    @property
    def seen(self) -> int:
        """Count the earlier runs that used some of the test inputs. Only runs on the same model weights are counted."""
        return sum(run["inputs"] > 0 for run in self.runs)


@dataclass(frozen=True)
class StoredHypothesis:
    """A registered hypothesis about an attention head.

    Attributes:
        layer, head: zero-based.
        withdrawn: time of withdrawal, or None.
        run: run of its last test, or None.
        imported: whether that test was imported from a file.
    """

    hypothesis: str
    batch: str
    layer: int
    head: int
    predicate: str
    parameters: tuple[tuple[str, str], ...]
    withdrawn: datetime | None = None
    criteria: tuple[Row, ...] = ()
    run: str | None = None
    imported: bool = False


def batches(db: Database) -> list[StoredBatch]:
    """Return all batches of registered hypotheses, oldest first."""
    stored_batches = []
    for fields in db.records("SELECT * EXCLUDE (ordinal) FROM hypothesis_batch ORDER BY ordinal"):
        if not sound("hypothesis_batch", f"the batch of hypotheses {fields['batch']}", fields):
            continue
        for name in ("thought", "judged"):
            fields[name] = from_json(fields[name])
            fields[f"{name}_rows"] = tuple(tuple(row) for row in from_json(fields[f"{name}_rows"]))
        fields["runs"] = tuple(from_json(fields["runs"]) or ())
        stored_batches.append(StoredBatch(**fields))
    return stored_batches


def earlier_batches(db: Database, weights_hash: str, judged_rows: Marks) -> int:
    """Count the registered batches of hypotheses that share test inputs with `judged_rows`. Only batches for the same
    model weights are counted."""
    marks = {mark for _, *known in judged_rows for mark in known}
    same = (batch for batch in batches(db) if batch.weights_hash == weights_hash)
    return sum(any(mark in marks for _, *known in batch.judged_rows for mark in known) for batch in same)


def ever_registered(db: Database, weights_hash: str) -> int:
    """Count all hypotheses ever registered for the model with this weights hash, including withdrawn hypotheses."""
    rows = db.rows(
        "SELECT count(*) FROM hypothesis JOIN hypothesis_batch USING (batch) WHERE weights_hash = ?", [weights_hash]
    )
    return int(rows[0][0])


def add_batch(
    db: Database, batch: StoredBatch, hypotheses: Sequence[tuple[int, int, str, tuple[tuple[str, str], ...]]]
) -> tuple[str, list[str]]:
    """Store a batch of hypotheses (layer, head, predicate, parameters). Return the ID of the batch and the IDs of its
    hypotheses."""
    db.person.must("annotator", "register a hypothesis")
    name, ids = uuid.uuid4().hex[:12], [uuid.uuid4().hex[:12] for _ in hypotheses]
    row = vars(batch) | {"batch": name, "annotator": db.person.name or batch.annotator, "stored": now()}
    row |= {column: to_json(row[column]) for column in ("thought", "judged", "thought_rows", "judged_rows", "runs")}
    with db.write() as cursor:
        insert_row(cursor, "hypothesis_batch", row)
        for identifier, (layer, head, predicate, parameters) in zip(ids, hypotheses, strict=True):
            about = {"hypothesis": identifier, "batch": name, "layer": layer, "head": head, "predicate": predicate}
            insert_row(cursor, "hypothesis", about | {"parameters": to_json(parameters)})
    return name, ids


def hypotheses(db: Database) -> list[StoredHypothesis]:
    """Return all registered hypotheses, oldest first."""
    cursor = db.cursor()
    rows = cursor.execute(
        "SELECT hypothesis, batch, layer, head, predicate, parameters FROM hypothesis ORDER BY ordinal"
    ).fetchall()
    events = cursor.execute(
        "SELECT hypothesis, kind, run, criteria, stored, imported IS NOT NULL FROM hypothesis_event ORDER BY ordinal"
    ).fetchall()
    withdrawn = {one: stored for one, kind, _, _, stored, _ in events if kind == "withdrawn"}
    tests = {one: (run, criteria, imported) for one, kind, run, criteria, _, imported in events if kind == "tested"}
    stored_hypotheses = []
    for one, batch, layer, head, predicate, parameters in rows:
        run, criteria, imported = tests.get(one, (None, "[]", False))
        if not sound("hypothesis", f"the hypothesis {one}", {"parameters": parameters}):
            continue
        if criteria is None or not sound("hypothesis_event", f"a test of the hypothesis {one}", {"criteria": criteria}):
            run, criteria, imported = None, "[]", False
        named = tuple((name, value) for name, value in from_json(parameters))
        tested = (withdrawn.get(one), tuple(from_json(criteria)), run, imported)
        stored_hypotheses.append(StoredHypothesis(one, batch, layer, head, predicate, named, *tested))
    return stored_hypotheses


def withdraw(db: Database, hypothesis: str, note: str = "", *, annotator: str = "") -> None:
    """Mark a registered hypothesis as withdrawn. It still counts towards the number of hypotheses in its batch.

    Raises StoreError if the ID is unknown, or the hypothesis has already been withdrawn.
    """
    db.person.must("annotator", "withdraw a hypothesis")
    stored = next((known for known in hypotheses(db) if known.hypothesis == hypothesis), None)
    if stored is None:
        raise StoreError(
            f'A hypothesis must be given by its ID; got "{hypothesis[:60]}". Choose an ID that `hypothesis list` shows.'
        )
    if stored.withdrawn:
        raise StoreError(
            f"A hypothesis can be withdrawn only once; {hypothesis} was withdrawn on {stored.withdrawn:%Y-%m-%d}. "
            "Choose another hypothesis."
        )
    with db.write() as cursor:
        add_event(cursor, hypothesis, "withdrawn", note=note[:1000], annotator=db.person.name or annotator)


def add_event(
    cursor: duckdb.DuckDBPyConnection, hypothesis: str, kind: str, *, run: str | None = None,
    criteria: Sequence[Mapping[str, Any]] | None = None, note: str = "", annotator: str = "",
) -> None:  # fmt: skip
    """Store an event in the history of a hypothesis, such as a test or a withdrawal. The caller commits the
    transaction."""
    row = {"hypothesis": hypothesis, "kind": kind, "run": run, "note": note, "annotator": annotator, "stored": now()}
    criteria_text = None if criteria is None else to_json(list(criteria))
    insert_row(cursor, "hypothesis_event", row | {"criteria": criteria_text})
