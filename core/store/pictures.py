"""What a stored picture may be: the Vega-Lite specifications that this program writes, with all their data inline.

Vega-Lite can name addresses to fetch (`data.url`, marks of images), links, and programs of its own (expressions,
generated data). None of that is in a picture of a finding, so none is taken from an export or drawn.
"""

import json
import re
from typing import Any

from ..errors import InputError

MOST_ROWS, MOST_BYTES = 20_000, 4_000_000
WIDEST, LONGEST = 10_000, 2000  # pixels, characters of a text outside the rows
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
    """The picture, if it is one that this program writes. Raises InputError, which says what is not."""
    fault = _fault(picture)
    if fault:
        raise InputError(
            f"A picture of a finding must be a chart that Attention Atlas drew, with its data inline; this one has "
            f"{fault[:120]}. Pin the result again where it was found, and export it again."
        )
    return dict(picture)


def checked_maps(text: Any) -> str:
    """The packed maps of a finding. Raises InputError where they are not base64."""
    if not packed(text):
        raise InputError(
            f"The maps of a finding must be base64 as Attention Atlas packs them; got {str(text)[:60]!r}. Pin them "
            "again where they were found, and export them again."
        )
    return str(text)


def packed(text: Any) -> bool:
    """Whether a text may be packed maps: base64 and nothing else."""
    return isinstance(text, str) and bool(_PACKED.fullmatch(text))


def drawable(picture: Any) -> bool:
    """Whether a stored picture may be drawn."""
    return not _fault(picture)


def _fault(picture: Any) -> str:
    """What a picture must not have; "" where it has none."""
    if not isinstance(picture, dict):
        return f"{type(picture).__name__} for a chart"
    try:
        if len(json.dumps(picture)) > MOST_BYTES:
            return f"more than {MOST_BYTES >> 20} MB"
    except (TypeError, ValueError, RecursionError):
        return "values that are no JSON"
    data = picture.get("data")
    if not (isinstance(data, dict) and set(data) == {"values"} and isinstance(data["values"], list)):
        return "data that are not inline values"
    if len(data["values"]) > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    return next(filter(None, map(_row_fault, data["values"])), "") or _word_fault(
        {name: value for name, value in picture.items() if name != "data"}
    )


def _row_fault(row: Any) -> str:
    if not (isinstance(row, dict) and all(_FIELD.fullmatch(name) for name in row)):
        return "a row that is not named values"
    wrong = [value for value in row.values() if not isinstance(value, (str, int, float, type(None)))]
    return f"{type(wrong[0]).__name__} in a row" if wrong else ""


def _word_fault(part: dict[str, Any]) -> str:
    """What is wrong in a specification without its data."""
    for name, value in part.items():
        if name not in WORDS:
            return f"the property {name!r}"
        kind = value.get("type") if name == "mark" and isinstance(value, dict) else value if name == "mark" else "rect"
        if kind not in MARKS:
            return f"the mark {str(kind)!r}"
        if name == "$schema" and not (isinstance(value, str) and _SCHEMA.fullmatch(value)):
            return "another schema than Vega-Lite's"
        if name == "field" and not (isinstance(value, str) and _FIELD.fullmatch(value)):
            return "a field that is no name"
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
