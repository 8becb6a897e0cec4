"""The labelling sheet: a queue of maps on one canvas, and its outbox of label events (see label_sheet.js).

The browser keeps every event until the store has acknowledged it, and sends all of them each time; events are
applied from the component's return value, so a restarted server finds what it missed.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from core import patterns
from core.drawing.payload import as_bytes, packed
from core.errors import AtlasError, StoreError
from core.labelling import assignment_service
from core.labelling.queue import Hint, QueueOptions, dispute_of, progress
from core.patterns.classes import TOO_SMALL, ClassSet
from core.patterns.classifier_registry import open_classifier
from core.patterns.codebook import explained, measured
from core.patterns.raster import from_float16
from core.patterns.snapshot import present_names
from core.store import classifiers, labels
from core.store.database import Database
from core.store.rows import Row
from pages.parts.maps.components import drawing_component
from pages.parts.shell import loading
from pages.parts.shell.messages import clear_errors, plain

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
_saved = st.components.v2.component(
    "atlas_label_saved",
    js="export default function ({ data }) {\n"
    "  window.dispatchEvent(new CustomEvent('atlas-saved', { detail: data || {} }));\n}\n",
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
    """The queue's name and its first maps with all the browser needs to label them; constant until it is made again."""
    stack = labels.undoable(db, wish.class_set, wish.annotator, passing=wish.passing, most=UNDO_STEPS)
    mine = labels.decided(db, wish.class_set, wish.annotator, passing=wish.passing)
    standing = progress(db, wish)
    header = {
        "database": db.id,
        "class_set": wish.class_set,
        "annotator": wish.annotator,
        "pass": wish.passing,
        "order": wish.order,
        "classifier": classifier,
        "mode": "sheet",
        "scale": "absolute",
        "per_sheet": PER_SHEET,
        "done": standing.done,
        "total": max(standing.maps, len(names)),
        "given": {name: _present(classes, mine[name]) for name in names[:MOST_MAPS] if name in mine},
        "classes": [vars(member) for member in classes.classes],
        "counts": counts(db, wish, classes),
        "stack": [entry | {"class": _present(classes, entry["class"])} for entry in stack],
    }
    return with_maps(header, labels.maps_of(db, names[:MOST_MAPS]), hints=hints)


def _present(classes: ClassSet, name: str | None) -> str | None:
    """What a class is called now; None for a skip, and for a class that was deleted."""
    return classes.present(name) if name else None


def with_maps(
    header: dict[str, Any],
    rows: Sequence[Row],
    *,
    hints: Mapping[str, Hint] = MappingProxyType({}),
    about: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> tuple[str, bytes]:
    """The payload's name and its bytes: a header with maps up to MOST_BYTES. about: more to say of a map, by its id."""
    described: list[dict[str, Any]] = []
    offset = 0
    for row in rows:
        if described and 2 * (offset + row["length"] ** 2) > MOST_BYTES:
            break
        hint = hints.get(row["map_id"])
        facts = {name: row[name] for name in MAP_FACTS}
        shown = [hint[0], round(hint[1], 4), why(header["class_set"], hint[0], row)] if hint else None
        said = {"id": row["map_id"], "offset": offset, "hint": shown, "small": row["length"] <= TOO_SMALL}
        described.append(facts | said | dict(about.get(row["map_id"], {})))
        offset += row["length"] ** 2
    header = header | {"maps": described}
    header["id"] = hashlib.blake2b(json.dumps(header).encode(), digest_size=8).hexdigest()
    weights = (as_bytes(from_float16(row["weights"], row["length"])) for row in rows[: len(described)])
    return header["id"], packed(header, weights)


def why(class_set: str, name: str, row: Row) -> str:
    """What the codebook measures of a stored map beside its thresholds, and whether it disputes the suggested class."""
    weights = from_float16(row["weights"], row["length"])
    found = measured(weights, separators=row["separators"], causal=row["causal"])
    disputed = dispute_of(class_set, name, row)
    return (f"The codebook disputes it: {disputed}; " if disputed else "") + explained(class_set, found, row["tokens"])


def counts(db: Database, wish: QueueOptions, classes: ClassSet) -> dict[str, int]:
    """How many maps this person has given each class in this pass."""
    mine = labels.decided(db, wish.class_set, wish.annotator, passing=wish.passing).values()
    given = [classes.present(name) for name in mine if name is not None]
    return {name: given.count(name) for name in classes.names}


def hints_of(db: Database, classifier: str, names: Sequence[str]) -> dict[str, Hint]:
    """What a stored classifier suggests for these maps, in the classes of today; not where its class was deleted."""
    present = present_names(db, classifiers.class_set_of(db, classifier) or "bert")
    said = _hints(db, classifier, tuple(names))
    return {name: (present[hint[0]], *hint[1:]) for name, hint in said.items() if hint[0] in present}


@st.cache_data(show_spinner="Asking the classifier ...", max_entries=8)
def _hints(_db: Database, classifier: str, names: tuple[str, ...]) -> dict[str, Hint]:
    loading.wait()  # a network needs torch, which this page does not wait for
    rows = [row for row in labels.maps_of(_db, names) if row["length"] > patterns.suggestions.TOO_SMALL]
    maps: list[np.ndarray] = [from_float16(row["weights"], row["length"]) for row in rows]
    suggested = patterns.suggestions.suggestions(open_classifier(_db, classifier), maps)
    return {
        row["map_id"]: (suggestion.name, suggestion.probability, suggestion.margin)
        for row, suggestion in zip(rows, suggested, strict=True)
    }


def send_maps(data: bytes) -> None:
    """Hand the browser the maps of the queue; in the page itself, so that the fragment of the sheet is light."""
    _maps(key="label_maps", data=data)


@st.fragment
def show_sheet(db: Database, queue: str, wish: QueueOptions) -> None:
    """Mount the sheet, store what it sends, and acknowledge it; reruns alone at every label."""
    with clear_errors():
        result = _sheet(
            key="label_sheet", data={"queue": queue}, on_events_change=lambda: None, on_more_change=lambda: None
        )
        refused = apply(db, result.events)
        _saved(key="label_saved", data=dict(st.session_state.get("acknowledged", {})))
        said = st.empty()  # every run empties it: what a run leaves out stays where another fragment's follows at once
        if refused:
            with said.container():
                say_refused(db, refused, result.events)
        if result.more and result.more != st.session_state.get("more_answered"):
            st.session_state["more_answered"] = result.more
            st.session_state.pop("queue", None)
            st.rerun()


def say_refused(db: Database, refused: AtlasError, sent: Any) -> None:
    """Why labels were refused, how many wait for it, and what can be done."""
    waiting = sum(len(missing) for _, missing in missing_of(db, sent))
    st.error(plain(f"{refused} Waiting in this browser: {waiting}."), icon=":material/info:")
    if isinstance(refused, StoreError):
        st.button("Save again", help="What is not saved waits in this browser.")  # a click runs the fragment again
    else:
        st.button("Drop the labels that cannot be kept", on_click=drop, args=(db, sent))


class Box(NamedTuple):
    """One outbox as a browser sent it. events: each with a whole number as its sequence."""

    batch: str
    events: list[dict[str, Any]]


def boxes_for(db: Database, sent: Any) -> list[Box]:
    """The outboxes that belong to this database; what has another form, or another database, is left alone."""
    outboxes = sent.get("boxes") if isinstance(sent, dict) else None
    belonging = []
    for box in outboxes if isinstance(outboxes, list) else []:
        if isinstance(box, dict) and box.get("database") == db.id and isinstance(box.get("events"), list):
            good = [event for event in box["events"] if isinstance(event, dict) and type(event.get("sequence")) is int]
            belonging.append(Box(str(box.get("batch")), good))
    return belonging


def missing_of(db: Database, sent: Any) -> list[Box]:
    """The outboxes for this database with what was not acknowledged yet, those that have any."""
    acknowledged = st.session_state.setdefault("acknowledged", {})
    boxes = [
        Box(batch, [event for event in events if event["sequence"] > acknowledged.get(batch, 0)])
        for batch, events in boxes_for(db, sent)
    ]
    return [box for box in boxes if box.events]


def apply(db: Database, sent: Any) -> AtlasError | None:
    """Store the events of every outbox that came; acknowledgements go to the session. Returns why one was refused."""
    refused = None
    for batch, missing in missing_of(db, sent):
        try:
            st.session_state["acknowledged"][batch] = _record(db, sent, batch, missing).acknowledged
        except AtlasError as error:
            refused = error
    return refused


def _record(db: Database, sent: Any, batch: str, events: list[dict[str, Any]]) -> assignment_service.Recorded:
    return assignment_service.record(
        db, [{**event, "batch": batch} for event in events], secret=str(sent.get("secret") or "")
    )


def drop(db: Database, sent: Any) -> None:
    """Store what can be stored, one by one, and acknowledge the rest too, so that the browser forgets it.

    Where the store itself takes nothing, nothing is dropped.
    """
    for batch, events in boxes_for(db, sent):
        for event in events:
            try:
                _record(db, sent, batch, [event])
            except StoreError:
                return
            except AtlasError:
                continue  # this is one that cannot be kept
        st.session_state["acknowledged"][batch] = max((event["sequence"] for event in events), default=0)
