"""Databases with rows that somebody spoiled: JSON of another type, without keys, with numbers that are none."""

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from core.store import runs, shipped_record
from core.store.rows import from_json, insert
from core.studies.lookup import find_study
from core.studies.records import record_kind

Row = dict[str, Any]
WRONG = ({"a": 1}, [[1]], [], "text", "![c](https://evil.example/c.png)<b>", 5, -1, 1e300, 10**30, True, None,
         float("nan"), float("inf"))  # fmt: skip


@cache
def whole_runs() -> dict[str, Row]:
    """A bundled run of every study, with all kinds of rows that the study has."""
    found: dict[str, Row] = {}
    for run in shipped_record.runs(None).to_dict("records"):
        if run["study"] == "reproduce":
            continue
        rows = shipped_record.run_rows(run["run"])
        kinds = {record_kind(find_study(run["study"]).kinds, row) for row in rows}
        if len(kinds) > len(found.get(run["study"], {}).get("kinds", ())):
            options = from_json(run["options"]) if isinstance(run["options"], str) else run["options"]
            found[run["study"]] = run | {"rows": rows, "kinds": kinds, "options": options}
    return found


def changes(value: Row, drawn: random.Random) -> Iterator[Row]:
    """Copies of an object, each with one key spoiled: a value of another kind, or none at all."""
    for name in value:
        yield {key: held for key, held in value.items() if key != name}
        for wrong in drawn.sample(WRONG, 3):
            if type(wrong) is not type(value[name]):
                yield value | {name: wrong}
        if isinstance(value[name], dict):
            yield from (value | {name: inner} for inner in changes(value[name], drawn))
        if isinstance(value[name], list) and value[name]:
            yield value | {name: [drawn.choice(WRONG), *value[name][1:]]}


def store_run(db: Any, run: Row, rows: list[Row]) -> str:
    """Store a copy of a bundled run with these rows, as they are: their JSON is not checked."""
    about = runs.Provenance().with_changes(run)
    if isinstance(run["row_ids"], str):
        about = about.with_changes({"row_ids": from_json(run["row_ids"])})
    name = runs.record_run(db, run["study"], run["options"], about, title=run["title"])
    bodies = [{"run": name, "position": position, "body": json.dumps(row)} for position, row in enumerate(rows)]
    with db.write() as cursor:
        insert(cursor, "study_row", runs._ROW, bodies)
    return name


def with_bad_rows(db: Any, study: str, seed: int = 0) -> str:
    """A run of a study whose own rows are all there, and as many bad ones of each kind beside them."""
    run, drawn = whole_runs()[study], random.Random(f"{seed} {study}")  # noqa: S311 - no secret
    first = {record_kind(find_study(study).kinds, row): row for row in run["rows"]}
    bad = [change for row in first.values() for change in changes(row, drawn)]
    return store_run(db, run, run["rows"] + bad)


def without_a_kind(db: Any, study: str, kind: type, seed: int = 0) -> str:
    """A run of a study whose rows of one kind are all bad."""
    run, drawn = whole_runs()[study], random.Random(f"{seed} {study}")  # noqa: S311 - no secret
    kinds = find_study(study).kinds
    rows = [
        row if record_kind(kinds, row) is not kind else drawn.choice(list(changes(row, drawn))) for row in run["rows"]
    ]
    return store_run(db, run, rows)
