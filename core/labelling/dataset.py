"""Labels as a folder in the hub's form: Parquet and a dataset card, which `datasets.load_dataset` opens."""

import json
from collections import Counter
from pathlib import Path

from ..config import code_version
from ..errors import InputError
from ..patterns.snapshot import known_class_set, standing_labels
from ..store.database import Database
from ..store.label_checks import say_alike
from ..store.label_files import Imported, exported, import_labels, write_rows
from ..writing import write_whole

LABELS = Path("data") / "labels.parquet"


def export_dataset(db: Database, folder: Path, class_set: str) -> int:
    """Write the label events of a class set with their maps, and a card with counts.

    Args:
        db: where labels are stored.
        folder: where to; new or empty.

    Raises:
        InputError: the folder holds something already, or nothing is labelled in the class set.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"A dataset needs a folder that is new or empty, but {folder} is not; name another one.")
    rows = list(exported(db, class_set))
    if not rows:
        raise InputError(
            f'A dataset has labels; nobody has labelled a map in the class set "{class_set}": label some first.'
        )
    (folder / LABELS).parent.mkdir(parents=True, exist_ok=True)
    write_rows(folder / LABELS, rows)
    write_whole(folder / "README.md", card(db, class_set, len(rows)))
    return len(rows)


def import_dataset(db: Database, folder: Path, *, keep_rest: bool = True) -> Imported:
    """Read what `export_dataset` wrote."""
    return import_labels(db, folder / LABELS, keep_rest=keep_rest)


def card(db: Database, class_set: str, events: int) -> str:
    """The dataset card: what its rows are, how many labels of each class, by whom. No licence is chosen for anybody."""
    labels, classes = standing_labels(db, class_set), known_class_set(db, class_set)
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
            f"{events} label events on {labels['map_id'].nunique()} attention maps; {len(labels)} labels stand. A row "
            "is an event (label, skip, flag, note or undo) with the facts of its map; the first event of a map brings "
            "its weights: float16, little-endian, [query, key] row by row, `length` by `length`. Layers and heads "
            "count from 0.",
            "",
            "| class | labels | what the eye sees |",
            "|---|---|---|",
            *classes_said,
            "",
            "| annotator | labels |",
            "|---|---|",
            *people_said,
            "",
            *([_cell(alike), ""] if (alike := say_alike(people)) else []),
            f"Written by Attention Atlas {code_version()}. Choose a licence before you publish this, and ask the "
            "annotators whether their names may stand in it.",
            "",
        ]
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
