"""Stored and bundled classifiers: which there are, which is known best, and opening one."""

import hashlib
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import config, patterns
from ..codebook.registry import labelled_folders
from ..errors import InputError
from ..store import classifiers, label_files
from ..store.database import Database
from ..store.rows import Row
from ..writing import write_whole
from .snapshot import Snapshot, write

if TYPE_CHECKING:
    from .training import Classifier

BUNDLED = "bundled"
WARNED_OUTSIDE, WARNED_UNSURE = 0.05, 0.15  # shares of a checkpoint's maps above which its class shares say little


def open_classifier(db: Database, name: str, *, class_set: str | None = None) -> "Classifier":
    """A stored classifier, ready to classify. InputError when it is of another class set than asked for."""
    stored = classifiers.stored_classifier(db, name)
    if class_set is not None and stored.class_set != class_set:
        raise InputError(
            f'This classifier knows the classes of "{stored.class_set}"; "{class_set}" was asked for: choose '
            "one trained on that set."
        )
    return patterns.training.Classifier.from_bytes(stored.weights)


def snapshots(db: Database) -> Path:
    """The folder beside the database where jobs find labels and classifiers, which they get as files."""
    return db.path.parent / "snapshots"


def training_options(db: Database, snapshot: Snapshot, **options: Any) -> Row:
    """Options of a training on these labels: writes their snapshot and makes the folder of its log."""
    file = write(snapshot, snapshots(db))
    log = snapshots(db) / f"log-{uuid.uuid4().hex[:12]}"
    log.mkdir()
    return {"snapshot": str(file), "log": str(log)} | options


def classifying_options(db: Database, name: str, **options: Any) -> Row:
    """Options of a study that classifies with a stored classifier: writes it where workers find it."""
    stored = classifiers.stored_classifier(db, name)
    file = snapshots(db) / f"classifier-{hashlib.sha256(stored.weights).hexdigest()[:16]}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        write_whole(file, stored.weights)
    return {
        "classifier": str(file),
        "name": name,
        "class_set": stored.class_set,
        "confusions": stored.confusions,
    } | options


# ---------------------------------------------------------------- bundled classifiers


def bundled_labels(db: Database, class_set: str) -> int:
    """Add the bundled annotations of a class set to the store; how many labels were new (0 the second time)."""
    return sum(
        report.new
        for folder in labelled_folders().get(class_set, ())
        for report in label_files.import_folder(db.shared, config.ANNOTATIONS / folder)
    )


def bundled_classifier(db: Database, class_set: str) -> str | None:
    """Add the classifier trained on the bundled annotations; its name, or None where none is bundled.

    The name tells its weights, so a newer release brings its own beside the one that the database had.
    """
    folder = config.ANNOTATIONS / class_set
    if class_set not in labelled_folders() or not (folder / "classifier.json").is_file():
        return None
    about = json.loads((folder / "classifier.json").read_text(encoding="utf-8"))
    weights = (folder / "classifier.safetensors").read_bytes()
    return classifiers.save_classifier(
        db.shared,  # what comes with the project asks for no role
        classifiers.Trained(class_set, weights, title="bundled", **about),
        classifier=f"{BUNDLED}-{class_set}-{hashlib.sha256(weights).hexdigest()[:8]}",
    )


def unfamiliar(unsure: float, outside: float) -> bool:
    """Whether a checkpoint's maps differ so much from what a classifier was trained on that its shares say little.

    Of a left-out checkpoint's maps 5 to 8 % were unsure, and 1 % of the maps trained on lie outside by construction.

    Args:
        unsure: share of its maps whose first choice has less than UNSURE, 0 to 1.
        outside: share of its maps that lie beyond what was trained on, 0 to 1.

    Returns:
        True where either share is above its limit.
    """
    return outside > WARNED_OUTSIDE or unsure > WARNED_UNSURE


def bundled_weights(class_set: str) -> bytes:
    """The bundled classifier of a class set as its file holds it. Raises InputError where none is bundled."""
    file = config.ANNOTATIONS / class_set / "classifier.safetensors"
    if class_set not in labelled_folders() or not file.is_file():
        raise InputError(
            f"A bundled classifier knows the classes of {' or '.join(labelled_folders())}; {class_set[:60]!r} has "
            f"none: train one with `{config.command_line('patterns', 'train')}`."
        )
    return file.read_bytes()


def keep_best_known(db: Database, class_set: str) -> str:
    """The name of the classifier that suggests, else of the newest trained here, else of the bundled one, which is
    stored first where it is not yet; InputError when none is."""
    classifier = _best_of_ours(db, class_set) or bundled_classifier(db, class_set)
    if classifier is None:
        raise _none_of(class_set)
    return classifier


def can_suggest(db: Database, class_set: str) -> bool:
    """Whether a classifier may suggest: one was chosen; or none was turned off, and one was trained or ships."""
    if classifiers.suggesting(db, class_set):
        return True
    is_described = bundled_about(class_set) is not None or len(classifiers.classifiers(db, class_set)) > 0
    return is_described and not classifiers.is_turned_off(db, class_set)


def about_best(db: Database, class_set: str) -> Row:
    """What is known of the classifier that `keep_best_known` names: title, kind, classes, labels (how many), scores.
    Stores nothing, so that a page may ask while it draws. InputError when there is none."""
    if name := _best_of_ours(db, class_set):
        return classifiers.one_classifier(db, name)
    if about := bundled_about(class_set):
        return about
    raise _none_of(class_set)


def bundled_about(class_set: str) -> Row | None:
    """What `about_best` says of the bundled classifier, from its file; None where none is bundled."""
    file = config.ANNOTATIONS / class_set / "classifier.json"
    if class_set not in labelled_folders() or not file.is_file():
        return None
    about = json.loads(file.read_text(encoding="utf-8"))
    return about | {"title": BUNDLED, "kind": about["recipe"]["kind"], "labels": len(about["snapshot"])}


def _best_of_ours(db: Database, class_set: str) -> str | None:
    name = classifiers.suggesting(db, class_set)
    if name is None:
        names = classifiers.classifiers(db, class_set).classifier
        own_names = names[~names.str.startswith(BUNDLED)]
        name = str(own_names.iloc[0]) if len(own_names) else None
    return name


def _none_of(class_set: str) -> InputError:
    return InputError(
        f'Classifying needs a trained classifier of "{class_set}"; there is none: run '
        f"`{config.command_line('patterns', 'train', '--class-set', class_set)}` or train one on the Classifier page."
    )
