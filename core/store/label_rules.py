"""Which label events may be stored beside those that are: whose batch it is, what an undo takes back, which class.

A batch belongs to who sent it first. Nothing here is about one event alone; that is `core.store.label_checks`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .class_names import known_names
from .label_checks import TAKES_BACK
from .people import Person, person_name
from .rows import Row, among, quoted

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
    facts, refused = _known(cursor, rows), {}
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


def _known(cursor: Any, rows: Sequence[Row]) -> _Known:
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
