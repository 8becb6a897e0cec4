"""A task of the user's own: a table of sentences with labels, as a CSV or TSV file.

A file's path is its task's name wherever a task is asked for. Columns, by their names in the first line: `sentence`,
`sentence2` for pairs, `label` (a word) or `score` (0 to 5), and `split` (train or dev). Without `split` every fifth
row is dev, so that a file of labelled sentences is enough. Without `label` and `score` it is a list to look at: every
row is in both splits, and what needs labels refuses it.
"""

import csv
import hashlib
import io
import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core import config
from core.errors import InputError
from core.tasks.text_files import is_text_file

ENDINGS = {".csv": ",", ".tsv": "\t"}
SPLITS = ("train", "dev")
DEV_EVERY = 5
MOST_LABELS = 100
LARGEST_SCORE = 5.0  # as STS-B counts
NO_LABEL = float("nan")  # of a row of a list without labels


@dataclass(frozen=True)
class OwnRow:
    """A row of a file of the user's own.

    Attributes:
        id: split, zero-based place and a mark of the text, so that an edited row is another one.
        split: train or dev; "" of a list without labels, whose rows are in both.
        text: the sentence, or the first of a pair.
        pair: the second sentence, or None.
        label: index into OwnFile.labels, a score, or NO_LABEL.
    """

    id: str
    split: str
    text: str
    pair: str | None
    label: int | float


@dataclass(frozen=True)
class OwnFile:
    """What a file says.

    Attributes:
        path: where it lies.
        labels: sorted; empty for scores.
        paired: whether rows are pairs.
        rows: in the order of the file.
        labelled: whether it has labels or scores.
    """

    path: Path
    labels: tuple[str, ...]
    paired: bool
    rows: tuple[OwnRow, ...]
    labelled: bool = True

    def of(self, split: str) -> list[OwnRow]:
        """Rows of "train" or "dev", in the order of the file; of a list without labels and splits all rows."""
        return [row for row in self.rows if row.split in (split, "")]

    @property
    def majority(self) -> float | None:
        """Share of the commonest dev label; None for scores."""
        dev = self.of("dev")
        return Counter(row.label for row in dev).most_common(1)[0][1] / len(dev) if self.labels else None


def is_own(task: str) -> bool:
    """Whether a task is named by a file of the user's own."""
    return Path(task.strip()).suffix.lower() in ENDINGS


def absolute(task: str) -> str:
    """The task as workers elsewhere find it: a file's full path, any other name unchanged."""
    try:
        is_file = is_own(task) or is_text_file(task)
        return str(Path(task.strip()).expanduser().resolve()) if is_file else task
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, or the home of somebody unknown
        raise InputError(f"A task of your own is a file that can be found; {task[:60]!r} cannot ({error}).") from error


def read_own(task: str) -> OwnFile:
    """Read and check a file of the user's own.

    Raises:
        InputError: names the file, and the column or row that must be mended.
    """
    path = config.inside(absolute(task))
    if not os.path.exists(path):  # noqa: PTH110 - a Path would stop at a name that is too long
        raise InputError(
            f"A task of your own is a CSV or TSV file that is there; {str(path)[:300]} is missing: check its name."
        )
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"A task of your own is a readable CSV or TSV file in UTF-8; {path} is not ({error}): name one that is."
        ) from error


@lru_cache(maxsize=4)
def _read(path: Path, modified: int) -> OwnFile:
    if path.suffix.lower() not in ENDINGS:  # where a link led to
        raise InputError(f"A task of your own ends in .csv or .tsv; {path.name[:80]} does not: rename it.")
    with io.StringIO(config.read_text(path, "utf-8-sig"), newline="") as stream:
        lines = csv.DictReader(stream, delimiter=_separator(path, stream), strict=True)
        columns = [(name or "").strip().lower() for name in lines.fieldnames or ()]
        kind = _kind(path, columns)
        lines.fieldnames = columns
        filled = [(number, line) for number, line in enumerate(lines) if any(line.values())]
    if not filled:
        raise InputError(f"A task needs rows; {path.name} has none below its first line: add some.")
    written = [_cell(path, number, line, kind) if kind else "" for number, line in filled]
    labels = _labels(path, written) if kind == "label" else ()
    rows = tuple(
        _row(path, columns, number, line, _label(path, number, value, labels))
        for (number, line), value in zip(filled, written, strict=True)
    )
    return _complete(OwnFile(path, labels, "sentence2" in columns, rows, bool(kind)))


def _separator(path: Path, stream: io.StringIO) -> str:
    """What stands between columns; of a CSV the semicolon too, which spreadsheets write where the comma is decimal."""
    usual, first = ENDINGS[path.suffix.lower()], stream.readline()
    stream.seek(0)
    names = [name.strip().strip('"').lower() for name in first.split(";")]
    return ";" if usual == "," and len(names) > 1 and "sentence" in names else usual


def _kind(path: Path, columns: list[str]) -> str:
    """ "label" or "score", whichever column there is, or "". Raises InputError naming the column that is missing."""
    if "sentence" not in columns:
        raise InputError(
            f"A task of your own needs the column sentence, and label (or score) to be learned; {path.name} has no "
            f'"sentence" (it has {", ".join(columns)[:120] or "no first line"}): name its columns so in the first line.'
        )
    if twice := [name for name, count in Counter(columns).items() if count > 1]:
        raise InputError(f'Each column has a name of its own; {path.name} has "{twice[0]}" twice: rename one.')
    return next((kind for kind in ("score", "label") if kind in columns), "")


def _cell(path: Path, number: int, line: dict[str, Any], column: str) -> str:
    value = (line.get(column) or "").strip()
    if not value or None in line:
        what = f"no {column}" if not value else "more columns than the first line"
        raise InputError(f"Every row is complete; row {number + 1} of {path.name} has {what}: repair or remove it.")
    return value


def _labels(path: Path, written: list[str]) -> tuple[str, ...]:
    labels = tuple(sorted(set(written)))
    if not 2 <= len(labels) <= MOST_LABELS:
        raise InputError(
            f"The column label has 2 to {MOST_LABELS} different words; {path.name} has {len(labels)} "
            f'("{labels[0][:40]}"{", ..." if len(labels) > 1 else ""}): name classes there, or numbers from 0 to 5 in '
            "a column score."
        )
    alike = Counter(re.sub(r"[\s_-]", "", label.lower()) for label in labels)  # heads are matched by name so
    if max(alike.values()) > 1:
        raise InputError(
            f"Labels differ in more than case, spaces and dashes; {path.name} has two that do not "
            f'("{alike.most_common(1)[0][0][:40]}"): spell them alike.'
        )
    return labels


def _label(path: Path, number: int, value: str, labels: tuple[str, ...]) -> int | float:
    if not value:
        return NO_LABEL
    return labels.index(value) if labels else _score(path, number, value)


def _score(path: Path, number: int, value: str) -> float:
    try:
        score = float(value)
    except ValueError:
        score = float("nan")
    if not 0 <= score <= LARGEST_SCORE:
        raise InputError(
            f'A score is a number from 0 to 5; row {number + 1} of {path.name} has "{value[:40]}": repair or remove it.'
        )
    return score


def _row(path: Path, columns: list[str], number: int, line: dict[str, Any], label: int | float) -> OwnRow:
    text = _cell(path, number, line, "sentence")
    pair = _cell(path, number, line, "sentence2") if "sentence2" in columns else None
    if "split" in columns:
        split = _cell(path, number, line, "split").lower()
    else:
        split = "" if math.isnan(label) else _split_of(number)  # without labels in both
    if split not in (SPLITS if "split" in columns else (*SPLITS, "")):
        raise InputError(
            f'The column split says train or dev; row {number + 1} of {path.name} says "{split[:40]}": correct it.'
        )
    mark = hashlib.sha256(f"{text}\n{pair}\n{label}".encode()).hexdigest()[:8]
    return OwnRow(f"{split or 'list'}-{number}-{mark}", split, text, pair, label)


def _split_of(number: int) -> str:
    return "dev" if number % DEV_EVERY == DEV_EVERY - 1 else "train"


def _complete(own: OwnFile) -> OwnFile:
    """The file. Raises InputError where it has no dev rows, or one with a label that no train row has."""
    if not own.of("dev"):
        raise InputError(
            f"A task has dev rows; {own.path.name} has {len(own.rows)} rows and none is dev: add some, or a column "
            "split that says so."
        )
    known = {row.label for row in own.of("train")}
    for row in own.of("dev") if own.labels and known else ():
        if row.label not in known:
            raise InputError(
                f'Every label occurs in train rows; "{own.labels[int(row.label)][:40]}" of {own.path.name} is only '
                "in dev rows, where nothing could have learned it: move some rows."
            )
    return own
