"""Labels as Label Studio's JSON, out and in: one task a map, one annotation a label or skip.

A task carries every event of its map under `data.atlas`, so what goes out comes back whole; annotations that were made
or changed in Label Studio come back as new label events.
"""

import base64
import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.codebook.classes import ClassSet
from core.drawing.png import png_bytes
from core.errors import InputError
from core.patterns.raster import from_float16
from core.patterns.snapshot import known_class_set
from core.store.database import Database
from core.store.label_files import MOST_ROWS, Imported, as_line, batch_of, exported, import_rows, read_bytes
from core.store.rows import Row
from core.writing import write_whole

PIXELS = 256  # least side of a picture
EVENT_KEYS = ("event", "batch", "sequence", "kind", "class_set", "map_id", "annotator", "pass", "class", "note",
              "undoes", "supersedes", "seconds", "scale", "way", "queue_order", "suggestion", "probability",
              "classifier", "happened", "stored")  # fmt: skip


def export_studio(db: Database, file: Path, class_set: str) -> int:
    """Write the labels of a class set as Label Studio's JSON, and its labelling config beside it (.xml); returns how
    many tasks."""
    classes = known_class_set(db, class_set)
    tasks: dict[str, _Task] = {}
    for position, row in enumerate(exported(db, class_set)):
        map_id, plain = str(row.get("map_id")), json.loads(as_line(row))
        if map_id not in tasks:  # the first event of a map brings its weights
            tasks[map_id] = _Task(_MapShown(*(row[column] for column in _SHOWN)), plain)
        tasks[map_id].add(plain, position)
    listed = [task.as_json(number, classes) for number, task in enumerate(tasks.values(), start=1)]
    write_whole(file, json.dumps(listed, ensure_ascii=False, indent=1))
    write_whole(file.with_suffix(".xml"), studio_config(classes))
    return len(tasks)


_SHOWN = ("map_id", "class_set", "checkpoint", "task", "layer", "head", "weights", "length")


@dataclass(frozen=True)
class _MapShown:
    """What a task shows of its map."""

    map_id: str
    class_set: str
    checkpoint: str
    task: str
    layer: int
    head: int
    weights: bytes
    length: int

    def as_json(self) -> Row:
        """A picture and a title, as Label Studio shows them."""
        title = f"{self.checkpoint} L{self.layer + 1}H{self.head + 1}, {self.task}"
        picture = base64.b64encode(png(from_float16(self.weights, self.length))).decode()
        return {
            "image": f"data:image/png;base64,{picture}",
            "title": title,
            "map_id": self.map_id,
            "class_set": self.class_set,
        }


_ANNOTATED = ("event", "kind", "annotator", "pass", "class", "undoes", "happened", "seconds")


@dataclass(frozen=True)
class _Event:
    """What an annotation says of one of our events, as JSON has it: a file from elsewhere may say anything."""

    event: Any
    kind: Any
    annotator: Any
    passing: Any
    given: Any
    undoes: Any
    happened: Any
    seconds: Any

    @classmethod
    def of(cls, event: Row) -> "_Event":
        """From a row of our own export."""
        return cls(*(event.get(name) for name in _ANNOTATED))

    def as_json(self, number: int, classes: ClassSet) -> Row:
        """As Label Studio shows an annotation."""
        chosen = [classes.named(str(self.given)).title] if self.kind == "label" else []
        return {
            "id": number,
            "completed_by": {"email": self.annotator},
            "was_cancelled": self.kind == "skip",
            "created_at": self.happened,
            "lead_time": self.seconds,
            "result": [_choice(chosen)] if chosen else [],
            "meta": {"atlas": self.event},
        }


class _Task:
    """One map's task as it comes together from its rows. first: the row that brings the map's facts."""

    def __init__(self, shown: _MapShown, first: Row) -> None:
        facts = {name: value for name, value in first.items() if name not in EVENT_KEYS and name != "class_events"}
        self._shown, self._events = shown, list[Row]()
        self._atlas: Row = {"map": facts, "events": self._events}

    def add(self, row: Row, position: int) -> None:
        """One more event of the map."""
        self._events.append({name: value for name, value in row.items() if name in EVENT_KEYS} | {"place": position})
        self._atlas |= {name: value for name, value in row.items() if name == "class_events"}

    def as_json(self, number: int, classes: ClassSet) -> Row:
        """As Label Studio reads it, each person's newest label or skip of each pass as an annotation."""
        events = [_Event.of(event) for event in self._events]
        undone = {event.undoes for event in events if event.kind == "undo"}
        standing = {
            (event.annotator, event.passing): event
            for event in events
            if event.kind in ("label", "skip") and event.event not in undone
        }
        return {
            "id": number,
            "data": self._shown.as_json() | {"atlas": self._atlas},
            "annotations": [event.as_json(k, classes) for k, event in enumerate(standing.values(), start=1)],
        }


def _choice(titles: list[str]) -> dict[str, Any]:
    return {"from_name": "class", "to_name": "image", "type": "choices", "value": {"choices": titles}}


def studio_config(classes: ClassSet) -> str:
    """The labelling config that shows a task's picture and the classes as single choices."""
    shown = [
        [html.escape(text or "") for text in (pattern.title, pattern.eye, pattern.key)] for pattern in classes.classes
    ]
    keys = [f' hotkey="{key}"' if key else "" for _, _, key in shown]
    choices = "".join(
        f'    <Choice value="{title}" hint="{eye}"{key}/>\n' for (title, eye, _), key in zip(shown, keys, strict=True)
    )
    return (
        '<View>\n  <Header value="$title"/>\n  <Image name="image" value="$image"/>\n'
        f'  <Choices name="class" toName="image" choice="single">\n{choices}  </Choices>\n</View>\n'
    )


def png(weights: np.ndarray) -> bytes:
    """A map as a grey PNG, dark where weight is, enlarged without smoothing.

    Args:
        weights: 0 to 1; what lies outside is cut to that. *Shape:* (query, key).

    Returns:
        The bytes of the file, at least PIXELS wide and high.
    """
    side = max(1, -(-PIXELS // len(weights)))
    grey = np.rint(255 * (1 - np.clip(weights, 0, 1))).astype(np.uint8).repeat(side, 0).repeat(side, 1)
    return png_bytes(grey)


# ---------------------------------------------------------------- in


def import_studio(
    db: Database, file: Path, class_set: str, *, people: Mapping[str, str] | None = None, keep_rest: bool = True
) -> Imported:
    """Read Label Studio's JSON; tasks of maps that are stored, or that our own export wrote.

    An annotation that cannot be used (several choices, nobody known, no such class or map) is reported.

    Args:
        db: where labels are stored.
        file: the JSON file, a list of tasks.
        class_set: which the annotations' choices are classes of.
        people: names by Label Studio's ids of users, where annotations have no e-mail address.
        keep_rest: take the other annotations where one cannot be used; otherwise one leaves the store as it was.

    Returns:
        What became of the annotations, with the reason for each that is refused.

    Raises:
        InputError: the file is no such list, or has more than MOST_ROWS rows.
        RightsError: one who is no admin asks.
    """
    db.person.must("admin", "import labels")
    content = read_bytes(file)
    try:
        tasks = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Label Studio's export is JSON; {file.name[:80]} is not: export it again as JSON.") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InputError(f"Label Studio's JSON is a list of tasks; {file.name[:80]} is none: export it again as JSON.")
    own_rows = sorted((row for task in tasks for row in _own_rows(task)), key=lambda row: row.pop("place", 0))
    try:
        with db.write():
            imported = import_rows(
                db, own_rows, batch_of(content), keep_rest=keep_rest
            )  # brings the classes that the rest names
            classes = known_class_set(db, class_set)
            rows = list(_added_rows(tasks, classes, dict(people or {}), own_rows, batch_of(content)))
            if len(own_rows) + len(rows) > MOST_ROWS:
                raise InputError(f"A file of labels has at most {MOST_ROWS:,} rows; this one has more: split it.")
            added = import_rows(db, rows, batch_of(content), keep_rest=keep_rest)
            refused = [*imported.refused, *((len(own_rows) + number, why) for number, why in added.refused)]
            total = Imported(len(own_rows) + len(rows), imported.new + added.new, imported.already + added.already,
                             imported.maps + added.maps, refused)  # fmt: skip
            if refused and not keep_rest:
                raise _RefusedError
    except _RefusedError:
        return Imported(total.rows, 0, 0, 0, total.refused)
    return total


class _RefusedError(Exception):
    """Rolls the transaction back when nothing may be kept."""


def _added_rows(
    tasks: list[dict[str, Any]], classes: ClassSet, people: dict[str, str], own_rows: list[Row], batch: str
) -> Iterator[Row | BaseException]:
    """What Label Studio added to our own events, with numbers of the file's batch."""
    own_by_event = {row.get("event"): row for row in own_rows}
    number = 0
    for task_number, task in enumerate(tasks, start=1):
        annotations = task.get("annotations")
        for annotation in annotations if isinstance(annotations, list) else []:
            number += 1
            try:
                row = _added(task, annotation, classes, people, own_by_event)
            except InputError as error:
                yield InputError(f"Task {task.get('id', task_number)}: {error}")
                continue
            if row is not None:
                yield row | {"batch": batch, "sequence": number, "way": "file"}


def _own_rows(task: dict[str, Any]) -> list[Row]:
    """The events that our export put into a task, the first with its map."""
    task_data = task.get("data")
    atlas_data = task_data.get("atlas") if isinstance(task_data, dict) else None
    atlas: dict[str, Any] = atlas_data if isinstance(atlas_data, dict) else {}
    events = atlas.get("events")
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events) or not events:
        return []
    of_map = atlas.get("map")
    facts = of_map if isinstance(of_map, dict) else {}
    history = {name: value for name, value in atlas.items() if name == "class_events"}
    bare = {name: value for name, value in facts.items() if name not in ("weights", "map_stored")}
    return [facts | history | events[0], *(bare | event for event in events[1:])]


def _added(
    task: dict[str, Any], annotation: Any, classes: ClassSet, people: dict[str, str], own_by_event: dict[Any, Row]
) -> Row | None:
    """A new event of an annotation, None for one that says what an event of ours said already."""
    if not isinstance(annotation, dict):
        raise InputError("An annotation is a JSON object; this one is not: export it again.")
    task_data = task.get("data") if isinstance(task.get("data"), dict) else {}
    map_id = task_data.get("map_id")  # type: ignore[union-attr]
    if not isinstance(map_id, str):
        raise InputError('A task names its map as "map_id" in its data; this one does not: add it.')
    chosen = _chosen(annotation, classes)
    meta = annotation.get("meta")
    ours = own_by_event.get(meta.get("atlas")) if isinstance(meta, dict) else None
    before = None if ours is None else _Event.of(ours)
    if before is not None and (before.given if before.kind == "label" else None) == chosen:
        return None
    annotator = _who(annotation.get("completed_by"), people)
    event = {
        "map_id": map_id,
        "class_set": classes.name,
        "annotator": annotator,
        "happened": annotation.get("created_at"),
    }
    event |= {"seconds": annotation.get("lead_time"), "pass": before.passing if before else 1}
    return event | ({"kind": "skip"} if chosen is None else {"kind": "label", "class": chosen})


def _chosen(annotation: dict[str, Any], classes: ClassSet) -> str | None:
    """The class of an annotation, None for one that was cancelled. InputError for several, none, or another."""
    if annotation.get("was_cancelled"):
        return None
    results = annotation.get("result")
    titles: list[Any] = []
    for result in results if isinstance(results, list) else []:
        value = result.get("value") if isinstance(result, dict) else None
        choices = value.get("choices") if isinstance(value, dict) else None
        titles += choices if isinstance(choices, list) else []
    if len(titles) != 1:
        raise InputError(
            f"A map has one class; this annotation has {len(titles)} choices"
            f"{' (' + ', '.join(map(str, titles))[:80] + ')' if titles else ''}: use single choices."
        )
    names = {
        str(name).casefold(): pattern.name for pattern in classes.classes for name in (pattern.name, pattern.title)
    }
    chosen = names.get(str(titles[0]).strip().casefold())
    if chosen is None:
        raise InputError(
            f"A label is one of {', '.join(pattern.title for pattern in classes.classes)}; {str(titles[0])[:60]!r} is "
            "none: correct it or add the class first."
        )
    return chosen


def _who(completed_by: Any, people: dict[str, str]) -> str:
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    name = people.get(str(completed_by), completed_by if isinstance(completed_by, str) else None)
    if not name:
        raise InputError(
            f"A label carries the name of who gave it; {str(completed_by)[:40]!r} is nobody known here: say who it is "
            "(--person ID=NAME)."
        )
    return name
