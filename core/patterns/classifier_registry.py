"""Stored and bundled classifiers: which exist, which one is used for suggestions, and how they are opened."""

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
# Fractions of outside and unsure maps above which class shares are unreliable
WARNED_OUTSIDE, WARNED_UNSURE = (0.05, 0.15)


def open_classifier(db: Database, name: str, *, class_set: str | None = None) -> "Classifier":
    """Load a stored pattern classifier. Raises InputError if it was not trained on the class set `class_set`."""
    stored = classifiers.one_classifier(db, name)
    if class_set is not None and stored["class_set"] != class_set:
        raise InputError(
            f'The classifier must be trained on the class set "{class_set}"; this classifier is trained on '
            f'"{stored["class_set"]}". Choose another classifier.'
        )
    return patterns.training.Classifier.from_bytes(stored["weights"])


def snapshots(db: Database) -> Path:
    """Return the folder in which training labels and classifiers are saved for jobs. It is next to the database."""
    return db.path.parent / "snapshots"


def training_options(db: Database, snapshot: Snapshot, **options: Any) -> Row:
    """Save the training labels to a file, and return the options for a job that trains a pattern classifier on them."""
    file = write(snapshot, snapshots(db))
    log = snapshots(db) / f"log-{uuid.uuid4().hex[:12]}"
    log.mkdir()
    return {"snapshot": str(file), "log": str(log)} | options


def classifying_options(db: Database, name: str, **options: Any) -> Row:
    """Save a stored pattern classifier to a file, and return the options for a job that classifies maps with it."""
    stored = classifiers.one_classifier(db, name)
    file = snapshots(db) / f"classifier-{hashlib.sha256(stored['weights']).hexdigest()[:16]}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        write_whole(file, stored["weights"])
    about = {"classifier": str(file), "name": name, "class_set": stored["class_set"]}
    # [input, true class, predicted class] of held-out maps
    return about | {"confusions": stored["scores"].get("confusions", [])} | options


# ---------------------------------------------------------------- bundled classifiers


def bundled_labels(db: Database, class_set: str) -> int:
    """Import the bundled labels for a class set, and return how many labels were new. Raises RightsError if the user is
    only a viewer."""
    db.person.must("annotator", "add the bundled labels")
    return sum(
        report.new
        for folder in labelled_folders().get(class_set, ())
        for report in label_files.import_folder(db.shared, config.ANNOTATIONS / folder)
    )


def bundled_classifier(db: Database, class_set: str) -> str | None:
    """Store the bundled pattern classifier for a class set in the database, and return its ID. Returns None if the
    class set has no bundled classifier.

    The name includes a hash of the weights, so every release has its own.
    """
    folder = config.ANNOTATIONS / class_set
    if class_set not in labelled_folders() or not (folder / "classifier.json").is_file():
        return None
    about = json.loads((folder / "classifier.json").read_text(encoding="utf-8"))
    weights = (folder / "classifier.safetensors").read_bytes()
    return classifiers.save_classifier(
        db.shared,  # bundled data need no role
        classifiers.Trained(class_set, weights, title="bundled", **about),
        classifier=f"{BUNDLED}-{class_set}-{hashlib.sha256(weights).hexdigest()[:8]}",
    )


def unfamiliar(unsure: float, outside: float) -> bool:
    """Return whether a classifier is unreliable for a checkpoint, because too many maps have uncertain predictions or
    differ from the training maps.

    `unsure` is the fraction of maps with a first choice below UNSURE (3 to 5 % on held-out checkpoints), and `outside`
    the fraction outside the training distribution (1 % of training maps, by construction).
    """
    return outside > WARNED_OUTSIDE or unsure > WARNED_UNSURE


def bundled_weights(class_set: str) -> bytes:
    """Return the file contents of the bundled classifier for a class set. Raises InputError if there is no such
    classifier."""
    file = config.ANNOTATIONS / class_set / "classifier.safetensors"
    if class_set not in labelled_folders() or not file.is_file():
        raise InputError(
            f"Bundled classifiers exist only for the class sets {' and '.join(labelled_folders())}; got "
            f"{class_set[:60]!r}. Train a classifier with `{config.command_line('patterns', 'train')}`."
        )
    return file.read_bytes()


def keep_best_known(db: Database, class_set: str) -> str:
    """Return the ID of the classifier for suggestions: the selected, otherwise the newest, otherwise the bundled one.

    Stores the bundled one if necessary. Raises InputError if there is none.
    """
    classifier = _best_of_ours(db, class_set) or bundled_classifier(db, class_set)
    if classifier is None:
        raise _none_of(class_set)
    return classifier


def can_suggest(db: Database, class_set: str) -> bool:
    """Return whether suggestions are turned on for a class set and a classifier is available."""
    if classifiers.suggesting(db, class_set):
        return True
    is_described = bundled_about(class_set) is not None or len(classifiers.classifiers(db, class_set)) > 0
    return is_described and not classifiers.is_turned_off(db, class_set)


def about_best(db: Database, class_set: str) -> Row:
    """Return a description of the classifier that `keep_best_known` would choose, without storing the classifier.
    Raises InputError if there is none."""
    if name := _best_of_ours(db, class_set):
        return classifiers.one_classifier(db, name)
    if about := bundled_about(class_set):
        return about
    raise _none_of(class_set)


def bundled_about(class_set: str) -> Row | None:
    """Return a description of the bundled classifier for a class set, or None if there is no such classifier."""
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
        f'A classifier trained on the class set "{class_set}" is required; none is stored. Run '
        f"`{config.command_line('patterns', 'train', '--class-set', class_set)}`, or train one on the Classifier "
        "page."
    )
