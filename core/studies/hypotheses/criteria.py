"""The seven criteria of a hypothesis, each met, not met or not tested.

They follow the tiers of evidence of mechanistic-validity.github.io: seen, held out, explained, causal, specific,
stable, transfers. Held out and explained have p, which Holm corrects over the batch and which must not exceed the
batch's level; the others are decided by 95 % intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...scoring.level_spending import holm
from .evidence import evidence_of, random_effect
from .predicates import Hypothesis, counterpart_of
from .readings import Evidence, Reading, needed_reading
from .records import CRITERIA, LEVELLED, SEEN_BEFORE, Criterion
from .runs import EFFECTS, OPERATORS, RANDOM, StudyRun

Partials = Mapping[tuple[str, str, str], Any]


@dataclass(frozen=True)
class Batch:
    """What was registered together.

    Attributes:
        seen: how many runs of these weights on judging inputs were stored before it was registered.
    """

    checkpoint: str
    level: float
    registered: int
    seen: int = 0


def criteria_of(
    hypotheses: Sequence[Hypothesis], batch: Batch, runs: Sequence[StudyRun], partials: Partials
) -> list[Criterion]:
    """All criteria of all hypotheses, in their order. partials: the merged result of each run by its key."""
    sources = {run.key: run.source for run in runs}
    table = [_criteria(hypothesis, batch, sources, partials) for hypothesis in hypotheses]
    for criterion in LEVELLED:
        index = CRITERIA.index(criterion)
        adjusted = holm([row[index].p for row in table], registered=batch.registered)
        for row, p in zip(table, adjusted, strict=True):
            row[index] = _levelled(row[index], p, batch)
    return [criterion for row in table for criterion in row]


def _levelled(criterion: Criterion, adjusted: float | None, batch: Batch) -> Criterion:
    if criterion.state == "not tested":
        return criterion
    state = "met" if adjusted is not None and adjusted <= batch.level else "not met"
    note = "too few inputs differ from 0 for a p" if adjusted is None else criterion.note
    if state == "met" and batch.seen:
        state, note = SEEN_BEFORE, f"stored runs of these weights on these inputs, before registration: {batch.seen}"
    return replace(criterion, state=state, adjusted=adjusted, level=batch.level, note=note)


def _criteria(
    hypothesis: Hypothesis, batch: Batch, sources: Mapping[tuple[str, str, str], str], partials: Partials
) -> list[Criterion]:
    study, head = hypothesis.measured_by, hypothesis.subject
    thought, judged = ((study, batch.checkpoint, rows) for rows in ("thought of on", "judged on"))
    fresh = (partials[study, batch.checkpoint, rows] for rows in RANDOM if (study, batch.checkpoint, rows) in partials)
    random = random_effect(hypothesis, list(fresh))
    first, then = (_evidence(hypothesis, partials.get(key), random) for key in (thought, judged))
    effects = (EFFECTS, batch.checkpoint, "judged on")
    other = counterpart_of(hypothesis.parameter("counterpart")) if hypothesis.parameter("counterpart") else None
    answers: list[tuple[str, tuple[Reading, ...] | str, tuple[str, str, str]]] = [
        ("seen", _one(first.effect), thought),
        ("held out", _one(then.effect), judged),
        ("explained", _one(_both(then.effect, then.explained)), judged),
        ("causal", _operators(hypothesis, partials.get(effects)), effects)
        if then.causal is None
        else ("causal", _one(then.causal), judged),
        ("specific", _one(then.specific), judged),
        ("stable", then.halves, judged),
    ]
    if other is None:
        answers.append(("transfers", "no counterpart was named", judged))
    else:
        there = (study, other[0], "judged on")
        measured = partials.get(there)
        beyond = evidence_of(hypothesis, measured, other[1], random).effect if measured is not None else "not run yet"
        answers.append(("transfers", _one(beyond), there))
    return [_decided(hypothesis, head, name, reading, sources.get(key, "")) for name, reading, key in answers]


def _evidence(hypothesis: Hypothesis, partial: Any, random: float) -> Evidence:
    if partial is None:
        return Evidence(*["not run yet"] * 4)  # of its four
    return evidence_of(hypothesis, partial, hypothesis.subject, random)


def _both(effect: Reading | str, explained: Reading | str) -> Reading | str:
    """What is explained is there in the first place: its p is the larger of the two."""
    if isinstance(explained, str) or isinstance(effect, str):
        return explained if isinstance(explained, str) else effect
    ps = (effect.p, explained.p)
    return replace(explained, p=None if None in ps else max(ps))  # type: ignore[type-var]  # None was asked for


def _one(reading: Reading | str) -> tuple[Reading, ...] | str:
    return reading if isinstance(reading, str) else (reading,)


def _operators(hypothesis: Hypothesis, partial: Any) -> tuple[Reading, ...] | str:
    """What either operator does to the loss."""
    if not hypothesis.parameter("margin"):
        return "no margin was named for what happens without the head"
    if partial is None:
        return "not run yet"
    margin = float(hypothesis.parameter("margin"))
    both = [needed_reading(partial, name, hypothesis.subject, margin) for name in OPERATORS]
    numbers = tuple(reading for reading in both if isinstance(reading, Reading))
    return numbers if len(numbers) == len(both) else "the loss never changes"


def _decided(
    hypothesis: Hypothesis, head: Any, name: str, readings: tuple[Reading, ...] | str, source: str
) -> Criterion:
    """Met where every reading is beyond what it must be; the least sure of them is shown."""
    columns: dict[str, Any] = {
        "hypothesis": hypothesis.hypothesis,
        "subject": str(head),
        "sentence": hypothesis.sentence,
    }
    if isinstance(readings, str):
        return Criterion(**columns, criterion=name, state="not tested", note=readings)
    shown = min(readings, key=lambda reading: reading.low if reading.low is not None else float("-inf"))
    of = {
        "causal": "both operators, the weaker shown" if len(readings) > 1 else "by patching",
        "stable": "both halves of the inputs, the weaker shown",
    }
    return Criterion(
        **columns, criterion=name, state="met" if all(reading.is_beyond for reading in readings) else "not met",
        measure=shown.measure, amount=shown.value, low=shown.low, high=shown.high, least=shown.least,
        baseline=shown.baseline, n=shown.n,
        p=shown.p if name in LEVELLED else None, measured_by=source, note=of.get(name, ""),
    )  # fmt: skip
