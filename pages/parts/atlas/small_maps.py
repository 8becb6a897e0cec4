"""Rows of small maps: the inputs of a gallery, or the mean maps of groups of heads."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pages.parts.maps.components import drawing_component

_shelf = drawing_component("small_maps", Path(__file__).resolve().parent)


@dataclass(frozen=True)
class SmallMap:
    """A map [query, key] with its title, a note and, if it belongs to one input, the tokens."""

    title: str
    weights: np.ndarray
    tokens: tuple[str, ...] = ()
    note: str = ""

    def packed(self, most: float) -> dict[str, Any]:
        """Return the data for the browser. `most` is the weight drawn in the darkest colour."""
        shares = np.rint(np.clip(self.weights / most, 0, 1) * 255).astype(int)
        return {"title": self.title, "note": self.note, "tokens": list(self.tokens), "length": len(self.weights),
                "weights": shares.ravel().tolist(), "most": most}  # fmt: skip


def show_small_maps(maps: Sequence[SmallMap], *, key: str, cell: int = 9, own_scale: bool = False) -> None:
    """Draw small maps side by side. `cell` is the number of pixels per weight; with `own_scale`, the largest weight of
    each map has the darkest colour, otherwise 1 has."""
    packed = [small.packed(max(float(small.weights.max()), 1e-9) if own_scale else 1.0) for small in maps]
    payload: dict[str, Any] = {"cell": cell, "maps": packed}
    payload["id"] = hashlib.blake2b(json.dumps(payload).encode(), digest_size=8).hexdigest()
    _shelf(key=key, data=payload)
