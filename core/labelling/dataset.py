"""Export of labels as a Hugging Face dataset: Parquet and a dataset card, for `datasets.load_dataset`."""

import json
from collections import Counter
from pathlib import Path

from ..config import code_version
from ..errors import InputError
from ..patterns.snapshot import current_labels, known_class_set
from ..store.database import Database
from ..store.label_checks import say_alike
from ..store.label_files import Imported, exported, import_labels, write_rows
from ..writing import write_whole

LABELS = Path("data") / "labels.parquet"


def export_dataset(db: Database, folder: Path, class_set: str) -> int:
    """Write all labels of a class set, with their attention maps and history, as a Hugging Face dataset. Return the
    number of entries in the history."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"The folder of a dataset must be new or empty; {folder} is neither. Choose another folder.")
    rows = list(exported(db, class_set))
    if not rows:
        raise InputError(
            f'A dataset must have at least one label; the class set "{class_set}" has none. Label some maps first.'
        )
    (folder / LABELS).parent.mkdir(parents=True, exist_ok=True)
    write_rows(folder / LABELS, rows)
    write_whole(folder / "README.md", card(db, class_set, len(rows)))
    return len(rows)


def import_dataset(db: Database, folder: Path, *, keep_rest: bool = True) -> Imported:
    """Import the labels of a dataset folder that `export_dataset` wrote."""
    return import_labels(db, folder / LABELS, keep_rest=keep_rest)


def card(db: Database, class_set: str, events: int) -> str:
    """Create the dataset card of exported labels, with the format and the number of labels by class and annotator."""
    labels, classes = current_labels(db, class_set), known_class_set(db, class_set)
    label_counts, people = Counter(labels["class"]), Counter(labels.annotator)
    head = {
        "pretty_name": f"Attention maps labelled in {class_set}",
        "tags": ["attention", "interpretability"],
        "configs": [{"config_name": "labels", "data_files": [{"split": "train", "path": LABELS.as_posix()}]}],
    }
    lines = [f"{name}: {json.dumps(value)}" for name, value in head.items()]
    classes_said = [
        f"| {_cell(pattern.title)} | {label_counts[pattern.name]} | {_cell(pattern.eye)} |"
        for pattern in classes.classes
    ]
    people_said = [f"| {_cell(name)} | {count} |" for name, count in people.most_common()]
    return "\n".join(
        [
            "---",
            *lines,
            "---",
            "",
            f"# Attention maps labelled in {_cell(class_set)}",
            "",
            f"{events} label events on {labels['map_id'].nunique()} attention maps; {len(labels)} labels are "
            "current. Each row is an event (label, skip, flag, note or undo) with the metadata of its map. The "
            "first event of a map contains its weights: float16, little-endian, [query, key] in row-major order, "
            "of size `length` by `length`. Layers and heads count from 0.",
            "",
            "| class | labels | description |",
            "|---|---|---|",
            *classes_said,
            "",
            "| annotator | labels |",
            "|---|---|",
            *people_said,
            "",
            *([_cell(alike), ""] if (alike := say_alike(people)) else []),
            f"Written by Attention Atlas {code_version()}. Choose a licence before you publish this dataset, and "
            "ask the annotators whether you may publish their names.",
            "",
        ]
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
