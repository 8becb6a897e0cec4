"""Cross-fitted pruning curves over all training examples.

For each fold, a model is fine-tuned on the other folds. Its heads are ranked on some of these examples and removed,
least important first, while it is tested on this fold. So no example tests a model that was trained on it, or an order
that was determined with it. The result has the rows of `prune` over all folds, then one row per fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ...store.rows import Row
from ...tasks.glue import task_of
from ..contract import Flag, TrainingUnit, Unit
from ..headline import Headline
from ..options import Dtype
from . import cross_fitting, prune, setup
from .records import CrossFittedPart, PruneStep


@pydantic.dataclasses.dataclass(frozen=True)
class CrossFittedPruneOptions(cross_fitting.CrossFitting):
    """Options for cross-fitted pruning: how examples are divided into folds, and in which orders heads are pruned."""

    orders: prune.Orders = ("importance", "random")
    order_rows: Annotated[
        int, Flag("number of training examples that determine the pruning order of each model", least=2)
    ] = 500
    steps: Annotated[int, Flag("number of pruning steps; with 5 steps, each removes a fifth of the heads", least=1)] = 5
    random_orders: prune.RandomOrders = 2
    dtype: Dtype = "float32"


@dataclass(frozen=True)
class PartCurves:
    """The cross-fitted models of one or more folds, and their pruning curves."""

    models: tuple[cross_fitting.TunedPart, ...]
    curves: tuple[prune.Curves, ...]


class CrossFittedPruneStudy(cross_fitting.CrossFittedStudy[CrossFittedPruneOptions, PartCurves]):
    """Prune heads and evaluate every training example with a model that was fine-tuned without it."""

    name, options, partial = "cross-fitted-prune", CrossFittedPruneOptions, PartCurves
    question = "How many heads can be removed, tested on all train examples?"
    kinds = (PruneStep, CrossFittedPart)
    called = "Cross-fitted pruning of {checkpoint} on {task}"

    def units(self, options: CrossFittedPruneOptions) -> list[Unit]:
        prune.order_names(_pruning(options))
        return super().units(options)

    def on_fold(
        self, options: CrossFittedPruneOptions, fold: cross_fitting.Fold, of: TrainingUnit
    ) -> tuple[PartCurves, str]:
        drawn = np.random.default_rng([options.seed, of.fold]).permutation(len(fold.learned))[: options.order_rows]
        pruning = _pruning(options, fold.model.folder)
        opened, curves, dtype = setup.opened(pruning), [], options.dtype
        for name in prune.order_names(pruning):
            curve, dtype = prune.drawn_curve(pruning, name, opened, [fold.learned[k] for k in drawn], fold.rows)
            curves.append(curve)
        return PartCurves((fold.model,), (prune.Curves(tuple(curves)),)), dtype

    def results(self, options: CrossFittedPruneOptions, merged: PartCurves) -> list[PruneStep | CrossFittedPart]:
        task = task_of(options.task)
        by_order = zip(*(part.curves for part in merged.curves), strict=True)
        steps = [step for curves in by_order for step in prune.curve_steps(task, _together(curves))]
        scores = [
            cross_fitting.part_score(task, model, part.curves[0].gold, part.curves[0].plain)
            for model, part in zip(merged.models, merged.curves, strict=True)
        ]
        return [*steps, *scores]

    def headline(self, rows: Sequence[Row]) -> Headline:
        return prune.pruning_headline(rows)


STUDY = CrossFittedPruneStudy()


def _pruning(options: CrossFittedPruneOptions, folder: str = "-") -> prune.PruneOptions:
    """Return the options of the pruning curves of the model in `folder`."""
    return prune.PruneOptions(
        checkpoint=folder, task=options.task, data=options.data, dtype=options.dtype, seed=options.seed,
        orders=options.orders, order_rows=options.order_rows, steps=options.steps, random_orders=options.random_orders,
    )  # fmt: skip


def _together(curves: Sequence[prune.Curve]) -> prune.Curve:
    """Join the pruning curves of all folds for one order. No heads are named if the models rank heads differently."""
    first = curves[0]
    heads = first.heads if all(curve.heads == first.heads for curve in curves) else ()
    gold, plain = (np.concatenate([getattr(curve, side) for curve in curves]) for side in ("gold", "plain"))
    return prune.Curve(
        first.order, heads, first.removed, gold, plain, np.concatenate([curve.changed for curve in curves], axis=1)
    )
