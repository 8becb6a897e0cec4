"""Checks of label events and maps from browsers and files before they are stored."""

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard, TypeVar

import numpy as np
import pyarrow as pa

from ..errors import InputError
from .people import person_name
from .rows import Row, now

T = TypeVar("T")

EVENT_KINDS = ("label", "skip", "flag", "note", "undo", "retire")
TAKES_BACK = ("undo", "retire")  # an annotator's own event; another annotator's event, by an admin
SCALES = ("absolute", "own")
ORDERS = ("random", "uncertain", "disagreement", "adjudication", "codebook", "clusters")
TOGETHER = "together"  # the way of a label that several alike maps were given at once; other ways are one by one
LONGEST_NAME, LONGEST_NOTE = 200, 4000  # characters
HEADS = 10_000  # upper bound for layers and for heads in a layer
LONGEST_MAP = 4096  # tokens; 32 MB as float16
LONGEST_LOOK = 366 * 86_400  # seconds at one map: a tab left open for a year
CLOCKS = timedelta(days=1)  # how far a browser's clock may be ahead
LONGEST_WAIT = timedelta(days=3660)  # age of a label that was kept in a browser

# fmt: off
MAP = pa.schema([
    ("map_id", pa.string()), ("checkpoint", pa.string()), ("weights_hash", pa.string()), ("task", pa.string()),
    ("split", pa.string()), ("row_id", pa.string()), ("layer", pa.int32()), ("head", pa.int32()),
    ("length", pa.int32()), ("tokens", pa.string()), ("separators", pa.string()), ("causal", pa.bool_()),
    ("maximum", pa.float64()), ("seed", pa.int64()), ("weights", pa.binary()), ("stored", pa.timestamp("us"))])
EVENT = pa.schema([
    ("event", pa.string()), ("batch", pa.string()), ("sequence", pa.int32()), ("kind", pa.string()),
    ("class_set", pa.string()), ("map_id", pa.string()), ("annotator", pa.string()), ("pass", pa.int32()),
    ("class", pa.string()), ("note", pa.string()), ("undoes", pa.string()), ("supersedes", pa.string()),
    ("seconds", pa.float64()), ("scale", pa.string()), ("way", pa.string()), ("queue_order", pa.string()),
    ("suggestion", pa.string()), ("probability", pa.float64()), ("classifier", pa.string()),
    ("happened", pa.timestamp("us")), ("stored", pa.timestamp("us"))])
# fmt: on
# Fields that are equal in all maps with the same ID
SAME = ("weights_hash", "layer", "head", "length", "causal", "tokens")
_OPTIONAL = {"split", "seed"}
_WHOLE = {column.name for column in (*EVENT, *MAP) if pa.types.is_integer(column.type)}
_PROSE = {"note", "eye", "title"}  # free text; other text columns are names
_UNSEEN = {"Cc", "Cf", "Zl", "Zp"}  # categories of control and invisible characters


def checked_event(event: Mapping[str, Any]) -> Row:
    """Return a label event with all columns after validating it. Raises InputError if the event is invalid."""
    subject = f"event {str(event.get('sequence', '?'))[:20]}"
    kind = event.get("kind")
    if not isinstance(kind, str) or kind not in EVENT_KINDS:
        raise InputError(
            f"The kind of a label event must be one of {', '.join(EVENT_KINDS)}; got {str(kind)[:40]!r} in "
            f"{subject}. Correct it."
        )
    needed = ["batch", "sequence", "class_set", "map_id", "annotator"]
    needed += {"label": ["class"], "undo": ["undoes"], "retire": ["undoes"]}.get(kind, [])
    for name in needed:
        if event.get(name) in (None, ""):
            raise InputError(f'A {kind} event must have the field "{name}"; it is missing in {subject}. Add the field.')
    row = {name: event.get(name) for name in EVENT.names}
    row |= {
        "event": f"{event['batch']}:{event['sequence']}",
        "pass": 1 if event.get("pass") is None else event["pass"],
        "stored": time_of(event.get("stored"), subject),
        "happened": time_of(event.get("happened"), subject),
    }
    if isinstance(row["annotator"], str):
        row["annotator"] = person_name(row["annotator"])
    for column in EVENT:
        row[column.name] = _fitting(column, row[column.name], subject, least=1)
    if row["kind"] in TAKES_BACK and row["undoes"] == row["event"]:
        raise InputError(f"An undo must refer to another event; {subject} refers to itself. Remove it.")
    check_annotator(str(row["annotator"]))
    for name, most in (("probability", 1), ("seconds", LONGEST_LOOK)):
        if not 0 <= (row[name] or 0) <= most:
            raise InputError(
                f'The field "{name}" of a label must be from 0 to {most}; got {row[name]!r} in {subject}. Correct the '
                "field."
            )
    for name, allowed in (("scale", SCALES), ("queue_order", ORDERS)):
        if row[name] not in (None, *allowed):
            listed = ", ".join(allowed)
            raise InputError(
                f'The field "{name}" of a label must be one of {listed}; got {row[name]!r} in {subject}. '
                "Correct the field."
            )
    if row["way"] == TOGETHER and (row["kind"], row["queue_order"], row["pass"]) != ("label", "clusters", 1):
        raise InputError(
            "A label for a group of maps must have kind 'label', order 'clusters' and pass 1; got kind "
            f"{row['kind']!r}, order {row['queue_order']!r} and pass {row['pass']} in {subject}. Label these maps one "
            "by one."
        )
    return row


def whole_numbers(row: Mapping[str, Any]) -> Row:
    """Convert whole floats in the integer columns of a row to integers, and NaN in any column to None."""
    floats = {name: value for name, value in row.items() if isinstance(value, float)}
    return {
        **row,
        **{name: int(value) for name, value in floats.items() if name in _WHOLE and value.is_integer()},
        **{name: None for name, value in floats.items() if math.isnan(value)},
    }


def check_annotator(name: str) -> None:
    """Raise InputError if an annotator name is invalid (see `check_name`) or has no visible characters."""
    _fitting(pa.field("annotator", pa.string()), name, "a label", least=0)
    if not looks_like(name):
        raise InputError("The name of an annotator must have visible letters; got none. Enter your name.")


def likely_time(time: Any, moment: datetime) -> Any:
    """Return the time of a label according to the browser. If the browser clock is clearly wrong, return the time of
    arrival (`moment`).

    A value that is not a time is returned unchanged and refused with its event.
    """
    if not isinstance(time, str):
        return time
    try:
        happened = time_of(time, "a label", latest=datetime.max)
    except InputError:
        return time
    return time if moment - LONGEST_WAIT <= happened <= moment + CLOCKS else moment


def checked_map(fields: Mapping[str, Any]) -> Row:
    """Return the metadata and weights of an attention map after validating them. Raises InputError for invalid maps.

    Weights are float16 bytes [query, key] in [0, 1]; there is one token text per position.
    """
    subject = f"the map {str(fields.get('map_id'))[:40]!r}"
    row = {}
    for column in MAP:
        if column.name in ("tokens", "separators", "stored"):
            continue
        row[column.name] = _fitting(column, fields.get(column.name), subject, least=0)
        if row[column.name] is None and column.name not in _OPTIONAL:
            raise InputError(
                f'A map must have the field "{column.name}"; it is missing in {subject}. Create the map again.'
            )
    if max(row["layer"], row["head"]) >= HEADS:
        raise InputError(
            f"Layer and head must be from 0 to {HEADS - 1}; got layer {row['layer']} and head {row['head']} in "
            f"{subject}. Create the map again."
        )
    length = row["length"]
    if not 1 <= length <= LONGEST_MAP:
        raise InputError(f"A map must have 1 to {LONGEST_MAP} tokens; got {length} in {subject}. Create the map again.")
    if len(row["weights"]) != 2 * length**2:
        raise InputError(
            f"A map of {length} tokens must have {2 * length**2} bytes of float16 weights; got "
            f"{len(row['weights'])} in {subject}. Create the map again."
        )
    weights = np.frombuffer(row["weights"], dtype="<f2").astype("float32")
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.max() <= 1.01):
        raise InputError(
            f"Attention weights must be from 0 to 1; got weights from {weights.min():g} to {weights.max():g} in "
            f"{subject}. Create the map again."
        )
    if not 0 <= row["maximum"] <= 1.01:
        raise InputError(
            f"The largest weight of a map must be from 0 to 1; got {row['maximum']:g} in {subject}. Create the map "
            "again."
        )
    tokens, separators = fields.get("tokens"), fields.get("separators")
    if not _list_of(tokens, str) or len(tokens) != length or any(map(_broken, tokens)):
        raise InputError(
            f'A map of {length} tokens must list the {length} token texts in the field "tokens"; {subject} does not. '
            "Create the map again."
        )
    if not _list_of(separators, int) or not all(0 <= position < length for position in separators):
        raise InputError(
            f"The separators of a map must be a list of token positions from 0 to {length - 1}; got "
            f"{str(separators)[:60]} in {subject}. Create the map again."
        )
    return row | {"tokens": list(tokens), "separators": list(separators)} | {"stored": fields.get("stored")}


def contradiction(row: Mapping[str, Any], stored: Mapping[str, Any]) -> str | None:
    """Return an error message if an attention map contradicts the stored map with the same ID, otherwise None."""
    for name in SAME:
        value = row.get(name)
        if value is not None and value != stored[name]:
            return (
                f"A stored map cannot change; the {name} of {row['map_id'][:60]!r} differs from the stored map. "
                "Correct it, or leave out the metadata of the map."
            )
    return None


# Letters that look like Latin ones, small or in capitals: Cyrillic, Greek, Armenian, and rare Latin ones.
_LATIN = str.maketrans(
    "авеікмнорстухѕјһԁԛԝүӏ" + "αβεζηικμνορτυχ" + "օսհո" + "ɑɡı",
    "abeikmhopctyxsjhdqwyl" + "abezhikmnoptyx" + "ouhn" + "agi",
)


def looks_like(name: str) -> str:
    """Return a normalised form of a name, which is the same for all names that look alike."""
    visible = "".join(letter for letter in unicodedata.normalize("NFKD", name) if unicodedata.category(letter) != "Cf")
    latin = unicodedata.normalize("NFKD", visible.casefold()).translate(_LATIN)
    return " ".join(unicodedata.normalize("NFC", latin).split())


def alike(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return groups of names that look alike. For example, "ada" and "ada@example.org" form a group."""
    groups: dict[str, set[str]] = {}
    for name in names:
        groups.setdefault(looks_like(name), set()).add(name)
    for address in [look for look in groups if "@" in look]:
        user = address.partition("@")[0]
        if user in groups:
            groups[user] |= groups.pop(address)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


def say_alike(names: Iterable[str], among: Collection[str] | None = None) -> str:
    """Return a warning about annotator names that look alike, or "" if there are none. If `among` is given, only groups
    that contain one of its names are reported."""
    found = [group for group in alike(names) if among is None or not set(group).isdisjoint(among)]
    groups = "; ".join(" and ".join(map(repr, group)) for group in found)
    return (
        f"These names look alike and count as different people: {groups}. If one person has labelled under both, "
        "agreement is computed as if they were two people."
        if groups
        else ""
    )


def check_name(what: str, value: Any, subject: str) -> None:
    """Raise InputError if a name is too long, is not in Unicode form NFC, or contains invisible characters. None is
    allowed."""
    _fitting(pa.field(what, pa.string()), value, subject, least=0)


def check_class(class_set: str, name: str, **shown: str | None) -> None:
    """Raise InputError if a pattern class has a text that is too long, a colour that is not #rrggbb, or a shortcut key
    that is not a digit."""
    for what, value in {"class set": class_set, "name": name, **shown}.items():
        _fitting(pa.field(what, pa.string()), value, f"the class {name[:40]!r}", least=0)
    colour, key = shown.get("colour"), shown.get("key")
    if (colour and not re.fullmatch(r"#[0-9a-fA-F]{6}", colour)) or (key and not re.fullmatch("[0-9]", key)):
        raise InputError(
            "A class must have a colour such as #0072B2 and a digit as its shortcut key; got the colour "
            f"{str(colour)[:20]!r} and the key {str(key)[:20]!r} for {name[:40]!r}. Change the colour or the key."
        )


def _broken(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _list_of(value: Any, kind: type[T]) -> TypeGuard[Sequence[T]]:
    listed = isinstance(value, (list, tuple))
    return listed and all(isinstance(element, kind) and not isinstance(element, bool) for element in value)


def _fitting(column: pa.Field, value: Any, subject: str, *, least: int) -> Any:
    """Return `value` checked against the column's type; None stays None. least: smallest value of a 32-bit column."""
    if value is None:
        return None
    kind = column.type
    if kind == pa.string():
        most = LONGEST_NOTE if column.name in ("note", "eye") else LONGEST_NAME
        good = isinstance(value, str) and len(value) <= most and not any("\ud800" <= x <= "\udfff" for x in value)
        wanted = f"text of at most {most} characters"
        if good and column.name not in _PROSE:
            good = unicodedata.is_normalized("NFC", value) and not any(
                unicodedata.category(x) in _UNSEEN for x in value
            )
            wanted = "a name of visible letters in Unicode normal form NFC"
    elif kind in (pa.int32(), pa.int64()):
        bits = 31 if kind == pa.int32() else 63
        low = least if kind == pa.int32() else -(2**bits)
        good = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and low <= value < 2**bits
        wanted = f"a whole number from {low} to {2**bits - 1}"
    elif kind == pa.float64():
        good = isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and _finite(value)
        wanted = "a finite number"
    else:
        kinds = {pa.bool_(): bool, pa.binary(): bytes}.get(kind, datetime)
        good, wanted = isinstance(value, kinds), {pa.bool_(): "true or false", pa.binary(): "bytes"}.get(kind, "a time")
    if not good:
        raise InputError(
            f'The field "{column.name}" must be {wanted}; got {_shown(value)} in {subject}. Correct the field.'
        )
    return value


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number larger than any float
        return False


def _shown(value: Any) -> str:
    try:
        return repr(value)[:60] if not isinstance(value, str) else repr(value[:60])
    except ValueError:  # a whole number with thousands of digits
        return "a very large number"


def time_of(value: Any, subject: str, *, latest: datetime | None = None) -> datetime:
    """Convert a time to UTC without a time zone. None means the current time. Raises InputError if the time is invalid
    or in the future.

    `latest` is the latest time allowed, instead of a day from now.
    """
    if value is None:
        return now()
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if not 1900 <= moment.year <= 9998:
            raise ValueError(moment.year)
        moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
        if moment > (latest or now() + CLOCKS):
            raise ValueError(moment)
        return moment
    except (ValueError, OverflowError) as error:
        raise InputError(
            "The time of a label must be written like 2026-01-31T12:00:00Z and must not be in the future; got "
            f"{str(value)[:40]!r} in {subject}. Correct it."
        ) from error
