"""From a finished training to a stored classifier, and from a stored one to something that classifies."""

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError
from core.store import classifiers
from core.store.database import Database
from core.store.rows import Row
from core.studies.label_snapshot import read
from core.studies.study import Options
from core.studies.train_patterns import RECIPE, headline

if TYPE_CHECKING:
    from core.patterns.training import Classifier

SCORES = ("scores", "class", "confusion", "calibration", "curve")


def keep_classifier(db: Database, rows: list[Row], options: Options, *, name: str, annotator: str = "") -> str:
    """Store the classifier of a finished training under `name`; saying it twice keeps one. Returns the name.

    Raises InputError when the training kept no weights.
    """
    final = [row for row in rows if row["part"] == "final"]
    if not final:
        raise InputError(
            "A classifier is kept once it is trained on all labels; this training did not come so far: resume it."
        )
    snapshot = read(options["snapshot"])
    best = headline(rows)
    scores = {
        "macro_f1": best["macro_f1"],
        "low": best["low"],
        "high": best["high"],
        "n": best["maps"],
        "rows": [row for row in rows if row["part"] in SCORES],
        "confusions": confusions(rows, snapshot.classes),
    }
    return classifiers.save_classifier(
        db,
        snapshot.class_set,
        base64.b64decode(final[0]["weights"]),
        classifier=name,
        annotator=annotator,
        recipe={key: options[key] for key in RECIPE},
        classes=snapshot.classes,
        scores=scores,
        snapshot=[[row["map_id"], row["class"], row["event"]] for row in snapshot.facts],
    )


def confusions(rows: list[Row], classes: tuple[str, ...]) -> list[list[list[int]]]:
    """Held-out confusion [input, true, predicted] of a training, which corrects shares."""
    import numpy as np

    from core.patterns.evaluation import by_group

    held_out = [row for row in rows if row["part"] == "map"]
    truth, predicted = (np.array([classes.index(row[name]) for row in held_out]) for name in ("truth", "predicted"))
    return by_group(truth, predicted, [row["group"] for row in held_out], len(classes)).tolist()


def open_classifier(db: Database, name: str, *, class_set: str | None = None) -> "Classifier":
    """A stored classifier, ready to classify. InputError when it is of another class set than asked for."""
    from core.patterns.training import Classifier

    row = classifiers.one_classifier(db, name)
    if class_set is not None and row["class_set"] != class_set:
        raise InputError(
            f'This classifier knows the classes of "{row["class_set"]}"; "{class_set}" was asked for: choose '
            "one trained on that set."
        )
    return Classifier.from_bytes(row["weights"])


def snapshots(db: Database) -> Path:
    """The folder beside the database where training jobs find their labels."""
    return db.path.parent / "snapshots"


def training_options(db: Database, class_set: str, **options: Any) -> Options:
    """Options of a training on the labels as they are now: writes their snapshot and makes the folder of its log."""
    import uuid

    from core.studies.label_snapshot import snapshot, write

    file = write(snapshot(db, class_set), snapshots(db))
    log = snapshots(db) / f"log-{uuid.uuid4().hex[:12]}"
    log.mkdir()
    return {"snapshot": str(file), "log": str(log)} | options
