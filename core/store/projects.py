"""Labelling projects as rows that are only added: what each is, maps handed to whom, labels that answer, and acts."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from core.errors import InputError
from core.store.database import Database
from core.store.label_checks import LONGEST_NAME, LONGEST_NOTE, now
from core.store.rows import Row, among, insert, to_json

STATES = {"make": "open", "open": "open", "pause": "paused", "close": "closed", "archive": "archived"}
FROM = {"pause": ("open",), "open": ("paused", "closed"), "close": ("open", "paused")}
FROM |= {"archive": ("open", "paused", "closed")}
MAP_KINDS = ("label", "gold", "exemplar")
# fmt: off
_PROJECT_MAP = pa.schema([
    ("project", pa.string()), ("place", pa.int32()), ("map_id", pa.string()), ("kind", pa.string()),
    ("class", pa.string())])
_CLAIM = pa.schema([
    ("project", pa.string()), ("map_id", pa.string()), ("annotator", pa.string()), ("pass", pa.int32()),
    ("purpose", pa.string()), ("given", pa.timestamp("us")), ("until", pa.timestamp("us"))])
# fmt: on


@dataclass(frozen=True)
class Project:
    """One project as it stands. recipe, rules: as they were given. state: open, paused, closed or archived, since when
    and by whom."""

    project: str
    title: str
    class_set: str
    recipe: Row
    rules: Row
    codebook: str
    made_by: str
    made: datetime
    state: str
    changed_by: str
    changed: datetime


@dataclass(frozen=True)
class ProjectMap:
    """A map of a project. kind: label, gold or exemplar; given: the known class of the last two."""

    map_id: str
    kind: str
    given: str | None = None


@dataclass(frozen=True)
class Heading:
    """What a project is called and is about. annotator: who made it."""

    title: str
    class_set: str
    codebook: str = ""
    annotator: str = ""


def add_project(
    db: Database,
    heading: Heading,
    *,
    recipe: Mapping[str, Any],
    rules: Mapping[str, Any],
    maps: Sequence[ProjectMap],
) -> str:
    """Keep a new project with its maps in order; returns its id. InputError without a title or without maps."""
    db.person.must("admin", "make a project")
    title, codebook = heading.title, heading.codebook
    if not title.strip() or len(title) > LONGEST_NAME or len(codebook) > LONGEST_NOTE:
        raise InputError(
            f"A project has a title of 1 to {LONGEST_NAME} characters and a codebook of at most {LONGEST_NOTE}; seen "
            f"{len(title.strip())} and {len(codebook)}: change them."
        )
    if not any(entry.kind == "label" for entry in maps):
        raise InputError("A project needs maps to label; its recipe finds none: draw maps, or ask for fewer things.")
    name = uuid.uuid4().hex[:12]
    about = [name, title.strip(), heading.class_set]
    rows = [
        {"project": name, "place": position, "map_id": entry.map_id, "kind": entry.kind, "class": entry.given}
        for position, entry in enumerate(maps)
    ]
    with db.write() as cursor:
        if any(other.title == title.strip() and other.state != "archived" for other in projects(db)):
            raise InputError(
                f"A project's title tells it from the others; {title.strip()[:60]!r} is taken: choose another."
            )
        cursor.execute(
            """INSERT INTO project (project, title, class_set, recipe, rules, codebook, annotator, stored)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            [*about, to_json(dict(recipe)), to_json(dict(rules)), codebook, heading.annotator, now()],
        )
        insert(cursor, "project_map", _PROJECT_MAP, rows)
    return name


def projects(db: Database) -> list[Project]:
    """Every project, newest first."""
    return _read_projects(db, None)


def one_project(db: Database, project: str) -> Project:
    """One project. Raises InputError when there is none of this id."""
    for project_row in _read_projects(db, project.encode(errors="replace").decode()):  # half a letter is in no id
        return project_row
    raise InputError(
        f"A project must be one of those made here; {project[:60]!r} is none: choose one on the Projects page."
    )


def _read_projects(db: Database, project: str | None) -> list[Project]:
    """The project of this id, or all of them for None: a page of many asks for one at a time."""
    changes = db.cursor().execute(
        "SELECT project, kind, annotator, stored FROM project_event "
        "WHERE kind IN ('pause', 'open', 'close', 'archive') AND ($project IS NULL OR project = $project) "
        "ORDER BY ordinal",
        {"project": project},
    )
    last = {name: change for name, *change in changes.fetchall()}
    cursor = db.cursor().execute(
        """SELECT project, title, class_set, recipe, rules, codebook, annotator, stored
           FROM project WHERE $project IS NULL OR project = $project ORDER BY ordinal DESC""",
        {"project": project},
    )
    made = []
    for name, title, class_set, recipe, rules, codebook, by, when in cursor.fetchall():
        kind, who, changed = last.get(name, ("make", by, when))
        about = (json.loads(recipe), json.loads(rules), codebook, by, when)
        made.append(Project(name, title, class_set, *about, STATES[kind], who, changed))
    return made


def project_maps(db: Database, project: str) -> list[ProjectMap]:
    """The maps of a project in the order they are handed out."""
    cursor = db.cursor().execute(
        "SELECT map_id, kind, class FROM project_map WHERE project = ? ORDER BY place", [project]
    )
    maps = [ProjectMap(*row) for row in cursor.fetchall()]
    newest = (
        db.cursor()
        .execute(
            "SELECT body FROM project_event WHERE project = ? AND kind = 'order' ORDER BY ordinal DESC LIMIT 1",
            [project],
        )
        .fetchone()
    )
    if newest is None:
        return maps
    places = {name: position for position, name in enumerate(json.loads(newest[0]))}
    return sorted(maps, key=lambda entry: places.get(entry.map_id, len(places)))


# ---------------------------------------------------------------- what admins do


def change_project(db: Database, project: str, kind: str, *, annotator: str) -> None:
    """Pause, open, close or archive. InputError where the project's state does not allow it, saying who changed it."""
    db.person.must("admin", f"{kind} a project")
    with db.write() as cursor:  # the state is read under the lock: of two who close at once, one is told
        current = one_project(db, project)
        if kind not in FROM or current.state not in FROM[kind]:
            raise InputError(
                f"To {kind} a project it must be {' or '.join(FROM.get(kind, ('another',)))}; {current.title!r} is "
                f"{current.state}, by {current.changed_by or 'nobody named'} at {current.changed:%Y-%m-%d %H:%M} UTC: "
                "nothing was changed."
            )
        _event(cursor, project, kind, annotator)


def judge_person(db: Database, project: str, person: str, *, admitted: bool, annotator: str) -> None:
    """Let a person label in a project again, or no longer."""
    db.person.must("admin", "pause people")
    one_project(db, project)
    with db.write() as cursor:
        _event(cursor, project, "admit" if admitted else "exclude", annotator, person=person)


def order_maps(db: Database, project: str, map_ids: Sequence[str], *, annotator: str) -> None:
    """Hand a project's maps out in this order from now on."""
    db.person.must("admin", "order the maps of a project")
    with db.write() as cursor:
        _event(cursor, project, "order", annotator, body=to_json(list(map_ids)))


def _event(
    cursor: Any, project: str, kind: str, annotator: str, *, person: str | None = None, body: str | None = None
) -> None:
    cursor.execute(
        "INSERT INTO project_event (project, kind, person, body, annotator, stored) VALUES (?, ?, ?, ?, ?, ?)",
        [project, kind, person, body, annotator, now()],
    )


# ---------------------------------------------------------------- claims and answers


@dataclass(frozen=True)
class ClaimRow:
    """One map handed to one person."""

    map_id: str
    annotator: str
    passing: int
    purpose: str
    given: datetime
    until: datetime


@dataclass(frozen=True)
class AnswerRow:
    """Which project a label event answers, and whether it counts."""

    event: str
    project: str
    purpose: str
    counted: bool


def add_claims(cursor: Any, project: str, claims: Sequence[ClaimRow]) -> None:
    """Record what was handed out."""
    if claims:
        rows = [
            {"project": project, "map_id": claim.map_id, "annotator": claim.annotator, "pass": claim.passing,
             "purpose": claim.purpose, "given": claim.given, "until": claim.until}
            for claim in claims
        ]  # fmt: skip
        insert(cursor, "claim", _CLAIM, rows)


def add_answers(cursor: Any, answers: Sequence[AnswerRow]) -> None:
    """Record which events answer a project; a later row of an event stands in the place of the earlier one."""
    for answer in answers:
        cursor.execute(
            "INSERT INTO project_label (event, project, purpose, counted) VALUES (?, ?, ?, ?)",
            [answer.event, answer.project, answer.purpose, answer.counted],
        )


def answered(cursor: Any, events: Sequence[str]) -> set[str]:
    """Those of these events that are recorded as answers."""
    these, values = among("event", list(events))
    recorded = cursor.execute(f"SELECT event FROM project_label WHERE {these}", values)  # noqa: S608 - our column
    return {event for (event,) in recorded.fetchall()}


def claimed(cursor: Any, project: str, map_id: str, annotator: str, passing: int) -> str | None:
    """What somebody was handed a map for, or None when they never were."""
    rows = cursor.execute(
        "SELECT purpose FROM claim WHERE project = ? AND map_id = ? AND annotator = ? AND pass = ? LIMIT 1",
        [project, map_id, annotator, passing],
    ).fetchall()
    return rows[0][0] if rows else None


# ---------------------------------------------------------------- what happened since


@dataclass(frozen=True)
class Marks:
    """How far a reader has read. ordinal: of claims, answers and events of admins; label, classes: of events of labels
    and of classes; erasures: how many there were."""

    ordinal: int = 0
    label: int = 0
    classes: int = 0
    erasures: int = 0


def marks(cursor: Any, since: Marks) -> Marks:
    """How far one has read who reads now and had read to `since`."""
    rows = cursor.execute(
        """SELECT greatest((SELECT max(ordinal) FROM claim WHERE ordinal > $ordinal),
                           (SELECT max(ordinal) FROM project_label WHERE ordinal > $ordinal),
                           (SELECT max(ordinal) FROM project_event WHERE ordinal > $ordinal), $ordinal),
                  coalesce((SELECT max(ordinal) FROM label_event WHERE ordinal > $label), $label),
                  (SELECT coalesce(max(ordinal), 0) FROM class_event), (SELECT count(*) FROM erasure)""",
        {"ordinal": since.ordinal, "label": since.label},
    ).fetchall()
    return Marks(*rows[0])


def marks_after_own(cursor: Any, since: Marks) -> Marks:
    """How far one has read who had read everything before this transaction, which added claims and answers only."""
    rows = cursor.execute(
        """SELECT greatest((SELECT max(ordinal) FROM claim WHERE ordinal > $ordinal),
                           (SELECT max(ordinal) FROM project_label WHERE ordinal > $ordinal), $ordinal),
                  coalesce((SELECT max(ordinal) FROM label_event WHERE ordinal > $label), $label)""",
        {"ordinal": since.ordinal, "label": since.label},
    ).fetchall()
    ordinal, label = rows[0]
    return replace(since, ordinal=ordinal, label=label)


def claims_since(cursor: Any, project: str, since: Marks, *, answered: bool = True) -> list[tuple[Any, ...]]:
    """(annotator, map, pass, purpose, until in seconds since 1970), oldest first. answered: also those whose map
    their holder has labelled or skipped."""
    if answered:
        return cursor.execute(
            """SELECT annotator, map_id, pass, purpose, epoch(until) FROM claim
               WHERE project = ? AND ordinal > ? ORDER BY ordinal""",
            [project, since.ordinal],
        ).fetchall()
    return cursor.execute(
        """SELECT annotator, map_id, pass, purpose, epoch(until) FROM claim
           WHERE project = $project AND ordinal > $since AND NOT EXISTS (
               SELECT 1 FROM project_label JOIN label_event USING (event)
               WHERE project_label.project = claim.project AND label_event.map_id = claim.map_id
                 AND label_event.annotator = claim.annotator AND label_event.pass = claim.pass
                 AND event NOT IN (SELECT event FROM undone))
           ORDER BY ordinal""",
        {"project": project, "since": since.ordinal},
    ).fetchall()


def handed(cursor: Any, project: str) -> dict[str, int]:
    """How many maps each person was handed."""
    return dict(
        cursor.execute("SELECT annotator, count(*) FROM claim WHERE project = ? GROUP BY ALL", [project]).fetchall()
    )


def answers_since(cursor: Any, project: str, since: Marks) -> list[tuple[Any, ...]]:
    """(event, annotator, map, pass, purpose, class or None for a skip, counted, seconds since 1970), oldest first."""
    return cursor.execute(
        """SELECT event, annotator, map_id, pass, purpose, CASE WHEN kind = 'label' THEN class END, counted,
                  epoch(label_event.stored)
           FROM project_label JOIN label_event USING (event)
           WHERE project = ? AND project_label.ordinal > ? AND kind IN ('label', 'skip')
           ORDER BY project_label.ordinal""",
        [project, since.ordinal],
    ).fetchall()


def undone_since(cursor: Any, since: Marks) -> list[str]:
    """Answers of any project that an undo took back, oldest undo first."""
    rows = cursor.execute(
        """SELECT undo.undoes FROM label_event AS undo JOIN undone ON undone.event = undo.undoes
           WHERE undo.kind IN ('undo', 'retire') AND undo.ordinal > ?
             AND undo.undoes IN (SELECT event FROM project_label)
           ORDER BY undo.ordinal""",
        [since.label],
    ).fetchall()
    return [event for (event,) in rows]


def ordered_since(cursor: Any, project: str, since: Marks) -> bool:
    """Whether an admin gave the maps another order."""
    rows = cursor.execute(
        "SELECT count(*) FROM project_event WHERE project = ? AND ordinal > ? AND kind = 'order'",
        [project, since.ordinal],
    ).fetchall()
    return bool(rows[0][0])


def judgements_since(cursor: Any, project: str, since: Marks) -> list[tuple[str, bool]]:
    """(person, whether they were let in) of what admins decided, oldest first."""
    return cursor.execute(
        """SELECT person, kind = 'admit' FROM project_event
           WHERE project = ? AND ordinal > ? AND kind IN ('admit', 'exclude') ORDER BY ordinal""",
        [project, since.ordinal],
    ).fetchall()


# ---------------------------------------------------------------- questions


def project_labels(db: Database, project: str, *, purpose: str | None = "label") -> pd.DataFrame:
    """The labels and skips that stand in a project, oldest first, with counted (not surplus) and their maps' facts.

    purpose: label, gold, repeat or training; None for all.
    """
    return db.read(
        """SELECT project_standing.* EXCLUDE (stored), checkpoint, task, split, row_id, layer, head, length
           FROM project_standing JOIN attention_map USING (map_id)
           WHERE project = $project AND ($purpose IS NULL OR purpose = $purpose) ORDER BY ordinal""",
        {"project": project, "purpose": purpose},
    )


def label_times(db: Database, project: str) -> pd.DataFrame:
    """The labels of a project that nobody took back, oldest first: map_id, annotator, class, counted, stored."""
    return db.read(
        """SELECT map_id, annotator, class, counted, label_event.stored
           FROM (SELECT event, arg_max(counted, ordinal) AS counted FROM project_label
                 WHERE project = ? AND purpose = 'label' GROUP BY event) AS answer
           JOIN label_event USING (event)
           WHERE kind = 'label' AND event NOT IN (SELECT event FROM undone) ORDER BY label_event.ordinal""",
        [project],
    )
