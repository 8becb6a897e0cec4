"""Numbers and charts (Vega-Lite specifications) from the records of a run."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..attention import AttentionMaps, Head
from ..errors import JobError
from ..report.records import REPORT, records_of
from ..store.findings import Number
from ..store.rows import Row
from ..studies.lookup import find_study

SHOWN = 20  # numbers of a picture; the table has more
KEPT = 400  # numbers of a finding
CELL, WIDE = 22, 420  # pixels of a head, and of the intervals' picture
LONGEST = 40  # tokens of a map that is drawn with them
_HEAD = re.compile(r"L\d+H\d+")
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


def numbers_of(study: str, rows: Sequence[Row]) -> tuple[Number, ...]:
    """Select the numbers that a finding shows: the largest absolute values of each measured quantity."""
    kinds = _by_kind(study, rows)
    most = max(1, KEPT // max(1, len(kinds)))
    return tuple(number for group in kinds for number in group[:most])[:KEPT]


def has_numbers(study: str, rows: Sequence[Row]) -> bool:
    """Return True if the result rows of a run contain at least one finite number that can be shown in a finding."""
    return next(_numbers(study, rows), None) is not None


def _numbers(study: str, rows: Sequence[Row]) -> Iterator[Number]:
    numbers: Iterable[Number]
    if study == REPORT:
        numbers = (value.number for value in records_of(rows).values)
    else:
        try:
            numbers = (number for record in find_study(study).records(rows) for number in record.numbers())
        except JobError:  # stored by an earlier version
            return
    yield from (number for number in numbers if (number.value is not None and math.isfinite(number.value)))


def _by_kind(study: str, rows: Sequence[Row]) -> list[list[Number]]:
    """Return every number in the rows, grouped by what was measured and sorted by absolute value, largest first."""
    kinds: dict[str, list[Number]] = {}
    for number in _numbers(study, rows):
        kinds.setdefault(number.what, []).append(number)
    return [sorted(group, key=lambda number: abs(number.value or 0.0), reverse=True) for group in kinds.values()]


def pictures_of(study: str, rows: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Create Vega-Lite charts of the first quantity of a run: a heatmap (only for heads), and its largest values."""
    kinds = _by_kind(study, rows)
    if not kinds:
        return ()
    mine, what = kinds[0], kinds[0][0].what
    heads = [number for number in mine if _HEAD.fullmatch(number.name)]
    if len(heads) != len(mine) or len(mine) < 2:
        return (_intervals(mine[:SHOWN], what),)
    values = [
        {"layer": place.layer + 1, "head": place.head + 1, "name": number.name, "value": number.value,
         "low": number.low, "high": number.high}
        for number in heads for place in [Head.parse(number.name)]
    ]  # fmt: skip
    most = max(abs(number.value or 0.0) for number in heads) or 1.0
    diverging = any((number.value or 0.0) < 0 for number in heads)
    scale = {"range": "diverging", "domain": [-most, most]} if diverging else {"range": "ramp", "domain": [0, most]}
    heatmap = {
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
    return heatmap, _intervals(mine[:SHOWN], what)


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
    """Create a heatmap of one attention map as a Vega-Lite specification, with queries as rows."""
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
