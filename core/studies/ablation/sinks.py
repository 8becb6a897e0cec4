"""What attention sinks do: which heads have one, and whether it is a no-op, a constant or a broadcast.

A sink head gives at least LEAST of its attention, and at least twice as much as uniform attention, to one kind of key
(first token, separators, punctuation), by the lower end of the 95 % interval over every second example. On the other
examples, the contribution p[i, s] o_s of the sink is removed, or o_s is replaced by its mean over the first examples.

| verdict | contribution removed | o_s replaced by its mean |
|---|---|---|
| nop | effect below the margin | |
| constant | above | below |
| broadcast | above | above |

A head whose own removal is not above the margin has no measurable effect, and everything else is undecided. Intervals
hold jointly for all effects (Bonferroni). Nop and broadcast are the mechanisms of Fesser et al. 2026 (arXiv
2606.08105); Clark et al. 2019, 3.2, propose that attention to [SEP] is a no-op.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic.dataclasses
from pydantic import Field

from ... import capture, studies
from ...attention import Head, all_heads
from ...errors import InputError
from ...scoring.corrections import widened
from ...scoring.few_inputs import mean_interval
from ...scoring.registry import CLARK, HeadScore
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_name, task_of
from ..attention.records import Score
from ..contract import Done, ExampleUnit, Flag, Study, Unit, provenance
from ..headline import Fact, Headline, HeadScores, head_interval
from ..merging import OfFirst, PerExample, Positions
from ..options import InputOptions, inputs_of_task
from ..records import Figure, Result
from .setup import ROWS_A_UNIT, units_of_rows

LEAST, TIMES = 0.3, 2.0  # fraction of a head's attention; multiple of uniform attention
SHARE, WHOLE, REMOVED, REPLACED = "sink share", "whole head removed", "sink removed", "sink replaced by its mean"
EFFECTS = {"head": WHOLE, "zero": REMOVED, "mean": REPLACED}
NOP, CONSTANT, BROADCAST, UNDECIDED, NOTHING = "nop", "constant", "broadcast", "undecided", "no measurable effect"
VERDICTS = {
    NOP: "a no-op: the output does not change without it",
    CONSTANT: "a constant: the output changes without it, but not if the mean over inputs replaces it",
    BROADCAST: "a broadcast: what the sink adds depends on the input and changes the output",
    UNDECIDED: "not decided by these examples",
    NOTHING: "without a measurable effect, as is the whole head",
}


@pydantic.dataclasses.dataclass(frozen=True)
class SinksOptions(InputOptions):
    """Options for the study of attention sinks."""

    margin: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False),
        Flag(
            "smallest relevant effect on the output: nats of KL divergence, the change of the score for a regression "
            "model, or cosine distance for a model without a prediction head"
        ),
    ] = 0.01


@dataclass(frozen=True)
class SinkPartial:
    """The attention sinks of a checkpoint, and the effects of interventions on these sinks for each example.

    Attributes:
        targets: what is changed: "L1H2" or "L1", which is all sink heads of the layer; the rows of `effects` are each
            target's EFFECTS.
        share, low, high, even, over: attention to each kind of key, its interval, its mean under uniform attention, and
            the lower end of share less TIMES even. *Shape:* (layer, head, kind).
        length, energy, rank, varies: as in `core.capture.sinks.SinkSums`, means over examples.
        massive: the fields of `core.capture.sinks.Massive`. *Shape:* (layer, 5).
        n: number of examples on which sinks were found.
    """

    rows: Positions
    measure: str
    targets: tuple[str, ...]
    effects: PerExample
    share: OfFirst[np.ndarray]
    low: OfFirst[np.ndarray]
    high: OfFirst[np.ndarray]
    even: OfFirst[np.ndarray]
    over: OfFirst[np.ndarray]
    length: OfFirst[np.ndarray]
    energy: OfFirst[np.ndarray]
    rank: OfFirst[np.ndarray]
    varies: OfFirst[np.ndarray]
    massive: OfFirst[np.ndarray]
    n: int
    attending: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SinkScore(Score):
    """A score of one head: its attention to its sink (first token, separators or punctuation), or an ablation effect.

    Attributes:
        verdict: one of VERDICTS; None for heads without a sink.
        measure: unit of the effect.
        length: |o_s| over the median |o_j|. energy: share of the head's output from the sink. rank: participation ratio
            of the head's outputs. varies: share of the mean square of o_s that is variance.
    """

    verdict: str | None = None
    measure: str | None = None
    length: float | None = None
    energy: float | None = None
    rank: float | None = None
    varies: float | None = None


@dataclass(frozen=True, kw_only=True)
class SinkLayer(Result):
    """The verdict on the attention sinks of one layer, and the effect of removing all of its sinks together."""

    KINDS: ClassVar[tuple[str, ...]] = ("sinks of a layer",)
    FIGURE = Figure("value", "effect of removing all sinks|{task}")
    name: str
    heads: str
    verdict: str
    measure: str
    value: float
    low: float
    high: float
    replaced: float
    replaced_low: float
    replaced_high: float
    whole: float
    whole_low: float
    whole_high: float
    margin: float
    task: str
    n: int


@dataclass(frozen=True, kw_only=True)
class MassiveLayer(Result):
    """The largest activation after a layer, as a multiple of the median magnitude in the same input.

    Also the number of entries per input above 100 and 1,000 times the median. `at` is the kind of token.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("massive activations",)
    FIGURE = Figure("ratio", "largest activation / median|{task}")
    name: str
    ratio: float
    channel: int
    at: str
    at_sink: bool
    above_100: float
    above_1000: float
    task: str
    n: int


class SinksStudy(Study[SinksOptions, SinkPartial]):
    """Find attention sinks, and test whether each is a no-op, adds a constant, or broadcasts input information."""

    name, options, partial, arguments = "sinks", SinksOptions, SinkPartial, ExampleUnit
    question = "What do attention sinks do?"
    kinds = (SinkScore, SinkLayer, MassiveLayer)
    head_scores = (
        HeadScore(SHARE, "attention to its sink", "largest attention to the first token, separators or punctuation",
                  ("weights",), 0.0, 1.0, CLARK, about="category"),
        *(HeadScore(name, name, f"change of the output: {name}", ("weights",), 0.0, None, CLARK, about="category")
          for name in EFFECTS.values()),
    )  # fmt: skip
    section = "effect"
    said_at = 12
    gives = "attention sinks and what they do"
    called = "Attention sinks of {checkpoint}"

    def units(self, options: SinksOptions) -> list[Unit]:
        rows = _rows(options)
        return units_of_rows(rows, range(1, len(rows), 2), "rows", most=ROWS_A_UNIT)

    def run(self, options: SinksOptions, unit: Unit) -> Done[SinkPartial]:
        checkpoint = studies.worker_cache.with_head(options.checkpoint, ("classifier", "language"))
        rows = _rows(options)
        partial, targets = _found(options, checkpoint)
        some = [rows[k] for k in unit.arguments.positions]
        encodings = [checkpoint.encode(row.text, row.pair) for row in some]
        effects = capture.sinks.output_changes(checkpoint, encodings, targets)
        done = replace(partial, rows=np.array(unit.arguments.positions), effects=effects)
        return Done(done, provenance(checkpoint, [row.id for row in rows]))

    def results(self, options: SinksOptions, merged: SinkPartial) -> list[Result]:
        task, results = task_of(options.task).key, list[Result]()
        about: dict[str, Any] = {"checkpoint": options.checkpoint, "task": task}
        effects = merged.effects.reshape(len(merged.targets), len(EFFECTS), len(merged.rows))
        ends = dict(zip(merged.targets, joint_intervals(effects), strict=True))
        kinds, n = capture.sinks.KINDS, effects.shape[-1]
        every = all_heads(merged.share.shape[0], merged.share.shape[1], merged.attending)
        for head in every:
            shares = merged.share[head.layer, head.head]
            if np.isnan(shares).all():
                continue
            place = sink_of(merged, head)
            kind = int(np.nanargmax(shares)) if place is None else place
            at = (head.layer, head.head, kind)
            share = SinkScore(**about, statistic=SHARE, feature=kinds[kind], layer=head.layer, head=head.head,
                              value=float(shares[kind]), low=float(merged.low[at]), high=float(merged.high[at]),
                              baseline=float(merged.even[at]), n=merged.n)  # fmt: skip
            if place is None:
                results.append(share)
                continue
            own = ends[str(head)]
            verdict = verdict_of(own[0, 1:], own[1, 1:], own[2, 1:], options.margin)
            described: dict[str, Any] = {
                name: float(getattr(merged, name)[at]) for name in ("length", "energy", "varies")
            }
            described["rank"] = float(merged.rank[at[:2]])
            results.append(replace(share, verdict=verdict, measure=merged.measure, **described))
            results += [
                replace(share, statistic=name, value=float(value), low=float(low), high=float(high),
                        baseline=options.margin, n=n, verdict=verdict, measure=merged.measure)
                for name, (value, low, high) in zip(EFFECTS.values(), own, strict=True)
            ]  # fmt: skip
        for target in merged.targets:
            if "H" not in target:
                whole, removed, replaced = ends[target].tolist()
                verdict = verdict_of(whole[1:], removed[1:], replaced[1:], options.margin)
                together = [name for name in merged.targets if name.startswith(f"{target}H")]
                results.append(SinkLayer(
                    name=target, heads=",".join(together), verdict=verdict,
                    measure=merged.measure, margin=options.margin, task=task, n=n,
                    **dict(zip(("value", "low", "high"), removed, strict=True)),
                    **dict(zip(("replaced", "replaced_low", "replaced_high"), replaced, strict=True)),
                    **dict(zip(("whole", "whole_low", "whole_high"), whole, strict=True)),
                ))  # fmt: skip
        sinks = {sink_of(merged, head) for head in every}
        for layer, (ratio, channel, kind, large, massive) in enumerate(merged.massive.tolist()):
            at_kind = kinds[int(kind)] if kind >= 0 else "other token"
            results.append(MassiveLayer(
                name=f"L{layer + 1}", ratio=ratio, channel=int(channel), at=at_kind,
                at_sink=int(kind) in sinks, above_100=large, above_1000=massive, task=task, n=merged.n,
            ))  # fmt: skip
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        shares = [score for score in SinkScore.among(rows) if score.statistic == SHARE]
        sinks = [score for score in shares if score.verdict is not None]
        if not shares:
            return Headline(
                "No query in the examples can attend to two or more tokens, so the study could not look for "
                "attention sinks."
            )
        most = max(sinks or shares, key=lambda score: score.value or 0.0)
        number, counts = f"{len(sinks):,}" if sinks else "None", Counter(score.verdict for score in sinks)
        are_sink_heads = "are sink heads" if len(sinks) > 1 else "is a sink head"
        verdicts = ", ".join(
            f"{verdict.replace(NOP, 'no-op')}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict]
        )
        verdicts = f" ({verdicts})" if verdicts else ""
        found = (
            f"{number} of {len(shares):,} heads of {most.checkpoint} on {task_name(most.task)} {are_sink_heads}"
            f"{verdicts}. Head {most.name} gives the largest share of its attention to the {most.feature}: "
            f"{most.value:.0%}."
        )
        interval = head_interval(most.name, most.low, most.high, "{:.0%}")
        baseline = (
            f"With uniform attention, this head would give {most.baseline:.0%} of its attention to the {most.feature}."
        )
        return Headline(found, most.n, "examples", interval, baseline)

    def facts(self, scores: HeadScores) -> list[Fact]:
        found = {str(row["score"]).split("/")[0]: row for _, row in scores.own.iterrows()}
        if WHOLE not in found or SHARE not in found:
            return []
        whole, gone, replaced = ((found[name]["low"], found[name]["high"]) for name in EFFECTS.values())
        removed, share = found[REMOVED], found[SHARE]
        verdict = verdict_of(whole, gone, replaced, removed["baseline"])
        kind = str(share["score"]).partition("/")[2]
        text = (
            f"This head is a sink head: {share['value']:.0%} of its attention goes to the {kind}. The sink is "
            f"{VERDICTS[verdict]}. Removing the sink changes the output by {removed['value']:.3g} (95 % CI "
            f"{removed['low']:.3g} to {removed['high']:.3g}, n = {int(removed['n'])}). Changes below "
            f"{removed['baseline']:.3g} are negligible."
        )
        return [Fact(self.name, text, removed["source"])]

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        sinks = [score for score in SinkScore.among(rows) if score.verdict is not None and score.statistic == SHARE]
        names = ("name", "feature", "value", "low", "high", "baseline", "n", "verdict", "length", "energy", "rank",
                 "varies")  # fmt: skip
        others = (SinkLayer, MassiveLayer)
        return [
            [score.columns(*names) for score in sinks],
            *([row for row in rows if row.get("kind") in kind.KINDS] for kind in others),
        ]


STUDY = SinksStudy()


def _rows(options: SinksOptions) -> list[TaskRow]:
    rows = inputs_of_task(options)
    if len(rows) < 4:
        raise InputError(
            "A test of attention sinks needs at least 4 examples (one half to find the sinks, the other half to test "
            f"them); got {len(rows)}. Raise the limit on the number of examples."
        )
    return rows


@lru_cache(maxsize=1)
def _found(options: SinksOptions, checkpoint: Any) -> tuple[SinkPartial, list[list[Any]]]:
    """Return what `find` does on every second example. Cached for other units."""
    return find(checkpoint, [checkpoint.encode(row.text, row.pair) for row in _rows(options)[::2]])


def find(checkpoint: Any, encodings: Sequence[Any]) -> tuple[SinkPartial, list[list[Any]]]:
    """Find the attention sinks of a checkpoint, and list the interventions on sinks whose effects are measured."""
    massive = np.array(capture.sinks.massive_activations(checkpoint, encodings), dtype=float)
    sums = capture.sinks.find_sinks(checkpoint, encodings)
    layers, heads, kinds = sums.share.shape[1:]
    shares = sums.share.reshape(len(encodings), -1)
    even = np.broadcast_to(sums.even[:, :, None], sums.share.shape)
    evenly = even.reshape(len(encodings), -1)
    low, high, over = np.full((3, shares.shape[1]), np.nan)
    for column in range(shares.shape[1]):  # not every input has every kind of key
        own = np.isfinite(shares[:, column])
        if own.sum() > 1:
            both = np.stack([shares[own, column], shares[own, column] - TIMES * evenly[own, column]], -1)
            lows, highs = mean_interval(both)
            low[column], high[column], over[column] = lows[0], highs[0], lows[1]

    def mean(values: np.ndarray) -> np.ndarray:
        known = np.isfinite(values)
        total = np.where(known, values, 0).sum(0)
        return np.where(known.any(0), total / known.sum(0).clip(1), np.nan)

    grid = (layers, heads, kinds)
    partial = SinkPartial(
        np.zeros(0, dtype=int), capture.sinks.measure_of(checkpoint), (), np.zeros((0, 0)), mean(sums.share),
        low.reshape(grid), np.minimum(high, 1.0).reshape(grid), mean(even), over.reshape(grid), mean(sums.length),
        mean(sums.energy), mean(sums.rank), sums.varies, massive, len(encodings), checkpoint.attending,
    )  # fmt: skip
    every = all_heads(layers, heads, checkpoint.attending)
    of_heads = {head: kind for head in every if (kind := sink_of(partial, head)) is not None}
    groups = {str(head): [head] for head in of_heads}
    for layer in sorted({head.layer for head in of_heads}):
        if len(together := [head for head in of_heads if head.layer == layer]) > 1:
            groups[f"L{layer + 1}"] = together
    targets = [
        [_change(head, how, of_heads[head], sums.values) for head in group]
        for group in groups.values()
        for how in EFFECTS
    ]
    return replace(partial, targets=tuple(groups)), targets


def _change(head: Head, how: str, kind: int, values: np.ndarray) -> Any:
    mean = values[head.layer, head.head, kind] if how == "mean" else None
    return capture.sinks.SinkChange(head.layer, head.head, how, kind, mean)


def sink_of(found: SinkPartial, head: Head) -> int | None:
    """Return the index of the token kind (in KINDS) that is the sink of a head, or None if the head has no sink."""
    at = (head.layer, head.head)
    is_sink = (found.low[at] >= LEAST) & (found.over[at] >= 0)
    return int(np.where(is_sink, found.share[at], -1).argmax()) if is_sink.any() else None


def joint_intervals(effects: np.ndarray) -> np.ndarray:
    """Compute the mean of each effect with a Bonferroni interval. The joint coverage of all intervals is 95 %.

    `effects` are not negative and have the shape (target, effect, example). The result has the shape (target, effect,
    3). If only one effect differs from 0, the interval is the range of the effects.
    """
    targets, kinds, n = effects.shape
    flat = effects.reshape(targets * kinds, n)
    value = flat.mean(1)
    if not len(flat):
        return np.zeros((0, kinds, 3))
    low, high = mean_interval(flat.T)
    known, wider = np.isfinite(low) & np.isfinite(high), widened(len(flat))
    low = np.where(known, np.maximum(value - wider * (value - low), 0.0), flat.min(1))
    high = np.where(known, value + wider * (high - value), flat.max(1))
    return np.stack([value, low, high], -1).reshape(targets, kinds, 3)


def verdict_of(whole: Sequence[float], removed: Sequence[float], replaced: Sequence[float], margin: float) -> str:
    """Classify an attention sink, for example as a no-op. `whole`, `removed` and `replaced` are confidence intervals of
    effects: ablating the head, removing the sink, and replacing the sink with its mean over inputs."""
    if not whole[0] > margin:
        return NOTHING
    if removed[1] < margin:
        return NOP
    if removed[0] > margin and replaced[1] < margin:
        return CONSTANT
    return BROADCAST if removed[0] > margin and replaced[0] > margin else UNDECIDED
