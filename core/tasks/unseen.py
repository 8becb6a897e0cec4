"""Train rows to test on: those that a fine-tuning on a part of them left out, where they share nothing with that part.

GLUE's SST-2 has the phrases of a sentence as rows of their own, so a row that was left out may be a piece of one that
was learned. Dev rows of other sentences come first; a row that was left out is taken where it has no four words in a
row in common with a row that was learned, in any case.
"""

from collections.abc import Iterable, Iterator, Sequence

from .glue import TaskRow

SPLIT = "unseen"  # dev rows, and these
WORDS = 4  # in a row


def unseen(dev: Sequence[TaskRow], train: Sequence[TaskRow], learned: Sequence[TaskRow]) -> list[TaskRow]:
    """Dev rows, then the train rows that were not learned and share no WORDS words in a row with one that was.

    Args:
        train: all rows of that one, with ids of their own.
        learned: those of `train` that were learned.

    Returns:
        In their order. Train rows of fewer than WORDS words in every sentence are left out: nothing could be shared.
    """
    ids, known = {row.id for row in learned}, {run for row in learned for run in _runs(row)}
    left = ((row, set(_runs(row))) for row in train if row.id not in ids)
    return [*dev, *(row for row, runs in left if runs and not runs & known)]


def _runs(row: TaskRow) -> Iterator[tuple[str, ...]]:
    for text in _texts(row):
        words = text.casefold().split()
        yield from (tuple(words[k : k + WORDS]) for k in range(len(words) - WORDS + 1))


def _texts(row: TaskRow) -> Iterable[str]:
    return filter(None, (row.text, row.pair))
