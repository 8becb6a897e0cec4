"""Heads that attend to nouns, verbs, [CLS] and other token features (Kovaleva et al. 2019, section 4.4, Figs 6 and 7).

baseline: mean over equally many random tokens at similar positions (for [CLS], separators and the first word of a
causal model, uniform attention). effect: value minus baseline. contrast: mean log weight corrected for query and
distance, and for syntactic features also for the word class; undefined for special tokens. p: the larger one-sided p of
effect and contrast. q: p corrected over all heads, features and definitions. With a second checkpoint, rows of
"difference" contain the first minus the second, with a two-sided p.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...errors import InputError
from ...scoring.corrections import q_of_all, q_values
from ...scoring.registry import FEATURE_SCORES
from ...store.rows import Row
from ...tasks.features import FEATURES as BY_NAME
from ...tasks.features import feature_of
from ..contract import Flag, Unit
from ..headline import Fact, Headline, HeadScores, each, number
from ..options import Pipeline
from ..records import Result, picked
from .attending import Attending, at_head, beside_null, contrasted, score_of
from .inputs import AttendingOptions
from .partials import FeatureSums, Pieces
from .records import Score, above_null

if TYPE_CHECKING:
    from .measures import FeatureMeasure

FEATURES: tuple[str, ...] = (
    "noun",
    "verb",
    "pronoun",
    "subject",
    "object",
    "negation",
    "punctuation",
    "start",
    "separator",
    "first",
)
FeatureNames = Annotated[
    tuple[str, ...],
    Flag(
        (
            "linguistic feature, such as noun, negation, tag:JJ or dep:amod; repeat the option for several features "
            "(default: those of Kovaleva et al. 2019, punctuation and the first token)"
        ),
        name="--feature",
    ),
]


@pydantic.dataclasses.dataclass(frozen=True)
class FeaturesOptions(AttendingOptions):
    """Options for the study of attention to linguistic features."""

    compare: Annotated[
        str | None,
        Flag(
            "second checkpoint with the same numbers of layers and heads; the study also measures how each score "
            "differs between the two checkpoints"
        ),
    ] = None
    pipeline: Pipeline = None
    features: FeatureNames = FEATURES
    word_types: bool = False


class FeaturesStudy(Attending[FeaturesOptions, FeatureSums]):
    """Measure attention to token types (nouns, [CLS] ...) compared with random tokens (Kovaleva et al., Fig. 6)."""

    name, options, partial = "features", FeaturesOptions, Pieces[FeatureSums]
    question = "Which heads attend to which token types?"
    kinds = (Score,)
    head_scores = FEATURE_SCORES
    section = "where it looks"
    ranked_by = "effect"
    said_at = 3
    gives = "attention to features"

    def units(self, options: FeaturesOptions) -> list[Unit]:
        if not options.features:
            raise InputError("At least one token feature must be given; got none. Name a feature, such as noun.")
        for name in options.features:
            feature_of(name)
        return super().units(options)

    def measure(self, options: FeaturesOptions, checkpoint: Any) -> "FeatureMeasure":
        return studies.attention.measures.FeatureMeasure(
            checkpoint, options.features, seed=options.seed, word_types=options.word_types
        )

    def scores(self, options: FeaturesOptions, sums: FeatureSums) -> list[Score]:
        return scores_of(sums)

    def results(self, options: FeaturesOptions, merged: Pieces[FeatureSums]) -> list[Result]:
        by_place = {(sums.at.checkpoint, sums.at.task): sums for sums in merged.pieces}
        scores = list(super().results(options, merged))
        first, second = options.checkpoint, options.compare
        if second and second != first:
            for (checkpoint, task), sums in by_place.items():
                if checkpoint == first and (second, task) in by_place:
                    scores += difference_scores(sums, by_place[second, task])
        return scores

    def facts(self, scores: HeadScores) -> list[Fact]:
        some = scores.above("max/")
        told = [
            f"{row['score'].rpartition('/')[2]} ({number(row)}, baseline {row['baseline']:.2f})" for row in each(some)
        ]
        token_types = " and ".join(told)
        special = has_special_tokens(row["score"].rpartition("/")[2] for row in each(some))
        than = "than expected from the baseline" if special else f"than to {OTHERS}"
        return [
            Fact("looks at", f"This head attends significantly more to {token_types} {than}.", source)
            for source in some["source"].head(1)
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        scores = Score.among(rows)
        of_first = [
            score for score in picked(scores, statistic=scores[0].statistic) if score.checkpoint != "difference"
        ]
        return above_null(
            of_first,
            "head–feature pairs",
            lambda score: f"The largest difference is that of head {score.name} and the token type {score.feature}",
            baseline=OTHERS,
            exception="in decoders, uniform attention for special tokens"
            if has_special_tokens(score.feature for score in of_first if score.feature)
            else "",
        )


STUDY = FeaturesStudy()


OTHERS = "random tokens at similar positions"  # the baseline of all but special tokens in decoders


def has_special_tokens(features: Iterable[str]) -> bool:
    """Return True if any of these features is a special token, such as [SEP], or the first or last token."""
    return any(name in BY_NAME and BY_NAME[name].special for name in features)


def scores_of(sums: FeatureSums) -> list[Score]:
    """Return one score per head, feature and statistic, such as "max". A feature that occurs in no input gets a single
    score without a value."""
    observer, scores = studies.attention.measures.features_again(sums), []
    estimates, differences = observer.result(), {}
    for key, (value, effect) in estimates.items():
        p, contrast = effect.p_above()[..., 0], None
        if not feature_of(key[1]).special:  # without a contrast there is no p: positions alone may explain the value
            contrast = observer.contrast(*key)
            p = np.maximum(p, contrast.p_above()[..., 0])
            contrast = contrast if contrast.n.any() else None
        differences[key] = (value, effect, contrast, p)
    together = q_of_all([p for _, _, _, p in differences.values()])
    for (key, (value, effect, contrast, p)), q in zip(differences.items(), together, strict=True):
        if not value.n[0]:
            scores.append(score_of(Score, sums, *key, note="no input has this feature"))
            continue
        about = score_of(Score, sums, *key)
        for cell in sums.names:
            score = beside_null(at_head(about, value, *cell), effect, *cell)
            scores.append(replace(contrasted(score, contrast, *cell), p=float(p[cell]), q=float(q[cell])))
    return scores


def difference_scores(first: FeatureSums, second: FeatureSums) -> list[Score]:
    """Subtract the scores of two checkpoints, paired by input. Return [] if their numbers of heads differ."""
    if first.means.sums.shape != second.means.sums.shape:
        return []
    scores = []
    for key, (value, _) in scoring.features.by_feature(
        studies.attention.measures.features_again(first), first.means.result(minus=second.means)
    ).items():
        if value.n[0]:
            about = replace(score_of(Score, first, *key), checkpoint="difference")
            p = value.p_either()[..., 0]
            q = q_values(p)
            scores += [
                replace(at_head(about, value, *cell), p=float(p[cell]), q=float(q[cell])) for cell in first.names
            ]
    return scores
