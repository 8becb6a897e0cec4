"""The bundled class sets: each file of `core.codebook.sets` is one."""

import json
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from .. import config
from ..errors import InputError
from . import sets
from .classes import Border, ClassSet, Codebook
from .measures import CodebookMeasures, Map

# ---------------------------------------------------------------- bundled maps close to the borders between classes


FILE = config.ANNOTATIONS / "borders.json"


@dataclass(frozen=True)
class BorderMap:
    """A bundled attention map near the border between two classes."""

    class_name: str
    weights: Map
    value: float
    source: str


def sides(border: Border) -> str:
    """Describe the accuracy of the threshold between two classes, on bundled maps with unanimous labels. Return "" if
    there is no threshold."""
    if border.threshold is None:
        return ""
    titles = {one.name: one.title for one in SHIPPED[border.class_set].classes}
    counted = _stored()[border.name]["sides"]
    told = " and ".join(f"{right:,} of {maps:,} {titles[name]} maps" for name, (right, maps) in counted.items())
    return (
        f"With the threshold “{border.caption(border.threshold)}” alone, {told} are classified correctly. Only bundled "
        "maps with unanimous labels are counted. If a threshold alone misclassifies a map, further rules of the "
        "codebook determine its class."
    )


def _stored() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


@lru_cache(maxsize=16)
def border_maps(name: str) -> tuple[BorderMap, ...]:
    """Return the bundled maps near the border between two classes, by class and then by the measure of the border."""
    maps = []
    for row in _stored().get(name, {"maps": []})["maps"]:
        with np.load(config.ANNOTATIONS / row["source"] / "maps.npz", allow_pickle=False) as stored:
            weights = stored[row["map_id"]].astype(np.float32)
        maps.append(BorderMap(row["class"], weights, row["value"], row["source"]))
    return tuple(maps)


def found_sets() -> dict[str, ClassSet]:
    """Return the class sets in `core.codebook.sets` by name. The default sets come first."""
    files = sorted(file.name for file in pkgutil.iter_modules(sets.__path__))
    found: list[ClassSet] = [import_module(f"{sets.__name__}.{file}").CLASS_SET for file in files]
    return {one.name: one for one in sorted(found, key=lambda one: not one.usual)}


SHIPPED = found_sets()
BERT, GPT2 = SHIPPED["bert"], SHIPPED["gpt2"]
COLOURS: dict[str, str] = {}  # by class; the first set's colour if several sets share a name
for member in (member for shipped in SHIPPED.values() for member in shipped.classes):
    COLOURS.setdefault(member.name, member.colour)


def shipped_set(*, causal: bool) -> ClassSet:
    """Return the bundled class set for decoder maps if `causal` is True, otherwise that for encoder maps."""
    return next(described for described in SHIPPED.values() if described.causal == causal)


def class_set(name: str, events: Iterable[Mapping[str, Any]] = ()) -> ClassSet:
    """Return the bundled or custom class set with the given name, after applying its changes in `events`. Raises
    InputError if the set does not exist."""
    class_events = [event for event in events if event["class_set"] == name]
    if name in SHIPPED:
        return SHIPPED[name].after(class_events)
    if not class_events:
        raise InputError(
            f"A class set must be one of {', '.join(SHIPPED)} or a custom set with at least one class; got "
            f'"{name[:60]}". Choose another set, or add classes to this one first.'
        )
    return ClassSet(name, name, "made by hand", ()).after(class_events)


def codebook_of(class_set: str) -> Codebook | None:
    """Return the codebook of a bundled class set, or None for a custom class set."""
    return SHIPPED[class_set].codebook if class_set in SHIPPED else None


def labelled_folders() -> dict[str, tuple[str, ...]]:
    """Return a dictionary from each class set to the names of the folders with its bundled annotations."""
    return {name: one.codebook.labelled for name, one in SHIPPED.items() if one.codebook and one.codebook.labelled}


def drawn_map(class_set: str, name: str, *, length: int, seed: int) -> Map | None:
    """Draw a synthetic map [query, key] of a bundled class, whose rows sum to 1. Return None for a custom class."""
    codebook = codebook_of(class_set)
    if codebook is None or name not in SHIPPED[class_set].names:
        return None
    return codebook.draw(np.random.default_rng(seed), name, length)


def borders(class_set: str) -> list[Border]:
    """Return the borders between classes from the codebook of a class set, or [] for a custom class set."""
    codebook = codebook_of(class_set)
    return list(codebook.borders) if codebook else []


def dispute(class_set: str, name: str, measures: CodebookMeasures, *, sentences: int) -> str | None:
    """Explain why the codebook contradicts the class `name` for a map. Return None if there is no contradiction.
    `sentences` is the number of sentences in the input."""
    codebook = codebook_of(class_set)
    return codebook.disputes(name, measures, sentences) if codebook else None


def explained(class_set: str, measures: CodebookMeasures, tokens: Sequence[str]) -> str:
    """Describe the measurements of a map, with the thresholds of the codebook. Return "" for a custom class set."""
    codebook = codebook_of(class_set)
    key = measures.column.key
    named = f"{tokens[key]} ({key + 1})" if key < len(tokens) else f"{key + 1}"
    return codebook.explains(measures, named) if codebook else ""
