"""Trained pattern classifiers, their training labels, and which one is used for suggestions."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..errors import InputError, StoreError
from .bodies import misfit, sound
from .database import Database
from .rows import Row, insert_row, now, to_json

_JSON = ("recipe", "classes", "snapshot", "scores")
_ABOUT = "classifier, class_set, title, kind, recipe, classes, labels, snapshot_hash, annotator, stored"


@dataclass(frozen=True)
class Trained:
    """A trained pattern classifier to be stored. `weights` is in safetensors format, and `snapshot` lists the training
    labels as [map ID, class, event ID]."""

    class_set: str
    weights: bytes
    recipe: Mapping[str, Any]
    classes: Sequence[str]
    snapshot: Sequence[Sequence[Any]]
    scores: Mapping[str, Any]
    annotator: str = ""
    title: str = ""


def save_classifier(db: Database, trained: Trained, *, classifier: str | None = None) -> str:
    """Store a trained pattern classifier, unless its ID is stored already. Return the ID."""
    name = classifier or uuid.uuid4().hex[:12]
    recipe, text = trained.recipe, to_json(list(trained.snapshot))
    row = vars(trained) | {
        "classifier": name,
        "title": trained.title or f"{recipe['kind']}, {len(trained.snapshot)} labels",
        "kind": recipe["kind"],
        "recipe": to_json(dict(recipe)),
        "classes": to_json(list(trained.classes)),
        "labels": len(trained.snapshot),
        "snapshot": text,
        "snapshot_hash": hashlib.sha256(text.encode()).hexdigest(),
        "scores": to_json(dict(trained.scores)),
        "stored": now(),
    }
    with db.write() as cursor:
        if not cursor.execute("SELECT 1 FROM classifier WHERE classifier = ?", [name]).fetchone():
            insert_row(cursor, "classifier", row)
    return name


def classifiers(db: Database, class_set: str | None = None) -> pd.DataFrame:
    """Return the stored pattern classifiers as a data frame, newest first, without their weights and training
    labels."""
    return db.read(
        f"""SELECT {_ABOUT}, TRY_CAST(scores->>'macro_f1' AS DOUBLE) AS macro_f1 FROM classifier
            WHERE $class_set IS NULL OR class_set = $class_set ORDER BY ordinal DESC""",  # noqa: S608 - our columns
        {"class_set": class_set},
    )


def one_classifier(db: Database, classifier: str) -> Row:
    """Return a stored pattern classifier with its weights, training labels and scores. Raises StoreError for unknown
    IDs."""
    found = db.records("SELECT * FROM classifier WHERE classifier = ?", [classifier])
    if not found:
        raise StoreError(
            f"The classifier must be stored in the database; got {classifier[:60]!r}. Choose one from the list on "
            "the Classifier page, or train one."
        )
    (about,) = found
    for name in _JSON:
        if why := misfit("classifier", name, about[name]):
            raise StoreError(
                f"The classifier {about['title'][:60]!r} in the database cannot be read: {why}. Train another one."
            )
    return about | {name: json.loads(about[name]) for name in _JSON}


def class_set_of(db: Database, classifier: str) -> str | None:
    """Return the name of the class set on which a classifier was trained; None if the classifier is unknown."""
    found = db.rows("SELECT class_set FROM classifier WHERE classifier = ?", [classifier])
    return found[0][0] if found else None


def choose(db: Database, class_set: str, classifier: str | None, *, annotator: str) -> None:
    """Select the classifier that suggests classes to annotators who use a class set. None turns suggestions off.

    Raises InputError if the classifier was trained on another class set.
    """
    db.person.must("admin", "choose the classifier that suggests")
    if classifier is not None:
        trained_on = one_classifier(db, classifier)["class_set"]
        if trained_on != class_set:
            raise InputError(
                f'To suggest classes of "{class_set}", a classifier must be trained on this class set; this classifier '
                f'was trained on "{trained_on}". Train a classifier on labels of "{class_set}".'
            )
    with db.write() as cursor:
        cursor.execute(
            "INSERT INTO classifier_choice (class_set, classifier, annotator, stored) VALUES (?, ?, ?, ?)",
            [class_set, classifier, annotator, now()],
        )


def suggesting(db: Database, class_set: str) -> str | None:
    """Return the ID of the classifier that suggests classes for a class set; None if no classifier is selected."""
    return next(iter(_newest_choice(db, class_set)), None)


def is_turned_off(db: Database, class_set: str) -> bool:
    """Return whether a user has turned class suggestions off for a class set."""
    return _newest_choice(db, class_set) == [None]


def _newest_choice(db: Database, class_set: str) -> list[str | None]:
    """Return the classifier that was selected last, None for no suggestions; empty if none was ever selected."""
    sql = "SELECT classifier FROM classifier_choice WHERE class_set = ? ORDER BY ordinal DESC LIMIT 1"
    return [classifier for (classifier,) in db.rows(sql, [class_set])]


def labels_since_newest(db: Database, class_set: str) -> int:
    """Count the current labels in a class set that are newer than its newest classifier.

    These are the labels stored after its newest training (or tied) label, or after the classifier itself if none of its
    labels is in the database (bundled labels). Without a classifier, all current labels.
    """
    newest = db.rows(
        "SELECT snapshot, stored, scores->>'newest' FROM classifier WHERE class_set = ? ORDER BY ordinal DESC LIMIT 1",
        [class_set],
    )
    row = newest[0] if newest else None
    if row and not sound("classifier", f"labels of the newest classifier of {class_set[:60]!r}", {"snapshot": row[0]}):
        row = None
    events = [event for _, _, event in json.loads(row[0])] + [row[2]] if row else []
    counted = db.rows(
        """WITH seen AS (SELECT max(ordinal) AS last FROM label_event WHERE event IN (SELECT unnest($events)))
           SELECT count(*) FROM standing, seen WHERE kind = 'label' AND class_set = $name
           AND CASE WHEN last IS NULL THEN $stored IS NULL OR stored > $stored ELSE ordinal > last END""",
        {"name": class_set, "events": events, "stored": row[1] if row else None},
    )
    return int(counted[0][0])
