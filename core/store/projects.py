"""Labelling projects as append-only rows: settings, reservations, answers and actions of admins."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import InputError
from .bodies import RULES, known_keys, sound
from .database import Database
from .label_checks import LONGEST_NAME, LONGEST_NOTE, looks_like
from .rows import Row, among, insert, now, to_json

# ---------------------------------------------------------------- progress of all projects


@dataclass(frozen=True)
class ProjectCounts:
    """The progress of a labelling project: how many maps and people it has, and how many labels count towards its
    target."""

    maps: int
    counted: int
    people: int


def project_counts(db: Database) -> dict[str, ProjectCounts]:
    """Return the progress of every labelling project, as a dictionary by project ID."""
    rows = db.rows(
        f"""{ANSWERS}, label_maps AS (SELECT project, count(*) AS n FROM project_map WHERE kind = 'label' GROUP BY ALL),
                labels AS (SELECT project, count(*) AS n FROM newest_answers
                           WHERE purpose = 'label' AND counted AND kind = 'label' GROUP BY ALL),
                people AS (SELECT project, count(DISTINCT person) AS n FROM (
                               SELECT project, annotator AS person FROM claim UNION ALL
                               SELECT project, person FROM project_event WHERE kind IN ('admit', 'exclude'))
                           GROUP BY ALL)
           SELECT project, label_maps.n, coalesce(labels.n, 0), coalesce(people.n, 0)
           FROM label_maps LEFT JOIN labels USING (project) LEFT JOIN people USING (project)"""  # noqa: S608 - ours
    )
    return {project: ProjectCounts(*counts) for project, *counts in rows}


STATES = {"make": "open", "open": "open", "pause": "paused", "close": "closed", "archive": "archived"}
FROM = {"pause": ("open",), "open": ("paused", "closed"), "close": ("open", "paused")}
FROM |= {"archive": ("open", "paused", "closed")}
FREEZES = ("close", "archive")  # events after which later labels do not count in the project
MAP_KINDS = ("label", "gold", "exemplar")
# For each closed or archived project: the last label event (label) and the last of its own entries (entry) that
# count. A project closed before the label was recorded uses the time of closing.
FROZEN = """
    frozen AS (
        SELECT project, closing.ordinal AS entry,
               coalesce(TRY_CAST(body->>'$[0]' AS BIGINT), (SELECT max(label_event.ordinal) FROM label_event
                                                            WHERE label_event.stored <= closing.stored), 0) AS label
        FROM (SELECT project, min(ordinal) AS ordinal FROM project_event
              LEFT JOIN (SELECT project, max(ordinal) AS opened FROM project_event WHERE kind = 'open' GROUP BY ALL)
              USING (project) WHERE kind IN ('close', 'archive') AND ordinal > coalesce(opened, 0) GROUP BY ALL)
        JOIN project_event AS closing USING (project, ordinal)
    )"""
# Answers to projects that have not been undone, with whether they count; for a frozen project, as of its closing.
_ANSWERS = """
    limits AS (SELECT project, coalesce(label, 4611686018427387904) AS label,
                      coalesce(entry, 4611686018427387904) AS entry
               FROM project LEFT JOIN frozen USING (project)),
    answers AS (  -- with the limit, because DuckDB may else pair all labels with all projects
        SELECT project, event, arg_max(purpose, ordinal) AS purpose, arg_max(counted, ordinal) AS counted,
               any_value(label) AS last_label
        FROM project_label JOIN limits USING (project) WHERE ordinal <= entry GROUP BY project, event
    ),
    standing_answers AS (
        SELECT answers.project, answers.purpose, answers.counted, label_event.*
        FROM answers JOIN label_event USING (event)
        ANTI JOIN (SELECT undoes, ordinal, kind, annotator FROM label_event WHERE kind IN ('undo', 'retire')) AS undo
        ON undo.undoes = label_event.event AND undo.ordinal > label_event.ordinal AND undo.ordinal <= last_label
           AND (undo.kind = 'retire' OR undo.annotator = label_event.annotator)
        WHERE label_event.ordinal <= last_label AND label_event.kind IN ('label', 'skip')
    ),
    newest_answers AS (
        SELECT * EXCLUDE (place) FROM (
            SELECT *, row_number() OVER (PARTITION BY project, map_id, annotator, pass ORDER BY ordinal DESC) AS place
            FROM standing_answers)
        WHERE place = 1
    )"""
ANSWERS = f"WITH {FROZEN}, {_ANSWERS}"
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
    """A labelling project with its current state (open, paused, closed or archived), and who changed the state and
    when."""

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
    """An attention map in a labelling project. `kind` is "label", "gold" or "exemplar". A gold map tests annotators.
    `given` is the known class of a gold map or an exemplar."""

    map_id: str
    kind: str
    given: str | None = None


@dataclass(frozen=True)
class Heading:
    """The title, class set, codebook and author (`annotator`) of a labelling project."""

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
    """Store a new labelling project with its attention maps, and return its ID. Raises InputError if it has no title or
    no maps."""
    db.person.must("admin", "make a project")
    title, codebook = heading.title, heading.codebook
    if not 1 <= len(title.strip()) <= LONGEST_NAME:
        raise InputError(
            f"The title of a project must have 1 to {LONGEST_NAME} characters; got {len(title.strip())}. Change it."
        )
    if len(codebook) > LONGEST_NOTE:
        raise InputError(
            f"The codebook of a project must have at most {LONGEST_NOTE} characters; got {len(codebook)}. Shorten it."
        )
    if not any(entry.kind == "label" for entry in maps):
        raise InputError(
            "A project must have maps to label; its selection matches no map. Sample maps, or widen the selection."
        )
    name = uuid.uuid4().hex[:12]
    about = [name, title.strip(), heading.class_set]
    rows = [
        {"project": name, "place": position, "map_id": entry.map_id, "kind": entry.kind, "class": entry.given}
        for position, entry in enumerate(maps)
    ]
    with db.write() as cursor:
        taken = [other.title for other in projects(db) if other.state != "archived"]
        if alike := [other for other in taken if looks_like(other) == looks_like(title)]:
            raise InputError(
                f"The title of a project must be unique; {title.strip()[:60]!r} is the same as the title "
                f"{alike[0][:60]!r} of another project, or looks the same. Choose another title."
            )
        cursor.execute(
            """INSERT INTO project (project, title, class_set, recipe, rules, codebook, annotator, stored)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            [*about, to_json(dict(recipe)), to_json(dict(rules)), codebook, heading.annotator, now()],
        )
        insert(cursor, "project_map", _PROJECT_MAP, rows)
    return name


def projects(db: Database) -> list[Project]:
    """Return all labelling projects, newest first."""
    return _read_projects(db, None)


def one_project(db: Database, project: str) -> Project:
    """Return the labelling project with the given ID. Raises InputError if the ID is unknown."""
    for project_row in _read_projects(db, project.encode(errors="replace").decode()):  # no ID has unpaired surrogates
        return project_row
    raise InputError(
        f"A project must be listed on the Projects page; got {project[:60]!r}. Choose a project from this page."
    )


def _read_projects(db: Database, project: str | None) -> list[Project]:
    """Return the project with this ID, or all for None."""
    changes = db.rows(
        "SELECT project, kind, annotator, stored FROM project_event "
        "WHERE kind IN ('pause', 'open', 'close', 'archive') AND ($project IS NULL OR project = $project) "
        "ORDER BY ordinal",
        {"project": project},
    )
    last = {name: change for name, *change in changes}
    cursor = db.rows(
        """SELECT project, title, class_set, recipe, rules, codebook, annotator, stored
           FROM project WHERE $project IS NULL OR project = $project ORDER BY ordinal DESC""",
        {"project": project},
    )
    made = []
    for name, title, class_set, recipe, rules, codebook, by, when in cursor:
        if not sound("project", f"the project {title[:60]!r}", {"recipe": recipe, "rules": rules}):
            continue
        kind, who, changed = last.get(name, ("make", by, when))
        about = (json.loads(recipe), known_keys(json.loads(rules), RULES), codebook, by, when)
        made.append(Project(name, title, class_set, *about, STATES[kind], who, changed))
    return made


def project_maps(db: Database, project: str) -> list[ProjectMap]:
    """Return the attention maps of a labelling project, in the order in which they are assigned to annotators."""
    cursor = db.rows("SELECT map_id, kind, class FROM project_map WHERE project = ? ORDER BY place", [project])
    maps = [ProjectMap(*row) for row in cursor]
    newest = db.records(
        "SELECT body FROM project_event WHERE project = ? AND kind = 'order' ORDER BY ordinal DESC LIMIT 1", [project]
    )
    if not newest or not sound("project_event", f"an order of maps in the project {project}", newest[0]):
        return maps
    places = {name: position for position, name in enumerate(json.loads(newest[0]["body"]))}
    return sorted(maps, key=lambda entry: places.get(entry.map_id, len(places)))


# ---------------------------------------------------------------- actions of admins


def change_project(db: Database, project: str, kind: str, *, annotator: str) -> None:
    """Pause, open, close or archive a labelling project. Raises InputError if the current state of the project does not
    allow the change."""
    db.person.must("admin", f"{kind} a project")
    with db.write() as cursor:  # read under the lock, so that only one of two closings succeeds
        current = one_project(db, project)
        if kind not in FROM or current.state not in FROM[kind]:
            raise InputError(
                f"You can {kind} a project only if it is {' or '.join(FROM.get(kind, ('another',)))}; "
                f"{current.title!r} is {current.state} (last change by {current.changed_by or 'an unnamed user'} at "
                f"{current.changed:%Y-%m-%d %H:%M} UTC). Nothing has been changed; reload the page."
            )
        is_frozen = kind in FREEZES and frozen_at(cursor, project) is None
        body = to_json([marks(cursor, Marks()).label]) if is_frozen else None
        _event(cursor, project, kind, annotator, body=body)


def judge_person(db: Database, project: str, person: str, *, admitted: bool, annotator: str) -> None:
    """Admit an annotator to a labelling project, or exclude the annotator from it."""
    db.person.must("admin", "pause people")
    one_project(db, project)
    with db.write() as cursor:
        _event(cursor, project, "admit" if admitted else "exclude", annotator, person=person)


def order_maps(db: Database, project: str, map_ids: Sequence[str], *, annotator: str) -> None:
    """Change the order in which the attention maps of a labelling project are assigned to annotators."""
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


# ---------------------------------------------------------------- reservations and answers


@dataclass(frozen=True)
class ClaimRow:
    """The assignment of an attention map to an annotator in a labelling project."""

    map_id: str
    annotator: str
    passing: int
    purpose: str
    given: datetime
    until: datetime


@dataclass(frozen=True)
class AnswerRow:
    """The labelling project of a label event. `counted` states whether the label counts towards the project's
    target."""

    event: str
    project: str
    purpose: str
    counted: bool


def add_claims(cursor: Any, project: str, claims: Sequence[ClaimRow]) -> None:
    """Store assignments of attention maps to annotators in a labelling project."""
    if claims:
        rows = [
            {"project": project, "map_id": claim.map_id, "annotator": claim.annotator, "pass": claim.passing,
             "purpose": claim.purpose, "given": claim.given, "until": claim.until}
            for claim in claims
        ]  # fmt: skip
        insert(cursor, "claim", _CLAIM, rows)


def add_answers(cursor: Any, answers: Sequence[AnswerRow]) -> None:
    """Store which labelling project each label event belongs to. The newest record of an event counts."""
    for answer in answers:
        cursor.execute(
            "INSERT INTO project_label (event, project, purpose, counted) VALUES (?, ?, ?, ?)",
            [answer.event, answer.project, answer.purpose, answer.counted],
        )


def projects_answered(cursor: Any, events: Sequence[str]) -> dict[str, str]:
    """Return the labelling project of each label event, by event ID. Events that belong to no project are left out."""
    if not events:
        return {}
    these, values = among("event", list(events))
    recorded = cursor.execute(
        f"SELECT event, arg_max(project, ordinal) FROM project_label WHERE {these} GROUP BY event",  # noqa: S608 - our column
        values,
    )
    return dict(recorded.fetchall())


def claimed(cursor: Any, project: str, map_id: str, annotator: str, passing: int) -> str | None:
    """Return the purpose for which a map was assigned to an annotator: "label", "gold", "repeat" or "training". Return
    None if the map was not assigned to the annotator."""
    rows = cursor.execute(
        "SELECT purpose FROM claim WHERE project = ? AND map_id = ? AND annotator = ? AND pass = ? LIMIT 1",
        [project, map_id, annotator, passing],
    ).fetchall()
    return rows[0][0] if rows else None


# ---------------------------------------------------------------- changes since the last read


@dataclass(frozen=True)
class Marks:
    """The point up to which project data have been read: ordinals of the newest rows, and the number of erasures."""

    ordinal: int = 0
    label: int = 0
    classes: int = 0
    erasures: int = 0


def marks(cursor: Any, since: Marks) -> Marks:
    """Return the ordinals of the newest rows of project data, and the number of erasures. `since` is an earlier
    result."""
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
    """Return a copy of `since` that includes the assignments and labels that a transaction added."""
    rows = cursor.execute(
        """SELECT greatest((SELECT max(ordinal) FROM claim WHERE ordinal > $ordinal),
                           (SELECT max(ordinal) FROM project_label WHERE ordinal > $ordinal), $ordinal),
                  coalesce((SELECT max(ordinal) FROM label_event WHERE ordinal > $label), $label)""",
        {"ordinal": since.ordinal, "label": since.label},
    ).fetchall()
    ordinal, label = rows[0]
    return replace(since, ordinal=ordinal, label=label)


def claims_since(cursor: Any, project: str, since: Marks, *, lapse: float | None = None) -> list[tuple[Any, ...]]:
    """Return the map assignments that were added to a project after `since`, oldest first.

    `lapse` is the number of seconds until a reservation expires. If given, reservations are omitted whose holder
    labelled or skipped the map more than `lapse` seconds before the newest entry of the project.
    """
    if lapse is None:
        return cursor.execute(
            """SELECT ordinal, annotator, map_id, pass, purpose, epoch(until) FROM claim
               WHERE project = ? AND ordinal > ? ORDER BY ordinal""",
            [project, since.ordinal],
        ).fetchall()
    return cursor.execute(
        """WITH newest AS (
               SELECT greatest((SELECT max(given) FROM claim WHERE project = $project),
                               (SELECT max(label_event.stored) FROM project_label JOIN label_event USING (event)
                                WHERE project = $project)) AS at)
           SELECT ordinal, annotator, map_id, pass, purpose, epoch(until) FROM claim, newest
           WHERE project = $project AND ordinal > $since AND NOT EXISTS (
               SELECT 1 FROM project_label JOIN label_event USING (event)
               WHERE project_label.project = claim.project AND label_event.map_id = claim.map_id
                 AND label_event.annotator = claim.annotator AND label_event.pass = claim.pass
                 AND epoch(label_event.stored) + $lapse < epoch(newest.at)
                 AND event NOT IN (SELECT event FROM undone))
           ORDER BY ordinal""",
        {"project": project, "since": since.ordinal, "lapse": lapse},
    ).fetchall()


def handed(cursor: Any, project: str) -> dict[str, int]:
    """Count the map assignments of each annotator in a project, including repeats of the same map."""
    return dict(
        cursor.execute("SELECT annotator, count(*) FROM claim WHERE project = ? GROUP BY ALL", [project]).fetchall()
    )


def answers_since(cursor: Any, project: str, since: Marks, *, last: int | None = None) -> list[tuple[Any, ...]]:
    """Return the labels and skips that were added to a project after `since`, oldest first.

    `last` is the last label event that counts (None: all).
    """
    return cursor.execute(
        """SELECT project_label.ordinal, label_event.ordinal, event, annotator, map_id, pass, purpose,
                  CASE WHEN kind = 'label' THEN class END, counted, epoch(label_event.stored)
           FROM project_label JOIN label_event USING (event)
           WHERE project = $project AND project_label.ordinal > $since AND kind IN ('label', 'skip')
             AND ($last IS NULL OR label_event.ordinal <= $last)
           ORDER BY project_label.ordinal""",
        {"project": project, "since": since.ordinal, "last": last},
    ).fetchall()


def undone_since(cursor: Any, project: str, since: Marks, *, last: int | None = None) -> list[tuple[int, str]]:
    """List the labels of a project that were undone after `since`, oldest first, as pairs: the row number of the undo
    event, and the ID of the undone event."""
    return cursor.execute(
        """SELECT undo.ordinal, undo.undoes FROM label_event AS undo JOIN undone ON undone.event = undo.undoes
           JOIN (SELECT event, max(ordinal) AS entry FROM project_label WHERE project = $project GROUP BY ALL) AS answer
           ON answer.event = undo.undoes
           WHERE undo.kind IN ('undo', 'retire') AND (undo.ordinal > $label OR answer.entry > $entry)
             AND ($last IS NULL OR undo.ordinal <= $last)
           ORDER BY undo.ordinal""",
        {"project": project, "label": since.label, "entry": since.ordinal, "last": last},
    ).fetchall()


def changed_since(cursor: Any, project: str, since: Marks) -> bool:
    """Return whether a labelling project was reordered, opened, closed or archived after `since`."""
    rows = cursor.execute(
        "SELECT count(*) FROM project_event WHERE project = ? AND ordinal > ? "
        "AND kind IN ('order', 'open', 'close', 'archive')",
        [project, since.ordinal],
    ).fetchall()
    return bool(rows[0][0])


def judgements_since(cursor: Any, project: str, since: Marks) -> list[tuple[int, str, bool]]:
    """Return the events after `since` that admitted or excluded annotators, as (row number, person, admitted), oldest
    first."""
    return cursor.execute(
        """SELECT ordinal, person, kind = 'admit' FROM project_event
           WHERE project = ? AND ordinal > ? AND kind IN ('admit', 'exclude') ORDER BY ordinal""",
        [project, since.ordinal],
    ).fetchall()


# ---------------------------------------------------------------- queries


def frozen_at(cursor: Any, project: str) -> int | None:
    """Return the ordinal of the last label event before a project was closed or archived; None for other projects."""
    rows = cursor.execute(f"WITH {FROZEN} SELECT label FROM frozen WHERE project = ?", [project]).fetchall()  # noqa: S608 - ours
    return rows[0][0] if rows else None


def frozen_now(db: Database, project: str) -> int | None:
    """Return the ordinal of the last label event before a project was closed or archived; None for other projects."""
    return frozen_at(db.cursor(), project)


def projects_with(cursor: Any, class_set: str, map_id: str) -> list[str]:
    """Return the IDs of open or paused projects in which an attention map is to be labelled with a class set."""
    rows = cursor.execute(
        f"""WITH {FROZEN} SELECT project FROM project_map JOIN project USING (project)
            WHERE map_id = ? AND kind = 'label' AND class_set = ? AND project NOT IN (SELECT project FROM frozen)
            ORDER BY project.ordinal""",  # noqa: S608 - ours
        [map_id, class_set],
    )
    return [project for (project,) in rows.fetchall()]


def is_excluded(cursor: Any, project: str, person: str) -> bool:
    """Return whether an annotator is currently excluded from a labelling project."""
    rows = cursor.execute(
        """SELECT kind FROM project_event WHERE project = ? AND person = ? AND kind IN ('admit', 'exclude')
           ORDER BY ordinal DESC LIMIT 1""",
        [project, person],
    ).fetchall()
    return bool(rows) and rows[0][0] == "exclude"


def history(db: Database, project: str) -> pd.DataFrame:
    """Return a data frame of the admin actions and adjudications in a labelling project, newest first."""
    return db.read(
        """SELECT stored, annotator, kind AS what, person, NULL AS map_id, NULL AS class FROM project_event
           WHERE project = $project
           UNION ALL
           SELECT label_event.stored, annotator, 'decide', NULL, map_id, label_event.class FROM label_event
           JOIN project_map USING (map_id)
           WHERE project = $project AND project_map.kind = 'label' AND label_event.kind = 'label'
             AND queue_order = 'adjudication' AND class_set = (SELECT class_set FROM project WHERE project = $project)
             AND event NOT IN (SELECT event FROM undone)
           ORDER BY stored DESC""",
        {"project": project},
    )


def project_labels(db: Database, project: str, *, purpose: str | None = "label") -> pd.DataFrame:
    """Return a data frame of the current labels and skips in a labelling project, oldest first. Metadata of the
    attention maps are included.

    For a closed or archived project, these are the labels at closing time. `counted` is False for extra annotations.
    `purpose` is label, gold, repeat or training (None: all).
    """
    return db.read(
        f"""{ANSWERS}
            SELECT newest_answers.* EXCLUDE (stored), checkpoint, task, split, row_id, layer, head, length
            FROM newest_answers JOIN attention_map USING (map_id)
            WHERE project = $project AND ($purpose IS NULL OR purpose = $purpose) ORDER BY ordinal""",  # noqa: S608 - ours
        {"project": project, "purpose": purpose},
    )


def label_times(db: Database, project: str) -> pd.DataFrame:
    """Return a data frame of all labels in a project that were not undone, with the seconds spent, oldest first."""
    found = db.arrow(
        f"""{ANSWERS} SELECT map_id, annotator, class, counted, stored, way, seconds FROM standing_answers
            WHERE project = ? AND purpose = 'label' AND kind = 'label' ORDER BY ordinal""",  # noqa: S608 - ours
        [project],
    )
    return found.to_pandas()
