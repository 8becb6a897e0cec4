"""Pruning of heads, least important first, and its effect on the metric of the task (Michel et al. 2019, Fig 3).

The order is determined on training examples and evaluated on dev examples. Orders are importance (computed once, or at
every step), the effect of ablating each head, and several random orders as a control. One unit computes one curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...attention import Head
from ...errors import InputError, check_choice, check_range
from ...interval import Interval
from ...scoring import effects
from ...store.rows import Row
from ...tasks.glue import SPLIT, Task, TaskRow, task_of
from ..contract import Done, Flag, NamedUnit, Need, Study, Unit, provenance
from ..headline import Headline, defined, percent
from ..outcomes import metrics_of, outcomes
from ..records import picked
from . import setup
from .importance import Normalize, Reading
from .records import PruneStep
from .setup import AblationOptions, Opened

if TYPE_CHECKING:
    from ...capture.sweeping import Sweep

ORDERS = ("importance", "recomputed", "sweep", "random")
Orders = Annotated[
    tuple[str, ...],
    Flag(
        "order in which heads are pruned: importance (by gradients, computed once), recomputed (by gradients, "
        "computed again after each step), sweep (by the effect of ablating each head) or random; repeat the option "
        "for several orders",
        name="--order",
    ),
]
RandomOrders = Annotated[int, Flag("number of random pruning orders", least=1)]


@pydantic.dataclasses.dataclass(frozen=True)
class PruneOptions(AblationOptions):
    """Options for head pruning: the pruning orders, the number of steps, and the examples."""

    orders: Orders = ("importance", "sweep", "random")
    order_rows: Annotated[int | None, Flag("number of training examples that determine the pruning order", least=2)] = (
        500
    )
    steps: Annotated[int, Flag("number of pruning steps; with 10 steps, each removes 10 % of the heads", least=1)] = 10
    random_orders: RandomOrders = 5
    reading: Reading = "example"
    normalize: Normalize = True
    operator: Annotated[
        str,
        Flag(
            "ablation method for pruned heads: zero (no output), disable (equal attention to all visible tokens), or "
            "previous, current, next or first (all attention to this token)"
        ),
    ] = "zero"


@dataclass(frozen=True)
class Curve:
    """An order in which heads are pruned, with the predictions before pruning and after each step."""

    order: str
    heads: tuple[Head, ...]
    removed: tuple[int, ...]
    gold: np.ndarray
    plain: np.ndarray
    changed: np.ndarray


@dataclass(frozen=True)
class Curves:
    """Several pruning curves, as a partial result that can be merged with others."""

    curves: tuple[Curve, ...]


class PruneStudy(Study[PruneOptions, Curves]):
    """Prune heads in order of importance, and compare the results with those of random orders."""

    name, options, partial, arguments = "prune", PruneOptions, Curves, NamedUnit
    question = "How many heads can be removed before the score falls?"
    one_by_one = True
    kinds = (PruneStep,)
    called = "Pruning curve"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def units(self, options: PruneOptions) -> list[Unit]:
        names = order_names(options)
        if options.split in (SPLIT, "train"):
            raise InputError(
                "A pruning curve must not be evaluated on training examples, because they determine the pruning order; "
                f'the split "{options.split}" contains training examples. Choose the split dev.'
            )
        length = sum(len(row.text) + len(row.pair or "") for row in setup.rows_of(options)) // 4
        setup.rows_of(options, "train", options.order_rows)
        return [Unit(name, NamedUnit(name), size=max(1, options.steps * length)) for name in names]

    def run(self, options: PruneOptions, unit: Unit) -> Done[Curves]:
        opened, dev = setup.opened(options), setup.rows_of(options)
        learned = setup.rows_of(options, "train", options.order_rows)
        curve, dtype = drawn_curve(options, unit.arguments.name, opened, learned, dev)
        return Done(Curves((curve,)), provenance(opened.checkpoint, [row.id for row in dev], dtype=dtype))

    def results(self, options: PruneOptions, merged: Curves) -> list[PruneStep]:
        return [step for curve in merged.curves for step in curve_steps(task_of(options.task), curve)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        return pruning_headline(rows)


STUDY = PruneStudy()


def order_names(options: PruneOptions) -> list[str]:
    """Return the names of the requested pruning orders, such as "random 1". Raises InputError for invalid options."""
    check_choice("A pruning order", options.orders, ORDERS)
    check_range("The number of pruning orders", len(options.orders), 1)
    check_range("The number of steps of a pruning curve", options.steps, 1)
    check_range("The number of random pruning orders", options.random_orders, 1)
    names = [name for name in options.orders if name != "random"]
    if "random" in options.orders:
        names += [f"random {k + 1}" for k in range(options.random_orders)]
    return names


def pruning_headline(rows: Sequence[Row]) -> Headline:
    """Describe in one sentence how the metric changes if half of the heads are pruned."""
    steps = PruneStep.among(rows)
    order = steps[0].order
    half = min(picked(steps, order=order), key=lambda step: abs(step.share - 0.5))
    chance = [defined(step.score) for step in steps if step.order.startswith("random") and step.share == half.share]
    compared = f", compared with {100 * sum(chance) / len(chance):.1f} in random order" if chance else ""
    return Headline(
        (
            f'After pruning {half.share:.0%} of the heads in the order "{order}", {half.metric} is '
            f"{100 * defined(half.score):.1f}{compared}."
        ),
        half.n,
        "examples",
        percent(half.low, half.high, "{:.1f}"),
        f"The unpruned model scores {100 * half.baseline:.1f}.",
    )


def drawn_curve(
    options: PruneOptions, name: str, opened: Opened, learned: Sequence[TaskRow], tested: Sequence[TaskRow]
) -> tuple[Curve, str]:
    """Prune heads step by step, and evaluate the model on the examples `tested` after each step. The order `name` is
    determined on `learned`. Also return the number format, such as "float32"."""
    ranked = order_of(options, name, opened, learned)
    cuts = tuple(round(len(ranked) * (k + 1) / options.steps) for k in range(options.steps))
    swept = _swept(options, opened, tested, [ranked[:cut] for cut in cuts])
    gold = np.array([row.label for row in tested])
    plain, changed = opened.predicted(swept.plain), opened.predicted(swept.changed)
    return Curve(name, tuple(ranked), cuts, gold, plain, changed), swept.dtype


def curve_steps(task: Task, curve: Curve) -> list[PruneStep]:
    """Convert a pruning curve to one record per step. The first record describes the unpruned model."""
    metric = metrics_of(task)[0]
    whole = float(effects.counted(metric, curve.gold, curve.plain[None], np.ones((1, len(curve.gold))))[0, 0])
    changes = effects.metric_intervals(metric, curve.gold, curve.plain, curve.changed)
    steps = zip((0, *curve.removed), (Interval(0.0, 0.0, 0.0), *changes), strict=True)
    results = []
    for cut, change in steps:
        score, low, high = (
            None if value is None else whole + value for value in (change.value, change.low, change.high)
        )
        results.append(PruneStep(
            order=curve.order, task=task.key, metric=metric, n=len(curve.gold), baseline=whole, removed=cut,
            share=cut / curve.removed[-1], heads=",".join(str(head) for head in curve.heads[:cut]), score=score,
            change=change.value, low=low, high=high,
        ))  # fmt: skip
    return results


def order_of(options: PruneOptions, name: str, opened: Opened, learned: Sequence[TaskRow]) -> list[Head]:
    """Return all heads in the pruning order `name`. If needed, head importance is measured on `learned`."""
    checkpoint = opened.checkpoint
    heads = checkpoint.all_heads
    if name.startswith("random"):
        seed = [options.seed, int(name.split()[1])]
        return [heads[k] for k in np.random.default_rng(seed).permutation(len(heads))]
    if name == "sweep":
        # by the loss of score on train examples when each is removed; ties by how far the logits move
        swept = _swept(options, opened, learned, [[head] for head in heads])
        gold = np.array([row.label for row in learned])
        scores = outcomes(opened.task, gold, opened.predicted(swept.changed)).mean(1)
        moved = (swept.changed - swept.plain).abs().mean((1, 2)).numpy()
        return [heads[k] for k in sorted(range(len(heads)), key=lambda k: (-scores[k], moved[k], k))]
    recomputed = options.steps if name == "recomputed" else 1
    import torch  # 1.3 s of start-up

    encodings, labels = opened.encoded(learned), opened.outputs(learned)
    mask, gone = torch.ones(checkpoint.layers, checkpoint.heads), []  # type: ignore[var-annotated]
    for step in range(recomputed):
        sums = capture.importance.gradients(checkpoint, encodings, labels, zeroed=mask)
        scores = capture.importance.importance(sums, reading=options.reading, normalize=options.normalize)  # type: ignore[arg-type]
        left = sorted((head for head in heads if head not in gone), key=lambda head: (float(scores[head]), head))
        now = left[: round(len(heads) * (step + 1) / recomputed) - len(gone)]
        gone += now
        for head in now:
            mask[head] = 0
    return gone


def _swept(
    options: PruneOptions, opened: Opened, rows: Sequence[TaskRow], removed: Sequence[Sequence[Head]]
) -> "Sweep":
    computing = capture.sweeping.Computing(dtype=options.dtype)
    return capture.sweeping.sweep(
        opened.checkpoint, opened.encoded(rows), removed, options.operator, computing=computing
    )
