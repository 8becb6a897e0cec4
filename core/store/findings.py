"""Findings: results that a user has pinned with a note, stored with numbers, charts and maps."""

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import InputError, StoreError
from .bodies import NUMBER, known_keys, sound
from .database import Database
from .rows import from_json, insert_row, now, to_json

# ---------------------------------------------------------------- valid charts


MOST_ROWS, MOST_BYTES = 20_000, 4_000_000
WIDEST, LONGEST = 10_000, 2000  # pixels; characters of a text outside the rows
MARKS = frozenset({"rect", "rule", "point"})
WORDS = frozenset({
    "$schema", "axis", "color", "domain", "encoding", "field", "filled", "height", "labelAngle", "labelFlush",
    "labelOverlap", "layer", "mark", "orient", "range", "scale", "size", "sort", "step", "stroke", "strokeOpacity",
    "title", "tooltip", "type", "width", "x", "x2", "y", "y2",
})  # fmt: skip
_SCHEMA = re.compile(r"https://vega\.github\.io/schema/vega-lite/v\d+(\.\d+)*\.json")
_FIELD = re.compile(r"\w{1,60}")
_PACKED = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def checked_picture(picture: Any) -> dict[str, Any]:
    """Return the chart specification of an imported finding after validating it. Raises InputError if this program
    cannot have created it."""
    fault = _fault(picture)
    if fault:
        raise InputError(
            f"The chart of a finding must be drawn by Attention Atlas and contain its data; got {fault[:120]}. Pin the "
            "result again in the app that computed it, and export the finding again."
        )
    return dict(picture)


def checked_maps(text: Any) -> str:
    """Return the attention maps of an imported finding as base64 text. Raises InputError if the text is not base64."""
    if not packed(text):
        raise InputError(
            f"The maps of a finding must be packed by Attention Atlas and encoded in base64; got {str(text)[:60]!r}. "
            "Pin the maps again in the app that computed them, and export the finding again."
        )
    return str(text)


def packed(text: Any) -> bool:
    """Return whether a value is base64 text, the format in which findings store attention maps."""
    return isinstance(text, str) and bool(_PACKED.fullmatch(text))


def drawable(picture: Any) -> bool:
    """Return whether a stored chart specification can be rendered."""
    return not _fault(picture)


def _fault(picture: Any) -> str:
    """Return what is wrong with a chart; "" if nothing is."""
    if not isinstance(picture, dict):
        return f"{type(picture).__name__} instead of a chart"
    try:
        if len(json.dumps(picture)) > MOST_BYTES:
            return f"more than {MOST_BYTES >> 20} MB"
    except (TypeError, ValueError, RecursionError):
        return "values that are not JSON"
    data = picture.get("data")
    if not (isinstance(data, dict) and set(data) == {"values"} and isinstance(data["values"], list)):
        return "data that are not inline"
    if len(data["values"]) > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    return next(filter(None, map(_row_fault, data["values"])), "") or _word_fault(
        {name: value for name, value in picture.items() if name != "data"}
    )


def _row_fault(row: Any) -> str:
    if not (isinstance(row, dict) and all(_FIELD.fullmatch(name) for name in row)):
        return "a row without named values"
    wrong = [value for value in row.values() if not isinstance(value, (str, int, float, type(None)))]
    return f"{type(wrong[0]).__name__} in a row" if wrong else ""


def _word_fault(part: dict[str, Any]) -> str:
    """Return what is wrong in a specification without its data."""
    for name, value in part.items():
        if name not in WORDS:
            return f"the property {name!r}"
        kind = value.get("type") if name == "mark" and isinstance(value, dict) else value if name == "mark" else "rect"
        if kind not in MARKS:
            return f"the mark {str(kind)!r}"
        if name == "$schema" and not (isinstance(value, str) and _SCHEMA.fullmatch(value)):
            return "another schema than Vega-Lite's"
        if name == "field" and not (isinstance(value, str) and _FIELD.fullmatch(value)):
            return "an invalid field name"
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                if fault := _word_fault(inner):
                    return fault
            elif isinstance(inner, str):
                if len(inner) > LONGEST:
                    return f"a text of more than {LONGEST} characters"
            elif isinstance(inner, (int, float)):
                if name in ("width", "height", "step", "size") and not 0 <= inner <= WIDEST:
                    return f"{name} {inner}"
            elif inner is not None:
                return f"{type(inner).__name__} in {name}"
    return ""


LONGEST_NOTE = 5000  # characters
_COLUMNS = """finding, kind, title, note, run, about, command, checkpoint, weights_hash, numbers, pictures, maps,
    annotator, stored"""


@dataclass(frozen=True)
class Number:
    """A number in a finding, with its confidence interval and p-value.

    Attributes:
        name: what it belongs to, such as L1H2.
        value: None if undefined.
        low, high: 95 % CI; None if unknown.
        p: corrected for multiple tests; None without a test.
        n: number of inputs; None if unknown.
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
    """A result that a user saved (pinned), with a note, numbers, charts and attention maps.

    Attributes:
        command: reproduces the result; "" if no command does.
        maps: packed for a single-file page; None without maps.
        annotator, finding, stored: who pinned it, its ID and time; set by the store.
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
    """Store a finding and return its ID. Raises InputError if the note is too long, and RightsError if the user is only
    a viewer."""
    if len(finding.note) > LONGEST_NOTE:
        raise InputError(
            f"A note must have at most {LONGEST_NOTE:,} characters; this note has {len(finding.note):,}. Shorten it."
        )
    name = uuid.uuid4().hex[:12]
    row = vars(finding) | {"finding": name, "annotator": db.person.name or finding.annotator, "stored": now()}
    row |= {"numbers": to_json([vars(number) for number in finding.numbers]), "pictures": to_json(finding.pictures)}
    with db.write() as cursor:
        insert_row(cursor, "finding", row)
    return name


def findings(db: Database, chosen: Sequence[str] | None = None) -> list[Finding]:
    """Return the stored findings whose IDs are in `chosen`, newest first. By default, return all findings."""
    rows = db.records(
        f"""SELECT {_COLUMNS} FROM finding WHERE $chosen IS NULL OR finding IN (SELECT unnest($chosen))
        ORDER BY ordinal DESC""",  # noqa: S608 - our own column names
        {"chosen": None if chosen is None else list(chosen)},
    )
    results = []
    for row in rows:
        if not (sound("finding", f"the finding {row['title'][:60]!r}", row)):
            continue
        numbers = tuple(Number(**known_keys(number, NUMBER)) for number in from_json(row["numbers"]))
        pictures = tuple(filter(drawable, from_json(row["pictures"])))
        maps = row["maps"] if packed(row["maps"]) else None
        results.append(Finding(**{**row, "numbers": numbers, "pictures": pictures, "maps": maps}))
    return results


def unpin(db: Database, finding: str) -> None:
    """Delete a finding. Raises RightsError if a signed-in user who is not an admin deletes another user's finding."""
    stored = findings(db, [finding])
    if not stored:
        raise StoreError(
            "Only an existing finding can be removed; this finding has been deleted already. Reload the page."
        )
    if db.person.name and stored[0].annotator != db.person.name:
        db.person.must("admin", "delete findings of other people")
    with db.write() as cursor:
        cursor.execute("DELETE FROM finding WHERE finding = ?", [finding])
