"""Sentences or pairs that somebody pasted or uploaded without labels, to look at one after another."""

import csv
import io
from typing import NamedTuple

from core.errors import InputError

MOST = 5000
TEXT_NAMES, PAIR_NAMES = ("sentence", "sentence1", "text", "premise", "question"), ("sentence2", "pair", "hypothesis")


class Pasted(NamedTuple):
    """One input: a sentence, and the second one of a pair or None."""

    text: str
    pair: str | None = None


def read_pasted(lines: str) -> list[Pasted]:
    """One input a line; a tab divides the sentences of a pair. Empty lines are left out.

    A first line that names columns (sentence, sentence2, ...) makes it a table, divided by commas or tabs as that
    line is. Errors: InputError where nothing is left, a line has more than two sentences, or there are over MOST.
    """
    kept = [line for line in lines.replace("\ufeff", "").splitlines() if line.strip()]
    inputs = _table(kept) if kept and _names_columns(kept[0]) else [_line(line) for line in kept]
    if not inputs:
        raise InputError("A list of sentences has one on each line; there is none: paste or upload some.")
    if len(inputs) > MOST:
        raise InputError(f"A list may have {MOST:,} sentences; this one has {len(inputs):,}: take a part of it.")
    return inputs


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
