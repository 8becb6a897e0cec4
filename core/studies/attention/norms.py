"""Norm-based attention |alpha f(x)|: features, statistics and the [SEP] analysis (Kobayashi et al. 2020).

Rows of norm-based maps are divided by their sum, so that they can be compared with weights. "vector norm" is the mean
norm of f(x) over the tokens of a type, divided by the mean over the input. The paper finds that separators and
punctuation get large weights but have short vectors.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic.dataclasses

from ... import capture, studies
from ...scoring.definitions import STATISTICS, TYPES
from ...scoring.intervals import Means
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
from .inputs import AttendingOptions, SourceText
from .partials import InputOffset, NormSums, Pieces
from .records import Score

if TYPE_CHECKING:
    from ...capture.norms import Contributions
    from ...models.checkpoint import Checkpoint


KOBAYASHI = "Kobayashi et al. 2020"


@pydantic.dataclasses.dataclass(frozen=True)
class NormsOptions(AttendingOptions):
    """Options for the study of norm-based attention."""

    pipeline: Pipeline = None
    features: FeatureNames = features.FEATURES


def _of_norms(score: HeadScore, needs: tuple[Need, ...]) -> HeadScore:
    """Return a score that is defined on attention weights, redefined on norm-based maps."""
    formula = f"{score.formula}; of |alpha f(x)|, each row over its sum"
    return replace(score, label=f"{score.label}, norms", formula=formula, needs=needs, source=KOBAYASHI)


NORM_SCORES = (
    *(_of_norms(score, ("values",)) for score in MAP_SCORES),
    *(_of_norms(score, ("values", "tags")) for score in FEATURE_SCORES),
    HeadScore("vector norm", "length of f(x)", "mean |f(x)| over tokens of a type, over the mean of all",
              ("values", "tokens"), 0.0, None, KOBAYASHI, about="token type"),
)  # fmt: skip


class NormsStudy(Attending[NormsOptions, NormSums]):
    """Measure norm-based attention: the weight times the norm of the transformed value (Kobayashi et al. 2020)."""

    name, options, partial = "norms", NormsOptions, Pieces[NormSums]
    question = "Which heads attend to which token types, measured by norms?"
    kinds = (Score,)
    head_scores = NORM_SCORES
    said_at = 10
    section = "beyond weights"
    gives = "norm-based attention to features"

    def units(self, options: NormsOptions) -> list[Unit]:
        for name in options.features:
            feature_of(name)
        return super().units(options)

    def measure(self, options: NormsOptions, checkpoint: Any) -> "NormMeasure":
        return NormMeasure(checkpoint, options.features, seed=options.seed)

    def observe(self, measure: Any, checkpoint: Any, pipeline: Any, inputs: Sequence[SourceText]) -> None:
        measure.observe(pipeline, inputs)

    def scores(self, options: NormsOptions, sums: NormSums) -> list[Score]:
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
            f"Head {most.name} has the largest {most.statistic} in norm-based attention: {most.value:.2f}.",
            most.n,
            "inputs",
            percent(most.low, most.high, "{:.2f}", 1),
        )


STUDY = NormsStudy()


# ---------------------------------------------------------------- norm-based attention


class NormMeasure:
    """Accumulates norm-based attention over the inputs of one checkpoint."""

    tags = True

    def __init__(self, checkpoint: "Checkpoint", features: Sequence[str], *, seed: int):
        self.checkpoint = checkpoint
        self.features = studies.attention.measures.FeatureMeasure(checkpoint, features, seed=seed)
        self.statistics = studies.attention.measures.StatisticsMeasure(checkpoint, queries=1, seed=seed)
        self.means = Means(checkpoint.layers, checkpoint.heads, len(TYPES))

    def observe(self, pipeline: Any, inputs: Sequence[SourceText]) -> None:
        """Measure norm-based attention. Raises InputError if the model family does not expose value vectors."""
        inputs = studies.attention.measures.in_windows(self.checkpoint, inputs)
        for start in range(0, len(inputs), studies.attention.measures.ROWS_A_CHUNK):
            prepared = studies.attention.measures.prepare(
                self.checkpoint, pipeline, inputs[start : start + studies.attention.measures.ROWS_A_CHUNK]
            )
            observers = [*self.features.take(prepared), self.statistics.statistics_of(prepared)]
            types = [list(studies.attention.measures.token_types(ready.encoding).values()) for ready in prepared]
            numbers = [ready.number for ready in prepared]

            def take(layer: int, taken: "Contributions", chosen: list[int], observers: Any = observers,
                     types: Any = types, numbers: Any = numbers) -> None:  # fmt: skip
                maps = capture.norms.normalised(taken.norms())
                for observer in observers:
                    observer.update(layer, maps, chosen)
                self._lengths(layer, taken, [types[k] for k in chosen], [numbers[k] for k in chosen])

            capture.norms.contributions(self.checkpoint, [ready.encoding for ready in prepared], take)

    def _lengths(self, layer: int, taken: "Contributions", types: Sequence[Any], numbers: list[int]) -> None:
        lengths = taken.lengths().double().cpu().numpy()  # [batch, head, key]
        lengths = lengths / np.maximum(lengths.mean(-1, keepdims=True), 1e-30)
        sums = np.stack(
            [
                np.stack([length[:, list(keys)].mean(-1) if keys else np.zeros(len(length)) for keys in mine], -1)
                for length, mine in zip(lengths, types, strict=True)
            ]
        )
        counts = np.array([[float(bool(keys)) for keys in mine] for mine in types])
        self.means.update(layer, sums, counts, numbers)

    def sums(self, at: InputOffset) -> NormSums:
        shape = (self.checkpoint.layers, self.checkpoint.heads)
        return NormSums(
            at, *shape, self.checkpoint.causal, self.means, self.features.sums(at), self.statistics.sums(at),
            attending=self.checkpoint.attending,
        )  # fmt: skip
