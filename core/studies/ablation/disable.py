"""Ablation of every head, layer or group in turn on a task (Kovaleva et al. 2019, section 4.6, Figs 8 and 9).

Each ablation target has one row: the metric, its change with a paired interval, the number of changed predictions,
McNemar's p for classes, and p corrected over all targets (max-T). A further row tests the best target on the half of
the examples that did not select it. Kovaleva et al. ablate by "disable" (uniform attention) and Michel et al. by
"zero". Groups are named by the user ("groups"), or are clusters of heads with similar maps ("duplicates"), which are
compared with their single heads and with random heads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses
from jaxtyping import Float

from ... import capture, scoring
from ...attention import all_heads
from ...errors import InputError
from ...interval import Interval, estimate_of
from ...scoring import effects
from ...store.rows import Row
from ...tasks.glue import Task, TaskRow, read_rows, task_of
from ..contract import ExampleUnit, Flag, Unit
from ..headline import Fact, Headline, HeadScores
from ..merging import Largest, MergedBy, OfFirst, PerExample, Positions
from ..outcomes import Metrics, changed_metric, metrics_before, metrics_of, outcomes
from ..records import Result
from . import setup
from .records import (
    EFFECTS_ON_METRIC,
    AblatedTarget,
    MeanOverHeads,
    RankCorrelation,
    SplitHalf,
    Unmodified,
    ablation_headline,
    ablation_sentence,
    ablation_table,
    effect_facts,
    too_few_flips,
)
from .setup import AblationOptions, AblationTarget, Opened

if TYPE_CHECKING:
    from ...scoring.distances import Group

GROUP_ROWS, QUERIES = 200, 4  # train rows that find the groups; rows of each map that are compared
CONTROLS = 5  # random sets beside each group
TOGETHER, ALONE, CONTROL = "together", "alone", "control"
_KNOWN: "dict[tuple[Any, ...], tuple[Group, ...]]" = {}
LOW = ("bfloat16", "float16")
EVERY, LEAST = 12, 4  # one variant in EVERY, and at least LEAST, is computed in both
SAFETY = 2.0  # as a multiple of the largest observed deviation
CLAIM = 0.05  # corrected p at which an effect is claimed
Differences = Float[np.ndarray, "variant row"]


@pydantic.dataclasses.dataclass(frozen=True)
class DisableOptions(AblationOptions, setup.ReferenceOptions):
    """Options for an ablation study: what is ablated, in which checkpoint, and on which examples."""

    what: Annotated[
        str,
        Flag(
            "components to ablate one at a time: heads, layers (all heads of a layer), all-but-one (all heads of a "
            "layer except one), groups (set with --heads), duplicates (heads with similar attention), blocks "
            "(attention sublayers), feedforward (feed-forward sublayers) or layers-whole (both sublayers)"
        ),
    ] = "heads"
    operator: Annotated[
        str,
        Flag(
            "ablation method: disable (equal attention to all visible tokens); previous, current, next or first (all "
            "attention to this token); or zero, mean, resample or constant (the head output is replaced); only zero is "
            "possible for sublayers and whole layers"
        ),
    ] = "disable"
    heads: Annotated[
        str,
        Flag(
            'groups of heads or sublayers to ablate together, separated by ";", such as "L1H2,L7H6; L4H1,L2-attention"'
        ),
    ] = ""
    within: Annotated[
        float,
        Flag(
            "maximum distance between two heads in a group of duplicates, as a fraction of the mean distance between "
            "all heads; used only if duplicates are ablated"
        ),
    ] = 0.5


@dataclass(frozen=True)
class Recomputed:
    """Predictions recomputed in float32, both without ablation and with each target in `targets` ablated."""

    targets: tuple[int, ...]
    rows: Positions
    plain: PerExample
    changed: PerExample


@dataclass(frozen=True)
class Ablations:
    """Predictions with and without ablation, for the examples of one or more units of work.

    Attributes:
        plain, changed: without ablation and under each ablation. *Shape:* (example,), (target, example).
        grouped: the ablation targets if they depend on the checkpoint's maps, otherwise empty.
        in_float32: predictions recomputed in float32 if the checkpoint runs in lower precision. A unit of the second
            round has nothing else.
        moved: largest change of a logit in any ablation; None in results of earlier versions.
    """

    rows: Positions
    layers: int
    heads: int
    gold: PerExample
    plain: PerExample
    changed: PerExample
    grouped: OfFirst[tuple[AblationTarget, ...]]
    in_float32: Annotated[tuple[Recomputed, ...], MergedBy("targets")]
    attending: tuple[int, ...] = ()
    moved: Largest[float | None] = None

    @property
    def exact(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return float32 predictions without ablation and with each ablation, or None if nothing was computed in
        float32. Missing predictions are NaN."""
        if not self.in_float32:
            return None
        plain, changed = np.full(len(self.rows), np.nan), np.full(self.changed.shape, np.nan)
        for part in self.in_float32:
            at = np.searchsorted(self.rows, part.rows)
            plain[at] = part.plain
            changed[np.ix_(np.array(part.targets, int), at)] = part.changed
        return plain, changed


class DisableStudy(setup.ExampleStudy[DisableOptions, Ablations]):
    """Ablate every head, layer or group in turn, and test how much the metric changes."""

    name, options, partial = "disable", DisableOptions, Ablations
    question = "Which head does the score depend on?"
    one_by_one = True
    kinds = (Unmodified, AblatedTarget, SplitHalf, MeanOverHeads)
    short_in = ("table", "latex")
    head_scores = EFFECTS_ON_METRIC
    called = "Disable {what} of {checkpoint}"
    section = "effect"
    said_at = 7
    p_is_corrected = True

    def read(self, given: Mapping[str, Any]) -> DisableOptions:
        """Read the options. Raises InputError if heads are named although `what` is neither "heads" nor "groups"."""
        what, heads = str(given.get("what", "heads")), str(given.get("heads") or "")
        if setup.has_parts("groups" if heads else what, heads) and given.get("operator") in (None, "disable"):
            given = {**given, "operator": "zero"}  # the only operator for parts
        return super().read(setup.with_groups(given))

    def units(self, options: DisableOptions) -> list[Unit]:
        setup.check_replacements(capture.interventions.known_operator(options.operator), options)
        if setup.has_parts(options.what, options.heads) and options.operator != "zero":
            raise InputError(
                f'The ablation method for sublayers and layers must be "zero"; got "{options.operator}". Choose zero.'
            )
        if options.what == "groups":
            setup.groups_of(options.heads)
        elif options.what == "duplicates":
            scoring.distances.groups_of(np.zeros((2, 2)), all_heads(1, 2), within=options.within)  # checks `within`
        else:
            setup.targets_of(options.what, "", 1, 1)
        return super().units(options)

    def more(self, options: DisableOptions, partials: Sequence[Ablations]) -> list[Unit]:
        if any(not len(part.changed) for part in partials):
            return []
        near = near_claims(options, self.merge(options, partials))
        return setup.units_of(options, "again", targets=near) if near else []

    def on_examples(
        self, options: DisableOptions, opened: Opened, rows: Sequence[TaskRow], unit: ExampleUnit
    ) -> tuple[Ablations, str]:
        return swept_rows(options, opened, rows, unit)

    def results(self, options: DisableOptions, merged: Ablations) -> list[Result]:
        return _Table(options, task_of(options.task), merged).results()

    def facts(self, scores: HeadScores) -> list[Fact]:
        return effect_facts(scores)

    def headline(self, rows: Sequence[Row]) -> Headline:
        return ablation_headline(rows)

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        beside = [
            f"Rank correlation with the other ablation: Spearman {other.spearman}, n = {other.n} ({other.name})."
            for other in RankCorrelation.among(rows)
        ]
        return [ablation_table(rows), ablation_sentence(rows), *beside]


STUDY = DisableStudy()


# ---------------------------------------------------------------- bfloat16 and float16


@dataclass(frozen=True)
class Deviation:
    """The largest errors that low precision (such as bfloat16) causes in a mean ablation effect and its t statistic."""

    effect: float
    t: float
    variants: int


def sampled_variants(variants: int) -> list[int]:
    """Return the indices of evenly spaced ablation targets, which are also computed in float32 to measure errors."""
    count = min(variants, max(LEAST, -(-variants // EVERY)))
    return sorted({round(k) for k in np.linspace(0, variants - 1, count)})


def exactly_known(exact: Differences) -> np.ndarray:
    """Return a boolean mask of the ablation targets whose predictions were computed in float32 for every example."""
    return ~np.isnan(exact).any(1)


def deviation_of(low: Differences, exact: Differences) -> Deviation:
    """Measure the largest deviations of low-precision results from float32, and multiply them by a safety factor."""
    both = exactly_known(exact)
    means = np.abs(low[both].mean(1) - exact[both].mean(1))
    scores = np.abs(np.abs(effects.t_values(low[both])) - np.abs(effects.t_values(exact[both])))
    return Deviation(SAFETY * float(means.max()), SAFETY * float(scores.max()), int(both.sum()))


def possible_claims(low: Differences, exact: Differences, *, seed: int) -> list[int]:
    """Return the indices of targets that may have significant effects but lack float32 predictions."""
    difference = deviation_of(low, exact)
    reachable = (
        effects.max_t(np.zeros(low.shape[1]), mixed_precision(low, exact), seed=seed, slack=difference.t) <= CLAIM
    )
    return [int(k) for k in np.flatnonzero(reachable & ~exactly_known(exact))]


def mixed_precision(low: Differences, exact: Differences) -> Differences:
    """For each ablation target, return float32 effects if they are complete, otherwise low-precision effects."""
    return np.where(exactly_known(exact)[:, None], exact, low)


# ---------------------------------------------------------------- groups of near-duplicate heads


def group_targets(opened: Opened, data: str | None, *, seed: int, within: float) -> list[AblationTarget]:
    """Group near-duplicate heads. Return each group, its single heads and random groups as ablation targets."""
    checkpoint = opened.checkpoint
    key = (checkpoint.name, checkpoint.weights_hash, opened.task.key, data, seed, within)
    if key not in _KNOWN:
        _KNOWN.clear()  # a worker meets one job at a time
        rows = read_rows(opened.task, "train", folder=data, limit=GROUP_ROWS, seed=seed)
        shape = (checkpoint.layers, checkpoint.heads, checkpoint.attending)
        distances = scoring.distances.HeadDistances(*shape, queries=QUERIES, seed=seed)
        capture.running.run(checkpoint, opened.encoded(rows), [distances.take(range(len(rows)))])
        _KNOWN[key] = tuple(
            scoring.distances.groups_of(distances.result()[distances.seen], checkpoint.all_heads, within=within)
        )
    groups = _KNOWN[key]
    if not groups:
        raise InputError(
            f"Ablating groups needs at least two near-duplicate heads (closer than {within:g} times the mean distance "
            "between heads); no heads are that close. Choose a larger value for the option “within”."
        )
    found_variants = []
    for number, group in enumerate(groups):
        name = f"{len(group.heads)} like {group.middle}"
        found_variants.append(AblationTarget(name, None, None, tuple(group.heads), TOGETHER, number, group.distance))
        found_variants += [AblationTarget(str(head), None, None, (head,), ALONE, number) for head in group.heads]
        sets = scoring.distances.matched(group, checkpoint.all_heads, draws=CONTROLS, seed=seed)
        found_variants += [
            AblationTarget(f"control {k + 1} of {name}", None, None, tuple(head_set), CONTROL, number)
            for k, head_set in enumerate(sets)
        ]
    return found_variants


Contrasts = dict[str, Row]  # of each metric, the fields of `Metric` that compare a group with other ablations


def group_contrasts(
    names: Sequence[str],
    gold: np.ndarray,
    plain: np.ndarray,
    changed: np.ndarray,
    variants: Sequence[AblationTarget],
) -> list[Contrasts]:
    """For each metric, compare the effect of ablating a group of heads with two baselines: the sum of single-head
    effects, and the mean effect of ablating the same number of random heads."""
    roles = np.array([variant.role for variant in variants])
    group = np.array([variant.group for variant in variants])
    chosen = np.flatnonzero(roles == TOGETHER)
    apart = np.stack([(roles == ALONE) & (group == group[k]) for k in chosen]).astype(float)
    control = np.stack([(roles == CONTROL) & (group == group[k]) for k in chosen]) / CONTROLS
    whole = np.eye(len(variants))[chosen]
    beyond = (whole - control) * control.any(1, keepdims=True)  # the largest groups leave too few heads for a control
    contrasts = {"apart": apart, "control": control, "beyond_apart": whole - apart, "beyond_control": beyond}
    groups: list[Contrasts] = [{name: {} for name in names} for _ in chosen]
    for name in names:
        for label, weights in contrasts.items():
            intervals = effects.contrast_intervals(name, gold, plain, changed, weights)
            for contrasted, interval in zip(groups, intervals, strict=True):
                contrasted[name][label] = estimate_of(interval)
    return groups


# ---------------------------------------------------------------- units and passes


def swept_rows(
    options: DisableOptions, opened: setup.Opened, rows: Sequence[TaskRow], unit: ExampleUnit
) -> tuple[Ablations, str]:
    """Predict the given examples with and without ablation. Also return the number format used, such as float32."""
    checkpoint, gold = opened.checkpoint, np.array([row.label for row in rows])
    shape, positions = (checkpoint.layers, checkpoint.heads), np.array(unit.positions)
    grouped = list[AblationTarget]()
    if options.what == "duplicates":
        grouped = group_targets(opened, options.data, seed=options.seed, within=options.within)
    variants = grouped or setup.targets_of(options.what, options.heads, *shape, checkpoint.attending)
    encodings = opened.encoded(rows)

    def swept(some: Sequence[int], dtype: str) -> tuple[np.ndarray, np.ndarray, str, float]:
        components, changed, moved = [variants[k].components for k in some], [], 0.0
        for source in setup.replacements(options.operator, opened, options):
            outcome = capture.sweeping.sweep(
                checkpoint, encodings, components, options.operator, source=source,
                computing=capture.sweeping.Computing(dtype=dtype),
            )  # fmt: skip
            changed.append(outcome.changed)
            moved = max(moved, float((outcome.changed - outcome.plain).abs().max()))
        expected = setup.expected_logits(changed, is_score=opened.task.is_score)
        return opened.predicted(outcome.plain), opened.predicted(expected), outcome.dtype, moved

    def recomputed(targets: Sequence[int]) -> tuple[Recomputed]:
        return (Recomputed(tuple(targets), positions, *swept(targets, "float32")[:2]),)

    if unit.targets:
        none = np.zeros(0, int)
        return Ablations(none, *shape, none, none, np.zeros((0, 0)), (), recomputed(unit.targets),
                         checkpoint.attending), "float32"  # fmt: skip
    plain, changed, dtype, moved = swept(range(len(variants)), "float32" if grouped else options.dtype)
    exact = recomputed(sampled_variants(len(variants))) if dtype in LOW else ()
    return Ablations(positions, *shape, gold, plain, changed, tuple(grouped), exact, checkpoint.attending, moved), dtype


def near_claims(options: DisableOptions, merged: Ablations) -> tuple[int, ...]:
    """Return the indices of ablation targets to recompute in float32 because their effects may be significant."""
    if not merged.in_float32:
        return ()
    table = _Table(options, task_of(options.task), merged)
    return tuple(possible_claims(table.low, table.exact, seed=options.seed))


class _Table:
    """Computes the result records of an ablation study from all predictions."""

    def __init__(self, options: DisableOptions, task: Task, swept: Ablations):
        self.options, self.task, self.swept = options, task, swept
        self.names = metrics_of(task)
        self.about: Any = {"operator": options.operator, "what": options.what, "task": task.key, "n": len(swept.gold)}
        self.variants: Sequence[AblationTarget] = swept.grouped or setup.targets_of(
            options.what, options.heads, swept.layers, swept.heads, swept.attending
        )
        self.changed = swept.changed
        self.beside: list[Contrasts] = [{} for _ in self.variants]
        if options.what == "duplicates":
            self.beside = group_contrasts(self.names, swept.gold, swept.plain, self.changed, self.variants)
            groups = [k for k, variant in enumerate(self.variants) if variant.role == TOGETHER]
            self.variants, self.changed = [self.variants[k] for k in groups], self.changed[groups]
        self.before = outcomes(task, swept.gold, swept.plain)
        self.after = outcomes(task, swept.gold, self.changed)
        self.low = self.after - self.before
        self.exact = np.full_like(self.low, np.nan)
        self.in_float32 = swept.exact
        plain = swept.plain
        if self.in_float32 is not None:
            plain, exact = self.in_float32
            known = exactly_known(exact)
            self.exact[known] = outcomes(task, swept.gold, exact[known]) - outcomes(task, swept.gold, plain)
        self.whole = metrics_before(task, swept.gold, plain)
        self.differences = mixed_precision(self.low, self.exact)
        self.again = exactly_known(self.exact)

    def results(self) -> list[Result]:
        return [self._untouched(), *self._variants(), *self._mean(), *self._checked_on_the_other_half()]

    def _mean(self) -> list[MeanOverHeads]:
        """Return the mean change over all single heads, if the metric is a mean over examples."""
        if self.options.what != "heads" or self.names[0] != "accuracy" or not len(self.before):
            return []
        means = self.differences.mean(0)
        change = estimate_of(effects.mean_intervals(np.zeros_like(means), means[None], most=None)[0])
        if change is None:
            return []
        mean = MeanOverHeads(
            **self.about, value=change.value, low=change.low, high=change.high, heads=len(self.variants)
        )
        return [mean]

    def _untouched(self) -> Unmodified:
        still = not any(self._flipped(k)[0] != 0 for k in range(len(self.variants)))
        untouched = Unmodified(**self.about, metrics=self.whole, logits_move=self.swept.moved if still else None)
        if not self.again.any():
            return untouched
        within = deviation_of(self.low, self.exact).effect
        return replace(untouched, effect_within=within, in_float32=int(self.again.sum()))

    def _variants(self) -> list[AblatedTarget]:
        measured = {name: self._intervals(name) for name in self.names}
        corrected = effects.max_t(np.zeros(self.differences.shape[1]), self.differences, seed=self.options.seed)
        swept = []
        for k, variant in enumerate(self.variants):
            flipped, mcnemar = self._flipped(k)
            metrics = [
                replace(changed_metric(metric, measured[metric.name][k]), **self.beside[k].get(metric.name, {}))
                for metric in self.whole.every
            ]
            swept.append(AblatedTarget(
                **variant.facts(), **self.about, metrics=Metrics(tuple(metrics)),
                flipped=flipped, mcnemar=mcnemar, p=float(corrected[k]),
                float32=bool(self.again[k]) if self.again.any() else None,
                **self._score(measured[self.names[0]][k], flipped),
            ))  # fmt: skip
        return swept

    def _intervals(self, name: str) -> list[Interval]:
        """Return the change of a metric for each target, in the number format on which its p is based."""
        gold = self.swept.gold
        intervals = effects.metric_intervals(name, gold, self.swept.plain, self.changed)
        if self.in_float32 is not None:
            again, (plain, changed) = np.flatnonzero(self.again), self.in_float32
            for k, exact in zip(again, effects.metric_intervals(name, gold, plain, changed[again]), strict=True):
                intervals[k] = exact
        return intervals

    def _flipped(self, k: int) -> tuple[int | None, float | None]:
        """Return the number of changed predictions and McNemar's p; None for tasks with scores."""
        if self.task.is_score:
            return None, None
        gold = self.swept.gold
        before, after = self.swept.plain, self.changed[k]
        if self.in_float32 is not None and self.again[k]:
            plain, exact = self.in_float32
            before, after = plain.astype(int), exact[k].astype(int)  # NaN where float32 was not asked makes them floats
        return int(effects.flips(before, after[None])[0]), effects.mcnemar(before == gold, after == gold)

    def _score(self, change: Interval, flipped: int | None) -> Row:
        """Return the columns of a head score. There is no interval if too few predictions change."""
        if self.options.what not in ("heads", "all-but-one"):
            return {}
        few = bool(too_few_flips(flipped, len(self.swept.gold)))
        return {
            "statistic": f"{self.options.operator} {self.options.what}",
            "feature": f"{self.options.task} {self.names[0]}",
            "value": change.value,
            "low": None if few else change.low,
            "high": None if few else change.high,
            "baseline": self.whole.first.value,
        }

    def _checked_on_the_other_half(self) -> list[SplitHalf]:
        if len(self.variants) < 2 or len(self.before) < 4:
            return []
        half = effects.split_half(np.zeros(len(self.before)), self.differences, seed=self.options.seed)
        name = self.variants[half.head].name
        return [SplitHalf(name=name, **self.about, chosen=half.chosen, held_out=half.held_out, low=half.low,
                          high=half.high, same=half.same)]  # fmt: skip
