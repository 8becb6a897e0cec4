"""Translation data: sentences, translations, and word alignments if known.

Each line has source, target and alignments "0-0 1-2 ..." (zero-based source word - target word, as in Pharaoh files),
separated by tabs. The third column is optional.
"""

from dataclasses import dataclass
from pathlib import Path

from .. import config
from ..errors import InputError
from ..reading import lines_of, read_text

BUNDLED = config.DATA / "translation"
_FORM = "A line of a translation file must be source, tab, target, and optionally tab and alignments such as 0-0 1-2"


@dataclass(frozen=True)
class Translation:
    """A row of a translation file.

    Attributes:
        links: zero-based (source word, target word), for words separated by spaces; empty if unknown.
        number: line number, from 1.
    """

    source: str
    target: str
    links: tuple[tuple[int, int], ...] = ()
    number: int = 1

    @property
    def id(self) -> str:
        """ID of the row in its file."""
        return f"line-{self.number}"


def read_translations(
    file: str | Path | None = None, *, split: str = "dev", limit: int | None = None
) -> list[Translation]:
    """Read a translation file, or the bundled `split` (dev or train). Raises InputError naming the line."""
    path = config.inside(file) if file else BUNDLED / f"{split}.tsv"
    try:
        lines = lines_of(read_text(path, given=True))
    except OSError as error:
        raise InputError(
            f"A translation file must be readable UTF-8 text; {path} is not. Choose another file, or omit --data."
        ) from error
    rows = [_row(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"A translation file must have at least one row; {path} has none. Add rows.")
    return rows[:limit]


def _row(line: str, number: int) -> Translation:
    source, _, rest = line.partition("\t")
    target, _, listed = rest.partition("\t")
    if not source.strip() or not target.strip():
        raise InputError(f"{_FORM}; line {number} has {'no target' if source.strip() else 'no source'}. Correct it.")
    try:
        pairs = [link.split("-") for link in listed.split()]
        links = tuple((int(source_word), int(target_word)) for source_word, target_word in pairs)
    except ValueError as error:
        raise InputError(f"{_FORM}; line {number} has {listed[:40]!r}. Correct it.") from error
    words = len(source.split()), len(target.split())
    outside = [pair for pair in links if not (0 <= pair[0] < words[0] and 0 <= pair[1] < words[1])]
    if outside:
        raise InputError(
            f"Alignments must be zero-based indices of words; line {number} has {words[0]} and {words[1]} words, "
            f"and {outside[0][0]}-{outside[0][1]}. Correct it."
        )
    return Translation(source.strip(), target.strip(), links, number)
