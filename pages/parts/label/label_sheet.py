"""The labelling sheet: a queue of maps on one canvas (see label_sheet.js).

Labels are sent to an endpoint of the server (team/http_routes.py): the browser stores every event until the server has
acknowledged it, and sends all of them each time.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import streamlit as st

from core import patterns
from core.codebook.classes import TOO_SMALL, ClassSet
from core.codebook.measures import measured
from core.codebook.registry import explained
from core.drawing.payload import as_bytes, packed
from core.labelling.queue import Hint, QueueOptions, alike_maps, dispute_of, progress
from core.patterns.classifier_registry import open_classifier
from core.patterns.raster import from_float16
from core.patterns.snapshot import present_names
from core.store import classifiers, labels
from core.store.database import Database
from core.store.rows import Row
from pages.parts.maps.maps_grid import drawing_component
from pages.parts.shell import resources

PER_SHEET = 96  # at most; a sheet is as many as the window holds
MOST_MAPS, MOST_BYTES = 1000, 8_000_000  # of one payload; the queue may be longer
UNDO_STEPS = 500
MAP_FACTS = ("layer", "head", "length", "maximum", "separators", "task", "checkpoint", "tokens")
SCRIPTS = ("label_outbox", "label_route", "label_state", "label_paint", "label_bar")
_sheet = drawing_component("label_sheet", Path(__file__).resolve().parent, *SCRIPTS)
_maps = st.components.v2.component(
    "atlas_label_maps",
    js="export default function ({ data }) {\n"
    "  window.atlasLabels = data;\n  window.dispatchEvent(new Event('atlas-labels'));\n}\n",
    html="<span></span>\n",
)


def payload(
    db: Database,
    wish: QueueOptions,
    names: Sequence[str],
    classes: ClassSet,
    *,
    hints: dict[str, Hint],
    classifier: str | None,
) -> tuple[str, bytes]:
    """Return the name of the queue and its first maps with all data for labelling; constant until it is rebuilt."""
    stack = labels.undoable(db, wish.class_set, wish.annotator, passing=wish.passing, most=UNDO_STEPS)
    decisions = labels.decided(db, wish.class_set, wish.annotator, passing=wish.passing)
    standing = progress(db, wish, decisions)
    shown, about = list(names[:MOST_MAPS]), {}
    order, mode = wish.order, "sheet"
    if order == "clusters" and wish.passing > 1:
        order = "random"  # repeats are labelled one by one
    elif order == "clusters":
        mode = "together"
        alike = alike_maps(db, shown)
        shown = [name for group in alike for name in group]
        about = {name: {"group": number} for number, group in enumerate(alike) for name in group}
    header = header_of(db, classes, wish.annotator, wish.passing, order, mode=mode) | {
        "classifier": classifier,
        "done": standing.done,
        "total": max(standing.maps, len(names)),
        "given": {name: _present(classes, decisions[name]) for name in shown if name in decisions},
        "counts": counts(classes, decisions.values()),
        "stack": [step | {"class": _present(classes, step["class"])} for step in stack],
    }
    return with_maps(header, labels.maps_of(db, shown), hints=hints, about=about)


def header_of(
    db: Database, classes: ClassSet, annotator: str, passing: int, order: str, *, mode: str = "single"
) -> dict[str, Any]:
    """Return the header that every queue sends to the browser. `mode`: single, sheet, or together."""
    return {
        "database": db.id,
        "class_set": classes.name,
        "annotator": annotator,
        "pass": passing,
        "order": order,
        "classifier": None,
        "mode": mode,
        "scale": "absolute",
        "per_sheet": PER_SHEET,
        "classes": [vars(member) for member in classes.classes],
        "counts": {},
    }


def _present(classes: ClassSet, name: str | None) -> str | None:
    """Return the current name of a class; None for a skip or a deleted class."""
    return classes.present(name) if name else None


def with_maps(
    header: dict[str, Any],
    rows: Sequence[Row],
    *,
    hints: Mapping[str, Hint] = MappingProxyType({}),
    about: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> tuple[str, bytes]:
    """Return the name and bytes of the payload: a header with maps up to MOST_BYTES. `about` has further data by map
    ID."""
    described: list[dict[str, Any]] = []
    offset = 0
    for row in rows:
        if described and 2 * (offset + row["length"] ** 2) > MOST_BYTES:
            break
        hint = hints.get(row["map_id"])
        among = list(hint.among) if hint else []
        facts = {name: row[name] for name in MAP_FACTS}
        said = why(header["class_set"], hint.name, row, among=bool(among)) if hint else ""
        shown = [hint.name, round(hint.probability, 4), said, among] if hint else None
        placement = {"id": row["map_id"], "offset": offset, "hint": shown, "small": row["length"] <= TOO_SMALL}
        described.append(facts | placement | dict(about.get(row["map_id"], {})))
        offset += row["length"] ** 2
    header = header | {"maps": described}
    header["id"] = hashlib.blake2b(json.dumps(header).encode(), digest_size=8).hexdigest()
    weights = (as_bytes(from_float16(row["weights"], row["length"])) for row in rows[: len(described)])
    return header["id"], packed(header, weights)


def why(class_set: str, name: str, row: Row, *, among: bool = False) -> str:
    """Return the measurements of a map with the thresholds of the codebook, and whether they contradict the class.

    among: several classes are suggested.
    """
    weights = from_float16(row["weights"], row["length"])
    measurements = measured(weights, separators=row["separators"], causal=row["causal"])
    disputed = None if among else dispute_of(class_set, name, row)
    first = "No class has a probability of 50 %; " if among else ""
    first = f"The codebook contradicts this label: {disputed}; " if disputed else first
    return first + explained(class_set, measurements, row["tokens"])


def counts(classes: ClassSet, decisions: Iterable[str | None]) -> dict[str, int]:
    """Return the number of decisions for each class; None is a skip."""
    class_names = [classes.present(name) for name in decisions if name is not None]
    return {name: class_names.count(name) for name in classes.names}


def hints_of(db: Database, classifier: str, names: Sequence[str]) -> dict[str, Hint]:
    """Return the suggestions of a stored classifier for these maps, with current class names; deleted classes are left
    out."""
    present = present_names(db, classifiers.class_set_of(db, classifier) or "bert")
    suggestions = _hints(db, classifier, tuple(names))
    return {
        name: Hint(
            present[hint.name],
            hint.probability,
            hint.margin,
            tuple(dict.fromkeys(present[one] for one in hint.among if one in present)),
        )
        for name, hint in suggestions.items()
        if hint.name in present
    }


@st.cache_data(show_spinner="Running the classifier ...", max_entries=8)
def _hints(_db: Database, classifier: str, names: tuple[str, ...]) -> dict[str, Hint]:
    resources.wait_for_import()  # a network needs torch, which this page does not wait for
    rows = [row for row in labels.maps_of(_db, names) if row["length"] > patterns.suggestions.TOO_SMALL]
    maps: list[np.ndarray] = [from_float16(row["weights"], row["length"]) for row in rows]
    suggested = patterns.suggestions.suggestions(open_classifier(_db, classifier), maps)
    return {
        row["map_id"]: Hint(suggestion.name, suggestion.probability, suggestion.margin, suggestion.among)
        for row, suggestion in zip(rows, suggested, strict=True)
    }


def send_maps(payload: bytes) -> None:
    _maps(key="label_maps", data=payload)


def show_sheet(queue: str) -> None:
    """Show the sheet. If it requests more maps, the page rebuilds its queue."""
    _sheet(key="label_sheet", data={"queue": queue}, on_more_change=lambda: st.session_state.pop("queue", None))
