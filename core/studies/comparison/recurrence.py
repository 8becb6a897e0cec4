"""Which heads recur: matched in how many of several other checkpoints, with intervals over those."""

from collections.abc import Sequence

import numpy as np

from ... import scoring
from .records import Counterpart, Recurrence, RecurrenceSummary

LEAST_RUNS = 2


def recurrences(heads: Sequence[Counterpart]) -> list[Recurrence | RecurrenceSummary]:
    """A record a head, and one over all of them.

    Args:
        heads: counterparts of one checkpoint's heads, of every head in each of the others.
    """
    runs = list(dict.fromkeys(head.compare for head in heads))
    if len(runs) < LEAST_RUNS:
        return []
    by_run = [[head for head in heads if head.compare == run] for run in runs]
    recurring = scoring.recurrence.recurring(np.array([[head.matched for head in run] for run in by_run]))
    records: list[Recurrence | RecurrenceSummary] = []
    for number, head in enumerate(by_run[0]):
        head_runs = [run[number] for run in by_run]
        alike = [other.similarity for other in head_runs if other.similarity is not None]
        count = int(recurring.found[number])
        records.append(
            Recurrence(
                checkpoint=head.checkpoint, layer=head.layer, head=head.head, runs=len(runs), found=count,
                same_place=sum(other.matched and other.match == head.name for other in head_runs),
                share=count / len(runs), low=float(recurring.low[number]), high=float(recurring.high[number]),
                similarity=float(np.mean(alike)) if alike else None, n=head.n,
            )
        )  # fmt: skip
    first = by_run[0][0]
    whole = RecurrenceSummary(
        checkpoint=first.checkpoint, runs=len(runs), heads=len(by_run[0]), everywhere=recurring.everywhere,
        nowhere=recurring.nowhere, share=recurring.share, low=recurring.share_low, high=recurring.share_high, n=first.n,
    )  # fmt: skip
    return [*records, whole]
