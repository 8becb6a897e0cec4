"""Labels that an admin takes back for others: an adjudicator's undo, and the repair of labels of no class.

A retirement is an event like all else: it names who retired what and why, and nothing is deleted.
"""

import uuid
from collections.abc import Sequence
from typing import Any

from ..errors import InputError
from .database import Database
from .labels import Saved, record_events

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
