"""Sentences or pairs that somebody pasted or uploaded: to look at one after another, or as rows of a task."""

import csv
import hashlib
import io
import re
from pathlib import Path
from typing import NamedTuple

from core.errors import InputError
from core.tasks import own
from core.writing import write_whole

MOST = 5000
MORE = ("label", "score", "split")  # columns of a task beside its sentences
TEXT_NAMES, PAIR_NAMES = ("sentence", "sentence1", "text", "premise", "question"), ("sentence2", "pair", "hypothesis")


class Pasted(NamedTuple):
    """One input: a sentence, and the second one of a pair or None."""

    text: str
    pair: str | None = None


def read_pasted(lines: str) -> list[Pasted]:
    """One input a line; a tab divides the sentences of a pair. Empty lines are left out.

    A first line that names columns (sentence, sentence2, ...) makes it a table, divided by commas or tabs as that line
    is. Raises InputError where nothing is left, a line has more than two sentences, or there are over MOST.
    """
    kept = [line for line in lines.replace("\ufeff", "").splitlines() if line.strip()]
    inputs = _table(kept) if kept and _names_columns(kept[0]) else [_line(line) for line in kept]
    if not inputs:
        raise InputError("A list of sentences has one on each line; there is none: paste or upload some.")
    if len(inputs) > MOST:
        raise InputError(f"A list may have {MOST:,} sentences; this one has {len(inputs):,}: take a part of it.")
    return inputs


def keep_rows(lines: str, folder: Path, name: str = "sentences", *, learned: bool = False) -> Path:
    """Keep a list, as `read_pasted` reads it, as a file of rows: the task that it is from then on.

    Columns label or score, and split, stay. The same list is the same file.

    Args:
        lines: what was pasted or uploaded.
        folder: where the file will lie.
        name: of the list; the file's name begins with it.
        learned: whether a model is to learn from the list; else every row is dev where there are labels and no split.

    Returns:
        The file, whose path is the task's key.

    Raises:
        InputError: says what must be mended.
    """
    rows = _rows_of(lines)
    columns = [column for column in rows[0] if any(row.get(column) for row in rows)]
    if "split" not in columns and {"label", "score"} & set(columns) and not learned:
        columns, rows = [*columns, "split"], [row | {"split": "dev"} for row in rows]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    mark = hashlib.sha256(stream.getvalue().encode()).hexdigest()[:8]
    file = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')[:40] or 'sentences'}-{mark}.csv"
    write_whole(file, stream.getvalue())
    try:
        own.read_own(str(file))
    except InputError:
        file.unlink()
        raise
    return file


def kept_rows(folder: Path) -> list[Path]:
    """The lists that were kept in `folder`, the newest first."""
    return sorted(folder.glob("*.csv"), key=lambda file: file.stat().st_mtime_ns, reverse=True)


# ---------------------------------------------------------------- behind them


def _rows_of(lines: str) -> list[dict[str, str]]:
    """A list as rows by the names of own tasks' columns."""
    inputs = read_pasted(lines)
    kept = [line for line in lines.replace("\ufeff", "").splitlines() if line.strip()]
    if not _names_columns(kept[0]):
        return [{"sentence": text, "sentence2": pair or ""} for text, pair in inputs]
    divider = _divider(kept[0])
    names = [_column(name) for name in _cells(kept[0], divider)]
    rows = csv.reader(io.StringIO("\n".join(kept[1:])), delimiter=divider)
    named = [dict(zip(names, (cell.strip() for cell in row), strict=False)) for row in rows]
    return [
        {name: row.get(name, "") for name in ("sentence", "sentence2", *MORE)} for row in named if row.get("sentence")
    ]


def _column(name: str) -> str:
    return "sentence" if name in TEXT_NAMES else "sentence2" if name in PAIR_NAMES else name


def _names_columns(line: str) -> bool:
    return any(name in TEXT_NAMES for name in _cells(line, _divider(line)))


def _divider(line: str) -> str:
    return "\t" if "\t" in line else ","


def _cells(line: str, divider: str) -> list[str]:
    return [cell.strip().lower() for cell in next(csv.reader([line], delimiter=divider))]


def _table(lines: list[str]) -> list[Pasted]:
    divider = _divider(lines[0])
    names = _cells(lines[0], divider)
    text = next(place for place, name in enumerate(names) if name in TEXT_NAMES)
    pair = next((place for place, name in enumerate(names) if name in PAIR_NAMES), None)
    rows = csv.reader(io.StringIO("\n".join(lines[1:])), delimiter=divider)
    cells = ([cell.strip() for cell in row] + [""] * len(names) for row in rows)
    return [Pasted(row[text], (row[pair] or None) if pair is not None else None) for row in cells if row[text]]


def _line(line: str) -> Pasted:
    parts = [part.strip() for part in line.split("\t")]
    if len(parts) > 2 or not parts[0]:
        raise InputError(
            f"A line holds one sentence, or two with a tab between them; {line[:60]!r} has {len(parts)} parts: mend it."
        )
    return Pasted(parts[0], parts[1] if len(parts) == 2 and parts[1] else None)
