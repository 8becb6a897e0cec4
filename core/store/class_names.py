"""Which class names a label may carry: those that its class set has, or ever had."""

from collections.abc import Collection
from typing import Any

from ..codebook.registry import SHIPPED
from ..errors import InputError
from .database import Database
from .label_checks import check_class, time_of
from .rows import Row, among, marks, quoted

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
