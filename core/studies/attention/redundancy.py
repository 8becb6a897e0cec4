"""Redundant heads: nearest heads and groups by mean map, and whether they are the same for other tasks and checkpoints.

Kinds of rows: "nearest", the head with the most similar rows (Jensen-Shannon distance), with its group by mean map and
how clearly it belongs to this group (also stored as scores "group" and "clear", kind "member"); "group", a mean map;
"kept", the correlation of head distances between two (checkpoint, task) pairs. Bian et al. 2021 claim that redundancy
is "phase-independent and task-agnostic". With `--random`: "repeated", how much nearer the nearest other head is on the
same inputs than the same head on other inputs; "repeats" and "repeats at random", the fraction of heads above 0.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...scoring.registry import HeadScore
from ...store.rows import Row
from ..contract import Flag
from ..headline import Headline
from ..records import Result, picked
from .attending import Attending
from .inputs import AttendingOptions
from .partials import PatternSums, Pieces
from .records import AlikeHead, GroupMember, HeadGroup, LikenessKept, RepeatedHead, RepeatedShare

if TYPE_CHECKING:
    from .measures import PatternMeasure


@pydantic.dataclasses.dataclass(frozen=True)
class RedundancyOptions(AttendingOptions):
    """Options for finding redundant attention heads."""

    compare: Annotated[
        str | None, Flag("second checkpoint to measure, such as one that was fine-tuned from the first checkpoint")
    ] = None
    queries: Annotated[
        int, Flag("number of queries (map rows) per input for computing the distances between heads", least=1)
    ] = 4
    groups: Annotated[int, Flag("largest number of groups of heads with similar mean attention patterns", least=2)] = 6
    random: Annotated[
        int,
        Flag(
            "number of models with random weights that serve as the baseline for similarities between heads",
            least=0,
        ),
    ] = 0


class RedundancyStudy(Attending[RedundancyOptions, PatternSums]):
    """Find nearest heads and groups of similar heads, and how stable head distances are over tasks and checkpoints."""

    name, options, partial = "redundancy", RedundancyOptions, Pieces[PatternSums]
    question = "Which heads have similar attention patterns?"
    ranked_by = ""
    kinds = (AlikeHead, GroupMember, RepeatedHead, RepeatedShare, HeadGroup, LikenessKept)
    head_scores = (
        HeadScore("group", "group by mean pattern", "number of its group by mean pattern, the largest first",
                  ("weights",), 1.0, None, "Bian et al. 2021"),
        HeadScore("clear", "how clearly of its group", "silhouette: nearer its own group than the next",
                  ("weights",), -1.0, 1.0, "Bian et al. 2021"),
        HeadScore("nearest", "distance to the nearest head", "Jensen-Shannon distance to the most alike head",
                  ("weights",), 0.0, math.log(2), "Bian et al. 2021"),
    )  # fmt: skip
    said_at = 12
    section = "likeness"
    gives = "nearest heads and groups by mean pattern"

    def measure(self, options: RedundancyOptions, checkpoint: Any) -> "PatternMeasure":
        return studies.attention.measures.PatternMeasure(
            checkpoint, queries=options.queries, seed=options.seed, random=options.random
        )

    def results(self, options: RedundancyOptions, merged: Pieces[PatternSums]) -> list[Result]:
        results: list[Result] = [result for sums in merged.pieces for result in alike(sums, groups=options.groups)]
        results += [result for sums in merged.pieces for result in repeated(sums)]
        return results + list(likeness_kept(merged.pieces, seed=options.seed))

    def headline(self, rows: Sequence[Row]) -> Headline:
        first = AlikeHead.among(rows)[0]
        heads = picked(AlikeHead.among(rows), checkpoint=first.checkpoint, task=first.task)
        near, groups = min(heads, key=lambda head: head.value), len({head.group for head in heads})
        members = picked(GroupMember.among(rows), checkpoint=first.checkpoint, task=first.task)
        counted = f"{groups} group" + "s" * (groups != 1)
        return Headline(
            (
                f"Heads {near.name} and {near.other} have the most similar attention (distance {near.value:.3f}). "
                f"Clustered by mean attention pattern, the {len(heads)} heads form {counted}."
            ),
            members[0].n if members else near.n,
            "inputs" if members else "map rows",
        )


STUDY = RedundancyStudy()


def alike(sums: PatternSums, *, groups: int) -> list[Result]:
    """Find the nearest head and the group of similar heads for every head. Return records of heads, then of groups."""
    distances = _distances(sums) / max(sums.rows, 1)
    if len(distances) < 2 or not sums.rows:
        return []
    others, apart = scoring.mean_patterns.nearest(distances)
    patterns = (sums.patterns / max(sums.inputs, 1)).reshape(-1, *sums.patterns.shape[2:])[sums.numbers]
    grouping = scoring.mean_patterns.grouped(patterns, groups=groups)
    results: list[Result] = []
    for number in range(len(distances)):
        where = _facts(sums) | _head(sums, number)
        group, clear = int(grouping.group[number]) + 1, float(grouping.clear[number])
        other = str(sums.names[others[number]])
        results += [
            AlikeHead(**where, value=float(apart[number]), n=sums.rows, other=other, group=group, clear=clear),
            GroupMember(**where, statistic="group", value=float(group), n=sums.inputs),
            GroupMember(**where, statistic="clear", value=clear, n=sums.inputs),
        ]
    for number, pattern in enumerate(grouping.patterns):
        heads = int((grouping.group == number).sum())
        shape = [[round(float(cell), 5) for cell in line] for line in pattern]
        results.append(HeadGroup(**_facts(sums), group=number + 1, heads=heads, pattern=shape))
    return results


def _distances(sums: PatternSums) -> np.ndarray:
    return sums.distances[np.ix_(sums.numbers, sums.numbers)]


def _facts(sums: PatternSums) -> Row:
    return {"checkpoint": sums.at.checkpoint, "task": sums.at.task}


def _head(sums: PatternSums, number: int) -> Row:
    head = sums.names[number]
    return {"layer": head.layer, "head": head.head, "name": str(head)}


def repeated(sums: PatternSums) -> list[Result]:
    """For every head, compare its distance to the nearest other head with its distance to itself on other inputs."""
    draws = [scoring.repetition.repeated(own, sums.pairs.tolist()) for own in sums.nearer]
    if not draws or draws[0] is None:
        return []
    mine, about = draws[0], _facts(sums)
    results: list[Result] = [
        RepeatedHead(
            **about, **_head(sums, number), value=float(mine.value[number]), low=float(mine.low[number]),
            high=float(mine.high[number]), n=mine.pairs, other=str(sums.names[int(mine.other[number])]),
        )
        for number in range(len(mine.value))
    ]  # fmt: skip
    for number, draw in enumerate(draws):
        share, sure, maybe = draw.share() if draw else (None, None, None)
        kind, of_random = ("repeats at random", number) if number else ("repeats", None)
        results.append(
            RepeatedShare(**about, kind=kind, draw=of_random, share=share, low=sure, high=maybe, n=mine.pairs)
        )
    return results


def likeness_kept(pieces: tuple[PatternSums, ...], *, seed: int) -> list[LikenessKept]:
    """Correlate head similarities between any two settings with the same heads. A setting is a checkpoint and task."""
    results = []
    for first, other in combinations(pieces, 2):
        if first.names != other.names or not (first.rows and other.rows):
            continue
        agreement = scoring.mean_patterns.redundancy_agreement(
            _distances(first) / first.rows,
            _distances(other) / other.rows,
            seed=seed,
            layer=[head.layer for head in first.names],
        )
        change = "task" if first.at.checkpoint == other.at.checkpoint else "checkpoint"
        change = "both" if change == "checkpoint" and first.at.task != other.at.task else change
        results.append(
            LikenessKept(
                between=change, **_facts(first), other_checkpoint=other.at.checkpoint, other_task=other.at.task,
                r=agreement.r, low=agreement.low, high=agreement.high, p=agreement.p, pairs=agreement.pairs,
                n=len(first.names),
            )
        )  # fmt: skip
    return results
