"""Taking a person out of the record: their name from everything, or their label events too, with a record that it was
done and never of whom.

This is the one place that changes what is stored. Copies made before (backups, exports) are not reached.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import InputError
from .database import Database
from .label_checks import now
from .rows import quoted


@dataclass(frozen=True)
class Erasure:
    """One erasure. kind: name or events; pseudonym: what stands in the place of the name; events: how many rows it
    touched."""

    kind: str
    pseudonym: str
    events: int
    annotator: str
    stored: datetime


def erase_name(db: Database, name: str, *, annotator: str) -> Erasure:
    """Put a pseudonym in the place of a name everywhere; labels and what is measured from them stay as they are."""
    return _erase(db, name, "name", annotator)


def erase_events(db: Database, name: str, *, annotator: str) -> Erasure:
    """Delete a person's label events, what answers them (undos), and their claims; a pseudonym takes the name's place
    in everything else."""
    return _erase(db, name, "events", annotator)


def erasures(db: Database) -> list[Erasure]:
    """Every erasure, oldest first."""
    cursor = db.cursor().execute("SELECT kind, pseudonym, events, annotator, stored FROM erasure ORDER BY ordinal")
    return [Erasure(*row) for row in cursor.fetchall()]


def known_people(db: Database) -> list[str]:
    """Every name that labels carry."""
    cursor = db.cursor().execute("SELECT DISTINCT annotator FROM label_event ORDER BY annotator")
    return [name for (name,) in cursor.fetchall()]


def _erase(db: Database, name: str, kind: str, annotator: str) -> Erasure:
    db.person.must("admin", "erase a person")
    with db.write() as cursor:
        count = _count(cursor, name)
        if not count:
            raise InputError(
                f"A person is erased by the name their labels carry; nothing here carries {name[:60]!r}: choose one of "
                "the names on the Projects page."
            )
        (number,) = cursor.execute("SELECT count(*) + 1 FROM erasure").fetchall()[0]
        pseudonym = f"erased-{number}"
        if kind == "events":
            _delete(cursor, name)
        _rename(cursor, name, pseudonym)
        by = pseudonym if annotator == name else annotator
        cursor.execute(
            "INSERT INTO erasure (kind, pseudonym, events, annotator, stored) VALUES (?, ?, ?, ?, ?)",
            [kind, pseudonym, count, by, now()],
        )
    db.fold()  # the log would keep the name until the next rest
    return erasures(db)[-1]


def _count(cursor: Any, name: str) -> int:
    rows = cursor.execute(
        """SELECT (SELECT count(*) FROM label_event WHERE annotator = $name)
                + (SELECT count(*) FROM claim WHERE annotator = $name)
                + (SELECT count(*) FROM class_event WHERE annotator = $name)
                + (SELECT count(*) FROM project WHERE annotator = $name)
                + (SELECT count(*) FROM project_event WHERE annotator = $name OR person = $name)""",
        {"name": name},
    ).fetchall()
    return int(rows[0][0])


def _delete(cursor: Any, name: str) -> None:
    cursor.execute(
        "DELETE FROM project_label WHERE event IN (SELECT event FROM label_event WHERE annotator = ?)", [name]
    )
    cursor.execute(
        "DELETE FROM label_event WHERE undoes IN (SELECT event FROM label_event WHERE annotator = ?)", [name]
    )
    cursor.execute("DELETE FROM label_event WHERE annotator = ?", [name])
    cursor.execute("DELETE FROM claim WHERE annotator = ?", [name])


def _rename(cursor: Any, name: str, pseudonym: str) -> None:
    """Everywhere a name stands in a column or in the JSON of a project, a job or a run."""
    for table in ("label_event", "claim", "class_event", "classifier", "classifier_choice", "project", "project_event",
                  "erasure"):  # fmt: skip
        cursor.execute(f"UPDATE {quoted(table)} SET annotator = ? WHERE annotator = ?", [pseudonym, name])  # noqa: S608 - quoted
    cursor.execute("UPDATE project_event SET person = ? WHERE person = ?", [pseudonym, name])
    cursor.execute("UPDATE label_batch SET owner = ? WHERE owner = ?", [f"name:{pseudonym}", f"name:{name}"])
    for project, text in cursor.execute("SELECT project, rules FROM project").fetchall():
        rules = json.loads(text)
        if name in rules.get("people", []):
            rules["people"] = [pseudonym if person == name else person for person in rules["people"]]
            cursor.execute("UPDATE project SET rules = ? WHERE project = ?", [json.dumps(rules), project])
    for project, text in cursor.execute("SELECT project, recipe FROM project").fetchall():
        recipe = json.loads(text)
        if recipe.get("known_from") == name:
            recipe["known_from"] = pseudonym
            cursor.execute("UPDATE project SET recipe = ? WHERE project = ?", [json.dumps(recipe), project])
    for job, text in cursor.execute("SELECT job, options FROM job").fetchall():
        if (replaced := _without(text, name, pseudonym)) is not None:
            cursor.execute("UPDATE job SET options = ?, asked = ? WHERE job = ?", [replaced, replaced, job])
    for run, text in cursor.execute("SELECT run, options FROM run").fetchall():
        if (replaced := _without(text, name, pseudonym)) is not None:
            cursor.execute("UPDATE run SET options = ? WHERE run = ?", [replaced, run])


def _without(text: str, name: str, pseudonym: str) -> str | None:
    """Options with the pseudonym as their annotator, None where they name somebody else."""
    options = json.loads(text)
    if not isinstance(options, dict) or options.get("annotator") != name:
        return None
    return json.dumps(options | {"annotator": pseudonym})
