"""Bundled maps that lie close to the borders between classes that people confuse.

The maps are chosen by `data.recipes.codebook_borders`, by the codebook's own measurement, among those that the raters
gave the class; a measurement chooses pictures and labels nothing.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .. import config
from ..codebook.classes import Border
from ..codebook.measures import Map
from ..codebook.registry import SHIPPED

FILE = config.ANNOTATIONS / "borders.json"


@dataclass(frozen=True)
class BorderMap:
    """A bundled map near a border between two classes."""

    class_name: str
    weights: Map
    value: float
    source: str


def sides(border: Border) -> str:
    """A sentence on how many of the bundled maps of a border's classes lie on their class's side of the threshold.

    Only maps that all their raters gave the class count. "" where the border has no threshold.
    """
    if border.threshold is None:
        return ""
    titles = {one.name: one.title for one in SHIPPED[border.class_set].classes}
    counted = _stored()[border.name]["sides"]
    told = " and ".join(f"{right:,} of {maps:,} {titles[name]} maps" for name, (right, maps) in counted.items())
    return (
        f"Of the bundled maps whose raters all gave the class, {told} lie on its side of the threshold; the others may "
        "be of it by another rule."
    )


def _stored() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


@lru_cache(maxsize=16)
def border_maps(name: str) -> tuple[BorderMap, ...]:
    """The bundled maps near a border, low side first, each side in the order of its values."""
    maps = []
    for row in _stored().get(name, {"maps": []})["maps"]:
        with np.load(config.ANNOTATIONS / row["source"] / "maps.npz", allow_pickle=False) as stored:
            weights = stored[row["map_id"]].astype(np.float32)
        maps.append(BorderMap(row["class"], weights, row["value"], row["source"]))
    return tuple(maps)
