"""The class sets that ship: each file of `core.codebook.sets` is one."""

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


def found_sets() -> dict[str, ClassSet]:
    """What the files of `core.codebook.sets` declare, by name; those that are taken where nobody chooses first."""
    files = sorted(file.name for file in pkgutil.iter_modules(sets.__path__))
    found: list[ClassSet] = [import_module(f"{sets.__name__}.{file}").CLASS_SET for file in files]
    return {one.name: one for one in sorted(found, key=lambda one: not one.usual)}


SHIPPED = found_sets()
BERT, GPT2 = SHIPPED["bert"], SHIPPED["gpt2"]
COLOURS: dict[str, str] = {}  # by class; of a name that several sets have the first one's
for member in (member for shipped in SHIPPED.values() for member in shipped.classes):
    COLOURS.setdefault(member.name, member.colour)


def shipped_set(*, causal: bool) -> ClassSet:
    """The shipped set that describes the maps of decoders (causal) or of encoders."""
    return next(described for described in SHIPPED.values() if described.causal == causal)


def class_set(name: str, events: Iterable[Mapping[str, Any]] = ()) -> ClassSet:
    """A shipped or a person's own set by name, after its events; InputError when nobody made it."""
    class_events = [event for event in events if event["class_set"] == name]
    if name in SHIPPED:
        return SHIPPED[name].after(class_events)
    if not class_events:
        raise InputError(
            f'A class set must be one of {", ".join(SHIPPED)} or one you made; "{name[:60]}" is neither: '
            "choose another or add its classes first."
        )
    return ClassSet(name, name, "made by hand", ()).after(class_events)


def codebook_of(class_set: str) -> Codebook | None:
    """What a shipped set says beside its classes; None of a person's own."""
    return SHIPPED[class_set].codebook if class_set in SHIPPED else None


def labelled_folders() -> dict[str, tuple[str, ...]]:
    """Folders of the bundled annotations by class set."""
    return {name: one.codebook.labelled for name, one in SHIPPED.items() if one.codebook and one.codebook.labelled}


def drawn_map(class_set: str, name: str, *, length: int, seed: int) -> Map | None:
    """A map [query, key] of `length` tokens, rows summing to 1, as the words of a shipped class say; None of a person's
    own. The codebook shows it where nobody has labelled a map yet; it is no label, and never stored."""
    codebook = codebook_of(class_set)
    if codebook is None or name not in SHIPPED[class_set].names:
        return None
    return codebook.draw(np.random.default_rng(seed), name, length)


def borders(class_set: str) -> list[Border]:
    """The borders of a class set; none of one that somebody made."""
    codebook = codebook_of(class_set)
    return list(codebook.borders) if codebook else []


def dispute(class_set: str, name: str, measures: CodebookMeasures, *, sentences: int) -> str | None:
    """Why the codebook disputes a class given to a map, as a sentence; None where it does not, or knows no such set.

    sentences: of the map's input.
    """
    codebook = codebook_of(class_set)
    return codebook.disputes(name, measures, sentences) if codebook else None


def explained(class_set: str, measures: CodebookMeasures, tokens: Sequence[str]) -> str:
    """The measurements of a map beside the codebook's thresholds, as one line; "" for a class set without any.

    tokens: of the map, or none.
    """
    codebook = codebook_of(class_set)
    key = measures.column.key
    named = f"{tokens[key]} ({key + 1})" if key < len(tokens) else f"{key + 1}"
    return codebook.explains(measures, named) if codebook else ""
