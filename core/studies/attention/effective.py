"""Raw and effective attention side by side (Brunner et al. 2020, section 3; their Figs 2 and 3).

Rows: one a head, token type and kind (raw, effective): the mean attention to the type with its 95% bootstrap interval
and n inputs; one a head with statistic "correlation": mean Pearson r of raw and effective weights; and one a length
(without a head) with statistic "correlation by length": mean r over inputs of about that length and all heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pydantic.dataclasses

from core import scoring, studies
from core.scoring.definitions import TYPES
from core.store.rows import Row
from core.studies.attention.attending import Attending, AttendingOptions, estimate, facts
from core.studies.attention.inputs import PASTED, InputChunk, sources
from core.studies.attention.partials import EffectiveSums, InputOffset
from core.studies.attention.records import Score
from core.studies.contract import Done, Unit
from core.studies.headline import Headline, defined, percent
from core.studies.options import Limit
from core.studies.provenance import provenance

ROWS_A_UNIT = 32
BIN = 8  # lengths of 1 to 8, 9 to 16 ... pieces are shown together
KINDS = ("raw", "effective")


@pydantic.dataclasses.dataclass(frozen=True)
class EffectiveOptions(AttendingOptions):
    """Which inputs are looked at."""

    limit: Limit = 100


@dataclass(frozen=True)
class EffectivePartial:
    """Raw and effective attention, by checkpoint and task."""

    pieces: tuple[EffectiveSums, ...]


class Effective(Attending[EffectiveOptions, EffectivePartial]):
    """Raw and effective attention to token types, and their correlation by length (Brunner et al.)."""

    name, options, partial = "effective", EffectiveOptions, EffectivePartial
    section = "beyond weights"
    gives = "effective attention"

    def units(self, options: EffectiveOptions) -> list[Unit]:
        """Smaller chunks than other studies': every head needs a singular value decomposition."""
        all_units = []
        for unit in super().units(options):
            whole: InputChunk = unit.arguments
            for start in range(whole.start, whole.stop, ROWS_A_UNIT):
                chunk = replace(whole, start=start, stop=min(start + ROWS_A_UNIT, whole.stop))
                share = (chunk.stop - start) / (whole.stop - whole.start)
                all_units.append(Unit(chunk.key, chunk, size=max(1, int(unit.size * share))))
        return all_units

    def run(self, options: EffectiveOptions, unit: Unit) -> Done[EffectivePartial]:
        """The sums of one unit's inputs."""
        chunk: InputChunk = unit.arguments
        checkpoint = studies.worker_cache.checkpoint(chunk.checkpoint, dtype=options.dtype)
        inputs = sources(options, chunk.task)[chunk.start : chunk.stop]
        partial = self._seen(options, checkpoint, inputs, InputOffset(chunk.checkpoint, chunk.task, chunk.start))
        return Done(partial, provenance(checkpoint, [source.row_id for source in inputs]))

    def _seen(self, options: EffectiveOptions, checkpoint: Any, inputs: list[Any], at: InputOffset) -> EffectivePartial:
        measure = studies.attention.measures.EffectiveMeasure(checkpoint)
        measure.measure(studies.attention.passes.prepare(checkpoint, None, inputs))
        return EffectivePartial((measure.sums(at),))

    def measured_now(self, options: EffectiveOptions, checkpoint: Any, pipeline: Any) -> list[Row]:
        """Rows of the options' texts, at once, with what is already open. Raises InputError."""
        at = InputOffset(options.checkpoint, PASTED, 0)
        return self.rows(options, self._seen(options, checkpoint, sources(options, PASTED), at))

    def rows(self, options: EffectiveOptions, merged: EffectivePartial) -> list[Row]:
        """One a head and statistic, by checkpoint and task."""
        return [row for sums in merged.pieces for row in rows_of(sums)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads = [score for score in Score.of_heads(rows) if score.statistic == "correlation"]
        least = min(heads, key=lambda score: defined(score.value))
        mean = sum(defined(score.value) for score in heads) / len(heads)
        return Headline(
            f"Raw and effective attention correlate with r = {mean:.2f} on average, least in {least.name} "
            f"({least.value:.2f}).",
            least.n,
            "inputs",
            percent(least.low, least.high, "{:.2f}", 1),
            "r = 1: nothing is lost",
        )


STUDY = Effective()


def rows_of(sums: EffectiveSums) -> list[Row]:
    """Rows of every kind and token type, of r, and of r by length."""
    whole, rows = sums.means.result(), []
    names: list[tuple[str, Any]] = [(kind, kind_type) for kind in KINDS for kind_type in TYPES] + [
        ("correlation", None)
    ]
    for index, (kind, token_type) in enumerate(names):
        value, about = whole.part(index), facts(sums) | {"statistic": kind, "feature": token_type}
        if not value.n[0]:
            rows.append(about | {"n": 0, "note": "no input has such tokens"})
        else:
            rows += [about | estimate(value, *head) for head in np.ndindex(sums.layers, sums.heads)]
    return rows + _rows_by_length(sums)


def _rows_by_length(sums: EffectiveSums) -> list[Row]:
    """Mean r of each bin of lengths, with Student's interval over its inputs where there are two."""
    bins: dict[int, np.ndarray] = {}
    for length, (total, inputs) in sorted(sums.by_length.items()):
        seen = np.array([total, inputs, sums.squares.get(length, np.nan)])
        low = (length - 1) // BIN * BIN + 1
        bins[low] = bins.get(low, np.zeros(3)) + seen
    rows = []
    for low, (total, inputs, squares) in bins.items():
        about = facts(sums) | {"statistic": "correlation by length", "length_from": low, "length_to": low + BIN - 1}
        interval = scoring.intervals.student(total, squares, int(inputs))
        ends = {} if interval is None else {"low": interval[0], "high": interval[1]}
        rows.append(about | {"mean": total / inputs, "n": int(inputs)} | ends)
    return rows
