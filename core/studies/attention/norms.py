"""Attention by norms |alpha f(x)|: features, statistics and the [SEP] analysis (Kobayashi et al. 2020).

Each row of a norm-based map is divided by its sum, so that its numbers compare with those of weights. Rows: as those of
the studies features and statistics; and "vector norm", one a head and token type: the mean length of f(x) over tokens
of the type, as a share of the input's mean length (1: no shorter than others), with its 95% interval and n inputs. The
paper finds that separators and punctuation get weight but have short vectors.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pydantic.dataclasses

from ... import studies
from ...scoring.definitions import STATISTICS, TYPES
from ...scoring.registry import FEATURE_SCORES, MAP_SCORES, HeadScore, Need
from ...store.rows import Row
from ...tasks.features import feature_of
from ..contract import Unit
from ..headline import Headline, defined, percent
from ..options import Pipeline
from ..records import picked
from . import features
from .attending import Attending, of_heads
from .features import FeatureNames
from .headlines import outstanding
from .inputs import AttendingOptions, SourceText
from .partials import NormSums, Pieces
from .records import Score

if TYPE_CHECKING:
    from .norm_measure import NormMeasure


@pydantic.dataclasses.dataclass(frozen=True)
class NormsOptions(AttendingOptions):
    """Which features are looked for, in which inputs."""

    pipeline: Pipeline = None
    features: FeatureNames = features.FEATURES


KOBAYASHI = "Kobayashi et al. 2020"


def _of_norms(score: HeadScore, needs: tuple[Need, ...]) -> HeadScore:
    """A score of weights, of norm-based maps."""
    formula = f"{score.formula}; of |alpha f(x)|, each row over its sum"
    return replace(score, label=f"{score.label}, norms", formula=formula, needs=needs, source=KOBAYASHI)


NORM_SCORES = (
    *(_of_norms(score, ("values",)) for score in MAP_SCORES),
    *(_of_norms(score, ("values", "tags")) for score in FEATURE_SCORES),
    HeadScore("vector norm", "length of f(x)", "mean |f(x)| over tokens of a type, over the mean of all",
              ("values", "tokens"), 0.0, None, KOBAYASHI, about="token type"),
)  # fmt: skip


class Norms(Attending[NormsOptions, NormSums]):
    """Attention by weight times the value's length: features, statistics and [SEP] (Kobayashi et al. 2020)."""

    name, options, partial = "norms", NormsOptions, Pieces[NormSums]
    kinds = (Score,)
    head_scores = NORM_SCORES
    said_at = 10
    section = "beyond weights"
    gives = "the same by norms |alpha f(x)|"

    def units(self, options: NormsOptions) -> list[Unit]:
        """Chunks of rows; wrong features are refused before anything runs."""
        for name in options.features:
            feature_of(name)
        return super().units(options)

    def measure(self, options: NormsOptions, checkpoint: Any) -> "NormMeasure":
        """Norms on one checkpoint."""
        return studies.attention.norm_measure.NormMeasure(checkpoint, options.features, seed=options.seed)

    def observe(self, measure: Any, checkpoint: Any, pipeline: Any, inputs: Sequence[SourceText]) -> None:
        """One pass that hands over values beside weights."""
        measure.observe(pipeline, inputs)

    def scores(self, options: NormsOptions, sums: NormSums) -> list[Score]:
        """Every statistic, token type and feature."""
        whole, lengths = sums.statistics.means.result(), sums.means.result()
        none, scores = "not defined on these inputs", []
        for number, name in enumerate(STATISTICS):
            scores += of_heads(Score, sums, whole.part(number), name, otherwise=none)
        for number, name in enumerate(TYPES):
            scores += of_heads(Score, sums, lengths.part(number), "vector norm", name, otherwise=none)
        return scores + (features.scores_of(sums.features) if sums.features.features else [])

    def headline(self, rows: Sequence[Row]) -> Headline:
        first = [score for score in Score.of_heads(rows) if score.feature is None]
        most = max(picked(first, statistic=first[0].statistic), key=lambda score: defined(score.value))
        return Headline(
            f"By norms {most.name} has the largest {most.statistic}: {most.value:.2f}.",
            most.n,
            "inputs",
            percent(most.low, most.high, "{:.2f}", 1),
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return outstanding(rows, "value")


STUDY = Norms()
