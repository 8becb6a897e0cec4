"""Labels of maps as a data frame, and training of a pattern classifier on them."""

import base64
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..codebook.registry import shipped_set
from ..config import settings
from ..errors import InputError
from ..patterns.classifier_registry import bundled_labels, bundled_weights
from ..patterns.snapshot import from_file, snapshot, with_bundled, write
from ..patterns.training import Classifier
from ..reading import read_bytes
from ..store import label_files
from ..store import labels as stored_labels
from ..store.database import Database
from ..studies.patterns import train_patterns
from ..studies.patterns.records import ClassScore, FinalClassifier, HeldOutScore
from ..writing import write_whole
from .running import study

FIRST = ("map_id", "class", "annotator", "checkpoint", "task", "row_id", "layer", "head")


def labels(db: str | Path | None = None, class_set: str = "bert", *, bundled: bool = False) -> pd.DataFrame:
    """Load labelled attention maps as a data frame with one row per label. Each row includes the attention weights.

    They come from the database file `db` (None: that of the app), or from the bundled labels if `bundled` is True.
    Raises LockedError if the app has the database open, and InputError if the file does not exist.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundled.duckdb" if bundled else Path(db or settings().database).expanduser()
        if not bundled and not path.is_file():
            raise InputError(
                f"Labels can only be read from an existing database; {path} does not exist. Correct the path."
            )
        with Database(path) as opened:
            if bundled:
                bundled_labels(opened, class_set)
            holding = set(stored_labels.labels(opened, class_set)["event"])
            rows, maps, history = [], {}, None
            for row in label_files.exported(opened, class_set):
                history = history or row["class_events"]
                if row["weights"] is not None:
                    maps[row["map_id"]] = {"weights": row["weights"], "map_stored": row["map_stored"]}
                if row["event"] in holding:
                    rows.append(row | maps[row["map_id"]] | {"class_events": history})
    frame = pd.DataFrame(rows, columns=label_files.COLUMNS.names)
    return frame[[*FIRST, *(name for name in frame.columns if name not in FIRST)]]


@dataclass(frozen=True)
class PatternClassifier:
    """A trained classifier of attention maps.

    Attributes:
        class_set: the class set of its labels.
        scores: macro F1 with its 95 % interval and calibration, one row per kind of held-out maps or checkpoint.
        per_class: precision, recall and F1 of each class on held-out maps.
    """

    class_set: str
    classifier: Classifier
    scores: pd.DataFrame
    per_class: pd.DataFrame

    def save(self, file: str | Path) -> Path:
        """Write the classifier to a .safetensors file, which the command `patterns evaluate --classifier` can read."""
        write_whole(Path(file), self.classifier.as_bytes())
        return Path(file)


def train_classifier(
    labels: pd.DataFrame | str | Path,
    class_set: str = "bert",
    *,
    kind: str = "trees",
    only_mine: bool = False,
    progress: bool = True,
    **options: Any,
) -> PatternClassifier:
    """Train a pattern classifier on the bundled labels and your labels, and evaluate it on held-out maps.

    Checkpoints, heads and inputs are held out in turn, as on the app's page, and some of your maps.

    Args:
        labels: from the function `labels`, or a file that `labels export` wrote.
        kind: trees, paper, replication, baseline or both.
        only_mine: leave out the bundled labels.
        options: of the training, such as folds=5 or seed=0.

    Raises:
        InputError: there are too few labels, or labels of unknown classes.
    """
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(labels, pd.DataFrame):
            with Database(Path(folder) / "labels.duckdb") as db:
                report = label_files.import_rows(db, map(_row, labels.to_dict("records")), "notebook")
                if report.refused:
                    number, reason = report.refused[0]
                    raise InputError(
                        f"Every label must be usable for training; the label in row {number} is not: {reason}"
                    )
                kept = snapshot(db, class_set)
        else:
            kept = from_file(Path(labels).expanduser(), class_set)
        kept = kept if only_mine else with_bundled(kept)
        log = Path(folder) / "log"
        log.mkdir()
        options |= {"snapshot": str(write(kept, Path(folder))), "log": str(log), "kind": kind}
        frame = study(train_patterns.STUDY.name, progress=progress, **options)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    (final,) = FinalClassifier.among(rows)
    return PatternClassifier(
        class_set,
        Classifier.from_bytes(base64.b64decode(final.weights)),
        pd.DataFrame([score.as_row() for score in HeldOutScore.among(rows)]),
        pd.DataFrame([score.as_row() for score in ClassScore.among(rows)]),
    )


def _row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of the frame as a file would have it: what is missing is None."""
    return {str(k): None if pd.api.types.is_scalar(v) and pd.isna(v) else v for k, v in row.items()}


def classifier_of(given: PatternClassifier | str | Path | None, class_set: str | None, *, causal: bool) -> Classifier:
    """Open a pattern classifier (by default, the bundled one). Raises InputError if its file cannot be read."""
    if isinstance(given, PatternClassifier):
        return given.classifier
    if given is None:
        return Classifier.from_bytes(bundled_weights(class_set or shipped_set(causal=causal).name))
    try:
        return Classifier.from_bytes(read_bytes(Path(given).expanduser()))
    except OSError as error:
        raise InputError(
            f"A classifier must be a readable file; {given} cannot be opened. Correct its name."
        ) from error
