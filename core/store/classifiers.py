"""Trained pattern classifiers: versions with the labels they saw, and which one suggests."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..errors import InputError, StoreError
from .database import Database
from .label_checks import now
from .rows import Row, to_json

_ABOUT = "classifier, class_set, title, kind, recipe, classes, labels, snapshot_hash, annotator, stored"


@dataclass(frozen=True)
class Trained:
    """A trained classifier: its weights (safetensors bytes) and its labels' snapshot [map_id, class, event]."""

    class_set: str
    weights: bytes
    recipe: Mapping[str, Any]
    classes: Sequence[str]
    snapshot: Sequence[Sequence[Any]]
    scores: Mapping[str, Any]
    annotator: str = ""
    title: str = ""


def save_classifier(db: Database, trained: Trained, *, classifier: str | None = None) -> str:
    """Store a classifier; returns its id.

    Storing one under an id that is there already changes nothing, so a job may say it twice.
    """
    name = classifier or uuid.uuid4().hex[:12]
    recipe, text = trained.recipe, to_json(list(trained.snapshot))
    values = [
        name,
        trained.class_set,
        trained.title or f"{recipe['kind']}, {len(trained.snapshot)} labels",
        recipe["kind"],
        to_json(dict(recipe)),
        to_json(list(trained.classes)),
        trained.weights,
        len(trained.snapshot),
        text,
        hashlib.sha256(text.encode()).hexdigest(),
        to_json(dict(trained.scores)),
        trained.annotator,
        now(),
    ]
    with db.write() as cursor:
        if not cursor.execute("SELECT 1 FROM classifier WHERE classifier = ?", [name]).fetchone():
            cursor.execute(
                """INSERT INTO classifier (classifier, class_set, title, kind, recipe, classes, weights,
                   labels, snapshot, snapshot_hash, scores, annotator, stored)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                values,
            )
    return name


def classifiers(db: Database, class_set: str | None = None) -> pd.DataFrame:
    """Stored classifiers, newest first, without weights and snapshots; `macro_f1` from their scores."""
    return db.read(
        f"""SELECT {_ABOUT}, CAST(scores->>'macro_f1' AS DOUBLE) AS macro_f1 FROM classifier
            WHERE $class_set IS NULL OR class_set = $class_set ORDER BY ordinal DESC""",  # noqa: S608 - our columns
        {"class_set": class_set},
    )


def one_classifier(db: Database, classifier: str) -> Row:
    """All that is stored of a classifier: its weights (bytes), snapshot and scores, too. Raises StoreError where there
    is none of this id."""
    cursor = db.cursor().execute("SELECT * FROM classifier WHERE classifier = ?", [classifier])
    names = [column[0] for column in cursor.description]
    row = cursor.fetchone()
    if row is None:
        raise StoreError(
            f"A classifier must be one of those stored; {classifier[:60]!r} is not: train one, or see the "
            "list on the Classifier page."
        )
    about = dict(zip(names, row, strict=True))
    return about | {name: json.loads(about[name]) for name in ("recipe", "classes", "snapshot", "scores")}


@dataclass(frozen=True)
class StoredClassifier:
    """What classifying needs of a stored classifier. confusions: on held-out maps [input, true, predicted]."""

    class_set: str
    weights: bytes
    confusions: list[Any]


def stored_classifier(db: Database, classifier: str) -> StoredClassifier:
    """What classifying needs of a stored classifier. Raises StoreError where there is none of this id."""
    about = one_classifier(db, classifier)
    return StoredClassifier(about["class_set"], about["weights"], about["scores"].get("confusions", []))


def class_set_of(db: Database, classifier: str) -> str | None:
    """The class set that a classifier was trained on; None when there is no such classifier."""
    row = db.cursor().execute("SELECT class_set FROM classifier WHERE classifier = ?", [classifier]).fetchone()
    return row[0] if row else None


def choose(db: Database, class_set: str, classifier: str | None, *, annotator: str) -> None:
    """Let this classifier suggest for a class set (None: no suggestions). InputError when it is of another set."""
    db.person.must("admin", "choose the classifier that suggests")
    if classifier is not None:
        trained_on = one_classifier(db, classifier)["class_set"]
        if trained_on != class_set:
            raise InputError(
                f'A classifier suggests for the class set it was trained on; this one knows "{trained_on}", '
                f'not "{class_set}": train one on labels of "{class_set}".'
            )
    with db.write() as cursor:
        cursor.execute(
            "INSERT INTO classifier_choice (class_set, classifier, annotator, stored) VALUES (?, ?, ?, ?)",
            [class_set, classifier, annotator, now()],
        )


def suggesting(db: Database, class_set: str) -> str | None:
    """The classifier that suggests for a class set, or None."""
    row = (
        db.cursor()
        .execute(
            "SELECT classifier FROM classifier_choice WHERE class_set = ? ORDER BY ordinal DESC LIMIT 1", [class_set]
        )
        .fetchone()
    )
    return row[0] if row else None


def is_turned_off(db: Database, class_set: str) -> bool:
    """Whether somebody chose that nothing suggests for a class set, rather than that nobody chose yet."""
    chosen = db.cursor().execute(
        "SELECT classifier FROM classifier_choice WHERE class_set = ? ORDER BY ordinal DESC LIMIT 1", [class_set]
    )
    row = chosen.fetchone()
    return row is not None and row[0] is None


def labels_since_newest(db: Database, class_set: str) -> int:
    """How many labels stand that the newest classifier of a class set has not seen.

    New is what came after the newest of the labels that it was trained on, or that were looked at and tied; where the
    store has none of those (they came with the project), what came after the classifier itself.

    Args:
        db: where labels and classifiers are stored.

    Returns:
        Their number; of all that stand where there is no classifier.
    """
    newest = db.cursor().execute(
        "SELECT snapshot, stored, scores->>'newest' FROM classifier WHERE class_set = ? ORDER BY ordinal DESC LIMIT 1",
        [class_set],
    )
    row = newest.fetchone()
    events = [event for _, _, event in json.loads(row[0])] + [row[2]] if row else []
    counted = db.cursor().execute(
        """WITH seen AS (SELECT max(ordinal) AS last FROM label_event WHERE event IN (SELECT unnest($events)))
           SELECT count(*) FROM standing, seen WHERE kind = 'label' AND class_set = $name
           AND CASE WHEN last IS NULL THEN $stored IS NULL OR stored > $stored ELSE ordinal > last END""",
        {"name": class_set, "events": events, "stored": row[1] if row else None},
    )
    return int(counted.fetchall()[0][0])
