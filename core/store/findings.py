"""Findings: results that somebody pinned with a note, kept whole."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..errors import InputError, StoreError
from .database import Database
from .pictures import drawable, packed
from .rows import from_json, marks, to_json

LONGEST_NOTE = 5000  # characters
_COLUMNS = """finding, kind, title, note, run, about, command, checkpoint, weights_hash, numbers, pictures, maps,
    annotator, stored"""


@dataclass(frozen=True)
class Number:
    """One figure of a finding.

    Attributes:
        name: whose, as L1H2.
        value: None where it is undefined.
        low, high: its 95 % interval; None without one.
        p: corrected over all that were tried with it; None without a test.
        n: inputs it rests on; None where nobody says.
    """

    name: str
    what: str
    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Finding:
    """A pinned result.

    Attributes:
        command: what gives it again; "" where nothing does.
        maps: packed for a page in one file; None without maps.
        run, checkpoint, weights_hash: where it comes from.
        annotator, finding, stored: who pinned it, its id, and when, as the store adds them.
    """

    kind: str
    title: str
    note: str
    about: str
    command: str
    numbers: tuple[Number, ...] = ()
    pictures: tuple[dict[str, Any], ...] = ()
    maps: str | None = None
    run: str | None = None
    checkpoint: str | None = None
    weights_hash: str | None = None
    annotator: str = ""
    finding: str = ""
    stored: datetime | None = None


def pin(db: Database, finding: Finding) -> str:
    """Keep a finding; returns its id. Raises InputError for a note too long; RightsError for a viewer."""
    if len(finding.note) > LONGEST_NOTE:
        raise InputError(
            f"A note may have at most {LONGEST_NOTE:,} characters; this one has {len(finding.note):,}: shorten it."
        )
    name = uuid.uuid4().hex[:12]
    values = [
        name, finding.kind, finding.title, finding.note, finding.run, finding.about, finding.command,
        finding.checkpoint, finding.weights_hash, to_json([number.__dict__ for number in finding.numbers]),
        to_json(list(finding.pictures)), finding.maps, db.person.name or finding.annotator,
        datetime.now(UTC).replace(tzinfo=None),
    ]  # fmt: skip
    with db.write() as cursor:
        cursor.execute(f"INSERT INTO finding ({_COLUMNS}) VALUES ({marks(len(values))})", values)  # noqa: S608 - names and marks
    return name


def findings(db: Database, chosen: Sequence[str] | None = None) -> list[Finding]:
    """Which findings there are, newest first; or those of the ids `chosen`."""
    rows = (
        db.cursor()
        .execute(
            f"""SELECT {_COLUMNS} FROM finding WHERE $chosen IS NULL OR finding IN (SELECT unnest($chosen))
            ORDER BY ordinal DESC""",  # noqa: S608 - our own column names
            {"chosen": None if chosen is None else list(chosen)},
        )
        .fetchall()
    )
    names = "".join(_COLUMNS.split()).split(",")
    return [_finding(dict(zip(names, row, strict=True))) for row in rows]


def unpin(db: Database, finding: str) -> None:
    """Take a finding away: one's own; admins any. Raises RightsError, StoreError if it is not there."""
    stored = findings(db, [finding])
    if not stored:
        raise StoreError("A finding must be one of those pinned, but this one is gone; reload the page.")
    if db.person.name and stored[0].annotator != db.person.name:
        db.person.must("admin", "take away what others pinned")
    with db.write() as cursor:
        cursor.execute("DELETE FROM finding WHERE finding = ?", [finding])


def _finding(row: dict[str, Any]) -> Finding:
    """A finding as it is stored, without pictures and maps that this program did not write (of earlier imports)."""
    numbers = tuple(Number(**number) for number in from_json(row["numbers"]))
    pictures = tuple(filter(drawable, from_json(row["pictures"])))
    maps = row["maps"] if packed(row["maps"]) else None
    return Finding(**{**row, "numbers": numbers, "pictures": pictures, "maps": maps})
