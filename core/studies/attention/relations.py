"""Heads that attend along relations, such as verb to subject or pronoun to noun (Kovaleva et al. 2019, section 4.5).

value: mean weight over links, with a 95 % interval over inputs. baseline: weight of the same head at the same distance
elsewhere (between sentences: on the other words). contrast: mean log weight corrected for query, key and distance (0:
no more than these explain), so that a head that attends to all nouns does not seem to attend to objects. p: the larger
p of effect and contrast. q: p corrected over all heads, relations and directions. accuracy: fraction of links that have
the largest weight, compared with the best fixed distance, the previous word and the next word.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...errors import InputError
from ...scoring.corrections import q_of_all
from ...scoring.registry import link_score
from ...store.rows import Row
from ...tasks.relations import SAME_WORD, relation_of
from ..contract import Flag, Unit
from ..headline import Fact, Headline, HeadScores, each, number
from ..options import Pipeline
from .attending import Attending, at_head, beside_null, contrasted, ends, score_of
from .inputs import AttendingOptions, Tasks
from .partials import Pieces, RelationSums
from .records import RelationScore, above_null

if TYPE_CHECKING:
    from .measures import RelationMeasure

RELATIONS = ("verb-subject", "verb-object", "determiner-noun", "noun-pronoun", "same-word")


@pydantic.dataclasses.dataclass(frozen=True)
class RelationsOptions(AttendingOptions):
    """Options for the study of attention along syntactic relations."""

    tasks: Tasks = ("mrpc",)
    pipeline: Pipeline = None
    relations: Annotated[
        tuple[str, ...],
        Flag(
            "relation between words, such as verb-subject, same-word or dep:amod; repeat the option for several "
            "relations (default: five of them)",
            name="--relation",
        ),
    ] = RELATIONS


class RelationsStudy(Attending[RelationsOptions, RelationSums]):
    """Measure attention along word links, compared with words at the same distance (Kovaleva et al., section 4.5)."""

    name, options, partial = "relations", RelationsOptions, Pieces[RelationSums]
    question = "Which heads attend along syntactic relations?"
    kinds = (RelationScore,)
    head_scores = (
        link_score("forward", "along relation", "mean over links of the weight from dependent to governor"),
        link_score("backward", "against relation", "mean over links of the weight from governor to dependent"),
    )
    section = "relations and frames"
    ranked_by = "effect"
    said_at = 4
    gives = "attention along relations"

    def units(self, options: RelationsOptions) -> list[Unit]:
        if not options.relations:
            raise InputError(
                "At least one syntactic relation must be given; got none. Name a relation, such as verb-subject."
            )
        for name in options.relations:
            relation_of(name)
        return super().units(options)

    def measure(self, options: RelationsOptions, checkpoint: Any) -> "RelationMeasure":
        relations = [relation_of(name) for name in dict.fromkeys(options.relations)]
        return studies.attention.measures.RelationMeasure(checkpoint, relations)

    def scores(self, options: RelationsOptions, sums: RelationSums) -> list[RelationScore]:
        scores, relations = [], [relation_of(name) for name in sums.relations]
        results = list(studies.attention.measures.relations_again(sums, relations).result())
        p_of = [
            np.maximum(quantities["excess"].p_above(), quantities["contrast"].p_above())[..., 0]
            for *_, quantities in results
        ]
        for (name, direction, quantities), p, q in zip(results, p_of, q_of_all(p_of), strict=True):
            weight = quantities["weight"]
            if not weight.n[0]:
                note = "no input has this relation in this direction"
                scores.append(score_of(RelationScore, sums, direction, name, note=note))
                continue
            about, number = score_of(RelationScore, sums, direction, name), sums.relations.index(name)
            if not relations[number].across:  # where no distance means anything
                distances = visible(sums.distances[number], direction, causal=sums.causal)
                chosen, share = scoring.tokens.best_distance(distances)
                previous, following = (distances[d] / max(1, sum(distances.values())) for d in (-1, 1))
                about = replace(
                    about,
                    best_distance=chosen,
                    best_distance_accuracy=share,
                    previous_accuracy=previous,
                    next_accuracy=following,
                )
            for cell in sums.names:
                score = beside_null(at_head(about, weight, *cell, most=1.0), quantities["excess"], *cell)
                right, low, high = ends(quantities["accuracy"], *cell, most=1.0)
                score = replace(
                    score, p=float(p[cell]), q=float(q[cell]), accuracy=right, accuracy_low=low, accuracy_high=high
                )
                scores.append(contrasted(score, quantities["contrast"], *cell))
        return scores

    def facts(self, scores: HeadScores) -> list[Fact]:
        some, told = scores.above(), []
        for row in each(some):
            direction, _, relation = row["score"].partition("/")
            told.append(f"the relation {relation}, {direction} ({number(row)}, baseline {row['baseline']:.2f})")
        relations = " and ".join(told)
        others, exception = _others(row["score"] for row in each(some))
        than = "than expected from the baseline" if exception else f"than to {others}"
        return [
            Fact(self.name, f"This head attends more along {relations} {than}.", source)
            for source in some["source"].head(1)
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        scores = RelationScore.among(rows)
        baseline, exception = _others(f"{score.statistic}/{score.feature}" for score in scores)
        return above_null(
            scores,
            "head–relation pairs",
            lambda score: (
                f"The largest difference is that of head {score.name} and the relation {score.feature} "
                f"({score.statistic})"
            ),
            baseline=baseline,
            exception=exception,
            of="links",
        )


STUDY = RelationsStudy()


def _others(scores: Iterable[str]) -> tuple[str, str]:
    """Return what relations are compared with, and the exception for links between sentences, if there is any."""
    across = [score.partition("/")[2] == SAME_WORD for score in scores]
    if all(across) and across:
        return "other words of the sentence with the key", ""
    exception = f"for {SAME_WORD}, other words of the sentence with the key" if any(across) else ""
    return "other words at the same distance", exception


def visible(distances: Mapping[int, int], direction: str, *, causal: bool) -> "Counter[int]":
    """Count the links at each distance. In causal models, leave out links whose key comes after the query."""
    if not causal:
        return Counter(distances)
    return Counter({d: n for d, n in distances.items() if (d < 0) == (direction == "forward")})
