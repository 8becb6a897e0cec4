"""Sentences or pairs that somebody pasted or uploaded: to look at one after another, or as rows of a task."""

import csv
import hashlib
import io
import re
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from ..writing import write_whole
from . import own
from .tables import LABEL, PAIR, PASTED, SCORE, SENTENCE, SPLIT, SentenceTable, read_table

MOST = 5000


class Pasted(NamedTuple):
    """One input: a sentence, and the second one of a pair or None."""

    text: str
    pair: str | None = None


def read_given(text: str, name: str = PASTED) -> SentenceTable:
    """The sentences of a text field or of an upload called `name`, at most MOST. Raises InputError."""
    table = read_table(text, name)
    if len(table.rows) > MOST:
        raise InputError(f"A list may have {MOST:,} sentences; {name} has {len(table.rows):,}. Take a part of it.")
    return table


def read_pasted(text: str, name: str = PASTED) -> list[Pasted]:
    """The inputs of a text field or an upload, to look at: a row without a second sentence is a sentence alone.

    Raises:
        InputError: there is none, there are more than MOST, or a row cannot be read or has no sentence.
    """
    table = read_given(text, name)
    for number, cells in table.rows:
        if not cells[SENTENCE]:
            raise InputError(f"Every row is complete; row {number + 1} of {name} has no sentence. Repair or remove it.")
    return [Pasted(cells[SENTENCE], cells.get(PAIR) or None) for _, cells in table.rows]


def keep_rows(
    lines: str, folder: Path, name: str = "sentences", *, learned: bool = False, source: str = PASTED
) -> Path:
    """Keep a list or table as a file of rows: the task that it is from then on.

    Columns label or score, and split, stay. The same list is the same file.

    Args:
        folder: where the file will lie.
        learned: whether a model is to learn from the list; else every row is dev where there are labels and no split.

    Raises:
        InputError: says what must be repaired.
    """
    table = read_given(lines, source)
    own.checked(table, all_dev=not learned)
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
    """The lists that were kept in `folder`, the newest first."""
    return sorted(folder.glob("*.csv"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
