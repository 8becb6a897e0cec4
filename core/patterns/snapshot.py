"""Labels and their maps as one file for training jobs, because workers never open the database.

The file is named by a hash of its contents.
"""

import hashlib
import json
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import config
from ..codebook.classes import TOO_SMALL, ClassSet
from ..codebook.registry import BERT, class_set, labelled_folders
from ..errors import InputError
from ..reading import open_file
from ..store import label_files, labels
from ..store.database import Database
from ..store.rows import Row
from ..writing import replacing
from .agreement import consensus, inputs_of, tied
from .raster import from_float16
from .truth import Method, posteriors, truth

OWN_COPIES = 4  # weight of one's own labels beside the bundled ones
ENOUGH_ALONE = 400  # labels from which the bundled ones add little: macro F1 0.82 without and 0.84 with them


@dataclass(frozen=True)
class Snapshot:
    """The training data of a pattern classifier: attention maps with one label for each map.

    Attributes:
        facts: one row per map with map_id, class, event, group, layer, head, checkpoint, headline and tied; also soft
            (probability of each class) if labels of any map differ or a method aggregated them. headline: sampled at
            random, labelled without a suggestion, not tied; only such maps are scored. tied: no majority class.
        maps: float32 weights, [query, key] each; rows sum to 1.
        newest: last event of all labels considered; None in older files.
    """

    class_set: str
    classes: tuple[str, ...]
    facts: list[Row]
    maps: list[np.ndarray]
    newest: str | None = None

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.facts]

    @property
    def heads(self) -> list[str]:
        return [f"{row['checkpoint']}/{row['layer']}/{row['head']}" for row in self.facts]

    @property
    def events(self) -> list[list[Any]]:
        """Return [map_id, class, event] for each map. `event` is the ID of the label event that assigned the class."""
        return [
            list(facts) for facts in zip(*(self.column(name) for name in ("map_id", "class", "event")), strict=True)
        ]

    def without_ties(self) -> "Snapshot":
        rows = [k for k, row in enumerate(self.facts) if not row.get("tied")]
        return replace(self, facts=[self.facts[k] for k in rows], maps=[self.maps[k] for k in rows])

    @property
    def own(self) -> list[int]:
        """Return the indices of user-labelled maps in training data that also contain bundled maps. If the training
        data do not contain both, return []."""
        return [k for k, row in enumerate(self.facts) if row.get("own")]

    def repeated(self, maps: Sequence[int]) -> list[int]:
        """Return the given indices of training maps, with the index of each user-labelled map repeated OWN_COPIES
        times. User-labelled maps then have more weight than bundled maps."""
        own = set(self.own)
        return [k for k in maps for _ in range(OWN_COPIES if k in own else 1)]

    @property
    def soft(self) -> np.ndarray | None:
        """Return the soft labels of all maps as an array of probabilities [map, class]; None if any map has no soft
        label."""
        rows = [row.get("soft") for row in self.facts]
        return None if None in rows or not rows else np.array(rows)


def known_class_set(db: Database, name: str) -> ClassSet:
    """Return the class set with the given name, including all changes that users made to its classes."""
    return class_set(name, labels.class_events(db))


def current_labels(db: Database, name: str, *, map_id: str | None = None, last: int | None = None) -> pd.DataFrame:
    """Return a data frame of all current labels in a class set, with the current names of their classes. Labels with an
    unknown class are left out.

    `map_id` selects one map, and `last` is the ordinal of the last event that counts.
    """
    current, names = labels.labels(db, name, map_id=map_id, last=last), present_names(db, name)
    return current.assign(**{"class": current["class"].map(names)}).dropna(subset=["class"]).reset_index(drop=True)


def unknown_labels(db: Database, name: str) -> dict[str, int]:
    """Count the current labels for each name that belongs to no class of the class set. Analyses ignore these
    labels."""
    names = present_names(db, name)
    if all(names.get(name_given) is not None for name_given in labels.classes_given(db, name)):
        return {}  # the usual case; counting labels takes longer
    return {cls: n for cls, n in labels.class_counts(db, name).items() if names.get(cls) is None}


def retire_unknown(db: Database, name: str, *, annotator: str) -> int:
    """Retract all labels whose class does not belong to the class set, and return their number. Raises RightsError
    unless the user is an admin."""
    total = 0
    while unknown := unknown_labels(db, name):
        events = labels.of_classes(db, name, list(unknown))
        total += labels.retire(db, events, annotator=annotator, why="class not in its class set").new
    return total


def present_names(db: Database, name: str) -> dict[str, str]:
    """Return a dictionary from each current or merged class name in a class set to the current name of the class."""
    classes = known_class_set(db, name)
    names = {given: classes.present(given) for given in (*classes.names, *dict(classes.merged))}
    return {given: present for given, present in names.items() if present is not None}


def snapshot(db: Database, name: str, *, method: Method | None = None) -> Snapshot:
    """Return the labelled attention maps of a class set as training data. Each map has one label, and maps are in the
    order of their IDs.

    Labels are aggregated by a method of `core.patterns.truth`, or by `consensus` (None). Soft labels are then the
    fractions of first passes, for BERT's classes their mean with the posteriors of a rater model; a tied map has no
    class to be scored with.
    Adjudications override any method. Maps that are too small to have a pattern are left out. Raises InputError if no
    usable map is left.
    """
    current = current_labels(db, name)
    agreed = consensus(current, with_ties=True)
    ties = set() if agreed.empty or method is not None else set(tied(current))
    if ties and len(ties) == len(agreed):
        raise InputError(
            f'Training needs maps for which most annotators chose the same class; in the class set "{name}", '
            f"all {len(agreed)} labelled maps are tied. Adjudicate some of them, or ask another person to "
            "label them."
        )
    if agreed.empty:
        raise InputError(
            f'Training needs labelled maps; the class set "{name}" has none. Label some on the Label page, or '
            "import a file."
        )
    # Which maps are scored: assigned at random without a suggestion, with a class that no suggestion or adjudicator
    # chose
    at_random = current[(current["pass"] == 1) & (current.queue_order == "random") & current.suggestion.isna()]
    by_people = agreed.suggestion.isna() & (agreed.queue_order != "adjudication") & ~agreed.map_id.isin(ties)
    agreed = agreed.assign(
        group=inputs_of(agreed),
        headline=by_people & agreed.map_id.isin(at_random.map_id),
        tied=agreed.map_id.isin(ties),
    )
    stored = {
        row["map_id"]: from_float16(row["weights"], row["length"])
        for row in labels.maps_of(db, list(agreed.map_id))
        if row["length"] > TOO_SMALL
    }
    if not stored:
        raise InputError(
            f"An attention map must have more than {TOO_SMALL} tokens to be classified; all {len(agreed)} "
            f'labelled maps of "{name}" are smaller. Label maps of longer inputs.'
        )
    agreed = agreed[agreed.map_id.isin(stored)].reset_index(drop=True)
    columns = ["map_id", "class", "event", "group", "layer", "head", "checkpoint", "headline", "tied"]
    if method is not None or _part(current):
        names = known_class_set(db, name).names
        # Replace the consensus by the most likely class of an aggregation, with soft labels; adjudicated maps keep
        # their class
        judged = truth(current, names, method or "majority")
        settled = (agreed.queue_order == "adjudication") | ~agreed.map_id.isin(judged.probabilities.index)
        likeliest = agreed.map_id.map(judged.labels).where(~settled).fillna(agreed["class"])
        sure = [_one_hot(cls, names) for cls in likeliest]
        likely = judged.probabilities
        if method is None and name == BERT.name:  # on decoders, a rater model does not lower the held-out loss
            likely = (likely + posteriors(current, names)) / 2
        soft = [
            answered if alone else likely.loc[map_id].tolist()
            for map_id, answered, alone in zip(agreed.map_id, sure, settled, strict=True)
        ]
        agreed, columns = agreed.assign(**{"class": likeliest, "soft": soft}), [*columns, "soft"]
    facts = agreed[columns].to_dict("records")
    newest = str(current.sort_values("ordinal")["event"].iloc[-1])
    maps = [stored[map_id] for map_id in agreed.map_id]
    return Snapshot(name, known_class_set(db, name).names, facts, maps, newest)


def with_bundled(own: Snapshot) -> Snapshot:
    """Add the bundled labelled maps of the same class set to training data, so that users need to label only a few
    maps.

    The field `own` marks the user's maps, which have the weight OWN_COPIES in training. Returned unchanged if no labels
    are bundled for the class set, or if its classes were changed.
    """
    if own.class_set not in labelled_folders():
        return own
    bundled, known = bundled_snapshot(own.class_set), set(own.column("map_id"))
    if bundled.classes != own.classes:
        return own
    added = [k for k, name in enumerate(bundled.column("map_id")) if name not in known]
    rows, is_bundled = [*own.facts, *(bundled.facts[k] for k in added)], set(bundled.column("event"))
    is_soft = own.soft is not None or bundled.soft is not None
    facts = [
        {**row, "own": row["event"] not in is_bundled}
        | ({"soft": row.get("soft") or _one_hot(row["class"], own.classes)} if is_soft else {})
        for row in rows
    ]
    return replace(own, facts=facts, maps=[*own.maps, *(bundled.maps[k] for k in added)])


@lru_cache(maxsize=2)
def bundled_snapshot(name: str) -> Snapshot:
    """Return the bundled labelled attention maps of a class set."""
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "labels.duckdb") as db:
        for labelled in labelled_folders()[name]:
            label_files.import_folder(db, config.ANNOTATIONS / labelled)
        return snapshot(db, name)


def _one_hot(name: str, classes: Sequence[str]) -> list[float]:
    return [float(name == cls) for cls in classes]


def _part(given: pd.DataFrame) -> bool:
    """Return whether first passes differ on any map."""
    plain = given[(given["pass"] == 1) & (given.queue_order != "adjudication")]
    return bool((plain.groupby("map_id")["class"].nunique() > 1).any())


def from_file(file: Path, name: str) -> Snapshot:
    """Read training data from a label file with attention weights (.jsonl, .parquet), or from a folder with maps and
    labels."""
    with tempfile.TemporaryDirectory() as folder:
        db = Database(Path(folder) / "labels.duckdb")
        try:
            folded = file.is_dir()
            reports = label_files.import_folder(db, file) if folded else [label_files.import_labels(db, file)]
            refused = [line for report in reports for line in report.refused]
            if refused:
                raise InputError(
                    f"Every row of a label file must be usable for training; unusable rows: {len(refused)}, for "
                    f"example row {refused[0][0]} ({refused[0][1]}). Correct or remove these rows."
                )
            return snapshot(db, name)
        finally:
            db.close()


# ---------------------------------------------------------------- the file


def write(labelled: Snapshot, folder: Path) -> Path:
    """Save training data to a file that is named after the hash of its contents, and return its path."""
    about = json.dumps(
        {
            "class_set": labelled.class_set,
            "classes": labelled.classes,
            "facts": labelled.facts,
            "newest": labelled.newest,
        }
    )
    weights = np.concatenate([map_weights.astype("<f2").ravel() for map_weights in labelled.maps])
    digest = hashlib.sha256(about.encode() + weights.tobytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"labels-{digest}.npz"
    if not file.exists():
        with replacing(file) as part, part.open("wb") as stream:
            np.savez_compressed(
                stream,
                about=np.array(about),
                weights=weights,
                lengths=np.array([len(map_weights) for map_weights in labelled.maps]),
            )
    return file


_DAMAGED = (  # errors of numpy, zipfile and json for a file that is not a snapshot
    OSError, EOFError, MemoryError, RuntimeError, ValueError, TypeError, AttributeError, LookupError,
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error,
)  # fmt: skip


def read(file: str | Path) -> Snapshot:
    """Read training data from a file. Raises InputError if the file is missing or invalid."""
    try:
        with open_file(file, given=True) as stream, np.load(stream, allow_pickle=False) as arrays:
            about, flat, lengths = json.loads(str(arrays["about"])), arrays["weights"], arrays["lengths"]
        ends = np.cumsum(lengths.astype(np.int64) ** 2)
        maps = [
            part.reshape(length, length).astype(np.float32)
            for part, length in zip(np.split(flat, ends[:-1]), lengths, strict=True)
        ]
        return Snapshot(about["class_set"], tuple(about["classes"]), about["facts"], maps, about.get("newest"))
    except _DAMAGED as error:
        raise InputError(
            f"The file with the labels of this training job must be intact; {Path(file).name} is missing or damaged. "
            "Start the training again."
        ) from error
