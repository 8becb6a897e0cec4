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

from ... import studies
from ...store.rows import Row
from ...tasks.glue import task_of
from ...tuning.saved_checkpoints import shown_folder
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline
from ..merging import AllOf
from ..options import Dtype
from ..provenance import provenance
from ..units import TrainingUnit
from . import cross_fitting, prune, setup
from .records import CrossFittedPart, PruneStep


@pydantic.dataclasses.dataclass(frozen=True)
class CrossFittedPruneOptions(cross_fitting.CrossFitting):
    """How examples are divided into folds, and the orders in which each fold's model is pruned."""

    orders: Annotated[
        tuple[str, ...],
        Flag(
            "order in which heads are pruned: importance, recomputed, sweep or random; can be repeated", name="--order"
        ),
    ] = (
        "importance",
        "random",
    )
    order_rows: Annotated[
        int, Flag("number of training examples of each model that determine its pruning order", least=2)
    ] = 500
    steps: Annotated[int, Flag("number of pruning steps; 5 removes a fifth of the heads at a time", least=1)] = 5
    random_orders: Annotated[int, Flag("number of random pruning orders", least=1)] = 2
    dtype: Dtype = "float32"


@dataclass(frozen=True)
class PartCurves:
    """The model and the pruning curves of each cross-fitting fold."""

    numbers: AllOf[int]
    models: tuple[cross_fitting.TunedPart, ...]
    curves: tuple[prune.Curves, ...]


class CrossFittedPrune(Study[CrossFittedPruneOptions, PartCurves]):
    """Prune heads on all train examples, by models that were fine-tuned without these examples."""

    name, options, partial, arguments = "cross-fitted-prune", CrossFittedPruneOptions, PartCurves, TrainingUnit
    question = "How many heads can be removed, tested on all train examples?"
    one_by_one = True
    kinds = (PruneStep, CrossFittedPart)
    called = "Cross-fitted pruning of {checkpoint} on {task}"
    needs = frozenset({Need.LABELS})

    def units(self, options: CrossFittedPruneOptions) -> list[Unit]:
        prune.order_names(_pruning(options))
        cross_fitting.recipe_of(options)
        cross_fitting.cut_rows(options)
        size = cross_fitting.training_size(options)
        return [Unit(f"fold-{number}", TrainingUnit(fold=number), size) for number in range(options.folds)]

    def run(self, options: CrossFittedPruneOptions, unit: Unit) -> Done[PartCurves]:
        of: TrainingUnit = unit.arguments
        rows, folds = cross_fitting.cut_rows(options)
        run = cross_fitting.run_without(options, of.fold)
        part = cross_fitting.tuned_part(options, run, rows, folds == of.fold)
        learned, tested = cross_fitting.parted(rows, folds == of.fold)
        drawn = np.random.default_rng([options.seed, of.fold]).permutation(len(learned))[: options.order_rows]
        pruning = _pruning(options, shown_folder(run.folder))
        opened, curves, dtype = setup.opened(pruning), [], options.dtype
        for name in prune.order_names(pruning):
            curve, dtype = prune.drawn_curve(pruning, name, opened, [learned[k] for k in drawn], tested)
            curves.append(curve)
        # whose the result is: the parts are tuned from it
        base = studies.worker_cache.get_checkpoint(options.checkpoint)
        facts = provenance(base, [row.id for row in tested], split="train", dtype=dtype)
        return Done(PartCurves((of.fold,), (part,), (prune.Curves(tuple(curves)),)), facts)

    def results(self, options: CrossFittedPruneOptions, merged: PartCurves) -> list[PruneStep | CrossFittedPart]:
        """Return one record per pruning order and step, over all examples, then one record per fold."""
        task = task_of(options.task)
        by_order = zip(*(part.curves for part in merged.curves), strict=True)
        steps = [step for curves in by_order for step in prune.curve_steps(task, _together(curves))]
        numbered = zip(merged.numbers, merged.models, merged.curves, strict=True)
        return [
            *steps,
            *(
                cross_fitting.part_score(task, number, model, part.curves[0].gold, part.curves[0].plain)
                for number, model, part in numbered
            ),
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        return prune.pruning_headline(rows)


STUDY = CrossFittedPrune()


def _pruning(options: CrossFittedPruneOptions, folder: str = "-") -> prune.PruneOptions:
    """Return the options of the pruning curves of the model in `folder`."""
    return prune.PruneOptions(
        checkpoint=folder, task=options.task, data=options.data, dtype=options.dtype, seed=options.seed,
        orders=options.orders, order_rows=options.order_rows, steps=options.steps, random_orders=options.random_orders,
    )  # fmt: skip


def _together(curves: Sequence[prune.Curve]) -> prune.Curve:
    """Join one order's curves of all folds. It names no heads if the orders of the models differ."""
    first = curves[0]
    heads = first.heads if all(curve.heads == first.heads for curve in curves) else ()
    gold, plain = (np.concatenate([getattr(curve, side) for curve in curves]) for side in ("gold", "plain"))
    return prune.Curve(
        first.order, heads, first.removed, gold, plain, np.concatenate([curve.changed for curve in curves], axis=1)
    )
