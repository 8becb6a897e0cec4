"""Reading of sentences from a file, an upload or pasted text.

A table has column names in its first line: CSV (commas or semicolons, quoted cells), TSV (quotation marks are text), or
JSON Lines (objects instead of a first line). Other text is a list with one sentence per line, or two separated by a
tab. A file that ends in .csv, .tsv or .jsonl must be a table.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..reading import json_line, lines_of, plain_ends

PASTED = "the pasted text"
ENDINGS = (".csv", ".tsv", ".jsonl")
SENTENCE, PAIR, LABEL, SCORE, SPLIT = "sentence", "sentence2", "label", "score", "split"
_PAIRS = {  # names of the sentence column -> names of the second sentence's column
    "sentence": (PAIR,),
    "sentence1": (PAIR,),
    "text": ("pair", PAIR),
    "premise": ("hypothesis", PAIR),
    "question": ("pair", PAIR),
}
_FURTHER = {PAIR, "pair", "hypothesis", LABEL, SCORE, SPLIT, "id", "idx", "index"}
_NAME = re.compile(r'\s*|"?([a-z_][a-z0-9_]*|(?i:sentence))"?')
_SEPARATOR_LINE = re.compile(r"sep=(.)")  # first line written by Excel
_FORMS = {"\t": "TSV", ";": "CSV with semicolons", ",": "CSV"}


@dataclass(frozen=True)
class SentenceTable:
    """Sentences read from a table, whose labels and splits have not been validated yet.

    Attributes:
        read: names of the used columns in the table, in lower case.
        rows: (zero-based number, cells by SENTENCE, PAIR, LABEL, SCORE and SPLIT) of non-empty rows.
    """

    name: str
    form: str
    read: tuple[str, ...]
    unread: tuple[str, ...]
    rows: tuple[tuple[int, dict[str, str]], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the standard names of the used columns, such as sentence, sentence2 and label."""
        return tuple(self.rows[0][1]) if self.rows else ()


def read_table(text: str, name: str = PASTED) -> SentenceTable:
    """Read sentences from CSV, TSV or JSON Lines text. Raises InputError, which names the invalid column, row or
    line."""
    if "\0" in text:
        raise InputError(f"{name} must be text; it contains a NUL character. Remove this character.")
    text = plain_ends(text.lstrip("\ufeff"))
    lines = lines_of(text)
    first = next((line for line in lines if line.strip()), "")
    must_be_table = Path(name).suffix.lower() in ENDINGS
    if Path(name).suffix.lower() == ".jsonl" or (not must_be_table and _is_object(first)):
        numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        objects = [(f"line {number} of {name}", _object(line, f"line {number} of {name}")) for number, line in numbered]
        keys = list(dict.fromkeys(key for _, row in objects for key in row))
        names = _places(keys, name) if objects else {}
        rows = tuple(
            (k, {key: _written(row.get(keys[at]), keys[at], where).strip() for key, at in names.items()})
            for k, (where, row) in enumerate(objects)
        )
        read = tuple(keys[at] for at in names.values())
        table = SentenceTable(name, "JSON lines", read, tuple(key for key in keys if key not in read), rows)
    elif must_be_table or _names_columns(first):
        table = _table(text, name)
    else:
        parts = [_parts(line, number, name) for number, line in enumerate(lines, 1) if line.strip()]
        columns = (SENTENCE, PAIR) if any(len(row) > 1 for row in parts) else (SENTENCE,)
        rows = tuple((k, dict(zip(columns, [*row, ""], strict=False))) for k, row in enumerate(parts))
        table = SentenceTable(name, "list", columns, (), rows)
    if not table.rows:
        where = " below the first line" if table.form in _FORMS.values() else ""
        raise InputError(
            f"Sentences must be given as a table, or as a list with one sentence per line; {name} has no "
            f"sentences{where}. Add at least one sentence."
        )
    return table


# ---------------------------------------------------------------- tables with a first line


def _table(text: str, name: str) -> SentenceTable:
    lines = text.split("\n")
    start = next((k for k, line in enumerate(lines) if line.strip()), 0)
    given = _SEPARATOR_LINE.fullmatch(lines[start].strip())
    start += 1 if given else 0
    delimiter = given[1] if given else _delimiter(lines[start] if start < len(lines) else "")
    header = lines[start] if start < len(lines) else ""
    quoted = delimiter != "\t" or all(re.fullmatch(r'\s*".*"\s*', cell) for cell in header.split("\t"))
    records = _records(lines, start, delimiter, name) if quoted else (line.split(delimiter) for line in lines[start:])
    columns = [cell.strip().lower() for cell in next(records, [])]
    names = _places(columns, name)
    rows = []
    filled = (record for record in records if len(record) > 1 or "".join(record).strip())
    for number, record in enumerate(filled):
        if any(cell.strip() for cell in record):
            if len(record) > len(columns):
                raise InputError(
                    f"A row must not have more columns than the first line of the file; row {number + 1} of {name} has "
                    "more. Put quotation marks around cells that contain the separator."
                )
            if not quoted and (escaped := next((cell for cell in record if _is_escaped(cell.strip())), None)):
                raise InputError(
                    f"Cells of a tab-separated table must not be quoted; row {number + 1} of {name} has a quoted cell "
                    f"({escaped.strip()[:40]}). Remove the quotation marks, or save the table as CSV."
                )
            cells = {key: record[k].strip() if k < len(record) else "" for key, k in names.items()}
            rows.append((number, cells))
    read = tuple(columns[k] for k in names.values())
    unread = tuple(column for column in columns if column and column not in read)
    return SentenceTable(name, _FORMS.get(delimiter, "CSV"), read, unread, tuple(rows))


def _delimiter(header: str) -> str:
    """Return the separator that yields a sentence column in the first line; a comma if none does."""
    named = (mark for mark in _FORMS if mark in header and set(_cells(header, mark)) & set(_PAIRS))
    return next(named, "\t" if "\t" in header else ",")


def _cells(header: str, delimiter: str) -> list[str]:
    return [cell.strip().strip('"').strip().lower() for cell in header.split(delimiter)]


def _names_columns(line: str) -> bool:
    """Return whether the first line has column names: a sentence column, and others that are known or look like names.

    "Text, please." and "Question" are sentences.
    """
    delimiter = _delimiter(line)
    names = _cells(line, delimiter)
    if _SEPARATOR_LINE.fullmatch(line.strip()):
        return True
    if not set(names) & set(_PAIRS):
        return False
    return bool(set(names) & _FURTHER) or all(_NAME.fullmatch(cell) for cell in line.rstrip().split(delimiter))


def _places(columns: Sequence[str], name: str) -> dict[str, int]:
    """Return the index of each used column by its standard name."""
    twice = [column for k, column in enumerate(columns) if column and column in columns[:k]]
    first = next((column for column in _PAIRS if column in columns), None)
    if first is None:
        raise InputError(
            f'A table must have a column called "sentence" (or {", ".join(list(_PAIRS)[1:])}); {name} has none (it has '
            f"{', '.join(filter(None, columns))[:120] or 'no columns'}). Give this name to the column that contains "
            "the sentences."
        )
    if twice:
        raise InputError(f'Column names must be unique; {name} has "{twice[0]}" twice. Rename one of the two columns.')
    places = {SENTENCE: columns.index(first)}
    second = next((column for column in _PAIRS[first] if column in columns), None)
    if second:
        places[PAIR] = columns.index(second)
    return places | {key: columns.index(key) for key in (LABEL, SCORE, SPLIT) if key in columns}


def _records(lines: Sequence[str], start: int, delimiter: str, name: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a table with quoted cells."""
    stream = io.StringIO("\n".join(lines[start:]), newline="")
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    while True:
        line = start + reader.line_num + 1
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field limit" in str(error):
                raise InputError(
                    f"A cell must have at most {csv.field_size_limit():,} characters; line {line} of {name} has a "
                    "longer cell. Shorten the cell, or close its quotation mark."
                ) from error
            raise InputError(
                "A quoted cell must end with a quotation mark, and quotation marks inside it must be doubled; the row "
                f"that starts in line {line} of {name} is invalid. Close or double the quotation mark."
            ) from error


def _is_escaped(cell: str) -> bool:
    """Return whether a cell was quoted by a program: all quotation marks inside are doubled."""
    inner = cell[1:-1]
    return (
        len(cell) > 2
        and cell[0] == cell[-1] == '"'
        and '""' in inner
        and '"' not in inner.replace('""', "")
        and bool(inner.strip('"'))
    )


# ---------------------------------------------------------------- JSON lines and lists


def _is_object(line: str) -> bool:
    try:
        row = json_line(line) if line.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and bool({str(key).strip().lower() for key in row} & set(_PAIRS))


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json_line(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"Each line must be one JSON object; {where} cannot be parsed ({error}). Correct the line."
        ) from error
    if not isinstance(row, dict):
        raise InputError(f"Each line must be one JSON object; {where} is a {type(row).__name__}. Correct the line.")
    cells = {str(key).strip().lower(): value for key, value in row.items()}
    if len(cells) < len(row):
        raise InputError(
            f"Column names must differ in more than case; some names of {where} differ only in case. Rename one of the "
            "columns."
        )
    return cells


def _written(value: Any, key: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # pandas writes whole numbers as floats in columns with missing values
    if isinstance(value, list | dict):
        raise InputError(
            f'A cell must be a string or a number; "{key[:40]}" in {where} is a list or an object. Convert it to a '
            "string, such as words joined with spaces."
        )
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f'A text must be valid Unicode; "{key[:40]}" in {where} contains an unpaired surrogate (half of a '
            "character). Remove this character."
        ) from error
    return plain_ends(text)


def _parts(line: str, number: int, name: str) -> list[str]:
    parts = [part.strip() for part in line.split("\t")]
    if len(parts) > 2 or not parts[0]:
        found = f"{len(parts)} parts" if parts[0] else "no first sentence"
        raise InputError(
            f"A line of a list must have one sentence, or two separated by a tab; line {number} of {name} "
            f"({line[:60]!r}) has {found}. Correct the line."
        )
    return parts if len(parts) == 2 and parts[1] else parts[:1]


# ---------------------------------------------------------------- pasted and uploaded sentences


MOST = 5000


class Pasted(NamedTuple):
    """A sentence, or a pair of sentences, that a user pasted into a text field."""

    text: str
    pair: str | None = None


def read_given(text: str, name: str = PASTED) -> SentenceTable:
    """Read sentences from a text field or an upload. Raises InputError if there are more than MOST sentences."""
    table = read_table(text, name)
    if len(table.rows) > MOST:
        raise InputError(
            f"A list must have at most {MOST:,} sentences; {name} has {len(table.rows):,}. Use fewer sentences."
        )
    return table


def read_pasted(text: str, name: str = PASTED) -> list[Pasted]:
    """Read sentences or pairs from a text field or upload. Raises InputError if there are none or too many, or if any
    is invalid."""
    table = read_given(text, name)
    for number, cells in table.rows:
        if not cells[SENTENCE]:
            raise InputError(
                f"Every row must be complete; row {number + 1} of {name} has no sentence. Correct or remove the row."
            )
    return [Pasted(cells[SENTENCE], cells.get(PAIR) or None) for _, cells in table.rows]
