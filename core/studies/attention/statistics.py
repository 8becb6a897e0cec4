"""Statistics of heads that do not depend on words, and distances between heads (Clark et al. 2019, section 3, Fig 6).

Rows with the statistic "place" have the position of the head in a plot of head distances (x, y), its most frequent
behaviour (`kind`), and its mean Jensen-Shannon distance to all other heads. `stress` measures how well the plot
preserves the distances.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...scoring.definitions import STATISTICS, kind_of
from ...scoring.intervals import StatisticEstimate
from ...scoring.registry import CLARK, MAP_SCORES, HeadScore
from ...store.rows import Row
from ...tasks.glue import task_name
from ..contract import Flag
from ..headline import Headline
from ..records import picked
from .attending import Attending, of_heads, score_of
from .inputs import AttendingOptions
from .partials import Pieces, StatisticsSums
from .records import PlaceScore, Score

if TYPE_CHECKING:
    from .measures import StatisticsMeasure


BEHAVIOUR = {  # kind of head: what it does, in a sentence
    "previous": "attend mostly to the previous token",
    "next": "attend mostly to the next token",
    "first": "attend mostly to the first token",
    "separator": "attend mostly to separators",
    "broad": "attend broadly",
    "other": "show none of these behaviours",
}


@pydantic.dataclasses.dataclass(frozen=True)
class StatisticsOptions(AttendingOptions):
    """Options for the study of attention head statistics."""

    queries: Annotated[
        int | None,
        Flag("number of queries (map rows) per input for computing the distances between heads", least=1),
    ] = 4


class StatisticsStudy(Attending[StatisticsOptions, StatisticsSums]):
    """Measure entropy, attention to neighbours and special tokens, distance and row similarity (Clark et al.)."""

    name, options, partial = "statistics", StatisticsOptions, Pieces[StatisticsSums]
    question = "What do the heads mostly do?"
    kinds = (PlaceScore,)
    head_scores = (
        *MAP_SCORES,
        HeadScore("place", "distance to other heads", "mean Jensen-Shannon distance to all other heads' rows, in nats",
                  ("weights",), 0.0, math.log(2), CLARK),
    )  # fmt: skip
    section = "where it looks"
    gives = "attention to neighbours and special tokens, entropy, distance, similarity"

    def measure(self, options: StatisticsOptions, checkpoint: Any) -> "StatisticsMeasure":
        return studies.attention.measures.StatisticsMeasure(checkpoint, queries=options.queries, seed=options.seed)

    def scores(self, options: StatisticsOptions, sums: StatisticsSums) -> list[PlaceScore]:
        whole, scores = sums.means.result(), []
        for number, name in enumerate(STATISTICS):
            scores += of_heads(PlaceScore, sums, whole.part(number), name, otherwise="not defined on these inputs")
        distances = studies.attention.measures.distances_again(sums).result()[np.ix_(sums.numbers, sums.numbers)]
        if np.isnan(distances).any() or len(distances) < 2:
            return scores
        places, stress = scoring.distances.picture(distances, seed=options.seed)
        others, kinds = distances.sum(1) / (len(distances) - 1), kinds_of(whole)
        about = replace(score_of(PlaceScore, sums, "place"), n=int(whole.n.max()), queries=sums.rows, stress=stress)
        return scores + [
            replace(
                about, layer=layer, head=head, value=float(others[number]), x=float(places[number, 0]),
                y=float(places[number, 1]), kind=kinds[sums.numbers[number]], sum=float(others[number] * sums.rows),
            )
            for number, (layer, head) in enumerate(sums.names)
        ]  # fmt: skip

    def headline(self, rows: Sequence[Row]) -> Headline:
        places = picked(PlaceScore.among(rows), statistic="place")
        mine = picked(places, checkpoint=places[0].checkpoint, task=places[0].task)
        kinds = [position.kind for position in mine]
        counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        most_first = sorted(counts.items(), key=lambda pair: -pair[1])
        told = [(count, *BEHAVIOUR[kind or "other"].split(" ", 1)) for kind, count in most_first]
        counted = ", ".join(f"{count} {verb}{'s' * (count == 1)} {what}" for count, verb, what in told)
        others = picked(Score.of_heads(rows), checkpoint=places[0].checkpoint, task=places[0].task)
        inputs = max((int(score.n or 0) for score in others if score.statistic != "place"), default=mine[0].n)
        task = task_name(places[0].task)
        return Headline(
            f"On {task}, the {len(mine)} heads of the model behave as follows: {counted}.", inputs, "inputs"
        )


STUDY = StatisticsStudy()


def kinds_of(whole: StatisticEstimate) -> list[str]:
    """Name the most frequent behaviour of each attention head, based on its mean statistics."""
    heads = whole.value.reshape(-1, whole.value.shape[-1])
    return [kind_of({name: float(value) for name, value in zip(STATISTICS, means, strict=True)}) for means in heads]
