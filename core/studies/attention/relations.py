"""Which heads look from verb to subject, pronoun to noun, word to the same word ... (Kovaleva et al. 2019, 4.5).

Rows, one a head, relation, direction, checkpoint and task: value, the mean weight over links with its 95% bootstrap
interval (inputs are drawn, not links), n links, baseline (the same head's weight at the same distance elsewhere; across
sentences, on the other words there; by the piece of the key), effect and p as in `core.studies.attention.features`;
contrast, the mean log weight with what the query, the key and the distance do anyway taken out (0: nothing but these),
with its interval; p is the larger of effect's and contrast's, so that a head that looks at nouns is not taken for one
that looks at its object, and q corrects it for all heads, relations and directions together; accuracy, the share of
links where the head looks there most, beside the accuracy of the best fixed distance, the previous and the next word.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from core import scoring, studies
from core.errors import InputError
from core.scoring.corrections import q_of_all
from core.store.rows import Row
from core.studies.attention.attending import Attending, AttendingOptions, Tasks, contrast_columns, ends, estimate, facts
from core.studies.attention.headlines import above_null
from core.studies.attention.partials import RelationSums
from core.studies.attention.records import Score
from core.studies.contract import Flag, Unit
from core.studies.headline import Headline
from core.tasks.relations import relation_of

if TYPE_CHECKING:
    from core.studies.attention.measures import RelationMeasure

RELATIONS = ("verb-subject", "verb-object", "determiner-noun", "noun-pronoun", "same-word")


@pydantic.dataclasses.dataclass(frozen=True)
class RelationsOptions(AttendingOptions):
    """Which relations are looked for, in which inputs."""

    tasks: Tasks = ("mrpc",)
    pipeline: Annotated[str | None, Flag("a spaCy pipeline; default: the bundled one")] = None
    relations: Annotated[
        tuple[str, ...], Flag("verb-subject, same-word, dep:amod ...; default: five", name="--relation")
    ] = RELATIONS


@dataclass(frozen=True)
class RelationPartial:
    """Attention along relations, by checkpoint and task."""

    pieces: tuple[RelationSums, ...]


class Relations(Attending[RelationsOptions, RelationPartial]):
    """Attention from word to word along links, against the same distance elsewhere (Kovaleva et al., 4.5)."""

    name, options, partial = "relations", RelationsOptions, RelationPartial
    section = "relations and frames"
    gives = "attention along relations"

    def units(self, options: RelationsOptions) -> list[Unit]:
        """Chunks of rows; wrong relations are refused before anything runs."""
        if not options.relations:
            raise InputError(
                "At least one relation must be looked for; none was given: name one, such as verb-subject."
            )
        for name in options.relations:
            relation_of(name)
        return super().units(options)

    def measure(self, options: RelationsOptions, checkpoint: Any) -> "RelationMeasure":
        """Attention along the relations on one checkpoint."""
        relations = [relation_of(name) for name in dict.fromkeys(options.relations)]
        return studies.attention.measures.RelationMeasure(checkpoint, relations)

    def rows(self, options: RelationsOptions, merged: RelationPartial) -> list[Row]:
        """One a head and statistic, by checkpoint and task."""
        return [row for sums in merged.pieces for row in rows_of(sums)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        return above_null(
            Score.among(rows), "heads and links", lambda score: f"looks along {score.feature} ({score.statistic}) most"
        )


STUDY = Relations()


def rows_of(sums: RelationSums) -> list[Row]:
    """One row a head, relation and direction; one row without a head where there is no link."""
    rows, relations = [], [relation_of(name) for name in sums.relations]
    results = list(studies.attention.measures.relations_again(sums, relations).result())
    p_of = [
        np.maximum(quantities["excess"].p_above(), quantities["contrast"].p_above())[..., 0]
        for *_, quantities in results
    ]
    for (name, direction, quantities), p, q in zip(results, p_of, q_of_all(p_of), strict=True):
        number = sums.relations.index(name)
        columns = facts(sums) | {"statistic": direction, "feature": name}
        weight, excess, accuracy = (quantities[quantity] for quantity in ("weight", "excess", "accuracy"))
        if not weight.n[0]:
            rows.append(columns | {"n": 0, "note": "no input has this relation in this direction"})
            continue
        distances = visible(sums.distances[number], direction, causal=sums.causal)
        across = relations[number].across  # no distance means anything there
        fixed = {} if across else fixed_distances(distances)
        for layer, head in np.ndindex(*p.shape):
            effect, effect_low, effect_high = ends(excess, layer, head)
            right, right_low, right_high = ends(accuracy, layer, head, most=1.0)
            rows.append(
                columns
                | estimate(weight, layer, head, most=1.0)
                | {"effect": effect, "effect_low": effect_low, "effect_high": effect_high}
                | {"baseline": float(weight.value[layer, head, 0]) - effect}
                | contrast_columns(quantities["contrast"], layer, head)
                | {"p": float(p[layer, head]), "q": float(q[layer, head]), "accuracy": right}
                | {"accuracy_low": right_low, "accuracy_high": right_high}
                | fixed
            )
    return rows


def visible(distances: Mapping[int, int], direction: str, *, causal: bool) -> "Counter[int]":
    """The distances of the links that count in a direction: in causal models those whose query sees its key."""
    if not causal:
        return Counter(distances)
    return Counter({d: n for d, n in distances.items() if (d < 0) == (direction == "forward")})


def fixed_distances(distances: "Counter[int]") -> Row:
    """Accuracies of the best fixed distance, and of the previous and the next word."""
    chosen, share = scoring.tokens.best_distance(distances)
    total = sum(distances.values())
    return {
        "best_distance": chosen,
        "best_distance_accuracy": share,
        "previous_accuracy": distances[-1] / total if total else None,
        "next_accuracy": distances[1] / total if total else None,
    }
