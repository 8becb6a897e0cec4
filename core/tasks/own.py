"""Custom tasks: sentences with or without labels in a CSV, TSV or JSON Lines file, or running text in a .txt file.

The path of the file is the task name. Columns: `sentence`, `sentence2` for pairs, `label` (a word) or `score` (0 to 5),
and `split` (train or dev). Without `split`, every fifth row is dev. Without `label` and `score`, every row is in both
splits, and studies that need labels refuse the file.
"""

import csv
import hashlib
import io
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .. import config
from ..errors import InputError
from ..reading import read_text
from ..writing import write_whole
from .tables import (
    ENDINGS,
    LABEL,
    PAIR,
    PASTED,
    SCORE,
    SENTENCE,
    SPLIT,
    SentenceTable,
    read_given,
    read_table,
)

# ---------------------------------------------------------------- running text


ENDING = ".txt"
STRETCH = 100_000  # characters of a unit of work
LARGEST = 100_000_000  # bytes of a file
A_TOKEN = 40  # upper bound for characters of a token, as long as there is white space


def is_text_file(task: str) -> bool:
    """Return whether a task name is the path of a .txt file with running text instead of labelled examples."""
    return task.strip().lower().endswith(ENDING)


def stretches(path: str) -> list[str]:
    """Read a text file, and split it at white space into parts of about STRETCH characters."""
    file = config.inside(path.strip())
    try:
        text = read_text(file, most=LARGEST, given=True)
    except OSError as error:
        raise InputError(
            f"A text file must be readable; {Path(file).name} cannot be read ({error.strerror or error}). Choose "
            "another file."
        ) from error
    parts, start = [], 0
    while start < len(text):
        stop = _before_space(text, start, min(start + STRETCH, len(text)))
        parts.append(text[start:stop])
        start = stop
    parts = [part for part in parts if part.strip()]
    if not parts:
        raise InputError(f"A text file must have visible characters; {Path(file).name} has none. Choose another file.")
    return parts


def windows(text: str, tokens: int, fits: Callable[[str], int]) -> Iterator[str]:
    """Split a text at white space, if possible, and yield windows of at most `tokens` tokens.

    `fits` returns how many characters at the start of a text fit into one input.
    """
    start = 0
    while start < len(text):
        part = text[start : start + tokens * A_TOKEN]
        if not part.strip():
            start += len(part)
            continue
        held = max(1, fits(part))
        whole = held >= len(part.rstrip())
        stop = start + len(part) if whole else _before_space(text, start, start + held)
        if whole and stop < len(text):
            stop = _before_space(text, start, stop)
        if text[start:stop].strip():
            yield text[start:stop].strip()
        start = stop


def _before_space(text: str, start: int, stop: int) -> int:
    """Return where a part that may end at `stop` ends: after the last white space, or at `stop` if there is none."""
    if stop >= len(text) or text[stop].isspace():
        return stop
    place = stop
    while place > start and not text[place - 1].isspace():
        place -= 1
    return place if place > start and text[start:place].strip() else stop


SPLITS = ("train", "dev")
DEV_EVERY = 5
MOST_LABELS = 100
LARGEST_SCORE = 5.0  # as in STS-B
NO_LABEL = float("nan")  # label of a row without labels


@dataclass(frozen=True)
class OwnRow:
    """A row of a custom task file.

    Attributes:
        id: split, zero-based index and a hash of the text, so that an edited row gets another ID.
        split: train or dev; "" for a list without labels, whose rows are in both.
        pair: second sentence, or None.
    """

    id: str
    split: str
    text: str
    pair: str | None
    label: int | float


@dataclass(frozen=True)
class OwnFile:
    """The validated contents of a custom task file.

    Attributes:
        labels: sorted; empty for scores.
        paired: whether rows are pairs.
        labelled: whether it has labels or scores.
    """

    path: Path
    labels: tuple[str, ...]
    paired: bool
    rows: tuple[OwnRow, ...]
    labelled: bool = True

    def of(self, split: str) -> list[OwnRow]:
        """Return the examples in the split "train" or "dev", in order. If the file has no labels and no
        splits, return all examples."""
        return [row for row in self.rows if row.split in (split, "")]

    @property
    def majority(self) -> float | None:
        """Return the dev accuracy of always predicting the most frequent dev label; None if there are no classes."""
        dev = self.of("dev")
        return Counter(row.label for row in dev).most_common(1)[0][1] / len(dev) if self.labels else None


def is_own(task: str) -> bool:
    """Return whether a task name is the path of a custom CSV, TSV or JSON Lines file."""
    return Path(task.strip()).suffix.lower() in ENDINGS


def absolute(task: str) -> str:
    """Return the absolute path of a custom task file; names of built-in tasks are returned unchanged."""
    try:
        is_file = is_own(task) or is_text_file(task)
        return str(Path(task.strip()).expanduser().resolve()) if is_file else task
    except (OSError, ValueError, RuntimeError) as error:  # name too long, NUL, or home of an unknown user
        raise InputError(
            f"A custom task must be an existing file; {task[:60]!r} cannot be found ({error}). Check its name."
        ) from error


def read_own(task: str) -> OwnFile:
    """Read and validate a custom task file. Raises InputError, which names the file and the invalid column or row."""
    path = config.inside(absolute(task))
    if not os.path.exists(path):  # noqa: PTH110 - a Path would stop at a name that is too long
        raise InputError(
            f"A custom task must be an existing CSV, TSV or JSON Lines file; {str(path)[:300]} is missing. Check "
            "its name."
        )
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise InputError(
            f"A custom task must be a readable CSV, TSV or JSON Lines file; {path} cannot be read "
            f"({error.strerror or error}). Choose another file."
        ) from error


@lru_cache(maxsize=4)
def _read(path: Path, modified: int) -> OwnFile:
    if path.suffix.lower() not in ENDINGS:  # the target of a link
        raise InputError(
            f"The name of a custom task file, and of the file that a link leads to, must end in "
            f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; got {path.name[:80]}. Rename the file."
        )
    return checked(read_table(read_text(path, given=True), path.name), path)


def checked(table: SentenceTable, path: Path | None = None, *, all_dev: bool = False) -> OwnFile:
    """Validate a table of sentences with their labels, scores and splits, and return it as a custom task.

    `all_dev`: labelled rows without a split are all dev. Raises InputError with the file and the column or row.
    """
    name, columns = table.name, table.columns
    kind = next((kind for kind in (SCORE, LABEL) if kind in columns), "")
    written = [_cell(name, number, cells, kind) if kind else "" for number, cells in table.rows]
    labels = _labels(name, written) if kind == LABEL else ()
    rows = tuple(
        _row(name, number, cells, _label(name, number, value, labels), all_dev=all_dev)
        for (number, cells), value in zip(table.rows, written, strict=True)
    )
    own = OwnFile(path or Path(name), labels, PAIR in columns, rows, bool(kind))
    if not own.of("dev"):
        raise InputError(
            f"A custom task must have examples in the dev split; none of the {len(own.rows)} rows of {name} is in that "
            "split. Write dev into the column split of some rows."
        )
    known = {row.label for row in own.of("train")}
    for row in own.of("dev") if own.labels and known else ():
        if row.label not in known:
            raise InputError(
                f'Every label must occur in the train split; "{own.labels[int(row.label)][:40]}" of {name} occurs only '
                "in the dev split. Move some rows with this label to the train split."
            )
    return own


def _cell(name: str, number: int, cells: dict[str, str], column: str) -> str:
    if not cells[column]:
        raise InputError(
            f"Every row must be complete; row {number + 1} of {name} has no {column}. Correct or remove the row."
        )
    return cells[column]


def _labels(name: str, written: list[str]) -> tuple[str, ...]:
    labels = tuple(sorted(set(written)))
    if not 2 <= len(labels) <= MOST_LABELS:
        raise InputError(
            f"The column label must have 2 to {MOST_LABELS} different values; {name} has {len(labels)} "
            f'("{labels[0][:40]}"{", ..." if len(labels) > 1 else ""}). Write class names into this column, or '
            "numbers from 0 to 5 into a column score."
        )
    alike: dict[str, str] = {}
    for label in labels:
        other = alike.setdefault(plain_label(label), label)
        if other != label:
            raise InputError(
                f'Labels must differ in more than case, spaces, dashes and underscores; {name} has "{other[:40]}" and '
                f'"{label[:40]}". Use the same spelling everywhere.'
            )
    return labels


def plain_label(label: str) -> str:
    """Return a class label in lower case, without spaces, dashes and underscores, to compare different spellings.

    The sign of a number, a dash between digits and a single dash remain. 1.0, as pandas writes whole numbers, becomes
    1.
    """
    text = re.sub(r"^([-+]?\d+)\.0+$", r"\1", label.strip().lower().replace("\N{MINUS SIGN}", "-"))
    return re.sub(r"(?<=[^\W\d_])[\s_-]+|[\s_-]+(?=[^\W\d_])", "", text)


def _label(name: str, number: int, value: str, labels: tuple[str, ...]) -> int | float:
    if not value:
        return NO_LABEL
    return labels.index(value) if labels else _score(name, number, value)


def _score(name: str, number: int, value: str) -> float:
    try:
        score = float(value)
    except ValueError:
        score = float("nan")
    if not 0 <= score <= LARGEST_SCORE:
        raise InputError(
            f'A score must be from 0 to 5; row {number + 1} of {name} has "{value[:40]}". Correct or remove the row.'
        )
    return score


def _row(name: str, number: int, cells: dict[str, str], label: int | float, *, all_dev: bool) -> OwnRow:
    text = _cell(name, number, cells, SENTENCE)
    pair = _cell(name, number, cells, PAIR) if PAIR in cells else None
    if SPLIT in cells:
        split = _cell(name, number, cells, SPLIT).lower()
        if split not in SPLITS:
            raise InputError(
                f'The column split must be train or dev; row {number + 1} of {name} has "{split[:40]}". Correct '
                "the row."
            )
    elif math.isnan(label):
        split = ""  # rows without labels are in both splits
    else:
        split = "dev" if all_dev or number % DEV_EVERY == DEV_EVERY - 1 else "train"
    mark = hashlib.sha256(f"{text}\n{pair}\n{label}".encode()).hexdigest()[:8]
    return OwnRow(f"{split or 'list'}-{number}-{mark}", split, text, pair, label)


# ---------------------------------------------------------------- saved lists


def keep_rows(
    lines: str, folder: Path, name: str = "sentences", *, learned: bool = False, source: str = PASTED
) -> Path:
    """Save pasted or uploaded sentences as a custom task file, and return its path. Equal sentences get the same path.

    `learned`: a model is trained on the list; otherwise labelled rows without a split are all dev. Raises InputError
    for an invalid list.
    """
    table = read_given(lines, source)
    checked(table, all_dev=not learned)
    columns = list(table.columns)
    rows = [cells for _, cells in table.rows]
    if SPLIT not in columns and {LABEL, SCORE} & set(columns) and not learned:
        columns, rows = [*columns, SPLIT], [row | {SPLIT: "dev"} for row in rows]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    mark = hashlib.sha256(stream.getvalue().encode()).hexdigest()[:8]
    file = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')[:40] or 'sentences'}-{mark}.csv"
    write_whole(file, stream.getvalue())
    return file


def kept_rows(folder: Path) -> list[Path]:
    """Return the paths of the custom task files that were saved in a folder, newest first."""
    return sorted(folder.glob("*.csv"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
