"""Which heads attend to nouns, verbs, subjects, negation, [CLS] ... (Kovaleva et al. 2019, 4.4, Figs 6 and 7).

Rows, one a head, feature, definition, checkpoint and task: value with its 95% bootstrap interval over inputs, n inputs
that have the feature, baseline (the mean of random tokens, as many and in similar places), effect (value less
baseline, with interval), one-sided p that the effect is above 0, and q, p corrected for the number of heads. With a
second checkpoint also rows of "difference", first less second, with a two-sided p.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.studies import passes
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.capture.running import Observer
    from core.models.encoding import Encoding
    from core.studies.passes import Prepared

FEATURES = ["noun", "verb", "pronoun", "subject", "object", "negation", "punctuation", "start", "separator", "first"]
DEFAULTS: Options = passes.DEFAULTS | {"features": FEATURES}


class FeatureMeasure:
    """Attention to features on one checkpoint."""

    def __init__(self, layers: int, heads: int, features: Sequence[str], *, causal: bool, seed: int):
        from core.scoring.features import FeatureAttention
        from core.tasks.features import feature_of

        self.shape, self.causal, self.seed = (layers, heads), causal, seed
        self.features = [feature_of(name) for name in dict.fromkeys(features)]
        names = [feature.name for feature in self.features]
        self.attention = FeatureAttention(layers, heads, names, causal=causal)

    def take(self, inputs: "Sequence[Prepared]") -> "list[Observer]":
        from core.scoring.features import mark

        marks = [
            mark(
                self._tokens(one),
                one.encoding.ordinary,
                classifying=classifying(one.encoding, causal=self.causal),
                seed=[self.seed, one.number],
            )
            for one in inputs
        ]
        return [self.attention.take(marks, [one.number for one in inputs])]

    def _tokens(self, one: "Prepared") -> np.ndarray:
        """Which positions carry each feature [feature, key], by character offsets."""
        from core.tasks.features import feature_spans

        found = np.zeros((len(self.features), len(one.encoding)), dtype=bool)
        for row, feature in enumerate(self.features):
            positions = special_positions(feature.name, one.encoding) if feature.special else []
            for sentence, tagged in enumerate(one.tagged if not feature.special else ()):
                for start, end in feature_spans(feature, tagged):
                    positions = [*positions, *one.encoding.pieces(start, end, sentence)]
            found[row, list(positions)] = True
        return found

    def merge(self, other: "FeatureMeasure") -> None:
        self.attention.merge(other.attention)

    def packed(self) -> Row:
        names = [feature.name for feature in self.features]
        return {
            "shape": list(self.shape),
            "causal": self.causal,
            "seed": self.seed,
            "features": names,
            "means": self.attention.means.packed(),
        }


def special_positions(name: str, encoding: "Encoding") -> list[int]:
    """Positions of "start", "separator" or "first" (the first piece of the text)."""
    if name == "start":
        return [] if encoding.first is None else [encoding.first]
    return list(encoding.separators) if name == "separator" else list(encoding.ordinary[:1])


def classifying(encoding: "Encoding", *, causal: bool) -> int:
    """The position that classifiers read: [CLS] of encoders, the last token of decoders."""
    return len(encoding) - 1 if causal else encoding.first or 0


def make(checkpoint: Any, options: Options) -> FeatureMeasure:
    """The measure of one checkpoint."""
    return FeatureMeasure(
        checkpoint.layers, checkpoint.heads, options["features"], causal=checkpoint.causal, seed=options["seed"]
    )


def unpack(packed: Row) -> FeatureMeasure:
    """What `FeatureMeasure.packed` gave."""
    from core.scoring.intervals import Means

    layers, heads = packed["shape"]
    found = FeatureMeasure(layers, heads, packed["features"], causal=packed["causal"], seed=packed["seed"])
    found.attention.means = Means.unpacked(packed["means"])
    return found


def units(options: Options) -> list[Unit]:
    """Chunks of rows; wrong features are refused before anything runs."""
    from core.errors import InputError
    from core.tasks.features import feature_of

    if not options["features"]:
        raise InputError("At least one feature must be looked for; none was given: name one, such as noun.")
    for name in options["features"]:
        feature_of(name)
    return passes.units(options)


def run(options: Options, unit: Unit) -> list[Row]:
    """The sums of one unit's inputs, which add up over units."""
    return passes.run_unit(options, unit, make)


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Add the units up and turn them into rows: one a head and statistic, by checkpoint and task."""
    found = passes.merged(rows, unpack)
    out = []
    for (checkpoint, task), measure in found.items():
        out += rows_of(measure, {"checkpoint": checkpoint, "task": task})
    first, second = options["checkpoint"], options["compare"]
    if second and second != first:
        for (checkpoint, task), measure in found.items():
            if checkpoint == first and (second, task) in found:
                out += difference_rows(measure, found[second, task], {"checkpoint": "difference", "task": task})
    return out


def rows_of(measure: FeatureMeasure, facts: Row) -> list[Row]:
    """One row a head, feature and definition; one row without a head where no input has the feature."""
    rows = []
    for (definition, feature), (value, effect) in measure.attention.result().items():
        known = facts | {"statistic": definition, "feature": feature}
        if not value.n[0]:
            rows.append(known | {"n": 0, "note": "no input has this feature"})
            continue
        p = effect.p_above()[..., 0]
        q = passes.q_values(p)
        for layer, head in np.ndindex(*p.shape):
            rows.append(
                known
                | estimate(value, layer, head)
                | {
                    "baseline": float(value.value[layer, head, 0] - effect.value[layer, head, 0]),
                    "effect": float(effect.value[layer, head, 0]),
                    "effect_low": float(effect.low[layer, head, 0]),
                    "effect_high": float(effect.high[layer, head, 0]),
                    "p": float(p[layer, head]),
                    "q": float(q[layer, head]),
                }
            )
    return rows


def difference_rows(one: FeatureMeasure, other: FeatureMeasure, facts: Row) -> list[Row]:
    """First checkpoint less second, paired by input, with a two-sided p; none where the shapes differ."""
    from core.scoring.features import by_feature

    if one.attention.means.sums.shape != other.attention.means.sums.shape:
        return []
    rows = []
    whole = one.attention.means.result(minus=other.attention.means)
    for (definition, feature), (value, _) in by_feature(one.attention, whole).items():
        if value.n[0]:
            known, p = facts | {"statistic": definition, "feature": feature}, value.p_either()[..., 0]
            q = passes.q_values(p)
            rows += [
                known | estimate(value, *one) | {"p": float(p[one]), "q": float(q[one])} for one in np.ndindex(*p.shape)
            ]
    return rows


def estimate(value: Any, layer: int, head: int) -> Row:
    """The columns of a head score."""
    return {
        "layer": layer,
        "head": head,
        "value": float(value.value[layer, head, 0]),
        "low": float(value.low[layer, head, 0]),
        "high": float(value.high[layer, head, 0]),
        "n": int(value.n[0]),
    }


STUDY = Study("features", DEFAULTS, units, run, summarize)
