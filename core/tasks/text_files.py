"""Running text of any length, as a .txt file whose path stands where a task's name does.

It is measured in windows of the checkpoint's own maximum, cut at white space, each an input of its own. A file is read
in stretches, which are units of work: no tokenizer sees more than one at a time.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from .. import config
from ..errors import InputError
from ..reading import read_text

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
