"""Rows of a translation task: a sentence, its translation, and which words belong together where that is known.

A file has a row a line: source, target, and alignments "0-0 1-2 ..." (source word - target word, from 0; as in the
Pharaoh form of word-alignment files), separated by tabs. The third column may be missing.
"""

from dataclasses import dataclass
from pathlib import Path

from .. import config
from ..errors import InputError
from ..reading import lines_of, read_text

BUNDLED = config.DATA / "translation"
_FORM = "A row of a translation file is a source, a tab, a target, and maybe a tab and pairs like 0-0 1-2"


@dataclass(frozen=True)
class Translation:
    """One row of a translation file.

    Attributes:
        links: (source word, target word), from 0; words are what spaces part. Empty where that is not known.
        number: of the line, from 1.
    """

    source: str
    target: str
    links: tuple[tuple[int, int], ...] = ()
    number: int = 1

    @property
    def id(self) -> str:
        """The row's name within the file."""
        return f"line-{self.number}"


def read_translations(
    file: str | Path | None = None, *, split: str = "dev", limit: int | None = None
) -> list[Translation]:
    """Rows of a file, or of the bundled task's `split` (dev or train). Raises InputError naming the line."""
    path = config.inside(file) if file else BUNDLED / f"{split}.tsv"
    try:
        lines = lines_of(read_text(path, given=True))
    except OSError as error:
        raise InputError(
            f"Rows to translate lie in a text file in UTF-8; {path} cannot be read: give one, or leave --data out."
        ) from error
    rows = [_row(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"A translation file has at least one row; {path} has none: add rows.")
    return rows[:limit]


def _row(line: str, number: int) -> Translation:
    source, _, rest = line.partition("\t")
    target, _, listed = rest.partition("\t")
    if not source.strip() or not target.strip():
        raise InputError(f"{_FORM}; line {number} has {'no target' if source.strip() else 'no source'}: correct it.")
    try:
        pairs = [link.split("-") for link in listed.split()]
        links = tuple((int(source_word), int(target_word)) for source_word, target_word in pairs)
    except ValueError as error:
        raise InputError(f"{_FORM}; line {number} has {listed[:40]!r}: correct it.") from error
    words = len(source.split()), len(target.split())
    outside = [pair for pair in links if not (0 <= pair[0] < words[0] and 0 <= pair[1] < words[1])]
    if outside:
        raise InputError(
            f"Pairs name words of their row, counted from 0; line {number} has {words[0]} and {words[1]} words, and "
            f"{outside[0][0]}-{outside[0][1]}: correct it."
        )
    return Translation(source.strip(), target.strip(), links, number)
