"""Two sweeps side by side: which heads matter in both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...scoring import effects
from ...store.rows import Row
from .records import SweptVariant


@dataclass(frozen=True)
class SharedEffect:
    """A variant that two sweeps have, and the change of the first metric in each; None where it is undefined."""

    name: str
    this: float | None
    other: float | None


def shared_effects(rows: Sequence[Row], others: Sequence[Row]) -> tuple[list[SharedEffect], effects.Agreement]:
    """The variants that both sweeps have, and the rank correlation of their changes."""
    first, second = _changes(rows), _changes(others)
    pairs = [SharedEffect(name, first[name], second[name]) for name in first if name in second]
    columns = [np.array([getattr(pair, side) for pair in pairs], dtype=float) for side in ("this", "other")]
    return pairs, effects.rank_agreement(*columns)


def _changes(rows: Sequence[Row]) -> dict[str, float | None]:
    """The change of the first metric, by the variant's name."""
    changes = [(variant.name, variant.metrics.first.change) for variant in SweptVariant.among(rows)]
    return {name: None if change is None else change.value for name, change in changes}
