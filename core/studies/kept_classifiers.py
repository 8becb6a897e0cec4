"""From a finished training to a stored classifier, and from a stored one to something that classifies."""

import base64
import hashlib
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import config
from core.errors import InputError
from core.store import classifiers, label_files
from core.store.database import Database
from core.store.rows import Row
from core.studies.label_snapshot import Snapshot, known_classes, read, write
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
        "maps": [{key: row[key] for key in ("map_id", "truth", "predicted")} for row in rows if row["part"] == "map"],
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
    """The folder beside the database where jobs find labels and classifiers, which they get as files."""
    return db.path.parent / "snapshots"


def training_options(db: Database, found: Snapshot, **options: Any) -> Options:
    """Options of a training on these labels: writes their snapshot and makes the folder of its log."""
    file = write(found, snapshots(db))
    log = snapshots(db) / f"log-{uuid.uuid4().hex[:12]}"
    log.mkdir()
    return {"snapshot": str(file), "log": str(log)} | options


def classifying_options(db: Database, name: str, **options: Any) -> Options:
    """Options of a study that classifies with a stored classifier: writes it where workers find it."""
    row = classifiers.one_classifier(db, name)
    file = snapshots(db) / f"classifier-{hashlib.sha256(row['weights']).hexdigest()[:16]}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        part = file.with_suffix(f".{uuid.uuid4().hex[:8]}")
        part.write_bytes(row["weights"])
        part.replace(file)
    return {
        "classifier": str(file),
        "name": name,
        "class_set": row["class_set"],
        "confusions": row["scores"].get("confusions", []),
    } | options


# ---------------------------------------------------------------- what comes with the project


def bundled_labels(db: Database, class_set: str) -> int:
    """Add the bundled annotations of a class set to the store; how many labels were new (0 the second time)."""
    reports = label_files.import_folder(db.shared, config.ANNOTATIONS / class_set, known_classes(db))
    return sum(report.new for report in reports)


def bundled_classifier(db: Database, class_set: str) -> str | None:
    """Add the classifier trained on the bundled annotations; its name, or None where none is bundled."""
    folder = config.ANNOTATIONS / class_set
    if not (folder / "classifier.json").is_file():
        return None
    about = json.loads((folder / "classifier.json").read_text(encoding="utf-8"))
    return classifiers.save_classifier(
        db.shared,  # what comes with the project asks for no role
        class_set,
        (folder / "classifier.safetensors").read_bytes(),
        classifier=f"bundled-{class_set}",
        title="bundled",
        **about,
    )


def best_known(db: Database, class_set: str) -> str:
    """The classifier that suggests, else the newest trained here, else the bundled one; InputError when none is."""
    found = classifiers.suggesting(db, class_set)
    if found is None:
        newest = classifiers.classifiers(db, class_set)
        found = newest["classifier"].iloc[0] if len(newest) else bundled_classifier(db, class_set)
    if found is None:
        raise InputError(
            f'Classifying needs a trained classifier of "{class_set}"; there is none: run `python -m core '
            f"patterns train --class-set {class_set}` or train one on the Pattern classifier page."
        )
    return str(found)
