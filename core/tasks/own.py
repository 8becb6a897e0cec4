"""A task of the user's own: a table of sentences with labels, as a CSV, TSV or JSON lines file.

A file's path is its task's name wherever a task is asked for. Columns, by their names in the first line: `sentence`,
`sentence2` for pairs, `label` (a word) or `score` (0 to 5), and `split` (train or dev). Without `split` every fifth
row is dev, so that a file of labelled sentences is enough. Without `label` and `score` it is a list to look at: every
row is in both splits, and what needs labels refuses it.
"""

import hashlib
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
from .tables import ENDINGS, LABEL, PAIR, SCORE, SENTENCE, SPLIT, SentenceTable, read_table

# -------------------- Running text of any length, as a .txt file whose path stands where a task's name does


ENDING = ".txt"
STRETCH = 100_000  # characters of a unit of work
LARGEST = 100_000_000  # bytes of a file
A_TOKEN = 40  # characters that a token has at most, as long as there is white space: what a window is cut from


def is_text_file(task: str) -> bool:
    """Whether rows are asked of running text."""
    return task.strip().lower().endswith(ENDING)


def stretches(path: str) -> list[str]:
    """The text in parts of about STRETCH characters, cut at white space. Raises InputError."""
    file = config.inside(path.strip())
    try:
        text = read_text(file, most=LARGEST, given=True)
    except OSError as error:
        raise InputError(f"{Path(file).name} cannot be read ({error.strerror or error}): name another file.") from error
    parts, start = [], 0
    while start < len(text):
        stop = _before_space(text, start, min(start + STRETCH, len(text)))
        parts.append(text[start:stop])
        start = stop
    parts = [part for part in parts if part.strip()]
    if not parts:
        raise InputError(f"{Path(file).name} must hold text; it has no visible character: name another file.")
    return parts


def windows(text: str, tokens: int, fits: Callable[[str], int]) -> Iterator[str]:
    """The text in order, in pieces that fit into so many tokens, cut at white space where there is any.

    Args:
        fits: how many of a text's first characters an input holds.

    Yields:
        Pieces without white space at their ends; none is empty.
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
    """Where a part that may end at `stop` ends: after the last white space, or there if it has none."""
    if stop >= len(text) or text[stop].isspace():
        return stop
    place = stop
    while place > start and not text[place - 1].isspace():
        place -= 1
    return place if place > start and text[start:place].strip() else stop


# ----------------------------------------------------------------


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
        pair: the second sentence, or None.
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
            f"A task of your own is a CSV, TSV or JSON lines file; {str(path)[:300]} is missing: check its name."
        )
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise InputError(
            f"A task of your own is a CSV, TSV or JSON lines file that can be read; {path} cannot ({error}). Name one "
            "that can."
        ) from error


@lru_cache(maxsize=4)
def _read(path: Path, modified: int) -> OwnFile:
    if path.suffix.lower() not in ENDINGS:  # where a link led to
        raise InputError(
            f"A task of your own ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; {path.name[:80]} does not. "
            "Rename it."
        )
    return checked(read_table(read_text(path, given=True), path.name), path)


def checked(table: SentenceTable, path: Path | None = None, *, all_dev: bool = False) -> OwnFile:
    """A table as a task: labels, scores and splits are checked.

    Args:
        all_dev: whether labelled rows are all dev where the table has no split.

    Raises:
        InputError: names the file, and the column or row that must be repaired.
    """
    name, columns = table.name, table.columns
    kind = next((kind for kind in (SCORE, LABEL) if kind in columns), "")
    written = [_cell(name, number, cells, kind) if kind else "" for number, cells in table.rows]
    labels = _labels(name, written) if kind == LABEL else ()
    rows = tuple(
        _row(name, number, cells, _label(name, number, value, labels), all_dev=all_dev)
        for (number, cells), value in zip(table.rows, written, strict=True)
    )
    return _complete(OwnFile(path or Path(name), labels, PAIR in columns, rows, bool(kind)), name)


def _cell(name: str, number: int, cells: dict[str, str], column: str) -> str:
    if not cells[column]:
        raise InputError(f"Every row is complete; row {number + 1} of {name} has no {column}. Repair or remove it.")
    return cells[column]


def _labels(name: str, written: list[str]) -> tuple[str, ...]:
    labels = tuple(sorted(set(written)))
    if not 2 <= len(labels) <= MOST_LABELS:
        raise InputError(
            f"The column label has 2 to {MOST_LABELS} different words; {name} has {len(labels)} "
            f'("{labels[0][:40]}"{", ..." if len(labels) > 1 else ""}): name classes there, or numbers from 0 to 5 in '
            "a column score."
        )
    alike: dict[str, str] = {}
    for label in labels:
        other = alike.setdefault(plain_label(label), label)
        if other != label:
            raise InputError(
                f"Labels differ in more than case, spaces and dashes; {name} has two that do not "
                f'("{other[:40]}" and "{label[:40]}"). Spell them alike.'
            )
    return labels


def plain_label(label: str) -> str:
    """A label as labels of a task and outputs of a checkpoint are compared: without case, and without spaces, dashes
    and underscores next to a letter. The sign of a number stays, and so does a dash between digits or alone."""
    text = label.strip().lower().replace("\N{MINUS SIGN}", "-")
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
            f'A score is a number from 0 to 5; row {number + 1} of {name} has "{value[:40]}": repair or remove it.'
        )
    return score


def _row(name: str, number: int, cells: dict[str, str], label: int | float, *, all_dev: bool) -> OwnRow:
    text = _cell(name, number, cells, SENTENCE)
    pair = _cell(name, number, cells, PAIR) if PAIR in cells else None
    if SPLIT in cells:
        split = _cell(name, number, cells, SPLIT).lower()
        if split not in SPLITS:
            raise InputError(
                f'The column split says train or dev; row {number + 1} of {name} says "{split[:40]}". Correct it.'
            )
    else:
        split = "" if math.isnan(label) else "dev" if all_dev else _split_of(number)  # without labels in both
    mark = hashlib.sha256(f"{text}\n{pair}\n{label}".encode()).hexdigest()[:8]
    return OwnRow(f"{split or 'list'}-{number}-{mark}", split, text, pair, label)


def _split_of(number: int) -> str:
    return "dev" if number % DEV_EVERY == DEV_EVERY - 1 else "train"


def _complete(own: OwnFile, name: str) -> OwnFile:
    """The file. Raises InputError where it has no dev rows, or one with a label that no train row has."""
    if not own.of("dev"):
        raise InputError(
            f"A task has dev rows; {name} has {len(own.rows)} rows and none is dev: add some, or a column "
            "split that says so."
        )
    known = {row.label for row in own.of("train")}
    for row in own.of("dev") if own.labels and known else ():
        if row.label not in known:
            raise InputError(
                f'Every label occurs in train rows; "{own.labels[int(row.label)][:40]}" of {name} is only '
                "in dev rows, where nothing could have learned it: move some rows."
            )
    return own
