"""Export and import of labels in the JSON of Label Studio: one task per map, one annotation per label or skip.

A task stores every event of its map in `data.atlas`, so an export can be imported without loss. Annotations made or
changed in Label Studio are imported as new label events.
"""

import base64
import html
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..codebook.classes import ClassSet
from ..drawing.conversion import png_bytes
from ..errors import InputError
from ..patterns.raster import from_float16
from ..patterns.snapshot import known_class_set
from ..store.database import Database
from ..store.label_checks import TAKES_BACK, time_of
from ..store.label_files import MOST_ROWS, Imported, RefusedError, as_line, batch_of, exported, import_rows, read_bytes
from ..store.labels import all_events
from ..store.people import person_name
from ..store.rows import Row, now
from ..writing import write_whole

PIXELS = 256  # least side of an image
EVENT_KEYS = ("event", "batch", "sequence", "kind", "class_set", "map_id", "annotator", "pass", "class", "note",
              "undoes", "supersedes", "seconds", "scale", "way", "queue_order", "suggestion", "probability",
              "classifier", "happened", "stored")  # fmt: skip


def export_studio(db: Database, file: Path, class_set: str) -> int:
    """Export the labels of a class set as Label Studio JSON with a config (.xml), and return the number of tasks."""
    classes = known_class_set(db, class_set)
    tasks: dict[str, _Task] = {}
    for position, row in enumerate(exported(db, class_set)):
        map_id, plain = str(row.get("map_id")), json.loads(as_line(row))
        if map_id not in tasks:  # the first event of a map contains its weights
            tasks[map_id] = _Task(_shown(row), plain)
        tasks[map_id].add(plain, position)
    listed = [task.as_json(number, classes) for number, task in enumerate(tasks.values(), start=1)]
    write_whole(file, json.dumps(listed, ensure_ascii=False, indent=1))
    write_whole(file.with_suffix(".xml"), studio_config(classes))
    return len(tasks)


def _shown(row: Row) -> Row:
    """Return the image and title of a map as the data of a Label Studio task."""
    picture = base64.b64encode(png(from_float16(row["weights"], row["length"]))).decode()
    return {
        "image": f"data:image/png;base64,{picture}",
        "title": f"{row['checkpoint']} L{row['layer'] + 1}H{row['head'] + 1}, {row['task']}",
        "map_id": row["map_id"],
        "class_set": row["class_set"],
    }


def _annotation(event: Row, number: int, classes: ClassSet) -> Row:
    """Return a label event as a Label Studio annotation."""
    is_label = event.get("kind") == "label"
    return {
        "id": number,
        "completed_by": {"email": event.get("annotator")},
        "was_cancelled": event.get("kind") == "skip",
        "created_at": event.get("happened"),
        "lead_time": event.get("seconds"),
        "result": [_choice([classes.named(str(event.get("class"))).title])] if is_label else [],
        "meta": {"atlas": event.get("event")},
    }


class _Task:
    """The task of one map, built from its rows. first: the row with the map's metadata."""

    def __init__(self, shown: Row, first: Row) -> None:
        facts = {name: value for name, value in first.items() if name not in EVENT_KEYS and name != "class_events"}
        self._shown, self._events = shown, list[Row]()
        self._atlas: Row = {"map": facts, "events": self._events}

    def add(self, row: Row, position: int) -> None:
        self._events.append({name: value for name, value in row.items() if name in EVENT_KEYS} | {"place": position})
        self._atlas |= {name: value for name, value in row.items() if name == "class_events"}

    def as_json(self, number: int, classes: ClassSet) -> Row:
        undone = {event.get("undoes") for event in self._events if event.get("kind") == "undo"}
        standing = {
            (event.get("annotator"), event.get("pass")): event
            for event in self._events
            if event.get("kind") in ("label", "skip") and event.get("event") not in undone
        }
        return {
            "id": number,
            "data": self._shown | {"atlas": self._atlas},
            "annotations": [_annotation(event, k, classes) for k, event in enumerate(standing.values(), start=1)],
        }


def _choice(titles: list[str]) -> dict[str, Any]:
    return {"from_name": "class", "to_name": "image", "type": "choices", "value": {"choices": titles}}


def studio_config(classes: ClassSet) -> str:
    """Create a Label Studio config that shows the image and the possible classes of each task."""
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
    """Draw an attention map [query, key] as a grey PNG image, in which larger weights are darker."""
    side = max(1, -(-PIXELS // len(weights)))
    grey = np.rint(255 * (1 - np.clip(weights, 0, 1))).astype(np.uint8).repeat(side, 0).repeat(side, 1)
    return png_bytes(grey)


# ---------------------------------------------------------------- import


def import_studio(
    db: Database, file: Path, class_set: str, *, people: Mapping[str, str] | None = None, keep_rest: bool = True
) -> Imported:
    """Import labels from a Label Studio export in JSON or JSON-MIN. The JSON of older versions and of storage files is
    also supported.

    Also reads a list of records with map_id, class and annotator, as pandas writes it. Annotations from this program
    are recognised by map, annotator, class and time, so an unchanged project adds nothing. If a person has several
    labels for a map, the newest counts; labels older than the stored one are not imported. Annotations that cannot be
    used (several choices, unknown annotator, class or map) are reported; if `keep_rest` is False, they prevent the
    import.

    Args:
        people: annotator names by Label Studio user ID or e-mail address.

    Raises:
        InputError: the file has another format, no label, or more than MOST_ROWS rows.
        RightsError: the user is not an admin.
    """
    db.person.must("admin", "import labels")
    content = read_bytes(file)
    # JSON objects of a file. Raises InputError for another format
    name = file.name[:80]
    try:
        tasks = json.loads(content)
    except (ValueError, RecursionError) as error:
        lines = " It looks like JSON Lines: rename it to .jsonl." if content.lstrip()[:1] == b"{" else ""
        raise InputError(
            f"A Label Studio export must be JSON; {name} cannot be parsed as JSON. Export it again as JSON or "
            f"JSON-MIN.{lines}"
        ) from error
    if isinstance(tasks, dict) and ("data" in tasks or "result" in tasks):  # one file for each annotation or task
        tasks = [tasks]
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InputError(
            f"A Label Studio export must be a list of tasks; {name} is "
            f"{'an object with ' + _keys([tasks]) if isinstance(tasks, dict) else 'not a list of objects'}. Export it "
            "again as JSON or JSON-MIN, or write records (pandas: orient='records')."
        )
    if bool(tasks) and all(
        "map_id" in task and "annotation_id" not in task and isinstance(task.get("annotator"), str) for task in tasks
    ):
        return import_rows(db, tasks, batch_of(content), keep_rest=keep_rest, defaults={"class_set": class_set})
    entries = list(_annotations(tasks))
    own_rows = sorted((row for task in tasks for row in _own_rows(task)), key=lambda row: row.pop("place", 0))
    if not entries and not own_rows:
        if any(task.get("predictions") for task in tasks):
            seen = f"Label Studio JSON with predictions but without annotations ({len(tasks)} tasks)"
        elif any("data" in task for task in tasks):
            seen = f"Label Studio JSON with {len(tasks)} tasks and no annotations"
        else:
            seen = f"a list of {len(tasks)} JSON objects with {_keys(tasks)}" if tasks else "an empty JSON list"
        raise InputError(
            f"A file of labels must have at least one label; {file.name[:80]} is {seen}. Export annotated tasks "
            "as JSON or JSON-MIN, or write records with map_id, class and annotator."
        )
    if len(own_rows) + len(entries) > MOST_ROWS:
        raise InputError(
            f"A file of labels must have at most {MOST_ROWS:,} rows; this file has {len(own_rows) + len(entries)}. "
            "Split the file."
        )
    names = {str(user): name for user, name in (people or {}).items()}
    try:
        with db.write():
            # Adds the classes that the other rows use
            imported = import_rows(db, own_rows, batch_of(content), keep_rest=keep_rest)
            classes = known_class_set(db, class_set)
            found = [_read(number, entry, classes, names) for number, entry in enumerate(entries, start=1)]
            news = _news(db, classes, [one for one in found if isinstance(one, _Annotation)], own_rows)
            wrong = [one for one in found if isinstance(one, InputError)]
            rows = [one.as_row(classes, batch_of(content)) for one in news.new]
            added = import_rows(db, [*wrong, *rows], batch_of(content), keep_rest=keep_rest)
            refused = [*imported.refused, *((len(own_rows) + number, why) for number, why in added.refused)]
            total = Imported(
                len(own_rows) + added.rows + news.known + news.older,
                imported.new + added.new,
                imported.already + added.already + news.known + news.older,
                imported.maps + added.maps,
                refused,
                [*dict.fromkeys([*imported.notes, *added.notes, *_said(news, names, entries)])],
            )
            if refused and not keep_rest:
                raise RefusedError
    except RefusedError:
        return Imported(total.rows, 0, 0, 0, total.refused)
    return total


def _keys(tasks: list[dict[str, Any]]) -> str:
    return "the keys " + (", ".join(sorted({str(key)[:30] for task in tasks[:20] for key in task}))[:200] or "(none)")


_Entry = tuple[str, Any, Any]  # name of the task, its data, and the annotation


def _annotations(tasks: list[dict[str, Any]]) -> Iterator[_Entry]:
    """Yield the annotations of a file in any of the formats."""
    for number, task in enumerate(tasks, start=1):
        name = str(task.get("id", number))
        listed = next((task[key] for key in ("annotations", "completions") if isinstance(task.get(key), list)), None)
        home = task.get("task")
        if listed is not None:
            for annotation in listed:
                yield name, task.get("data"), annotation
        elif "result" in task and isinstance(home, dict):  # a storage file: one annotation with its task
            yield str(home.get("id", number)), home.get("data"), task
        elif "map_id" in task and {"annotation_id", "annotator"} & set(task):  # JSON-MIN
            yield name, task, _from_min(task)


def _from_min(task: dict[str, Any]) -> dict[str, Any]:
    """Convert an entry of JSON-MIN to an annotation of the JSON format."""
    given = task.get("class", next((value for value in task.values() if isinstance(value, dict)), None))
    chosen = given.get("choices") if isinstance(given, dict) else [given]
    result = [] if given in (None, "") else [_choice(chosen if isinstance(chosen, list) else [])]
    return {
        "completed_by": task.get("annotator"),
        "created_at": task.get("created_at"),
        "updated_at": task.get("updated_at"),
        "lead_time": task.get("lead_time"),
        "was_cancelled": given in (None, ""),
        "result": result,
    }


def _own_rows(task: dict[str, Any]) -> list[Row]:
    """Return the events that this program's export stored in a task, the first one with the map."""
    home = task.get("task") if isinstance(task.get("task"), dict) else task
    task_data = home.get("data", task)  # type: ignore[union-attr]
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


@dataclass(frozen=True)
class _Annotation:
    """A usable annotation.

    Attributes:
        given: class; None for a skip.
        created, updated: UTC; None if unknown.
        ours: ID of the event of this program that it came from, if any.
    """

    number: int
    map_id: str
    person: str
    given: str | None
    created: datetime | None
    updated: datetime | None
    seconds: Any
    ours: Any
    passing: int = 1

    def as_row(self, classes: ClassSet, batch: str) -> Row:
        row = {"map_id": self.map_id, "class_set": classes.name, "annotator": self.person, "pass": self.passing}
        row |= {"happened": self.created, "seconds": self.seconds}
        row |= {"kind": "skip"} if self.given is None else {"kind": "label", "class": self.given}
        return row | {"batch": batch, "sequence": self.number, "way": "file"}


def _read(number: int, entry: _Entry, classes: ClassSet, people: Mapping[str, str]) -> "_Annotation | InputError":
    """Read an annotation, or return the error that makes it unusable."""
    task, data, annotation = entry
    try:
        if not isinstance(annotation, dict):
            raise InputError(
                "An annotation in a Label Studio file must be a JSON object; got something else. Export the file again."
            )
        map_id = data.get("map_id") if isinstance(data, dict) else None
        if not isinstance(map_id, str):
            raise InputError(
                'The data of a Label Studio task must have the ID of its map as text in the field "map_id"; got '
                f"{str(map_id)[:60]!r}. Correct the ID, or add it."
            )
        meta = annotation.get("meta")
        created, updated = (_time(annotation.get(name)) for name in ("created_at", "updated_at"))
        # Name for a user ID or e-mail address, otherwise the e-mail address
        completed_by = annotation.get("completed_by")
        users = [completed_by]
        if isinstance(completed_by, dict):
            users = [completed_by.get("id"), completed_by.get("email")]
        name = next((people[str(user)] for user in users if str(user) in people), None)
        name = name or next((user for user in users if isinstance(user, str) and user), None)
        if not name:
            user = next((user for user in users if user is not None), None)
            if user is None:
                raise InputError(
                    'An annotation must have its annotator in the field "completed_by"; this annotation has none. '
                    "Export the file again with the annotators."
                )
            raise InputError(
                f"The annotator of each label must have a name; the user {str(user)[:40]!r} has none. Give the user a "
                "name with --person ID=NAME."
            )
        return _Annotation(
            number,
            map_id,
            person_name(name),
            _chosen(annotation, classes),
            created,
            updated,
            annotation.get("lead_time"),
            meta.get("atlas") if isinstance(meta, dict) else None,
        )
    except InputError as error:
        return InputError(f"Task {task}: {error}")


def _time(given: Any) -> datetime | None:
    """Convert a time; old versions wrote seconds since 1970."""
    if given is None:
        return None
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = datetime.fromtimestamp(given, UTC) if 0 <= given < 2**33 else str(given)
    return time_of(given, "an annotation")


class _News(NamedTuple):
    """New annotations of a file. known: number already stored; older: than the annotator's stored label."""

    new: list[_Annotation]
    known: int
    older: int


def _news(db: Database, classes: ClassSet, annotations: list[_Annotation], own_rows: list[Row]) -> _News:
    """Return the annotations that add something, oldest first."""
    in_file = {str(row.get("event")) for row in own_rows}
    said = _Stored(db, classes, {annotation.map_id for annotation in annotations})
    exported = _Exported(classes, own_rows)
    new: list[_Annotation] = []
    known = older = 0
    for annotation in sorted(annotations, key=lambda one: (one.created or datetime.max, one.number)):
        before = said.same_time(annotation) or (said.events.get(annotation.ours) if annotation.ours else None)
        if exported.unchanged(annotation) or (before and before.given == annotation.given and before.event in in_file):
            continue  # already covered by the file's own events
        if before and before.given == annotation.given:
            known += 1
            continue
        if before:  # an event of this program whose class was changed in Label Studio later
            updated = annotation.updated if annotation.updated != annotation.created else None
            annotation = replace(annotation, passing=before.passing, created=updated)
        standing = said.standing.get((annotation.map_id, annotation.person, annotation.passing))
        if standing and standing.given == annotation.given:
            known += 1
        elif standing and annotation.created and annotation.created <= standing.happened:
            older += 1
        else:
            new.append(annotation)
            said.add(annotation)
    return _News(new, known, older)


class _Said(NamedTuple):
    """A label (given: its class) or skip (None) by a person."""

    event: str
    given: str | None
    passing: int
    happened: datetime


class _Stored:
    """Stored labels and skips of these maps, with current class names. standing: by map, person and pass."""

    def __init__(self, db: Database, classes: ClassSet, maps: Collection[str]) -> None:
        self.events: dict[Any, _Said] = {}
        self.standing: dict[tuple[str, str, int], _Said] = {}
        self._by_time: dict[tuple[str, str, datetime], _Said] = {}
        undone: set[str] = set()
        rows = [row for row in all_events(db, classes.name) if row["map_id"] in maps]
        for row in rows:
            undone |= {row["undoes"]} if row["kind"] in TAKES_BACK else set()
        for row in rows:
            if row["kind"] in ("label", "skip"):
                given = classes.present(row["class"]) if row["kind"] == "label" else None
                said = _Said(row["event"], given, row["pass"], row["happened"])
                person = person_name(row["annotator"])
                self.events[row["event"]] = said
                self._by_time[row["map_id"], person, _second(row["happened"])] = said
                if row["event"] not in undone:
                    self.standing[row["map_id"], person, row["pass"]] = said

    def same_time(self, annotation: _Annotation) -> _Said | None:
        """Return the stored label or skip with the same annotator, map and time as an imported annotation, or None.
        Times are compared in whole seconds."""
        if annotation.created is None:
            return None
        return self._by_time.get((annotation.map_id, annotation.person, _second(annotation.created)))

    def add(self, annotation: _Annotation) -> None:
        said = _Said("", annotation.given, annotation.passing, annotation.created or now())
        self.standing[annotation.map_id, annotation.person, annotation.passing] = said
        if annotation.created is not None:
            self._by_time[annotation.map_id, annotation.person, _second(annotation.created)] = said


class _Exported:
    """The labels that were current when this program exported the file: annotations equal to them were not changed."""

    def __init__(self, classes: ClassSet, own_rows: list[Row]) -> None:
        undone = {str(row.get("undoes")) for row in own_rows if row.get("kind") in TAKES_BACK}
        standing: dict[Any, Any] = {}
        for row in own_rows:
            if row.get("kind") in ("label", "skip") and row.get("event") not in undone:
                opinion = tuple(str(row.get(name)) for name in ("map_id", "annotator", "pass"))
                standing[opinion] = classes.present(str(row.get("class"))) if row.get("kind") == "label" else None
        self._said = {(name, person_name(person), given) for (name, person, _), given in standing.items()}

    def unchanged(self, annotation: _Annotation) -> bool:
        """Return True if an imported label was exported by this program and has not been changed since."""
        return (annotation.map_id, annotation.person, annotation.given) in self._said


def _second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _said(news: _News, people: Mapping[str, str], entries: list[_Entry]) -> list[str]:
    """Return notes on annotations that were not imported and on names without an annotation."""
    users = {user for _, _, annotation in entries for user in _users(annotation)}
    strangers = sorted(set(people) - users)
    notes = []
    if news.older:
        notes.append(f"{news.older} annotations are older than the stored labels of the same people, which are kept.")
    if strangers:
        notes.append(f"No annotation is by the user {', '.join(strangers)[:200]}. Check --person.")
    return notes


def _users(annotation: Any) -> list[str]:
    by = annotation.get("completed_by") if isinstance(annotation, dict) else None
    return [str(by.get(name)) for name in ("id", "email")] if isinstance(by, dict) else [str(by)]


def _chosen(annotation: dict[str, Any], classes: ClassSet) -> str | None:
    """Return an annotation's class; None if it was cancelled. Raises InputError unless it is one known class."""
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
            f"An annotation must have exactly one class; got {len(titles)} "
            f"choices{' (' + ', '.join(map(str, titles))[:80] + ')' if titles else ''}. Select one choice for "
            "this map in Label Studio."
        )
    names = {
        str(name).casefold(): pattern.name for pattern in classes.classes for name in (pattern.name, pattern.title)
    }
    chosen = names.get(str(titles[0]).strip().casefold())
    if chosen is None:
        raise InputError(
            f"A label must be one of {', '.join(pattern.title for pattern in classes.classes)}; got "
            f"{str(titles[0])[:60]!r}. Correct the label, or add the class first."
        )
    return chosen
