"""Which heads (layers, groups) matter to the task's loss by more than a margin: verdicts with error control, from as
few rows as each of them takes (`core.scoring.sequential_test`).

Rows are taken in a random order that the seed fixes, in rounds: the first look with exact effects of every head, and
first-order effects of the same rows to compare them with; then exact effects of the heads that are still open, up to
the next look. Units of a round are slices of its rows and depend
on what was measured before alone, so any number of workers gives the same verdicts. Heads that matter are then swept on
the rows they lack, for the metric, whose own interval they get.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...config import command_line
from ...errors import InputError, InterventionError
from ...scoring import effects
from ...scoring.sequential_test import ALPHA, FIRST, NextStep, Rules, Standings, next_step, standings, taken
from ...store.rows import Row
from ...tasks.glue import Task, TaskRow, task_of
from ..contract import Done, Flag, Need, Study, Unit
from ..estimate import estimate_of
from ..headline import Headline
from ..metric_columns import RANKING, Metric, Metrics
from ..options import Limit
from ..outcomes import finite, metrics_of
from ..provenance import provenance
from ..records import Result
from . import disabling, references
from .disabling import SweepOptions, Variant, groups_of, has_parts, variants_of
from .records import InterimAnalysis, SequentialTestSummary, SequentialTestVerdict, effect_scores

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint


SHARE = 0.05  # of the loss of the best constant answer: the default margin (docs/explanation/sequential-tests.md)
BACKWARD = 3.0  # passes of a row that all its first-order effects cost: one forward, and twice that backward
HOPELESS = 0.05  # chance of a verdict on all rows below which a head takes no more of them
LEAST = 1e-6  # effects below this are rounding
KINDS = ("heads", "layers", "all-but-one", "groups")
EXACT_A_UNIT = 16  # rows of a unit that runs every variant; more where fewer are left
MOST_A_UNIT = 128
INTERVALS = "bets"  # what the intervals are by; earlier versions have "at looks" or "anytime"


@pydantic.dataclasses.dataclass(frozen=True)
class SequentialTestOptions(SweepOptions, references.ReferenceOptions):
    """What races, of which checkpoint, on which rows, against which margin."""

    limit: Limit = None
    what: Annotated[str, Flag("heads, layers, all-but-one or groups")] = "heads"
    operator: Annotated[str, Flag("disable, zero, mean, resample, constant, previous, current, next or first")] = (
        "disable"
    )
    heads: Annotated[str, Flag('groups disabled together, like "L1H2,L7H6; L4H1"')] = ""
    margin: Annotated[
        float | None,
        Flag("of the mean change of the task's loss (nats, or squared error); default: 5% of the best constant's loss"),
    ] = None
    clip: Annotated[
        float | None,
        Flag("the most that a row's loss counts; default: the best constant's loss. More takes more rows"),
    ] = None
    alpha: Annotated[float, Flag("chance of any wrong verdict, over all heads and looks")] = ALPHA
    first: Annotated[
        int,
        Flag(
            "rows at the first look; later ones have a fifth more each, once heads can be found not to matter", least=4
        ),
    ] = FIRST
    survivors: Annotated[
        bool, Flag("sweep heads that matter in full, for the metric", name="--survivors/--verdicts-only")
    ] = True


@dataclass(frozen=True)
class Round:
    """What a unit measures.

    Attributes:
        variants: their numbers; None for all.
        first_order: whether effects are measured to first order too.
    """

    rows: tuple[int, ...]
    variants: tuple[int, ...] | None
    first_order: bool
    number: int


@dataclass(frozen=True)
class Taken:
    """What was measured of some rows; NaN where a variant was not run.

    Attributes:
        rows: their places in the task. *Shape:* (row,), int.
        gold: labels as the task numbers them, or scores. *Shape:* (row,).
        loss: untouched: cross-entropy in nats, or squared error. *Shape:* (row,).
        plain: predictions of the untouched model. *Shape:* (row,).
        changed: predictions under every variant. *Shape:* (variant, row).
        exact: effects on the loss. *Shape:* (variant, row).
        first_order: the same to first order, from gradients. *Shape:* (variant, row).
        fast: whether what variants share was run once.
    """

    rows: np.ndarray
    layers: int
    heads: int
    gold: np.ndarray
    loss: np.ndarray
    plain: np.ndarray
    changed: np.ndarray
    exact: np.ndarray
    first_order: np.ndarray
    fast: bool
    rounds: int
    attending: tuple[int, ...] = ()


class SequentialTestStudy(Study[SequentialTestOptions, Taken]):
    """Race heads (layers, groups): which matter to the loss beyond a margin, from as few rows as that takes."""

    name, options, partial, arguments = "sequential-test", SequentialTestOptions, Taken, Round
    question = "Which heads matter by more than a margin?"
    one_by_one = True
    kinds = (SequentialTestSummary, SequentialTestVerdict, InterimAnalysis)
    short_in = ("table", "latex")
    head_scores = effect_scores(
        ("race {} heads", "raced effect on the loss: {}", "mean change of the task's loss, raced: {}"),
        ("race {} all-but-one", "raced, alone in its layer: {}", "likewise, the layer's others changed: {}"),
    )
    said_at = 14
    called = "Race {what} of {checkpoint}"
    section = "effect"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def read(self, given: Mapping[str, Any]) -> SequentialTestOptions:
        """Typed heads are groups. Raises InputError where something else is to race with them."""
        return super().read(disabling.with_groups(given))

    def units(self, options: SequentialTestOptions) -> list[Unit]:
        """The first look: every variant, and first-order effects; options that cannot be are refused here."""
        references.check(capture.interventions.known_operator(options.operator), options)
        rows = disabling.rows_of(options)
        rules = checked_rules(options, task_of(options.task), rows)
        places = row_order(options, len(rows))[: rules.first]
        return _units(rows, places, Round((), None, first_order=True, number=0), EXACT_A_UNIT)

    def more(self, options: SequentialTestOptions, partials: Sequence[Taken]) -> list[Unit]:
        """What the race wants next; when it is over, the rows that heads that matter lack."""
        race = _race(options, self.merge(options, partials))
        step, number, order = race.next(), race.taken.rounds + 1, row_order(options, len(race.rows))
        heads, places = (step.heads, order[step.start : step.stop]) if not step.over else race.left
        next_round = Round((), tuple(int(k) for k in heads), first_order=False, number=number)
        return _units(race.rows, places, next_round, _most(len(heads), len(race.variants)))

    def run(self, options: SequentialTestOptions, unit: Unit) -> Done[Taken]:
        """The effects that this round wants of these rows."""
        race_round, opened, all_rows = unit.arguments, disabling.opened(options), disabling.rows_of(options)
        checkpoint, rows = opened.checkpoint, [all_rows[k] for k in race_round.rows]
        variants = disabling.variants_of(
            options.what, options.heads, checkpoint.layers, checkpoint.heads, checkpoint.attending
        )
        taken, sources = (
            _empty(race_round, checkpoint, len(variants), rows),
            references.sources(options.operator, opened, options),
        )
        chosen = list(range(len(variants)) if race_round.variants is None else race_round.variants)
        measured = _exact(options, opened, rows, [variants[k] for k in chosen], sources)
        taken.exact[chosen] = np.mean([effects.exact.numpy() for effects in measured], 0)
        expected = references.expected([effects.changed for effects in measured], is_score=opened.task.is_score)
        taken.changed[chosen] = opened.predicted(expected)
        plain = opened.predicted(measured[0].logits).astype(float)
        taken = replace(taken, loss=measured[0].plain.numpy(), plain=plain, fast=measured[0].fast)
        if race_round.first_order:
            taken = replace(taken, first_order=_first_order(options, opened, rows, variants, sources))
        return Done(taken, provenance(checkpoint, [row.id for row in rows], dtype=measured[0].dtype))

    def merge(self, options: SequentialTestOptions, partials: Sequence[Taken]) -> Taken:
        """All rows, in the task's order."""
        return merge_all(partials)

    def results(self, options: SequentialTestOptions, merged: Taken) -> list[Result]:
        """How the race went, a row per variant with its verdict, a row per look."""
        return all_results(_race(options, merged))

    def headline(self, rows: Sequence[Row]) -> Headline:
        race, verdicts = SequentialTestSummary.among(rows)[0], SequentialTestVerdict.among(rows)
        named = [verdict.name for verdict in verdicts if verdict.verdict == "matters"][:5]
        return Headline(
            f"{race.matters or 'None'} of {len(verdicts)} {SWEPT_SAID.get(race.what, 'ablations')} "
            f"{'matters' if race.matters < 2 else 'matter'} by more than the margin"
            + (f" ({', '.join(named)})" if named else "")
            + f". {race.does_not_matter} do not matter. For {race.open} the data do not decide.",
            race.n,
            "examples",
            f"all verdicts hold jointly at {100 * (1 - race.alpha):.0f} %",
            f"margin of {race.margin:.4f} in the task's loss",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        verdicts = sorted(SequentialTestVerdict.among(rows), key=lambda verdict: -abs(verdict.effect or 0.0))
        metrics = [name for name in RANKING if any(verdict.metrics.of(name) for verdict in verdicts)]
        table = []
        for verdict in verdicts:
            shown = verdict.columns("name", "verdict", "rows", "effect", "effect_low", "effect_high", "gradient_first")
            for name in metrics:  # of survivors
                measured = verdict.metrics.of(name)
                change = measured.change if measured else None
                shown |= {f"{name}_change": change and change.value, f"{name}_low": change and change.low}
                shown |= {f"{name}_high": change and change.high}
            table.append(shown)
        return [table, verdict_sentence(SequentialTestSummary.of(rows[0]))]


STUDY = SequentialTestStudy()
SWEPT_SAID = {"heads": "heads", "layers": "layers", "groups": "groups of heads"}  # by what is tested


# ---------------------------------------------------------------- rules, rounds and what is measured next


def row_order(options: SequentialTestOptions, rows: int) -> np.ndarray:
    """The order in which a race takes the rows of its task.

    Returns:
        Places of rows in the task, the first to be taken first. *Shape:* (row,), int.
    """
    return np.random.default_rng([options.seed, rows]).permutation(rows)


def constant_loss(task: Task, gold: np.ndarray) -> float:
    """The mean loss of the best constant answer.

    Args:
        gold: labels or scores. *Shape:* (row,).

    Returns:
        The entropy of the labels in nats, or the variance of the scores; above 0.

    Raises:
        InputError: it is 0: rows of one class, or of one score.
    """
    if task.is_score:
        spread = float(np.var(gold))
    else:
        shares = np.unique(gold, return_counts=True)[1] / len(gold)
        spread = float(-(shares * np.log(shares)).sum())
    if not spread > 0:
        kind = "score" if task.is_score else "class"
        raise InputError(
            f"A race needs rows of more than one {kind}; the {len(gold)} rows of {task.name} have one alone "
            f"({gold[0]}): take more rows, or others."
        )
    return spread


def rules_of(options: SequentialTestOptions, task: Task, rows: Sequence[TaskRow], heads: int) -> Rules:
    """The rules asked for. The default margin is 5% of what knowing nothing costs, and a row's loss counts up to what
    knowing nothing costs, or twice a margin above half of that. Raises InputError as `constant_loss`."""
    nothing = constant_loss(task, np.array([row.label for row in rows]))
    margin = SHARE * nothing if options.margin is None else options.margin
    clip = max(nothing, 2 * margin) if options.clip is None else options.clip
    return Rules(margin, clip, len(rows), heads, options.alpha, options.first, HOPELESS)


def clipped(loss: np.ndarray, effects: np.ndarray, clip: float) -> np.ndarray:
    """Effects on a loss of which each row counts only up to a bound.

    Args:
        loss: of each row, untouched. *Shape:* (row,).
        effects: on it. *Shape:* (variant, row).

    Returns:
        Effects on the clipped loss; NaN where `effects` is. *Shape:* (variant, row).
    """
    return np.minimum(loss + effects, clip) - np.minimum(loss, clip)


@dataclass(frozen=True)
class SequentialTestState:
    """A race at some point. rows: of the task, all; taken: what was measured of them."""

    options: SequentialTestOptions
    task: Task
    rows: Sequence[TaskRow]
    taken: Taken

    @cached_property
    def variants(self) -> list[Variant]:
        """What races, in the order of the heads."""
        taken = self.taken
        return variants_of(self.options.what, self.options.heads, taken.layers, taken.heads, taken.attending)

    @cached_property
    def rules(self) -> Rules:
        """What verdicts are held to."""
        return rules_of(self.options, self.task, self.rows, len(self.variants))

    @cached_property
    def costs(self) -> np.ndarray:
        """What a row's effect of each variant costs, in passes of a row; the untouched pass is left out."""
        layers = self.taken.layers
        return np.array([
            capture.packed_rows.cost_of(variant.heads, layers) if self.taken.fast else 1.0 for variant in self.variants
        ])  # fmt: skip

    @cached_property
    def exact(self) -> np.ndarray:
        """Exact effects on the clipped loss in the order of the draw [variant, row]; NaN where not taken."""
        return self._drawn(clipped(self.taken.loss, self.taken.exact, self.rules.clip))

    @cached_property
    def first_order(self) -> np.ndarray:
        """First-order effects in the order of the draw [variant, row]; NaN where not taken."""
        return self._drawn(self.taken.first_order)

    def _drawn(self, effects: np.ndarray) -> np.ndarray:
        whole = np.full((len(self.variants), len(self.rows)), np.nan)
        whole[:, self.taken.rows.astype(int)] = effects
        return whole[:, row_order(self.options, len(self.rows))]

    @property
    def has_begun(self) -> bool:
        """Whether the rows of the first look are all measured."""
        first = self.rules.first
        return bool(np.isfinite(self.exact[:, :first]).all() and np.isfinite(self.first_order[:, :first]).all())

    @cached_property
    def standings(self) -> Standings:
        """Where each variant stands."""
        return standings(self.exact, self.rules)

    def next(self) -> NextStep:
        """What is to be measured next.

        Raises InterventionError where the operator did nothing to any row of the first look.
        """
        if self.has_begun and (np.abs(self.exact[:, : self.rules.first]) < LEAST).all():
            raise InterventionError(
                f"The operator {self.options.operator} changed the loss of none of the first {self.rules.first} rows, "
                "whatever it was done to; such a race says nothing: check the checkpoint "
                f"({command_line('check')}), or choose another."
            )
        return next_step(self.exact, self.rules)

    @cached_property
    def left(self) -> tuple[np.ndarray, np.ndarray]:
        """Variants that matter, and the places of rows that some of them lack; none where the metric is not wanted of
        them."""
        matter = np.flatnonzero([verdict == "matters" for verdict in self.standings.verdicts])
        if not self.options.survivors or not len(matter):
            return matter[:0], matter[:0]
        lacking = np.isnan(self.exact[matter]).any(0)
        return matter, row_order(self.options, len(self.rows))[lacking]


def checked_rules(options: SequentialTestOptions, task: Task, rows: Sequence[TaskRow]) -> Rules:
    """The rules of a race of one head, for what can be refused before anything is opened. Raises InputError."""
    if options.what not in KINDS:
        raise InputError(f'What races is one of {", ".join(KINDS)}; "{options.what}" is none of them: choose one.')
    if has_parts(options.what, options.heads):
        raise InputError(
            f'Heads race, alone or in groups; "{options.heads[:60]}" names blocks or layers: leave them out, or sweep '
            "in full."
        )
    if options.what == "groups":
        groups_of(options.heads)
    return rules_of(options, task, rows, 1)


def merge_all(parts: Sequence[Taken]) -> Taken:
    """All that was measured, rows in the task's order.

    Args:
        parts: a row may be in several of them under different variants; of numbers that two have the later counts.
    """
    places = np.unique(np.concatenate([part.rows for part in parts])).astype(int)
    arrays: dict[str, np.ndarray] = {}
    for name in ("gold", "loss", "plain", "changed", "exact", "first_order"):
        shape = getattr(parts[0], name).shape[:-1]
        arrays[name] = np.full((*shape, len(places)), np.nan)
        for part in parts:
            where, values = np.searchsorted(places, part.rows), getattr(part, name)
            arrays[name][..., where] = np.where(np.isnan(values), arrays[name][..., where], values)
    first = parts[0]
    fast, rounds = all(part.fast for part in parts), max(part.rounds for part in parts)
    shape: dict[str, Any] = {"layers": first.layers, "heads": first.heads, "attending": first.attending}
    return Taken(rows=places, fast=fast, rounds=rounds, **shape, **arrays)


# ---------------------------------------------------------------- units and passes


def left_over(race: SequentialTestSummary) -> str:
    """ "1 does not, 30 are undecided": ablations that do not matter, and those that the data do not decide."""
    do, are = ("does" if race.does_not_matter == 1 else "do"), ("is" if race.open == 1 else "are")
    return f"{race.does_not_matter} {do} not, {race.open} {are} undecided"


def _race(options: SequentialTestOptions, taken: Taken) -> SequentialTestState:
    return SequentialTestState(options, task_of(options.task), disabling.rows_of(options), taken)


def _exact(
    options: SequentialTestOptions,
    opened: disabling.Opened,
    rows: Sequence[TaskRow],
    variants: Sequence[disabling.Variant],
    sources: Sequence[Any],
) -> list[Any]:
    """Exact effects, one set a source: a draw of "resample", or the operator itself."""
    sets, names = [frozenset(variant.heads) for variant in variants], [row.id for row in rows]
    labels, encodings = opened.outputs(rows), opened.encoded(rows)
    labelled = capture.losses.LabelledRows(encodings, labels, names)
    return [
        capture.losses.effects(opened.checkpoint, labelled, sets, options.operator, source=source, dtype=options.dtype)
        for source in sources
    ]


def _first_order(
    options: SequentialTestOptions,
    opened: disabling.Opened,
    rows: Sequence[TaskRow],
    variants: Sequence[disabling.Variant],
    sources: Sequence[Any],
) -> np.ndarray:
    """First-order effects [variant, row]: the mean over sources."""
    sets, labels, encodings = (
        [frozenset(variant.heads) for variant in variants],
        opened.outputs(rows),
        opened.encoded(rows),
    )
    slopes = [
        capture.losses.first_order(opened.checkpoint, encodings, labels, options.operator, source=source)
        for source in sources
    ]
    return np.mean([capture.losses.slopes_of(sets, slope).numpy() for slope in slopes], 0)


def _empty(race_round: Round, checkpoint: "Checkpoint", variants: int, rows: Sequence[TaskRow]) -> Taken:
    """Nothing measured yet: NaN everywhere but in the gold labels."""
    changed, exact, first_order = (np.full((variants, len(rows)), np.nan) for _ in range(3))
    gold, loss, plain = np.array([float(row.label) for row in rows]), *(np.full(len(rows), np.nan) for _ in range(2))
    return Taken(
        np.array(race_round.rows), checkpoint.layers, checkpoint.heads, gold, loss, plain, changed, exact, first_order,
        fast=True, rounds=race_round.number, attending=checkpoint.attending,
    )  # fmt: skip


def _most(open_variants: int, variants: int) -> int:
    """Rows of a unit, so that units of any round take about as long."""
    return min(MOST_A_UNIT, EXACT_A_UNIT * variants // max(1, open_variants))


def _units(rows: Sequence[TaskRow], places: np.ndarray, race_round: Round, most: int) -> list[Unit]:
    """Slices of these rows, similar lengths together."""
    sizes = {int(k): len(rows[k].text) + len(rows[k].pair or "") for k in places}
    order = sorted(sizes, key=lambda k: (sizes[k], k))
    units = []
    for start in range(0, len(order), most):
        part = tuple(order[start : start + most])
        arguments = replace(race_round, rows=part)
        size = max(1, sum(sizes[k] for k in part) // 4)
        units.append(Unit(f"round-{race_round.number}-{start // most}", arguments, size))
    return units


# ---------------------------------------------------------------- result records


def all_results(race: SequentialTestState) -> list[Result]:
    """The race, its verdicts in the order of the heads, its looks."""
    return [_summary(race), *_verdicts(race), *_looks(race)]


def _about(race: SequentialTestState) -> Any:
    options = race.options
    return {"task": race.task.key, "what": options.what, "operator": options.operator, "n": len(race.rows)}


def _summary(race: SequentialTestState) -> SequentialTestSummary:
    rules, state = race.rules, race.standings
    verdicts = state.verdicts
    return SequentialTestSummary(
        **_about(race), loss="squared error" if race.task.is_score else "nats", margin=rules.margin, clip=rules.clip,
        fewest=rules.fewest, alpha=rules.alpha, looks=" ".join(str(look) for look in rules.looks),
        intervals=INTERVALS, matters=verdicts.count("matters"),
        does_not_matter=verdicts.count("does not matter"), open=verdicts.count("open"),
        hopeless=int(state.hopeless.sum()),
        over=race.has_begun and race.next().over, **_work(race), **_gradient(race),
    )  # fmt: skip


def _work(race: SequentialTestState) -> Any:
    """What the verdicts took, in row evaluations and in passes of a row, against all rows of every variant. What the
    metric of survivors took beyond them is not counted."""
    rules, state = race.rules, race.standings
    rows = np.where(state.rows > 0, state.rows, np.minimum(taken(race.exact), rules.first))
    full = rules.rows * (1 + race.costs.sum())
    passes = float((race.costs * rows).sum() + rows.max() + BACKWARD * rules.first)
    return {
        "evaluations": int(rows.sum()),
        "evaluations_full": rules.rows * rules.heads,
        "passes": passes,
        "passes_full": float(full),
        "forward_ratio": float(full / passes) if passes else None,
    }


def _gradient(race: SequentialTestState) -> Any:
    """How far the gradient alone would lead, on the rows of the first look: ranks, and signs of heads that matter."""
    if not race.has_begun:
        return {"gradient_spearman": None, "gradient_wrong_signs": None}
    first = race.rules.first
    exact, slope = race.exact[:, :first].mean(1), race.first_order[:, :first].mean(1)
    matter = np.array([verdict == "matters" for verdict in race.standings.verdicts])
    wrong = matter & (np.sign(exact) != np.sign(slope))
    agreement = effects.rank_agreement(exact, slope)
    return {"gradient_spearman": agreement.spearman, "gradient_wrong_signs": int(wrong.sum())}


def _verdicts(race: SequentialTestState) -> list[SequentialTestVerdict]:
    state, metrics, first = race.standings, _metrics(race), race.rules.first
    exact, slope = (effects[:, :first].mean(1) for effects in (race.exact, race.first_order))
    return [
        SequentialTestVerdict(
            **variant.facts(), **_about(race), margin=race.rules.margin, verdict=state.verdicts[k],
            rows=int(state.rows[k]), effect=finite(state.value[k]), effect_low=finite(state.low[k]),
            effect_high=finite(state.high[k]), exact_first=finite(exact[k]), gradient_first=finite(slope[k]),
            metrics=Metrics(tuple(metrics.get(k, ()))), **_score(race, k),
        )
        for k, variant in enumerate(race.variants)
    ]  # fmt: skip


def _score(race: SequentialTestState, k: int) -> Any:
    """The fields that make a row of one head a head score in the store."""
    state = race.standings
    if race.options.what not in ("heads", "all-but-one") or finite(state.value[k]) is None:
        return {}
    return {
        "statistic": f"race {race.options.operator} {race.options.what}",
        "feature": f"{race.options.task} loss",
        "value": finite(state.value[k]),
        "low": finite(state.low[k]),
        "high": finite(state.high[k]),
    }


def _metrics(race: SequentialTestState) -> dict[int, list[Metric]]:
    """The metrics of survivors that ran on all rows, with the interval of their change; for F1 and Pearson too."""
    part, verdicts = race.taken, race.standings.verdicts
    if len(part.rows) < len(race.rows) or np.isnan(part.plain).any():
        return {}
    whole = [k for k in range(len(verdicts)) if verdicts[k] == "matters" and not np.isnan(part.changed[k]).any()]
    if not whole:
        return {}
    metrics: dict[int, list[Metric]] = {k: [] for k in whole}
    for name in metrics_of(race.task):
        changes = effects.metric_intervals(name, part.gold, part.plain, part.changed[whole])
        for k, change in zip(whole, changes, strict=True):
            metrics[k].append(Metric(name, change=estimate_of(change)))
    return metrics


def _looks(race: SequentialTestState) -> list[InterimAnalysis]:
    """Per look: how many were open before it, and what it settled."""
    rules: Rules = race.rules
    state, rows = race.standings, []
    for look in rules.looks:
        at = [v for v, n in zip(state.verdicts, state.rows, strict=True) if n == look]
        before = int((state.rows >= look).sum())
        if before:
            settled: Any = {"settled": sum(v != "open" for v in at), "matters": at.count("matters")}
            rows.append(InterimAnalysis(name=f"{look} rows", rows=look, open=before, **settled, **_about(race)))
    return rows


def verdict_sentence(race: SequentialTestSummary) -> str:
    """How a race went, in sentences."""
    counts = f"{race.matters} matter, {race.does_not_matter} do not, {race.open} stay open{_futile(race)}"
    took = (
        f"{race.evaluations:,} of {race.evaluations_full:,} row evaluations, {race.forward_ratio:.1f}x less "
        f"forward work than a full sweep ({race.passes:,.0f} against {race.passes_full:,.0f} passes of a row)"
    )
    rho = "undefined" if race.gradient_spearman is None else f"{race.gradient_spearman:.2f}"
    return (
        f"At a margin of {race.margin:.4g} {race.loss}: {counts}{_promise(race)}.{_clipping(race)} It took {took}. "
        f"On the rows of the first look, first-order effects rank the heads with a correlation of {rho} with exact "
        f"effects and have the wrong sign for {race.gradient_wrong_signs} of the heads that matter."
    )


def _promise(race: SequentialTestSummary) -> str:
    """How often any verdict is wrong; of tests of earlier versions, that this does not hold."""
    if race.intervals != INTERVALS:
        return (
            ". An earlier version made these intervals, which miss the mean too often where few rows carry an effect: "
            "run the test again"
        )
    return f", with any verdict wrong in at most {race.alpha:.0%} of such tests (all heads and looks)"


def _futile(race: SequentialTestSummary) -> str:
    """How many of the open ones take no more rows."""
    if not race.hopeless:
        return ""
    return (
        f" ({race.hopeless} of them without more rows: all there are would bring a verdict in less than {HOPELESS:.0%})"
    )


def _clipping(race: SequentialTestSummary) -> str:
    """What rare effects the verdicts speak of; nothing of races of before."""
    if race.clip is None:
        return ""
    sentence = (
        f" A row's loss counts up to {race.clip:.3g}: what a head does to fewer than "
        f"{race.margin / race.clip:.1%} of the rows lies within the margin."
    )
    if race.fewest is not None and race.fewest > race.n:
        sentence += f" That a head does not matter takes {race.fewest:,} rows, and there are {race.n:,}."
    return sentence
