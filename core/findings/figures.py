"""What a run's rows say in numbers and pictures, whatever study they are of; pictures are Vega-Lite specifications."""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.attention import AttentionMaps, Head
from core.store.findings import Number
from core.store.rows import Row

SHOWN = 20  # numbers of a picture; the table has more
KEPT = 400  # numbers of a finding
CELL, WIDE = 22, 420  # pixels of a head, and of the intervals' picture
LONGEST = 40  # tokens of a map that is drawn with them
ABOUT = ("class", "feature", "relation", "element", "unit", "task", "metric")  # columns that tell one row from another
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


def numbers_of(rows: Sequence[Row]) -> tuple[Number, ...]:
    """The figures of a run's rows, those furthest from 0 first within each thing measured, at most KEPT.

    Rows have a value under "value" with "low" and "high", or under "<metric>_change" with "<metric>_low" and
    "<metric>_high"; rows with neither give none.
    """
    kinds = _by_kind(rows)
    most = max(1, KEPT // max(1, len(kinds)))
    return tuple(number for group in kinds for number in group[:most])[:KEPT]


def _by_kind(rows: Sequence[Row]) -> list[list[Number]]:
    """Every number of the rows by what was measured, largest first."""
    kinds: dict[str, list[Number]] = {}
    for row in rows:
        for number in _of_row(row):
            kinds.setdefault(number.what, []).append(number)
    return [sorted(group, key=_size, reverse=True) for group in kinds.values()]


def _of_row(row: Row) -> list[Number]:
    name = _name(row)
    if _is_number(row.get("value")):
        kind = "Shapley value" if row.get("orders") else row.get("kind")
        said = str(row.get("statistic") or kind or row.get("part") or "value")
        about = [str(row[key]) for key in ABOUT if row.get(key) and str(row[key]) != said]
        return [_number(row, name, " ".join([said, *about]), "value", "low", "high")]
    known = defaultdict(lambda: None, row)
    for column, *words in _OTHERS:
        what, value = (word.format_map(known) for word in words)
        if row.get(column) and _is_number(row.get(value)):
            return [_number(row, name, what, value, "low", "high")]
    metrics = [key.removesuffix("_change") for key in row if key.endswith("_change") and _is_number(row[key])]
    return [
        _number(row, name, f"change of {metric}", f"{metric}_change", f"{metric}_low", f"{metric}_high")
        for metric in metrics
    ]


_OTHERS = (  # by a column that such rows have: what their number is, and the column that has it
    ("order", "{metric}, heads removed by {order}", "score"),
    ("class", "{part} of maps of {checkpoint}", "share"),
    ("initialisation", "{metric} on {task}", "{metric}"),
    ("compare", "similarity to the counterpart in {compare}", "similarity"),
    ("first_head", "interaction of two heads", "interaction"),
    ("edge_kind", "effect of an edge", "effect"),
    ("gate_class", "loss that taking the head out adds", "effect"),
)
_HEAD = re.compile(r"L\d+H\d+")


def _name(row: Row) -> str:
    if isinstance(row.get("layer"), int) and isinstance(row.get("head"), int):
        return str(Head(row["layer"], row["head"]))
    if row.get("order") and _is_number(row.get("share")):
        return f"{row['share']:.0%} of heads"
    tuned = row.get("initialisation") and f"{row['initialisation']} {row.get('kind')} {row.get('seed') or ''}".strip()
    return str(row.get("name") or row.get("class") or tuned or row.get("checkpoint") or row.get("layer") or "all")


def _number(row: Row, name: str, what: str, value: str, low: str, high: str) -> Number:
    ends = [row[key] if _is_number(row.get(key)) else None for key in (low, high)]
    p = next((row[key] for key in ("q", "p") if _is_number(row.get(key))), None)
    n = row.get("n")
    return Number(
        name, what, float(row[value]), ends[0], ends[1], p, int(n) if n is not None and _is_number(n) else None
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _size(number: Number) -> float:
    return abs(number.value or 0.0)


def pictures_of(rows: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Of the first thing measured: a layer x head picture of all of it where it is of heads, and the largest with
    intervals."""
    kinds = _by_kind(rows)
    if not kinds:
        return ()
    mine, what = kinds[0], kinds[0][0].what
    heads = [number for number in mine if _HEAD.fullmatch(number.name)]
    drawn = [_heads(heads, what)] if len(heads) == len(mine) > 1 else []
    return (*drawn, _intervals(mine[:SHOWN], what))


def _heads(numbers: Sequence[Number], what: str) -> dict[str, Any]:
    values = [
        {"layer": place.layer + 1, "head": place.head + 1, "name": number.name, "value": number.value,
         "low": number.low, "high": number.high}
        for number in numbers for place in [Head.parse(number.name)]
    ]  # fmt: skip
    most = max(abs(number.value or 0.0) for number in numbers) or 1.0
    diverging = any((number.value or 0.0) < 0 for number in numbers)
    scale = {"range": "diverging", "domain": [-most, most]} if diverging else {"range": "ramp", "domain": [0, most]}
    return {
        "$schema": SCHEMA,
        "data": {"values": values},
        "mark": {"type": "rect", "stroke": "gray", "strokeOpacity": 0.25},
        "width": {"step": CELL},
        "height": {"step": CELL},
        "encoding": {
            "x": {"field": "head", "type": "ordinal", "axis": {"labelAngle": 0, "orient": "top"}},
            "y": {"field": "layer", "type": "ordinal"},
            "color": {"field": "value", "type": "quantitative", "title": what, "scale": scale},
            "tooltip": [{"field": name} for name in ("name", "value", "low", "high")],
        },
    }


def _intervals(numbers: Sequence[Number], what: str) -> dict[str, Any]:
    values = [
        {"name": number.name, "value": number.value, "low": number.low, "high": number.high, "n": number.n}
        for number in numbers
    ]
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    tips = [{"field": name} for name in ("name", "value", "low", "high", "n")]
    x = {"type": "quantitative", "title": f"{what}, 95 % interval"}
    return {
        "$schema": SCHEMA,
        "data": {"values": values},
        "width": WIDE,
        "layer": [
            {"mark": "rule", "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, "y": y}},
            {
                "mark": {"type": "point", "filled": True, "size": 50},
                "encoding": {"x": {"field": "value", **x}, "y": y, "tooltip": tips},
            },
        ],
    }


def picture_of_map(maps: AttentionMaps, head: Head) -> dict[str, Any]:
    """One head's map with its tokens, at most LONGEST of them; queries down, keys across."""
    weights = maps.of(head)[:LONGEST, :LONGEST]
    names = [f"{k + 1} {token}" for k, token in enumerate(maps.tokens[:LONGEST])]
    values = [
        {"query": names[q], "key": names[k], "weight": round(float(weights[q, k]), 4)}
        for q, k in np.ndindex(weights.shape)
    ]
    axis: dict[str, Any] = {"type": "nominal", "sort": None}
    every = {"labelOverlap": False, "labelFlush": False}  # each token's name, where its row or column is
    said = "" if len(maps) <= LONGEST else f", the first {LONGEST} of {len(maps)} tokens"
    return {
        "$schema": SCHEMA,
        "title": f"{head}{said}",
        "data": {"values": values},
        "mark": "rect",
        "width": {"step": 14},
        "height": {"step": 14},
        "encoding": {
            "x": {"field": "key", **axis, "axis": {"orient": "top", "labelAngle": -60} | every},
            "y": {"field": "query", **axis, "axis": every},
            "color": {"field": "weight", "type": "quantitative", "scale": {"range": "ramp", "domain": [0, 1]}},
            "tooltip": [{"field": name} for name in ("query", "key", "weight")],
        },
    }
