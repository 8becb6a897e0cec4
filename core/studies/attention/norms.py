"""Attention by norms |alpha f(x)|: features, statistics and the [SEP] analysis (Kobayashi et al. 2020).

Each row of a norm-based map is divided by its sum, so that its numbers compare with those of weights. Rows: as those of
the studies features and statistics; and "vector norm", one a head and token type: the mean length of f(x) over tokens
of the type, as a share of the input's mean length (1: no shorter than others), with its 95% interval and n inputs. The
paper finds that separators and punctuation get weight but have short vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses

from core import studies
from core.scoring.definitions import STATISTICS, TYPES
from core.store.rows import Row
from core.studies.attention import features
from core.studies.attention.attending import Attending, AttendingOptions, estimate, facts
from core.studies.attention.inputs import PASTED, InputChunk, sources
from core.studies.attention.partials import InputOffset, NormSums
from core.studies.attention.records import Score
from core.studies.contract import Done, Flag, Unit
from core.studies.headline import Headline, defined, percent
from core.studies.provenance import provenance
from core.studies.records import picked
from core.tasks.features import feature_of


@pydantic.dataclasses.dataclass(frozen=True)
class NormsOptions(AttendingOptions):
    """Which features are looked for, in which inputs."""

    pipeline: Annotated[str | None, Flag("a spaCy pipeline; default: the bundled one")] = None
    features: Annotated[
        tuple[str, ...], Flag("noun, negation, tag:JJ, dep:amod ...; default: the papers'", name="--feature")
    ] = features.FEATURES


@dataclass(frozen=True)
class NormPartial:
    """Norms by checkpoint and task."""

    pieces: tuple[NormSums, ...]


class Norms(Attending[NormsOptions, NormPartial]):
    """Attention by weight times the value's length: features, statistics and [SEP] (Kobayashi et al. 2020)."""

    name, options, partial = "norms", NormsOptions, NormPartial
    section = "beyond weights"
    gives = "the same by norms |alpha f(x)|"

    def units(self, options: NormsOptions) -> list[Unit]:
        """Chunks of rows; wrong features are refused before anything runs."""
        for name in options.features:
            feature_of(name)
        return super().units(options)

    def run(self, options: NormsOptions, unit: Unit) -> Done[NormPartial]:
        """The sums of one unit's inputs."""
        chunk: InputChunk = unit.arguments
        checkpoint = studies.worker_cache.checkpoint(chunk.checkpoint, dtype=options.dtype)
        inputs = sources(options, chunk.task)[chunk.start : chunk.stop]
        sums = self._sums(options, checkpoint, studies.worker_cache.pipeline(options.pipeline), inputs, chunk)
        return Done(NormPartial((sums,)), provenance(checkpoint, [source.row_id for source in inputs]))

    def measured_now(self, options: NormsOptions, checkpoint: Any, pipeline: Any) -> list[Row]:
        """Rows of the options' texts, at once, with what is already open. Raises InputError."""
        at = InputChunk(options.checkpoint, PASTED, 0, len(options.texts))
        return rows_of(self._sums(options, checkpoint, pipeline, sources(options, PASTED), at))

    def _sums(
        self, options: NormsOptions, checkpoint: Any, pipeline: Any, inputs: list[Any], at: InputChunk
    ) -> NormSums:
        measure = studies.attention.norm_measure.NormMeasure(checkpoint, options.features, seed=options.seed)
        measure.observe(pipeline, inputs)
        return measure.sums(InputOffset(at.checkpoint, at.task, at.start))

    def rows(self, options: NormsOptions, merged: NormPartial) -> list[Row]:
        """One a head and score, by checkpoint and task."""
        return [row for sums in merged.pieces for row in rows_of(sums)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        first = [score for score in Score.of_heads(rows) if score.feature is None]
        most = max(picked(first, statistic=first[0].statistic), key=lambda score: defined(score.value))
        return Headline(
            f"By norms {most.name} has the largest {most.statistic}: {most.value:.2f}.",
            most.n,
            "inputs",
            percent(most.low, most.high, "{:.2f}", 1),
        )


STUDY = Norms()


def rows_of(sums: NormSums) -> list[Row]:
    """Rows of every statistic, feature and token type."""
    rows, heads = [], list(np.ndindex(sums.layers, sums.heads))
    whole, lengths = sums.statistics.means.result(), sums.means.result()
    named = [({"statistic": name}, whole.part(k)) for k, name in enumerate(STATISTICS)]
    named += [({"statistic": "vector norm", "feature": name}, lengths.part(k)) for k, name in enumerate(TYPES)]
    for about, value in named:
        columns = facts(sums) | about
        if value.n[0]:
            rows += [columns | estimate(value, *head) for head in heads]
        else:
            rows.append(columns | {"n": 0, "note": "not defined on these inputs"})
    return rows + (features.rows_of(sums.features) if sums.features.features else [])
