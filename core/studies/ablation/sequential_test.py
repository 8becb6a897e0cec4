"""Sequential test of which heads (layers, groups) change the loss by more than a margin, with few examples.

Examples are used in a random order fixed by the seed. The first round measures exact and first-order effects of all
targets. Later rounds measure exact effects of the undecided targets up to the next interim analysis
(`core.scoring.sequential_test`). Each round depends only on earlier measurements, so the verdicts are the same for any
number of workers. Targets that matter are then measured on the remaining examples, for the change of the metric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...config import command_line
from ...errors import InputError, InterventionError, check_choice
from ...interval import estimate_of, finite
from ...scoring import effects
from ...scoring.corrections import ALPHA
from ...scoring.sequential_test import FIRST, NextStep, Rules, Standings, examples_measured, next_step, standings
from ...store.rows import Row
from ...tasks.glue import Task, TaskRow, task_of
from ..contract import Done, ExampleUnit, Flag, Need, Study, Unit, provenance
from ..headline import Headline
from ..options import Limit
from ..outcomes import RANKING, Metric, Metrics, metrics_of
from ..records import Result
from . import setup
from .records import InterimAnalysis, SequentialTestSummary, SequentialTestVerdict, effect_scores
from .setup import AblationOptions, AblationTarget, groups_of, has_parts, targets_of, units_of_rows

SHARE = 0.05  # of the loss of the best constant answer: the default margin (docs/explanation/sequential-tests.md)
BACKWARD = 3.0  # passes of a row that all its first-order effects cost: one forward, and twice that backward
HOPELESS = 0.05  # a head with a smaller chance of a verdict on all rows is stopped
LEAST = 1e-6  # effects below this are rounding
TARGETS = ("heads", "layers", "all-but-one", "groups")
EXACT_A_UNIT = 16  # rows of a unit that runs every variant; more where fewer are left
MOST_A_UNIT = 128
FIRST_ORDER = "first order"  # the step of units that measure effects to first order too
INTERVALS = "bets"  # method of the intervals; earlier versions have "at looks" or "anytime"


@pydantic.dataclasses.dataclass(frozen=True)
class SequentialTestOptions(AblationOptions, setup.ReferenceOptions):
    """Options for a sequential test: what is ablated, on which examples, and the margin that an effect must exceed."""

    limit: Limit = None
    what: Annotated[
        str, Flag("components to test: heads, layers, all-but-one (all heads of a layer except one) or groups of heads")
    ] = "heads"
    operator: Annotated[
        str,
        Flag(
            "ablation method: disable (equal attention to all visible tokens); previous, current, next or first (all "
            "attention to this token); or zero, mean, resample or constant (the head output is replaced)"
        ),
    ] = "disable"
    heads: Annotated[str, Flag('groups of heads to ablate together, separated by ";", such as "L1H2,L7H6; L4H1"')] = ""
    margin: Annotated[
        float | None,
        Flag(
            "smallest mean change in loss that matters, in nats or squared error (default: 5 % of the loss of the "
            "best constant prediction)"
        ),
    ] = None
    clip: Annotated[
        float | None,
        Flag(
            "value at which the loss of each example is clipped (default: the loss of the best constant prediction, or "
            "twice the margin if this is larger); with a larger value, the test needs more examples"
        ),
    ] = None
    alpha: Annotated[
        float, Flag("probability that at least one verdict is wrong, over all heads and interim analyses")
    ] = ALPHA
    first: Annotated[
        int,
        Flag(
            ("number of examples at the first interim analysis; each later analysis uses more examples, up to all"),
            least=4,
        ),
    ] = FIRST
    survivors: Annotated[
        bool,
        Flag(
            "after the test, also measure on all examples how the metric changes if a head that matters is ablated",
            name="--survivors/--verdicts-only",
        ),
    ] = True


@dataclass(frozen=True)
class Taken:
    """The measurements that a sequential test has made so far. Values that have not been measured are NaN.

    Attributes:
        rows: positions of the examples in the task.
        loss: without ablation: cross-entropy in nats, or squared error. *Shape:* (example,).
        changed, exact, first_order: predictions, effects on the loss, first-order effects. *Shape:* (target, example).
        fast: whether computations common to several targets were done once.
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
    """Test which heads, layers or groups change the loss by more than a margin, using as few examples as possible."""

    name, options, partial, arguments = "sequential-test", SequentialTestOptions, Taken, ExampleUnit
    question = "Which heads matter by more than a margin?"
    one_by_one = True
    kinds = (SequentialTestSummary, SequentialTestVerdict, InterimAnalysis)
    short_in = ("table", "latex")
    head_scores = effect_scores(
        ("race {} heads", "effect on the loss, sequential test: {}", "mean change of the task's loss: {}"),
        (
            "race {} all-but-one",
            "effect of its layer's other heads on the loss, sequential test: {}",
            "mean change of the task's loss if the other heads of the layer are ablated: {}",
        ),
    )
    said_at = 14
    called = "Sequential test of {what} of {checkpoint}"
    section = "effect"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def read(self, given: Mapping[str, Any]) -> SequentialTestOptions:
        """Read the options. Raises InputError if heads are named although `what` is neither "heads" nor "groups"."""
        return super().read(setup.with_groups(given))

    def units(self, options: SequentialTestOptions) -> list[Unit]:
        setup.check_replacements(capture.interventions.known_operator(options.operator), options)
        check_choice("The target of a sequential test", options.what, TARGETS)
        if has_parts(options.what, options.heads):
            raise InputError(
                f'A sequential test can only ablate heads, alone or in groups; got "{options.heads[:60]}". '
                "Name heads, or ablate sublayers and layers with `study disable`."
            )
        if options.what == "groups":
            groups_of(options.heads)
        rows = setup.rows_of(options)
        rules = rules_of(options, task_of(options.task), rows, 1)
        places = row_order(options, len(rows))[: rules.first]
        return units_of_rows(rows, places, "round-0", most=EXACT_A_UNIT, step=FIRST_ORDER)

    def more(self, options: SequentialTestOptions, partials: Sequence[Taken]) -> list[Unit]:
        """Return the units of work for the next interim analysis. After the last analysis, return units that measure
        targets with the verdict "matters" on the remaining examples."""
        state = state_of(options, self.merge(options, partials))
        step, number, order = state.next(), state.taken.rounds + 1, row_order(options, len(state.rows))
        heads, places = (step.heads, order[step.start : step.stop]) if not step.over else state.left
        # units of any round take about as long
        most = min(MOST_A_UNIT, EXACT_A_UNIT * len(state.variants) // max(1, len(heads)))
        return units_of_rows(
            state.rows, places, f"round-{number}", most=most, targets=tuple(int(k) for k in heads), round=number
        )

    def run(self, options: SequentialTestOptions, unit: Unit) -> Done[Taken]:
        wanted, opened, all_rows = unit.arguments, setup.opened(options), setup.rows_of(options)
        checkpoint, rows = opened.checkpoint, [all_rows[k] for k in wanted.positions]
        variants = setup.targets_of(
            options.what, options.heads, checkpoint.layers, checkpoint.heads, checkpoint.attending
        )
        sets = [frozenset(variant.heads) for variant in variants]
        chosen = list(wanted.targets or range(len(variants)))
        labels, encodings = opened.outputs(rows), opened.encoded(rows)
        labelled = capture.losses.LabelledRows(encodings, labels, [row.id for row in rows])
        sources = setup.replacements(options.operator, opened, options)  # one for each draw of "resample", else one

        measured = [
            capture.losses.effects(
                checkpoint, labelled, [sets[k] for k in chosen], options.operator, source=source, dtype=options.dtype
            )
            for source in sources
        ]
        changed, exact, first_order = (np.full((len(variants), len(rows)), np.nan) for _ in range(3))
        exact[chosen] = np.mean([effects.exact.numpy() for effects in measured], 0)
        expected = setup.expected_logits([effects.changed for effects in measured], is_score=opened.task.is_score)
        changed[chosen] = opened.predicted(expected)
        if wanted.step == FIRST_ORDER:
            slopes = [
                capture.losses.first_order(checkpoint, encodings, labels, options.operator, source=source)
                for source in sources
            ]
            first_order = np.mean([capture.losses.slopes_of(sets, slope).numpy() for slope in slopes], 0)
        partial = Taken(
            np.array(wanted.positions), checkpoint.layers, checkpoint.heads,
            np.array([float(row.label) for row in rows]), measured[0].plain.numpy(),
            opened.predicted(measured[0].logits).astype(float), changed, exact, first_order, fast=measured[0].fast,
            rounds=wanted.round, attending=checkpoint.attending,
        )  # fmt: skip
        return Done(partial, provenance(checkpoint, [row.id for row in rows], dtype=measured[0].dtype))

    def merge(self, options: SequentialTestOptions, partials: Sequence[Taken]) -> Taken:
        """Merge measurements in the order of the examples. If a value was measured twice, the later value is used."""
        places = np.unique(np.concatenate([part.rows for part in partials])).astype(int)
        arrays: dict[str, np.ndarray] = {}
        for name in ("gold", "loss", "plain", "changed", "exact", "first_order"):
            arrays[name] = np.full((*getattr(partials[0], name).shape[:-1], len(places)), np.nan)
            for part in partials:
                where, values = np.searchsorted(places, part.rows), getattr(part, name)
                arrays[name][..., where] = np.where(np.isnan(values), arrays[name][..., where], values)
        first = partials[0]
        fast, rounds = all(part.fast for part in partials), max(part.rounds for part in partials)
        return Taken(
            rows=places, layers=first.layers, heads=first.heads, fast=fast, rounds=rounds, attending=first.attending,
            **arrays,
        )  # fmt: skip

    def results(self, options: SequentialTestOptions, merged: Taken) -> list[Result]:
        state = state_of(options, merged)
        rules, found = state.rules, state.standings
        about: Any = {
            "task": state.task.key, "what": options.what, "operator": options.operator, "n": len(state.rows),
        }  # fmt: skip
        analyses = []
        for look in rules.looks:
            at = [verdict for verdict, n in zip(found.verdicts, found.rows, strict=True) if n == look]
            before = int((found.rows >= look).sum())
            if before:
                settled: Any = {"settled": sum(verdict != "open" for verdict in at), "matters": at.count("matters")}
                analyses.append(InterimAnalysis(name=f"{look} rows", rows=look, open=before, **settled, **about))
        return [_summary(state, about), *_verdicts(state, about), *analyses]

    def headline(self, rows: Sequence[Row]) -> Headline:
        summary, verdicts = SequentialTestSummary.among(rows)[0], SequentialTestVerdict.among(rows)
        names = ", ".join([verdict.name for verdict in verdicts if verdict.verdict == "matters"][:5])
        named, targets = f" ({names})" if names else "", SWEPT_SAID.get(summary.what, "targets")
        one = ONE_SWEPT.get(summary.what, "target")
        small, undecided = (
            f"{count} {one if count == 1 else targets}" for count in (summary.does_not_matter, summary.open)
        )
        return Headline(
            f"Ablation changes the loss by more than the margin for {summary.matters} of {len(verdicts)} "
            f"{targets}{named}. For {small}, ablation changes the loss by less than the margin. For {undecided}, the "
            "test is undecided.",
            summary.n,
            "examples",
            f"The margin is {summary.margin:.4f} (by default, 5 % of the loss of the best constant prediction). "
            f"All verdicts hold jointly with {100 * (1 - summary.alpha):.0f} % confidence.",
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
ONE_SWEPT = {"heads": "head", "layers": "layer", "groups": "group of heads"}


# ---------------------------------------------------------------- rules, rounds and what is measured next


def row_order(options: SequentialTestOptions, rows: int) -> np.ndarray:
    """Return the random order in which the examples of the task are used, as an array of their positions."""
    return np.random.default_rng([options.seed, rows]).permutation(rows)


def constant_loss(task: Task, gold: np.ndarray) -> float:
    """Compute the loss of the best constant prediction: label entropy in nats or, for scores, their variance."""
    if task.is_score:
        spread = float(np.var(gold))
    else:
        shares = np.unique(gold, return_counts=True)[1] / len(gold)
        spread = float(-(shares * np.log(shares)).sum())
    if not spread > 0:
        kind = "score" if task.is_score else "class"
        raise InputError(
            f"A sequential test needs examples with more than one {kind}; all {len(gold)} examples of {task.name} "
            f"have the {kind} {gold[0]}. Use more or other examples."
        )
    return spread


def rules_of(options: SequentialTestOptions, task: Task, rows: Sequence[TaskRow], heads: int) -> Rules:
    """Return the margin, clipping limit and significance level of a sequential test.

    The default margin is 5 % of the loss of the best constant prediction. The default clipping limit is that loss, or
    twice the margin if this is larger. Raises InputError if that loss is 0.
    """
    nothing = constant_loss(task, np.array([row.label for row in rows]))
    margin = SHARE * nothing if options.margin is None else options.margin
    clip = max(nothing, 2 * margin) if options.clip is None else options.clip
    return Rules(margin, clip, len(rows), heads, options.alpha, options.first, HOPELESS)


def clipped(loss: np.ndarray, effects: np.ndarray, clip: float) -> np.ndarray:
    """Compute how ablation changes the clipped loss, as [target, example]. Losses above `clip` count as `clip`."""
    return np.minimum(loss + effects, clip) - np.minimum(loss, clip)


@dataclass(frozen=True)
class SequentialTestState:
    """The state of a sequential test, derived from the measurements so far."""

    options: SequentialTestOptions
    task: Task
    rows: Sequence[TaskRow]
    taken: Taken

    @cached_property
    def variants(self) -> list[AblationTarget]:
        taken = self.taken
        return targets_of(self.options.what, self.options.heads, taken.layers, taken.heads, taken.attending)

    @cached_property
    def rules(self) -> Rules:
        return rules_of(self.options, self.task, self.rows, len(self.variants))

    @cached_property
    def costs(self) -> np.ndarray:
        """Return how many additional forward passes are needed to ablate each target on one example."""
        layers = self.taken.layers
        return np.array([
            capture.sweeping.cost_of(variant.heads, layers) if self.taken.fast else 1.0 for variant in self.variants
        ])  # fmt: skip

    @cached_property
    def exact(self) -> np.ndarray:
        """Return the exact ablation effects on the clipped loss, as [target, example in sampling order]. Effects that
        were not measured are NaN."""
        return self._drawn(clipped(self.taken.loss, self.taken.exact, self.rules.clip))

    @cached_property
    def first_order(self) -> np.ndarray:
        """Return gradient-based estimates of ablation effects, as [target, example in sampling order]. Missing
        estimates are NaN."""
        return self._drawn(self.taken.first_order)

    def _drawn(self, effects: np.ndarray) -> np.ndarray:
        whole = np.full((len(self.variants), len(self.rows)), np.nan)
        whole[:, self.taken.rows.astype(int)] = effects
        return whole[:, row_order(self.options, len(self.rows))]

    @property
    def has_begun(self) -> bool:
        """Return True if all examples of the first interim analysis have been measured."""
        first = self.rules.first
        return bool(np.isfinite(self.exact[:, :first]).all() and np.isfinite(self.first_order[:, :first]).all())

    @cached_property
    def standings(self) -> Standings:
        return standings(self.exact, self.rules)

    def next(self) -> NextStep:
        """Return the targets and examples to measure next. Raises InterventionError if no ablation changed the loss."""
        if self.has_begun and (np.abs(self.exact[:, : self.rules.first]) < LEAST).all():
            raise InterventionError(
                "Ablation must change the loss of at least one example; the method "
                f"{self.options.operator} changed none of the first {self.rules.first} examples for any target. "
                f"Check the checkpoint ({command_line('check')}), or choose another checkpoint."
            )
        return next_step(self.exact, self.rules)

    @cached_property
    def left(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets with the verdict "matters", and the examples on which their effects are still unknown."""
        matter = np.flatnonzero([verdict == "matters" for verdict in self.standings.verdicts])
        if not self.options.survivors or not len(matter):
            return matter[:0], matter[:0]
        lacking = np.isnan(self.exact[matter]).any(0)
        return matter, row_order(self.options, len(self.rows))[lacking]


# ---------------------------------------------------------------- units and passes


def state_of(options: SequentialTestOptions, taken: Taken) -> SequentialTestState:
    """Compute the state of a sequential test from its measurements so far."""
    return SequentialTestState(options, task_of(options.task), setup.rows_of(options), taken)


def left_over(summary: SequentialTestSummary) -> str:
    """Return a text that states how many ablation targets do not matter and how many are undecided."""
    do, are = ("does" if summary.does_not_matter == 1 else "do"), ("is" if summary.open == 1 else "are")
    return f"{summary.does_not_matter} {do} not, {summary.open} {are} undecided"


# ---------------------------------------------------------------- result records


def _summary(state: SequentialTestState, about: Any) -> SequentialTestSummary:
    rules, found = state.rules, state.standings
    # row evaluations, and passes of a row, against all rows of every variant; without those for the metric of survivors
    evaluated = np.where(found.rows > 0, found.rows, np.minimum(examples_measured(state.exact), rules.first))
    passes = float((state.costs * evaluated).sum() + evaluated.max() + BACKWARD * rules.first)
    passes_full = float(rules.rows * (1 + state.costs.sum()))
    # what the gradient alone would say, on the rows of the first interim analysis
    spearman, wrong_signs = None, None
    if state.has_begun:
        exact, slope = (effect[:, : rules.first].mean(1) for effect in (state.exact, state.first_order))
        matter = np.array([verdict == "matters" for verdict in found.verdicts])
        spearman = effects.rank_agreement(exact, slope).spearman
        wrong_signs = int((matter & (np.sign(exact) != np.sign(slope))).sum())
    return SequentialTestSummary(
        **about, loss="squared error" if state.task.is_score else "nats", margin=rules.margin, clip=rules.clip,
        fewest=rules.fewest, alpha=rules.alpha, looks=" ".join(str(look) for look in rules.looks),
        intervals=INTERVALS, matters=found.verdicts.count("matters"),
        does_not_matter=found.verdicts.count("does not matter"), open=found.verdicts.count("open"),
        hopeless=int(found.hopeless.sum()), over=state.has_begun and state.next().over,
        evaluations=int(evaluated.sum()), evaluations_full=rules.rows * rules.heads, passes=passes,
        passes_full=passes_full, forward_ratio=passes_full / passes if passes else None,
        gradient_spearman=spearman, gradient_wrong_signs=wrong_signs,
    )  # fmt: skip


def _verdicts(state: SequentialTestState, about: Any) -> list[SequentialTestVerdict]:
    found, metrics, options = state.standings, _metrics(state), state.options
    exact, slope = (effect[:, : state.rules.first].mean(1) for effect in (state.exact, state.first_order))
    records = []
    for k, variant in enumerate(state.variants):
        effect, low, high = (finite(values[k]) for values in (found.value, found.low, found.high))
        score: Any = {}
        if options.what in ("heads", "all-but-one") and effect is not None:  # of one head: a head score of the store
            statistic, feature = f"race {options.operator} {options.what}", f"{options.task} loss"
            score = {"statistic": statistic, "feature": feature, "value": effect, "low": low, "high": high}
        records.append(SequentialTestVerdict(
            **variant.facts(), **about, margin=state.rules.margin, verdict=found.verdicts[k],
            rows=int(found.rows[k]), effect=effect, effect_low=low, effect_high=high, exact_first=finite(exact[k]),
            gradient_first=finite(slope[k]), metrics=Metrics(tuple(metrics.get(k, ()))), **score,
        ))  # fmt: skip
    return records


def _metrics(state: SequentialTestState) -> dict[int, list[Metric]]:
    """Return the metrics of the targets that matter and were measured on all examples, with intervals."""
    part, verdicts = state.taken, state.standings.verdicts
    if len(part.rows) < len(state.rows) or np.isnan(part.plain).any():
        return {}
    whole = [k for k in range(len(verdicts)) if verdicts[k] == "matters" and not np.isnan(part.changed[k]).any()]
    if not whole:
        return {}
    metrics: dict[int, list[Metric]] = {k: [] for k in whole}
    for name in metrics_of(state.task):
        changes = effects.metric_intervals(name, part.gold, part.plain, part.changed[whole])
        for k, change in zip(whole, changes, strict=True):
            metrics[k].append(Metric(name, change=estimate_of(change, name)))
    return metrics


def verdict_sentence(summary: SequentialTestSummary) -> str:
    """Describe the result of a sequential test in sentences."""
    targets = SWEPT_SAID.get(summary.what, "targets")
    futile = (
        f" The test of {summary.hopeless} undecided {targets} was stopped for futility, because the chance of a "
        f"verdict with all examples is below {HOPELESS:.0%}."
        if summary.hopeless
        else ""
    )
    if summary.intervals == INTERVALS:
        error = (
            f" At most {summary.alpha:.0%} of such tests have a wrong verdict, over all {targets} and interim analyses."
        )
    else:
        error = (
            " The intervals are from an earlier version and miss the mean too often if few examples have an effect. "
            "Run the test again."
        )
    clipping = ""
    if summary.clip is not None:
        clipping = (
            f" The loss of an example is clipped at {summary.clip:.3g}, so an effect on fewer than "
            f"{summary.margin / summary.clip:.1%} of the examples lies within the margin."
        )
        if summary.fewest is not None and summary.fewest > summary.n:
            clipping += (
                f" At least {summary.fewest:,} examples are needed to show that a head does not matter, but only "
                f"{summary.n:,} are available."
            )
    share = summary.passes / summary.passes_full
    compared = f"{1 / share:.1f} times less computation than" if share <= 1 else f"{share:.1f} times the computation of"
    rho = "undefined" if summary.gradient_spearman is None else f"{summary.gradient_spearman:.2f}"
    return (
        f"With a margin of {summary.margin:.4g} {summary.loss}, {summary.matters} {targets} matter, "
        f"{summary.does_not_matter} do not matter and {summary.open} are undecided.{futile}{error}{clipping} The test "
        f"took {summary.evaluations:,} of {summary.evaluations_full:,} evaluations of an example, {compared} ablating "
        f"every target on all examples ({summary.passes:,.0f} instead of {summary.passes_full:,.0f} forward passes). "
        f"On the examples of the first interim analysis, first-order effects have a rank correlation of {rho} with "
        f"exact effects. First-order effects have the wrong sign for {summary.gradient_wrong_signs} of the {targets} "
        "that matter."
    )
