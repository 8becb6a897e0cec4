"""Gold trees in CoNLL-U form (Universal Dependencies), with the characters of every word.

Syntactic words of a multi-word token (don't = do + n't) share its characters when they spell it; where they do
not, all of them own the whole token. Empty nodes are left out. Heads count from 0; a root is its own head.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from ..errors import InputError
from ..reading import lines_of, read_text
from .language import TaggedWord

COLUMNS = 10
_NUMBER = re.compile(r"[0-9]{1,9}([-.][0-9]{1,9})?")  # of a word; 8-9 is a token of two words, 8.1 an empty node


@dataclass(frozen=True)
class GoldSentence:
    """A sentence with its tree.

    Attributes:
        words: the syntactic ones in order, tagged and governed as the treebank says.
        document: id of the text it stands in, or "".
    """

    text: str
    words: tuple[TaggedWord, ...]
    document: str = ""


def read_conllu(file: Path, limit: int | None = None) -> list[GoldSentence]:
    """The first `limit` sentences of a CoNLL-U file (None: all), in order.

    Raises InputError naming the line that does not fit.
    """
    try:
        lines = lines_of(read_text(file, given=True))
    except OSError as error:
        raise InputError(
            f"Gold trees are read from a UTF-8 CoNLL-U file; {file} cannot be read ({type(error).__name__}): "
            "name another file."
        ) from error
    sentences, document = [], ""
    for block in _blocks(lines):
        document = next(
            (text.removeprefix("# newdoc id = ") for _, text in block if text.startswith("# newdoc id = ")), document
        )
        if any(not text.startswith("#") for _, text in block):
            sentences.append(_sentence(block, document, file))
        if len(sentences) == limit:
            break
    if not sentences:
        raise InputError(f"A CoNLL-U file must have at least one sentence; {file.name} has none. Give another.")
    return sentences


def _blocks(lines: list[str]) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []


def _sentence(block: list[tuple[int, str]], document: str, file: Path) -> GoldSentence:
    rows = []
    for number, line in block:
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != COLUMNS:
            raise InputError(
                f"A CoNLL-U line has {COLUMNS} columns between tabs; line {number} of {file.name} has {len(fields)}: "
                "repair it."
            )
        if not _NUMBER.fullmatch(fields[0]):
            raise InputError(
                f"A CoNLL-U line begins with its word's number; line {number} of {file.name} begins with "
                f"{fields[0][:20]!r}: repair it."
            )
        if "." not in fields[0]:  # 8.1 is an empty node
            rows.append((number, fields))
    text = next((line.removeprefix("# text = ") for _, line in block if line.startswith("# text = ")), "")
    text = text if text.strip() else _joined(rows)  # some treebanks have the comment and no text in it
    spans = _spans(rows, text, file)
    places = {fields[0]: k for k, (_, fields) in enumerate(r for r in rows if "-" not in r[1][0])}
    words = []
    for k, (number, fields) in enumerate(r for r in rows if "-" not in r[1][0]):
        head = k if fields[6] == "0" else places.get(fields[6])
        if head is None:
            raise InputError(
                f"Every word has a head in its sentence, or 0; line {number} of {file.name} names {fields[6]}: "
                "repair it."
            )
        words.append(TaggedWord(fields[1], *spans[k], fields[4], fields[3], fields[7], head))
    return GoldSentence(text, tuple(words), document)


def _joined(rows: list[tuple[int, list[str]]]) -> str:
    """The text of a sentence without a `# text` line."""
    parts, inside = [], 0
    for _, fields in rows:
        first, _, last = fields[0].partition("-")
        if last:
            inside = int(last)
        elif int(first) <= inside:
            continue
        parts.append(fields[1] + ("" if "SpaceAfter=No" in fields[9] else " "))
    return "".join(parts).rstrip()


def _spans(rows: list[tuple[int, list[str]]], text: str, file: Path) -> list[tuple[int, int]]:
    """Characters of every syntactic word: found one after another, never by searching the sentence afresh."""
    spans: list[tuple[int, int]] = []
    cursor, queue = 0, deque(rows)
    while queue:
        number, fields = queue.popleft()
        start = text.find(fields[1], cursor)
        if start < 0:
            raise InputError(
                f'The words of a sentence stand in its text in order; "{fields[1]}" in line {number} of {file.name} '
                "does not: repair it."
            )
        cursor = start + len(fields[1])
        first, _, last = fields[0].partition("-")
        many = int(last) - int(first) + 1 if last else 0
        if last and not 1 <= many <= len(queue):
            raise InputError(
                f"A token of several words, like 8-9, stands before them; line {number} of {file.name} has {fields[0]} "
                f"and {len(queue)} words after it: repair it."
            )
        parts = [queue.popleft()[1][1] for _ in range(many)] if last else [fields[1]]
        spans += _divided(start, fields[1], parts)
    return spans


def _divided(start: int, surface: str, parts: list[str]) -> list[tuple[int, int]]:
    if "".join(parts) != surface:
        return [(start, start + len(surface))] * len(parts)
    ends = [start + length for length in accumulate(map(len, parts))]
    return list(zip([start, *ends[:-1]], ends, strict=True))
