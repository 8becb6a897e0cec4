"""The component that shows all heads as a picture and in a plane of two scores, with hover, brush and click."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from core.attention import all_heads
from pages.parts.maps.components import drawing_component

_view = drawing_component("atlas_view", Path(__file__).resolve().parent)
Numbers = list[float | None]


@dataclass(frozen=True)
class Axis:
    """A score of every head, layer by layer (None: no value). `domain` is the range of its scale.

    `names` are the names of kinds if the values are numbers of kinds; heads are then coloured by kind.
    """

    label: str
    values: Numbers
    low: Numbers
    high: Numbers
    n: Numbers
    domain: tuple[float, float]
    diverging: bool = False
    names: tuple[str, ...] = ()


def kinds_of(kinds: pd.DataFrame, label: str, shape: tuple[int, int]) -> Axis:
    """Return the kinds of heads (layer, head, kind) as an axis; the most frequent kind first."""
    counts = kinds["kind"].astype(str).value_counts()
    names = tuple(sorted(counts.index, key=lambda name: (-counts[name], name)))
    rows = kinds.assign(value=[names.index(str(kind)) for kind in kinds["kind"]], low=None, high=None, n=None)
    return replace(axis_of(rows, label, shape, diverging=False), names=names)


def axis_of(rows: pd.DataFrame, label: str, shape: tuple[int, int], *, diverging: bool | None = None) -> Axis:
    """Return the atlas rows of one score (layer, head, value, low, high, n) as an axis."""
    table = rows.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])
    places = pd.MultiIndex.from_product([range(shape[0]), range(shape[1])])
    reindexed = table.reindex(places)
    columns = {name: [_number_or_none(value) for value in reindexed[name]] for name in ("value", "low", "high", "n")}
    finite = [value for name in ("value", "low", "high") for value in columns[name] if value is not None]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    values = [value for value in columns["value"] if value is not None]
    signed = bool(values) and min(values) < 0 < max(values) if diverging is None else diverging
    if signed:
        low, high = -max(-low, high), max(-low, high)
    elif low > 0 and low < high / 2:
        low = 0.0
    spare = 0.0 if signed or high > low else 0.5
    return Axis(label, columns["value"], columns["low"], columns["high"], columns["n"], (low - spare, high + spare),
                diverging=signed)  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """Layers and heads, and the three scores that place and colour a head."""

    shape: tuple[int, int]
    across: Axis
    up: Axis
    colour: Axis


def show_atlas(
    plane: Plane, *, key: str, bars: bool = False, labels: Sequence[str] = (), selected: Sequence[str] = ()
) -> tuple[list[str], str | None]:
    """Show the component; return the names of the brushed heads, and the head that was clicked in this run.

    `labels` has an additional line about each head.
    """
    shape = plane.shape
    payload: dict[str, Any] = {
        "layers": shape[0], "heads": shape[1], "across": asdict(plane.across), "up": asdict(plane.up),
        "colour": asdict(plane.colour), "bars": bars, "labels": list(labels), "selected": list(selected),
    }  # fmt: skip
    payload_id = hashlib.blake2b(json.dumps(payload).encode(), digest_size=8).hexdigest()
    result = _view(
        key=key, data=payload | {"id": payload_id}, on_selected_change=lambda: None, on_opened_change=lambda: None
    )
    names = [str(head) for head in all_heads(*shape)]
    opened = (result.opened or "").partition(" ")[0]
    selection = selected if result.selected is None else result.selected
    brushed = [name for name in selection if name in names]
    return brushed, opened if opened in names else None


def _number_or_none(value: Any) -> float | None:
    return None if pd.isna(value) or not math.isfinite(value) else round(float(value), 6)
