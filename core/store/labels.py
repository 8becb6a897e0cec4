"""Labels of attention maps as append-only events, and queries on them.

A browser tab (or a file) is a *batch* that numbers its events from 1 and may resend any of them; each is stored once.
The current label of a map by an annotator is the newest label or skip that has not been undone.
"""

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..codebook.registry import SHIPPED
from ..errors import InputError
from .database import Database
from .label_checks import (
    EVENT,
    MAP,
    SAME,
    TAKES_BACK,
    check_class,
    checked_event,
    checked_map,
    contradiction,
    looks_like,
    time_of,
)
from .people import Person, person_name
from .rows import FEW, Row, among, insert, insert_row, now, quoted, to_json

if TYPE_CHECKING:
    import pandas as pd

# ---------------------------------------------------------------- class names


CLASS_CHANGE_KINDS = ("set", "add", "rename", "merge", "delete")
_HISTORY = ("kind", "class", "into_class", "title", "eye", "colour", "key", "annotator", "stored")


def known_names(cursor: Any, class_sets: Collection[str]) -> dict[str, frozenset[str]]:
    """Return all class names, current and former, of each class set. Unknown class sets are left out."""
    theirs, values = among("class_set", list(class_sets))
    added = cursor.execute(
        f"SELECT class_set, class FROM class_event WHERE kind = 'add' AND {theirs}",  # noqa: S608 - our columns
        values,
    ).fetchall()
    names = {name: set(SHIPPED[name].names) for name in class_sets if name in SHIPPED}
    for name, class_ in added:
        names.setdefault(name, set()).add(class_)
    return {name: frozenset(classes) for name, classes in names.items()}


def class_history(db: Database) -> dict[str, list[Row]]:
    """Return the stored changes of classes in each class set, oldest first."""
    sql = f"SELECT class_set, {quoted(*_HISTORY)} FROM class_event ORDER BY ordinal"  # noqa: S608 - our names
    history: dict[str, list[Row]] = {}
    for change in db.records(sql):
        history.setdefault(change.pop("class_set"), []).append(change)
    return history


def add_history(cursor: Any, class_set: str, history: Any) -> int:
    """Import the class changes of a class set, and return how many are new.

    Raises InputError if `history` is not a list of changes of classes.
    """
    if not isinstance(history, list) or not all(isinstance(change, dict) for change in history):
        raise InputError(
            "The class history in a row must be a list of class changes; this row has another value. Export the labels "
            "again with this program."
        )
    rows = [_checked(class_set, change) for change in history]
    there = cursor.execute(
        f"SELECT {quoted(*_HISTORY)} FROM class_event WHERE class_set = ? ORDER BY ordinal",  # noqa: S608 - our names
        [class_set],
    ).fetchall()
    if rows[: len(there)] != there:
        return 0
    for row in rows[len(there) :]:
        insert_row(cursor, "class_event", {"class_set": class_set} | dict(zip(_HISTORY, row, strict=True)))
    return len(rows) - len(there)


def _checked(class_set: str, change: Row) -> tuple[Any, ...]:
    kind, name = change.get("kind"), change.get("class")
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            f'A class change must have the name of its class in the field "class"; got {str(name)[:40]!r}. Correct '
            "this row."
        )
    if kind not in CLASS_CHANGE_KINDS:
        raise InputError(
            f"The kind of a class change must be one of {', '.join(CLASS_CHANGE_KINDS)}; got {str(kind)[:40]!r}. "
            "Correct this row."
        )
    check_class(class_set, name, **{key: change.get(key) for key in _HISTORY[2:8]})
    if not change.get("annotator") or not change.get("title") or (kind == "add" and not change.get("eye")):
        raise InputError(
            "A class change must have an annotator and a title, and a new class a description; this row lacks at least "
            "one of them. Add the missing text."
        )
    return (*(change.get(key) for key in _HISTORY[:8]), time_of(change.get("stored"), f"the class {name[:40]!r}"))


# ---------------------------------------------------------------- checks before storing


# Content of an event, equal if it is sent again
_SAID = ("annotator", "kind", "class_set", "map_id", "pass", "class", "undoes")


def owner_of(person: Person, secret: str | None) -> str | None:
    """Return an ID for the sender of labels: the user name or, without a name, a hash of the secret from the browser.
    Return None if both are missing."""
    if person.name:
        return f"name:{person.name}"
    return None if secret is None else f"browser:{hashlib.sha256(secret.encode('utf-8', 'replace')).hexdigest()}"


@dataclass(frozen=True)
class _Known:
    """What is stored. events: fields by event; maps: stored IDs; classes: names by class set."""

    events: dict[str, Mapping[str, Any]]
    maps: frozenset[str]
    classes: Mapping[str, frozenset[str]]


def refusals(cursor: Any, rows: Sequence[Row]) -> dict[int, str]:
    """Find the label events that cannot be stored. Returns a dictionary of reasons by index in `rows`. An event may
    refer to valid events before it."""
    named = {row["event"] for row in rows} | {row["undoes"] for row in rows if row["undoes"]}
    columns, (these, values) = quoted(*_SAID), among("event", list(named))
    events = cursor.execute(
        f"SELECT event, {columns} FROM label_event WHERE {these}",  # noqa: S608 - our columns
        values,
    ).fetchall()
    theirs, names = among("map_id", list({row["map_id"] for row in rows}))
    maps = cursor.execute(f"SELECT map_id FROM attention_map WHERE {theirs}", names).fetchall()  # noqa: S608
    facts = _Known(
        {event: dict(zip(_SAID, said, strict=True)) for event, *said in events},
        frozenset(name for (name,) in maps),
        known_names(cursor, {row["class_set"] for row in rows}),
    )
    refused = {}
    for index, row in enumerate(rows):
        target = facts.events.get(row["undoes"]) if row["kind"] == "undo" else None
        if target is not None and person_name(target["annotator"]) == row["annotator"]:
            row["annotator"] = target["annotator"]  # older events may have an address as it was typed
        if why := _why_not(row, facts):
            refused[index] = why
        else:
            facts.events.setdefault(row["event"], row)
    return refused


def batch_owner(cursor: Any, batch: str) -> str | None:
    """Return the ID of the person or browser that sent a batch of labels; None if the batch or its sender is
    unknown."""
    owners = cursor.execute("SELECT owner FROM label_batch WHERE batch = ?", [batch]).fetchall()
    return owners[0][0] if owners else None


def foreign_batch(cursor: Any, batch: str, owner: str, stored_owner: str | None, annotators: set[str]) -> str | None:
    """Return an error message if a batch of labels was started by another sender; otherwise return None."""
    if stored_owner is not None:
        mine = stored_owner == owner
    else:
        before = cursor.execute("SELECT DISTINCT annotator FROM label_event WHERE batch = ?", [batch]).fetchall()
        mine = {name for (name,) in before} <= annotators
    if mine:
        return None
    return (
        f"A batch must be sent by its first sender; {batch[:60]!r} belongs to somebody else. Reload the page to "
        "start a new batch."
    )


def _why_not(row: Row, facts: _Known) -> str | None:
    stored = facts.events.get(row["event"])
    if stored is not None:
        if person_name(stored["annotator"]) != person_name(row["annotator"]):
            return _belongs(row["event"], stored, row)
        if any(stored[name] != row[name] for name in _SAID if name != "annotator"):
            return (
                f"An event that is sent again must be unchanged; {row['event'][:60]!r} is stored with another "
                "content. Reload the page to start a new batch."
            )
        return None
    if row["kind"] in TAKES_BACK and (why := _not_undone(row, facts.events.get(row["undoes"]))):
        return why
    if row["map_id"] not in facts.maps:
        return f"A label must belong to a stored map; got {row['map_id'][:60]!r}. Store the weights of this map first."
    names = facts.classes.get(row["class_set"])
    if names is None and row["kind"] in TAKES_BACK:
        return None
    if names is None:
        return (
            f"A class set must be bundled or custom; got {row['class_set'][:60]!r}. Choose another class set, or "
            "add its classes first."
        )
    if row["kind"] == "label" and row["class"] not in names:
        return (
            f"A label must be one of the classes of {row['class_set']!r} ({', '.join(sorted(names))[:200]}); got "
            f"{row['class'][:60]!r}. Correct it, or add the class first."
        )
    return None


def _not_undone(row: Row, target: Mapping[str, Any] | None) -> str | None:
    if target is None:
        return f"An undo must refer to a stored event; got {row['undoes'][:60]!r}. Remove the undo."
    if row["kind"] == "undo" and target["annotator"] != row["annotator"]:
        return _belongs(row["undoes"], target, row)
    if target["kind"] in TAKES_BACK:
        return (
            f"An undo must refer to a label, skip, flag or note; {row['undoes'][:60]!r} is an undo. Label the map "
            "again."
        )
    if any(target[name] != row[name] for name in ("class_set", "map_id", "pass")):
        return (
            "An undo must have the map, class set and pass of the event it retracts; those of "
            f"{row['undoes'][:60]!r} differ. Correct it."
        )
    return None


def _belongs(event: str, stored: Mapping[str, Any], row: Row) -> str:
    return (
        f"An event must be resent or undone by its author; {event[:60]!r} is by {stored['annotator'][:60]!r}, not "
        f"{row['annotator'][:60]!r}. Label the map yourself instead."
    )


# Batches of likely label errors, of labels retracted by admins, and of files
OWN_BATCHES = ("doubts-", "retired-", "file-")
_FACTS = "checkpoint, weights_hash, task, split, row_id, layer, head, length, causal, maximum"


# ---------------------------------------------------------------- maps


def store_maps(db: Database, maps: Iterable[Mapping[str, Any]]) -> int:
    """Store attention maps that are not stored yet, and return the number of new maps."""
    rows = {row["map_id"]: row for row in map(checked_map, maps)}
    with db.write() as cursor:
        facts = stored_facts(cursor, list(rows))
        for name in facts:
            if why := contradiction(rows[name], facts[name]):
                raise InputError(why)
        return add_maps(cursor, [row for name, row in rows.items() if name not in facts])


def add_maps(cursor: Any, rows: Sequence[Row]) -> int:
    """Insert attention maps into the database, and return how many were inserted. The maps must be valid and new."""
    texts = [
        row
        | {"tokens": to_json(row["tokens"]), "separators": to_json(row["separators"]), "stored": row["stored"] or now()}
        for row in rows
    ]
    return insert(cursor, "attention_map", MAP, texts)


def stored_facts(cursor: Any, map_ids: Sequence[str]) -> dict[str, Row]:
    """Return metadata of stored attention maps, by map ID. Only fields that identify a map, such as layer and tokens,
    are returned."""
    stored = cursor.execute(
        f"SELECT map_id, {quoted(*SAME)} FROM attention_map "  # noqa: S608 - our columns
        "WHERE map_id IN (SELECT unnest(?))",
        [list(map_ids)],
    ).fetchall()
    facts = {name: dict(zip(SAME, values, strict=True)) for name, *values in stored}
    return {name: row | {"tokens": json.loads(row["tokens"])} for name, row in facts.items()}


def maps_of(db: Database, map_ids: Sequence[str]) -> list[Row]:
    """Return attention maps with their metadata and weights, in the order of their IDs. Unknown IDs are omitted."""
    if not len(map_ids):
        return []
    found = db.records(
        "SELECT * EXCLUDE (stored) FROM attention_map WHERE map_id IN (SELECT unnest(?))", [list(map_ids)]
    )
    rows = {row["map_id"]: row for row in found}
    for row in rows.values():
        row |= {"tokens": json.loads(row["tokens"]), "separators": json.loads(row["separators"])}
    return [rows[name] for name in map_ids if name in rows]


def stored_at(db: Database) -> dict[str, datetime]:
    """Return the time at which each attention map was stored, as a dictionary by map ID."""
    return dict(db.rows("SELECT map_id, stored FROM attention_map"))


def map_facts(db: Database) -> "pd.DataFrame":
    """Return a data frame with the metadata of all stored attention maps, oldest first."""
    return db.read(f"SELECT map_id, {_FACTS} FROM attention_map ORDER BY stored, map_id")  # noqa: S608 - our columns


def map_kinds(db: Database) -> "pd.DataFrame":
    """Return a data frame that counts the stored attention maps by checkpoint, task, layer and kind (causal or
    non-causal)."""
    return db.read("SELECT checkpoint, task, layer, causal, count(*) AS maps FROM attention_map GROUP BY ALL")


# ---------------------------------------------------------------- events


@dataclass(frozen=True)
class Saved:
    """The result of storing label events. `acknowledged` is the highest stored sequence number."""

    new: int
    acknowledged: int


def record_events(db: Database, events: Sequence[Mapping[str, Any]], *, secret: str | None = None) -> Saved:
    """Store a batch of label events, either all or none, skipping events that are already stored.

    Args:
        events: each with batch, sequence, kind, class_set, map_id, annotator, and class (label) or undoes (undo,
            retire); other fields are optional.
        secret: known only to the sending browser; the batch then belongs to it, or to the signed-in person.

    Raises:
        InputError: an event cannot be stored; the message names the first one.
        RightsError: the person may not label under that name, or may not retract labels of others.
    """
    rows = [checked_event(event) for event in events]
    if not rows:
        return Saved(0, 0)
    for row in rows:
        db.person.signs(row["annotator"])
        if row["kind"] == "retire":
            db.person.must("admin", "retract labels of others")
    with db.write() as cursor:
        owner = owner_of(db.person, secret)
        if owner is not None:
            for batch in {row["batch"] for row in rows}:
                stored_owner = batch_owner(cursor, batch)
                why = foreign_batch(cursor, batch, owner, stored_owner, {row["annotator"] for row in rows})
                if why:
                    raise InputError(why)
                if stored_owner is None:
                    cursor.execute("INSERT INTO label_batch VALUES (?, ?, ?)", [batch, owner, now()])
        refused = refusals(cursor, rows)
        if refused:
            raise InputError(refused[min(refused)])
        return Saved(add_events(cursor, rows), max(row["sequence"] for row in rows))


def stored_events(cursor: Any, events: Sequence[str]) -> set[str]:
    """Return the IDs of those label events that are already stored."""
    these, values = among("event", list(events))
    stored = cursor.execute(f"SELECT event FROM label_event WHERE {these}", values)  # noqa: S608 - our column
    return {event for (event,) in stored.fetchall()}


def add_events(cursor: Any, rows: Sequence[Row]) -> int:
    """Insert valid label events, and return how many events were new."""
    theirs, values = among("map_id", sorted({row["map_id"] for row in rows}))
    found = cursor.execute(
        f"""SELECT event, kind, class_set, map_id, annotator, pass, undoes FROM label_event
            WHERE {theirs} ORDER BY ordinal""",  # noqa: S608 - our columns
        values,
    )
    names = [column[0] for column in found.description]
    stored = [dict(zip(names, event, strict=True)) for event in found.fetchall()]
    there = {row["event"] for row in stored}
    new = list({row["event"]: row for row in rows if row["event"] not in there}.values())
    standing: dict[tuple[Any, ...], list[str]] = {}
    whose: dict[str, tuple[Any, ...]] = {}
    for row in [*stored, *new]:
        opinion = whose.get(row["undoes"], _opinion(row)) if row["kind"] == "retire" else _opinion(row)
        stack = standing.setdefault(opinion, [])
        if row["kind"] in TAKES_BACK and row["undoes"] in stack:
            stack.remove(row["undoes"])
        elif row["kind"] in ("label", "skip"):
            if "supersedes" in row:
                row["supersedes"] = stack[-1] if stack else None
            stack.append(row["event"])
            whose[row["event"]] = opinion
    if len(new) > FEW:  # Arrow for many events; plain parameters take a third of the time for one or two
        insert(cursor, "label_event", EVENT, new)
        return len(new)
    for row in new:
        insert_row(cursor, "label_event", {name: row[name] for name in EVENT.names})
    return len(new)


def _opinion(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["class_set"], row["map_id"], row["annotator"], row["pass"]


# ---------------------------------------------------------------- queries


def labels(
    db: Database, class_set: str, *, annotator: str | None = None, map_id: str | None = None, last: int | None = None
) -> "pd.DataFrame":
    """Return a data frame of the current labels in a class set, oldest first. Metadata of the attention maps are
    included.

    `last` is the ordinal of the last event that counts, for an earlier state.
    """
    newest = "standing"
    if last is not None:
        newest = f"""(SELECT * EXCLUDE (place) FROM (
            SELECT *, row_number() OVER (
                PARTITION BY class_set, map_id, annotator, pass ORDER BY ordinal DESC) AS place
            FROM label_event AS target WHERE ordinal <= {int(last)} AND kind IN ('label', 'skip') AND NOT EXISTS (
                SELECT 1 FROM label_event AS undo
                WHERE undo.undoes = target.event AND undo.ordinal > target.ordinal AND undo.ordinal <= {int(last)}
                  AND (undo.kind = 'retire' OR undo.kind = 'undo' AND undo.annotator = target.annotator))
        ) WHERE place = 1) AS standing"""  # noqa: S608 - a number
    found = db.arrow(
        f"""SELECT standing.* EXCLUDE (stored), {_FACTS} FROM {newest} JOIN attention_map USING (map_id)
            WHERE kind = 'label' AND class_set = $class_set AND ($annotator IS NULL OR annotator = $annotator)
              AND ($map_id IS NULL OR map_id = $map_id)
            ORDER BY ordinal""",  # noqa: S608 - our columns
        {"class_set": class_set, "annotator": annotator, "map_id": map_id},
    )
    return found.to_pandas()


def annotators(db: Database, class_set: str | None = None) -> list[str]:
    """Return the names of all people with label events in a class set or, if it is None, in any class set."""
    cursor = db.rows(
        "SELECT DISTINCT annotator FROM label_event WHERE $class_set IS NULL OR class_set = $class_set ORDER BY ALL",
        {"class_set": class_set},
    )
    return [name for (name,) in cursor]


def classes_given(db: Database, class_set: str) -> list[str]:
    """Return all class names that annotators have used in a class set, including those of retracted labels."""
    cursor = db.rows(
        "SELECT DISTINCT class FROM label_event WHERE class_set = ? AND kind = 'label' ORDER BY class", [class_set]
    )
    return [name for (name,) in cursor]


def class_counts(db: Database, class_set: str) -> dict[str, int]:
    """Return the number of current labels for each class name in a class set, sorted by name."""
    cursor = db.rows(
        """SELECT class, count(*) FROM standing SEMI JOIN attention_map USING (map_id)
           WHERE kind = 'label' AND class_set = ? GROUP BY class ORDER BY class""",
        [class_set],
    )
    return dict(cursor)


def decided(db: Database, class_set: str, annotator: str, *, passing: int = 1) -> dict[str, str | None]:
    """Return the class that an annotator assigned to each map, by map ID. A skipped map has the class None."""
    pairs = db.rows(
        "SELECT map_id, CASE WHEN kind = 'label' THEN class END FROM standing "
        "WHERE class_set = ? AND annotator = ? AND pass = ?",
        [class_set, annotator, passing],
    )
    return dict(pairs)


def undoable(db: Database, class_set: str, annotator: str, *, passing: int = 1, most: int = 500) -> list[Row]:
    """Return the newest label events that an annotator can still undo, oldest first."""
    events = db.read(
        """SELECT event, kind, map_id, class, ordinal FROM label_event
           WHERE class_set = ? AND annotator = ? AND pass = ? AND kind NOT IN ('undo', 'retire')
             AND event NOT IN (SELECT event FROM undone)
           ORDER BY ordinal DESC LIMIT ?""",
        [class_set, annotator, passing, most],
    )
    rows = events.iloc[::-1].drop(columns="ordinal").astype(object).where(lambda frame: frame.notna(), None)
    return rows.to_dict("records")


def flagged(db: Database, class_set: str, *, map_id: str | None = None) -> "pd.DataFrame":
    """Return a data frame of the current flags and notes on attention maps in a class set, newest first."""
    return db.read(
        f"""SELECT ordinal, batch, map_id, kind, annotator, note, suggestion, probability, happened, {_FACTS}
            FROM label_event JOIN attention_map USING (map_id)
            WHERE class_set = $class_set AND kind IN ('flag', 'note') AND ($map_id IS NULL OR map_id = $map_id)
              AND event NOT IN (SELECT event FROM undone)
            ORDER BY ordinal DESC""",  # noqa: S608 - our columns
        {"class_set": class_set, "map_id": map_id},
    )


def pace(db: Database, class_set: str) -> "pd.DataFrame":
    """Return a data frame with one row per annotator and labelling pass: number of labels, median seconds per label,
    and labels per hour."""
    return db.read(
        """SELECT annotator, pass, count(*) AS n, median(seconds) AS median_seconds,
                  3600 / nullif(avg(least(seconds, 60)) FILTER (seconds IS NOT NULL), 0) AS per_hour,
                  min(happened) AS first, max(happened) AS last
           FROM label_event WHERE class_set = ? AND kind = 'label' GROUP BY annotator, pass ORDER BY n DESC""",
        [class_set],
    )


def all_events(db: Database, class_set: str | None = None) -> list[Row]:
    """Return all stored label events in a class set or, if it is None, in all class sets, oldest first."""
    return db.records(
        f"SELECT {quoted(*EVENT.names)} FROM label_event "  # noqa: S608 - our columns
        "WHERE $class_set IS NULL OR class_set = $class_set ORDER BY ordinal",
        {"class_set": class_set},
    )


# ---------------------------------------------------------------- classes


@dataclass(frozen=True)
class ClassChange:
    """A change to a pattern class or a class set. `kind` is "add", "rename", "merge" or "delete" for a class, and "set"
    for the description of a class set."""

    kind: str
    name: str
    into: str | None = None
    title: str | None = None
    eye: str | None = None
    colour: str | None = None
    key: str | None = None


def change_class(
    db: Database, class_set: str, change: ClassChange, *, annotator: str, taken: Collection[str] = ()
) -> None:
    """Store a change to a pattern class. Labels that were given before the change are not modified.

    `taken` are the current class names. Raises InputError if a new class exists already, or the class to change does
    not.
    """
    change_classes(db, class_set, [change], annotator=annotator, taken=taken)


def change_classes(
    db: Database, class_set: str, changes: Sequence[ClassChange], *, annotator: str, taken: Collection[str] = ()
) -> None:
    """Store several changes to pattern classes in a class set, either all of them or none."""
    db.person.must("admin", "change classes")
    for change in changes:
        kind, name, into, eye = change.kind, change.name, change.into, change.eye
        check_class(class_set, name, into=into, title=change.title, eye=eye, colour=change.colour, key=change.key)
        if kind == "add" and (looks_like(name) in map(looks_like, taken) or not looks_like(name)):
            raise InputError(
                "The name of a new class must have visible characters and differ from all other names; got "
                f"{name[:60]!r}. Choose another name."
            )
        if kind == "add" and not (eye or "").strip():
            raise InputError(
                f"A new class must have a description of its pattern; {name[:60]!r} has none. Add a description."
            )
        if kind == "merge" and into == name:
            raise InputError(
                f"A class must be merged into another class; got {name[:60]!r} twice. Choose another class."
            )
        if kind not in ("add", "set") and (name not in taken or (kind == "merge" and into not in taken)):
            raise InputError(
                f"Only classes of the class set can be renamed, deleted or merged ({', '.join(taken)}); got "
                f"{name[:60]!r}{f' into {into!r}' if into else ''}. Choose one of them."
            )
    with db.write() as cursor:
        cursor.executemany(
            """INSERT INTO class_event (class_set, kind, class, into_class, title, eye, colour, key, annotator, stored)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [
                [class_set, one.kind, one.name, one.into, one.title or one.name, one.eye, one.colour, one.key or None,
                 annotator, now()]
                for one in changes
            ],
        )  # fmt: skip


def class_events(db: Database) -> list[Row]:
    """Return the stored changes to pattern classes in all class sets, oldest first."""
    return db.records(
        'SELECT class_set, kind, class, into_class AS "into", title, eye, colour, key FROM class_event ORDER BY ordinal'
    )


# ---------------------------------------------------------------- labels retracted by admins


def retire(db: Database, events: Sequence[str], *, annotator: str, why: str) -> Saved:
    """Retract labels, skips, flags or notes of any annotator. Earlier labels or skips of the same maps become current.

    Nothing is retracted if an event is not stored or is an undo, or the reason is empty (InputError). Raises
    RightsError unless the user is an admin.
    """
    db.person.must("admin", "retract labels of others")
    if not why.strip():
        raise InputError("A reason is required to retract another annotator's label; got none. Enter a reason.")
    stored = db.records(
        "SELECT event, class_set, map_id, pass FROM label_event WHERE event IN (SELECT unnest(?))", [list(events)]
    )
    facts = {row.pop("event"): row for row in stored}
    batch = f"retired-{uuid.uuid4().hex}"
    rows = []
    for number, event in enumerate(dict.fromkeys(events), start=1):
        if event not in facts:
            raise InputError(
                f"Only stored label events can be retracted; got the ID {event[:60]!r}. Choose an ID from the output "
                "of `labels export`."
            )
        about = {"batch": batch, "sequence": number, "kind": "retire", "undoes": event}
        rows.append(facts[event] | about | {"annotator": annotator, "note": why})
    return record_events(db, rows)


def of_classes(db: Database, class_set: str, classes: Sequence[str]) -> list[str]:
    """Return the event IDs of all current labels whose class is in `classes`, oldest first."""
    cursor = db.rows(
        "SELECT event FROM standing WHERE kind = 'label' AND class_set = ? AND class IN (SELECT unnest(?)) "
        "ORDER BY ordinal",
        [class_set, list(classes)],
    )
    return [event for (event,) in cursor]
