"""Erasure of a person: their name is replaced everywhere, or their label events are also deleted.

Each erasure is recorded without the name. This is the only module that changes stored rows. Earlier copies (backups,
exports) are not changed.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from ..errors import InputError
from .database import Database
from .rows import now, quoted

# Tables whose rows name the person who made them
NAMED_IN = (
    "label_event", "claim", "class_event", "project", "project_event", "finding", "hypothesis_batch",
    "hypothesis_event",
)  # fmt: skip


@dataclass(frozen=True)
class Erasure:
    """A record of the erasure of a person's data. `kind` is "name" if only the name was replaced, and "events" if
    labels were also deleted. `events` counts the person's rows about labels, projects, findings and hypotheses."""

    kind: str
    pseudonym: str
    events: int
    annotator: str
    stored: datetime


def erase_name(db: Database, name: str, *, annotator: str) -> Erasure:
    """Replace the name of a person with a pseudonym in the whole database. The labels and results of the person
    remain."""
    return _erase(db, name, "name", annotator)


def erase_events(db: Database, name: str, *, annotator: str) -> Erasure:
    """Delete all label events and map assignments of a person, and replace the person's name with a pseudonym
    elsewhere."""
    return _erase(db, name, "events", annotator)


def erasable(db: Database) -> list[str]:
    """Return the names of all people with stored labels, assignments, projects, findings or hypotheses."""
    every = " UNION ".join(f"SELECT annotator FROM {quoted(table)}" for table in NAMED_IN)  # noqa: S608 - quoted
    return [name for (name,) in db.rows(f"SELECT annotator FROM ({every}) WHERE annotator <> '' ORDER BY ALL")]  # noqa: S608


def erasures(db: Database) -> list[Erasure]:
    """Return the records of all erasures of personal data, oldest first."""
    cursor = db.rows("SELECT kind, pseudonym, events, annotator, stored FROM erasure ORDER BY ordinal")
    return [Erasure(*row) for row in cursor]


def _erase(db: Database, name: str, kind: str, annotator: str) -> Erasure:
    db.person.must("admin", "erase a person")
    with db.write() as cursor:
        count = sum(
            cursor.execute(f"SELECT count(*) FROM {quoted(table)} WHERE annotator = ?", [name]).fetchall()[0][0]  # noqa: S608 - quoted
            for table in NAMED_IN
        )
        count += cursor.execute(  # events in which others admitted or excluded the person
            "SELECT count(*) FROM project_event WHERE person = $name AND annotator IS DISTINCT FROM $name",
            {"name": name},
        ).fetchall()[0][0]
        if not count:
            raise InputError(
                "The name to erase must belong to a person with stored labels, projects, findings or hypotheses; got "
                f"{name[:60]!r}. Choose one of the names that the Projects page lists."
            )
        (number,) = cursor.execute("SELECT count(*) + 1 FROM erasure").fetchall()[0]
        pseudonym = f"erased-{number}"
        if kind == "events":
            cursor.execute(
                "DELETE FROM project_label WHERE event IN (SELECT event FROM label_event WHERE annotator = ?)", [name]
            )
            cursor.execute(
                "DELETE FROM label_event WHERE undoes IN (SELECT event FROM label_event WHERE annotator = ?)", [name]
            )
            cursor.execute("DELETE FROM label_event WHERE annotator = ?", [name])
            cursor.execute("DELETE FROM claim WHERE annotator = ?", [name])
        # Replace the name in all columns and in the JSON of projects, jobs and runs.
        for table in (*NAMED_IN, "classifier", "classifier_choice", "erasure"):
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
        by = pseudonym if annotator == name else annotator
        cursor.execute(
            "INSERT INTO erasure (kind, pseudonym, events, annotator, stored) VALUES (?, ?, ?, ?, ?)",
            [kind, pseudonym, count, by, now()],
        )
    db.fold()  # otherwise the log would contain the name until the next checkpoint
    return erasures(db)[-1]


def _without(text: str, name: str, pseudonym: str) -> str | None:
    """Return options with the pseudonym as annotator; None if they name somebody else."""
    options = json.loads(text)
    if not isinstance(options, dict) or options.get("annotator") != name:
        return None
    return json.dumps(options | {"annotator": pseudonym})
