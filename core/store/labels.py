"""Labels of attention maps as events that are only ever added, and the questions asked of them.

A browser tab (or a file) is a *batch* that numbers its events from 1 and may send any of them again; the store
keeps each once. What a person thinks of a map now is their newest label or skip that no undo took back.
"""

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

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
    now,
    time_of,
)
from .people import Person, person_name
from .rows import FEW, Row, among, insert, marks, quoted, to_json

# ---------------------------------------------------------------- which class names a label may carry


KINDS = ("set", "add", "rename", "merge", "delete")
_HISTORY = ("kind", "class", "into_class", "title", "eye", "colour", "key", "annotator", "stored")


def known_names(cursor: Any, class_sets: Collection[str]) -> dict[str, frozenset[str]]:
    """Every name that each of these class sets has or had; a set that nobody made is left out."""
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
    """What happened to the classes of each set, oldest first, as `add_history` takes it."""
    rows = (
        db.cursor()
        .execute(f"SELECT class_set, {quoted(*_HISTORY)} FROM class_event ORDER BY ordinal")  # noqa: S608 - our names
        .fetchall()
    )
    history: dict[str, list[Row]] = {}
    for name, *values in rows:
        history.setdefault(name, []).append(dict(zip(_HISTORY, values, strict=True)))
    return history


def add_history(cursor: Any, class_set: str, history: Any) -> int:
    """Add what happened to a class set elsewhere, where nothing else happened to it here.

    Args:
        history: changes of its classes, oldest first, as `class_history` gives them.

    Returns:
        How many were new; 0 where something else happened here.

    Raises:
        InputError: `history` is no list of changes of classes.
    """
    if not isinstance(history, list) or not all(isinstance(change, dict) for change in history):
        raise InputError("What happened to classes is a list of changes, as an export writes it; this row has another.")
    rows = [_checked(class_set, change) for change in history]
    there = cursor.execute(
        f"SELECT {quoted(*_HISTORY)} FROM class_event WHERE class_set = ? ORDER BY ordinal",  # noqa: S608 - our names
        [class_set],
    ).fetchall()
    if rows[: len(there)] != there:
        return 0
    for row in rows[len(there) :]:
        cursor.execute(
            f"INSERT INTO class_event (class_set, {quoted(*_HISTORY)}) VALUES ({marks(1 + len(_HISTORY))})",  # noqa: S608 - our names
            [class_set, *row],
        )
    return len(rows) - len(there)


def _checked(class_set: str, change: Row) -> tuple[Any, ...]:
    kind, name = change.get("kind"), change.get("class")
    if kind not in KINDS or not isinstance(name, str) or not name.strip():
        raise InputError(f"A change of classes is one of {', '.join(KINDS)}; this row has {str(kind)[:40]!r}.")
    check_class(class_set, name, **{key: change.get(key) for key in _HISTORY[2:8]})
    if not change.get("annotator") or not change.get("title") or (kind == "add" and not change.get("eye")):
        raise InputError("A change of classes says who made it, a title and what the eye sees; this row does not.")
    return (*(change.get(key) for key in _HISTORY[:8]), time_of(change.get("stored"), f"the class {name[:40]!r}"))


# ----------------------------------------------------------------


# -------------------- Which label events may be stored beside those that are


_SAID = ("annotator", "kind", "class_set", "map_id", "pass", "class", "undoes")  # what an event is, sent once or twice


def owner_of(person: Person, secret: str | None) -> str | None:
    """Who sends: the one signed in; else the browser, by a hash of the secret it keeps. None: the file's own owner."""
    if person.name:
        return f"name:{person.name}"
    return None if secret is None else f"browser:{hashlib.sha256(secret.encode('utf-8', 'replace')).hexdigest()}"


@dataclass(frozen=True)
class _Known:
    """What is stored already. events: event -> its facts; maps: stored ids; classes: names by class set."""

    events: dict[str, Mapping[str, Any]]
    maps: frozenset[str]
    classes: Mapping[str, frozenset[str]]


def refusals(cursor: Any, rows: Sequence[Row]) -> dict[int, str]:
    """Why rows cannot be stored, by their place; each may build on those before it that can."""
    facts, refused = _label_rules_known(cursor, rows), {}
    for index, row in enumerate(rows):
        target = facts.events.get(row["undoes"]) if row["kind"] == "undo" else None
        if target is not None and person_name(target["annotator"]) == row["annotator"]:
            row["annotator"] = target["annotator"]  # of a version that stored addresses as they were typed
        if why := _why_not(row, facts):
            refused[index] = why
        else:
            facts.events.setdefault(row["event"], row)
    return refused


def batch_owner(cursor: Any, batch: str) -> str | None:
    """Who sent under `batch` first; None for a new one, and for one from before owners were kept."""
    owners = cursor.execute("SELECT owner FROM label_batch WHERE batch = ?", [batch]).fetchall()
    return owners[0][0] if owners else None


def foreign_batch(cursor: Any, batch: str, owner: str, stored_owner: str | None, annotators: set[str]) -> str | None:
    """Why `owner` may not send under `batch`, or None. stored_owner: its owner; without one its events' names say."""
    if stored_owner is not None:
        mine = stored_owner == owner
    else:
        before = cursor.execute("SELECT DISTINCT annotator FROM label_event WHERE batch = ?", [batch]).fetchall()
        mine = {name for (name,) in before} <= annotators
    if mine:
        return None
    return (
        f"An outbox belongs to who sent it first, and {batch[:60]!r} is not yours: open the page again, which starts "
        "an outbox of your own."
    )


def _label_rules_known(cursor: Any, rows: Sequence[Row]) -> _Known:
    named = {row["event"] for row in rows} | {row["undoes"] for row in rows if row["undoes"]}
    columns, (these, values) = quoted(*_SAID), among("event", list(named))
    events = cursor.execute(
        f"SELECT event, {columns} FROM label_event WHERE {these}",  # noqa: S608 - our columns
        values,
    ).fetchall()
    theirs, names = among("map_id", list({row["map_id"] for row in rows}))
    maps = cursor.execute(f"SELECT map_id FROM attention_map WHERE {theirs}", names).fetchall()  # noqa: S608
    return _Known(
        {event: dict(zip(_SAID, said, strict=True)) for event, *said in events},
        frozenset(name for (name,) in maps),
        known_names(cursor, {row["class_set"] for row in rows}),
    )


def _why_not(row: Row, facts: _Known) -> str | None:
    stored = facts.events.get(row["event"])
    if stored is not None:
        return _not_again(row, stored)
    if row["kind"] in TAKES_BACK and (why := _not_undone(row, facts.events.get(row["undoes"]))):
        return why
    if row["map_id"] not in facts.maps:
        return f"A label belongs to a stored map; {row['map_id'][:60]!r} is none: store its weights first."
    names = facts.classes.get(row["class_set"])
    if names is None and row["kind"] in TAKES_BACK:
        return None
    if names is None:
        return (
            f"A class set is one of those that ship or that somebody made; {row['class_set'][:60]!r} is none: choose "
            "another or add its classes first."
        )
    if row["kind"] == "label" and row["class"] not in names:
        return (
            f"A label must be one of the classes of {row['class_set']!r} ({', '.join(sorted(names))[:200]}); "
            f"{row['class'][:60]!r} is none of them: correct it or add the class first."
        )
    return None


def _not_again(row: Row, stored: Mapping[str, Any]) -> str | None:
    if person_name(stored["annotator"]) != person_name(row["annotator"]):
        return _belongs(row["event"], stored, row)
    if any(stored[name] != row[name] for name in _SAID if name != "annotator"):
        return (
            f"An event is sent again as it was; {row['event'][:60]!r} is stored and says something else: start a new "
            "outbox by opening the page again."
        )
    return None


def _not_undone(row: Row, target: Mapping[str, Any] | None) -> str | None:
    if target is None:
        return f"An undo takes back an event that is stored; {row['undoes'][:60]!r} is none: leave it out."
    if row["kind"] == "undo" and target["annotator"] != row["annotator"]:
        return _belongs(row["undoes"], target, row)
    if target["kind"] in TAKES_BACK:
        return (
            f"An undo takes back a label, skip, flag or note; {row['undoes'][:60]!r} is an undo: label the map again."
        )
    if any(target[name] != row[name] for name in ("class_set", "map_id", "pass")):
        return f"An undo names the map, class set and pass of what it takes back; {row['undoes'][:60]!r} has others."
    return None


def _belongs(event: str, stored: Mapping[str, Any], row: Row) -> str:
    return (
        f"An event is sent again or undone by the one who made it; {event[:60]!r} is by {stored['annotator'][:60]!r}, "
        f"not {row['annotator'][:60]!r}: label the map yourself instead."
    )


# ----------------------------------------------------------------


OWN_BATCHES = ("doubts-", "retired-", "file-")  # of doubts that a classifier raised, retired labels, and files
_FACTS = "checkpoint, weights_hash, task, split, row_id, layer, head, length, causal, maximum"


# ---------------------------------------------------------------- maps


def store_maps(db: Database, maps: Iterable[Mapping[str, Any]]) -> int:
    """Keep maps (facts as in `MAP`, weights as float16 bytes) that are not there yet; returns how many were new."""
    rows = {row["map_id"]: row for row in map(checked_map, maps)}
    with db.write() as cursor:
        facts = stored_facts(cursor, list(rows))
        for name in facts:
            if why := contradiction(rows[name], facts[name]):
                raise InputError(why)
        return add_maps(cursor, [row for name, row in rows.items() if name not in facts])


def add_maps(cursor: Any, rows: Sequence[Row]) -> int:
    """Add maps as `checked_map` returns them, none of which is there; returns how many."""
    texts = [
        row
        | {"tokens": to_json(row["tokens"]), "separators": to_json(row["separators"]), "stored": row["stored"] or now()}
        for row in rows
    ]
    return insert(cursor, "attention_map", MAP, texts)


def stored_facts(cursor: Any, map_ids: Sequence[str]) -> dict[str, Row]:
    """What is stored of these maps, without weights, by id."""
    stored = cursor.execute(
        f"SELECT map_id, {quoted(*SAME)} FROM attention_map "  # noqa: S608 - our columns
        "WHERE map_id IN (SELECT unnest(?))",
        [list(map_ids)],
    ).fetchall()
    facts = {name: dict(zip(SAME, values, strict=True)) for name, *values in stored}
    return {name: row | {"tokens": json.loads(row["tokens"])} for name, row in facts.items()}


def maps_of(db: Database, map_ids: Sequence[str]) -> list[Row]:
    """These maps with their facts and weights, in the order asked for; unknown ids are left out."""
    if not len(map_ids):
        return []
    cursor = db.cursor().execute(
        "SELECT * EXCLUDE (stored) FROM attention_map WHERE map_id IN (SELECT unnest(?))", [list(map_ids)]
    )
    names = [column[0] for column in cursor.description]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
    for row in rows.values():
        row |= {"tokens": json.loads(row["tokens"]), "separators": json.loads(row["separators"])}
    return [rows[name] for name in map_ids if name in rows]


def stored_at(db: Database) -> dict[str, datetime]:
    """When each map was stored first, by id."""
    return dict(db.cursor().execute("SELECT map_id, stored FROM attention_map").fetchall())


def map_facts(db: Database) -> pd.DataFrame:
    """Every stored map without tokens and weights, oldest first."""
    return db.read(f"SELECT map_id, {_FACTS} FROM attention_map ORDER BY stored, map_id")  # noqa: S608 - our columns


def map_kinds(db: Database) -> pd.DataFrame:
    """Which maps there are: checkpoint, task, layer, causal, and how many (maps)."""
    return db.read("SELECT checkpoint, task, layer, causal, count(*) AS maps FROM attention_map GROUP BY ALL")


# ---------------------------------------------------------------- events


@dataclass(frozen=True)
class Saved:
    """What the store answers: how many events were new, and the highest number of the batch that it has."""

    new: int
    acknowledged: int


def record_events(db: Database, events: Sequence[Mapping[str, Any]], *, secret: str | None = None) -> Saved:
    """Add label events of one batch, all or none; those that are stored already are passed over.

    Args:
        db: where labels are stored.
        events: each with batch, sequence, kind, class_set, map_id, annotator, and class (label) or undoes (undo,
            retire); the rest is optional.
        secret: what the sending browser keeps to itself; the batch is then its own, or of whoever is signed in.

    Returns:
        How many were new, and the highest sequence number of these.

    Raises:
        InputError: naming the first event that cannot be stored.
        RightsError: the person may not label under that name, or retire.
    """
    rows = [checked_event(event) for event in events]
    if not rows:
        return Saved(0, 0)
    for row in rows:
        db.person.signs(row["annotator"])
        if row["kind"] == "retire":
            db.person.must("admin", "retire labels of others")
    with db.write() as cursor:
        _claim(cursor, rows, owner_of(db.person, secret))
        refused = refusals(cursor, rows)
        if refused:
            raise InputError(refused[min(refused)])
        return Saved(add_events(cursor, rows), max(row["sequence"] for row in rows))


def stored_events(cursor: Any, events: Sequence[str]) -> set[str]:
    """Those of these events that are stored."""
    these, values = among("event", list(events))
    stored = cursor.execute(f"SELECT event FROM label_event WHERE {these}", values)  # noqa: S608 - our column
    return {event for (event,) in stored.fetchall()}


def add_events(cursor: Any, rows: Sequence[Row]) -> int:
    """Add rows that `core.store.labels.refusals` has nothing against; returns how many were not there yet."""
    stored = _of_their_maps(cursor, rows)
    there = {row["event"] for row in stored}
    new = list({row["event"]: row for row in rows if row["event"] not in there}.values())
    _link(stored, new)
    _add(cursor, new)
    return len(new)


def _claim(cursor: Any, rows: Sequence[Row], owner: str | None) -> None:
    if owner is None:
        return
    for batch in {row["batch"] for row in rows}:
        stored_owner = batch_owner(cursor, batch)
        why = foreign_batch(cursor, batch, owner, stored_owner, {row["annotator"] for row in rows})
        if why:
            raise InputError(why)
        if stored_owner is None:
            cursor.execute("INSERT INTO label_batch VALUES (?, ?, ?)", [batch, owner, now()])


def _add(cursor: Any, rows: list[Row]) -> None:
    """Arrow for many; for the one or two of a key press plain parameters take a third of the time."""
    if len(rows) > FEW:
        insert(cursor, "label_event", EVENT, rows)
        return
    for row in rows:
        cursor.execute(
            f"INSERT INTO label_event ({quoted(*EVENT.names)}) VALUES ({marks(len(EVENT.names))})",  # noqa: S608 - our columns
            [row[name] for name in EVENT.names],
        )


def _opinion(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["class_set"], row["map_id"], row["annotator"], row["pass"]


def _of_their_maps(cursor: Any, rows: Sequence[Row]) -> list[Row]:
    """What is stored of the maps of these events, oldest first."""
    theirs, values = among("map_id", sorted({row["map_id"] for row in rows}))
    stored = cursor.execute(
        f"""SELECT event, kind, class_set, map_id, annotator, pass, undoes FROM label_event
            WHERE {theirs} ORDER BY ordinal""",  # noqa: S608 - our columns
        values,
    )
    names = [column[0] for column in stored.description]
    return [dict(zip(names, event, strict=True)) for event in stored.fetchall()]


def _link(stored: list[Row], rows: list[Row]) -> None:
    """Fill `supersedes`: the label or skip that stood when each new one came. stored: of the same maps, in order."""
    standing: dict[tuple[Any, ...], list[str]] = {}
    whose: dict[str, tuple[Any, ...]] = {}
    for row in [*stored, *rows]:
        opinion = whose.get(row["undoes"], _opinion(row)) if row["kind"] == "retire" else _opinion(row)
        stack = standing.setdefault(opinion, [])
        if row["kind"] in TAKES_BACK and row["undoes"] in stack:
            stack.remove(row["undoes"])
        elif row["kind"] in ("label", "skip"):
            if "supersedes" in row:
                row["supersedes"] = stack[-1] if stack else None
            stack.append(row["event"])
            whose[row["event"]] = opinion


# ---------------------------------------------------------------- questions


def labels(
    db: Database, class_set: str, *, annotator: str | None = None, map_id: str | None = None, last: int | None = None
) -> pd.DataFrame:
    """The labels that stand (not skips), oldest first, with the facts of their maps; classes as named when given.

    annotator, map_id: only theirs. last: the ordinal of the last event that counts, so that what stood then is told.
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
    return db.read(
        f"""SELECT standing.* EXCLUDE (stored), {_FACTS} FROM {newest} JOIN attention_map USING (map_id)
            WHERE kind = 'label' AND class_set = $class_set AND ($annotator IS NULL OR annotator = $annotator)
              AND ($map_id IS NULL OR map_id = $map_id)
            ORDER BY ordinal""",  # noqa: S608 - our columns
        {"class_set": class_set, "annotator": annotator, "map_id": map_id},
    )


def annotators(db: Database, class_set: str | None = None) -> list[str]:
    """Every name that label events carry, of one class set or all."""
    cursor = db.cursor().execute(
        "SELECT DISTINCT annotator FROM label_event WHERE $class_set IS NULL OR class_set = $class_set ORDER BY ALL",
        {"class_set": class_set},
    )
    return [name for (name,) in cursor.fetchall()]


def classes_given(db: Database, class_set: str) -> list[str]:
    """The classes that labels of a set carry, those that somebody took back too, as named when given."""
    cursor = db.cursor().execute(
        "SELECT DISTINCT class FROM label_event WHERE class_set = ? AND kind = 'label' ORDER BY class", [class_set]
    )
    return [name for (name,) in cursor.fetchall()]


def class_counts(db: Database, class_set: str) -> dict[str, int]:
    """How many labels of stored maps stand, by class as named when given, in the order of the names."""
    cursor = db.cursor().execute(
        """SELECT class, count(*) FROM standing SEMI JOIN attention_map USING (map_id)
           WHERE kind = 'label' AND class_set = ? GROUP BY class ORDER BY class""",
        [class_set],
    )
    return dict(cursor.fetchall())


def decided(db: Database, class_set: str, annotator: str, *, passing: int = 1) -> dict[str, str | None]:
    """Map -> class (None: skipped) of everything this annotator has decided on in this pass."""
    pairs = (
        db.cursor()
        .execute(
            "SELECT map_id, CASE WHEN kind = 'label' THEN class END FROM standing "
            "WHERE class_set = ? AND annotator = ? AND pass = ?",
            [class_set, annotator, passing],
        )
        .fetchall()
    )
    return dict(pairs)


def undoable(db: Database, class_set: str, annotator: str, *, passing: int = 1, most: int = 500) -> list[Row]:
    """The newest events that an undo would take back, oldest of them first: event, kind, map_id, class."""
    events = db.read(
        """SELECT event, kind, map_id, class, ordinal FROM label_event
           WHERE class_set = ? AND annotator = ? AND pass = ? AND kind NOT IN ('undo', 'retire')
             AND event NOT IN (SELECT event FROM undone)
           ORDER BY ordinal DESC LIMIT ?""",
        [class_set, annotator, passing, most],
    )
    rows = events.iloc[::-1].drop(columns="ordinal").astype(object).where(lambda frame: frame.notna(), None)
    return rows.to_dict("records")


def flagged(db: Database, class_set: str, *, map_id: str | None = None) -> pd.DataFrame:
    """Flags and notes that stand, newest first, with their maps' facts. map_id: only of this map."""
    return db.read(
        f"""SELECT ordinal, batch, map_id, kind, annotator, note, suggestion, probability, happened, {_FACTS}
            FROM label_event JOIN attention_map USING (map_id)
            WHERE class_set = $class_set AND kind IN ('flag', 'note') AND ($map_id IS NULL OR map_id = $map_id)
              AND event NOT IN (SELECT event FROM undone)
            ORDER BY ordinal DESC""",  # noqa: S608 - our columns
        {"class_set": class_set, "map_id": map_id},
    )


def pace(db: Database, class_set: str) -> pd.DataFrame:
    """Labels by annotator and pass: n, median seconds, labels per hour while labelling (gaps over a minute cut)."""
    return db.read(
        """SELECT annotator, pass, count(*) AS n, median(seconds) AS median_seconds,
                  3600 / nullif(avg(least(seconds, 60)) FILTER (seconds IS NOT NULL), 0) AS per_hour,
                  min(happened) AS first, max(happened) AS last
           FROM label_event WHERE class_set = ? AND kind = 'label' GROUP BY annotator, pass ORDER BY n DESC""",
        [class_set],
    )


def all_events(db: Database, class_set: str | None = None) -> list[Row]:
    """Every event as it is stored, oldest first (of one class set, or all)."""
    cursor = db.cursor().execute(
        f"SELECT {quoted(*EVENT.names)} FROM label_event "  # noqa: S608 - our columns
        "WHERE $class_set IS NULL OR class_set = $class_set ORDER BY ordinal",
        {"class_set": class_set},
    )
    return [dict(zip(EVENT.names, row, strict=True)) for row in cursor.fetchall()]


# ---------------------------------------------------------------- classes


@dataclass(frozen=True)
class ClassChange:
    """What becomes of a class. kind: add, rename, merge (`into` another) or delete; or set, which describes the set as
    a whole. eye: the line that says what one sees."""

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
    """Add, rename, merge or delete a class, as an event; labels keep the name they were given.

    taken: the set's present class names. Raises InputError for a class that is there already, or is not there.
    """
    change_classes(db, class_set, [change], annotator=annotator, taken=taken)


def change_classes(
    db: Database, class_set: str, changes: Sequence[ClassChange], *, annotator: str, taken: Collection[str] = ()
) -> None:
    """Several changes of classes, all or none; as `change_class`."""
    db.person.must("admin", "change classes")
    for change in changes:
        _check_change(class_set, change, taken)
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


def _check_change(class_set: str, change: ClassChange, taken: Collection[str]) -> None:
    kind, name, into, eye = change.kind, change.name, change.into, change.eye
    check_class(class_set, name, into=into, title=change.title, eye=eye, colour=change.colour, key=change.key)
    if kind == "add" and (
        looks_like(name) in map(looks_like, taken) or not looks_like(name) or not (eye or "").strip()
    ):
        raise InputError(
            "A new class needs a name that is not taken and a line saying what the eye sees; "
            f"{name[:60]!r} has not both: change it."
        )
    if kind not in ("add", "set") and (name not in taken or (kind == "merge" and (into not in taken or into == name))):
        raise InputError(
            f"Only classes of the set can be renamed, deleted or merged into another ({', '.join(taken)}); seen "
            f"{name[:60]!r}{f' into {into!r}' if into else ''}."
        )


def class_events(db: Database) -> list[Row]:
    """What happened to classes, oldest first, as `core.codebook.classes` replays it."""
    names = ("class_set", "kind", "class", "into", "title", "eye", "colour", "key")
    events = (
        db.cursor()
        .execute("SELECT class_set, kind, class, into_class, title, eye, colour, key FROM class_event ORDER BY ordinal")
        .fetchall()
    )
    return [dict(zip(names, row, strict=True)) for row in events]


# ---------------------------------------------------------------- labels that an admin takes back for others


_ABOUT = "class_set, map_id, pass"


def retire(db: Database, events: Sequence[str], *, annotator: str, why: str) -> Saved:
    """Take back labels, skips, flags or notes, whoever made them; what stood before each stands again.

    Args:
        db: where labels are stored.
        events: ids of the events; one that comes twice counts once.

    Returns:
        How many retirements were stored, and the batch's highest number.

    Raises:
        RightsError: one who is no admin asks.
        InputError: an event is not stored or is itself an undo, or the reason is empty; then nothing is retired.
    """
    db.person.must("admin", "retire labels of others")
    if not why.strip():
        raise InputError("Whoever retires a label of somebody else says why; the reason is empty: give one.")
    facts = _known(db, events)
    batch = f"retired-{uuid.uuid4().hex}"
    rows = []
    for number, event in enumerate(dict.fromkeys(events), start=1):
        if event not in facts:
            raise InputError(f"Only stored events can be retired; {event[:60]!r} is none: see `labels export`.")
        about = dict(zip(("class_set", "map_id", "pass"), facts[event], strict=True))
        rows.append(
            about
            | {"batch": batch, "sequence": number, "kind": "retire", "undoes": event}
            | {"annotator": annotator, "note": why}
        )
    return record_events(db, rows)


def of_classes(db: Database, class_set: str, classes: Sequence[str]) -> list[str]:
    """Events of the labels that stand and are of one of these classes, oldest first."""
    cursor = db.cursor().execute(
        "SELECT event FROM standing WHERE kind = 'label' AND class_set = ? AND class IN (SELECT unnest(?)) "
        "ORDER BY ordinal",
        [class_set, list(classes)],
    )
    return [event for (event,) in cursor.fetchall()]


def _known(db: Database, events: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    cursor = db.cursor().execute(
        f"SELECT event, {_ABOUT} FROM label_event WHERE event IN (SELECT unnest(?))",  # noqa: S608 - our columns
        [list(events)],
    )
    return {event: tuple(about) for event, *about in cursor.fetchall()}
