"""Cross-fitted ablation: every head (or layer) in turn, over all training examples.

For each fold of the training examples, a model is fine-tuned on the other folds and ablated on this fold, so no example
is tested by a model that was trained on it or on one of its sentences. All models start from the same weights. The
result has the rows of `disable` over all examples, with the number of folds that agree in sign, and one row per fold.
Confidence intervals refer to examples, not to other models.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...errors import check_choice
from ...store.rows import Row
from ...tasks.glue import task_of
from ..contract import ExampleUnit, Flag, TrainingUnit, Unit
from ..headline import Headline
from ..merging import PerExample, Positions, SortedBy
from ..options import Dtype
from ..outcomes import outcomes
from ..records import Result
from . import cross_fitting, disable, setup
from .records import (
    AblatedTarget,
    CrossFittedPart,
    MeanOverHeads,
    SplitHalf,
    Unmodified,
    ablation_headline,
    ablation_sentence,
    ablation_table,
)

TARGETS = ("heads", "layers")


@pydantic.dataclasses.dataclass(frozen=True)
class CrossFittedOptions(cross_fitting.CrossFitting):
    """Options for cross-fitted ablation: how examples are divided into folds and which heads or layers are ablated."""

    operator: Annotated[
        str,
        Flag(
            "ablation method: disable (equal attention to all visible tokens), zero (no output), or previous, current, "
            "next or first (all attention to this token)"
        ),
    ] = "disable"
    what: Annotated[str, Flag("components to ablate one at a time: heads or layers")] = "heads"
    dtype: Dtype = "float32"


@dataclass(frozen=True)
class CrossFitted:
    """Ablation results from cross-fitting, in which no model predicts an example that it was trained on."""

    rows: Positions
    folds: PerExample
    swept: disable.Ablations
    models: Annotated[tuple[cross_fitting.TunedPart, ...], SortedBy("number")]


class CrossFittedAblationStudy(cross_fitting.CrossFittedStudy[CrossFittedOptions, CrossFitted]):
    """Ablate every head or layer, and predict each training example with a model that was not fine-tuned on it."""

    name, options, partial = "cross-fitted", CrossFittedOptions, CrossFitted
    question = "Which head does the score depend on, tested on all train examples?"
    kinds = (Unmodified, AblatedTarget, SplitHalf, MeanOverHeads, CrossFittedPart)
    short_in = ("table", "latex")
    called = "Cross-fitted sweep of {checkpoint} on {task}"

    def units(self, options: CrossFittedOptions) -> list[Unit]:
        check_choice("The ablation method", options.operator, capture.interventions.OPERATORS)
        check_choice("The target of a cross-fitted ablation", options.what, TARGETS)
        return super().units(options)

    def more(self, options: CrossFittedOptions, partials: Sequence[CrossFitted]) -> list[Unit]:
        if any(not len(part.swept.changed) for part in partials):
            return []
        near = disable.near_claims(_sweep(options), self.merge(options, partials).swept)
        return cross_fitting.fold_units(options, "again", part=4, targets=near) if near else []

    def on_fold(
        self, options: CrossFittedOptions, fold: cross_fitting.Fold, of: TrainingUnit
    ) -> tuple[CrossFitted, str]:
        sweep = _sweep(options, fold.model.folder)
        some = ExampleUnit(tuple(fold.places.tolist()), targets=of.targets)
        swept, dtype = disable.swept_rows(sweep, setup.opened(sweep), fold.rows, some)
        models = () if of.targets else (fold.model,)
        return CrossFitted(swept.rows, np.full(len(swept.rows), of.fold), swept, models), dtype

    def results(self, options: CrossFittedOptions, merged: CrossFitted) -> list[Result]:
        task, swept, folds = task_of(options.task), merged.swept, np.unique(merged.folds)
        difference = outcomes(task, swept.gold, swept.changed) - outcomes(task, swept.gold, swept.plain)
        overall = np.sign(difference.mean(1))
        signs = [np.sign(difference[:, merged.folds == fold].mean(1)) for fold in folds]
        agree = iter(np.sum([(sign == overall) & (overall != 0) for sign in signs], axis=0).tolist())
        told = [
            replace(result, statistic=None, folds=options.folds, folds_agree=next(agree))  # over checkpoints
            if isinstance(result, AblatedTarget)
            else result
            for result in disable.STUDY.results(_sweep(options), swept)
        ]
        parts = [
            cross_fitting.part_score(task, model, swept.gold[own], swept.plain[own])
            for model in merged.models
            for own in [merged.folds == model.number]
        ]
        return [*told, *parts]

    def headline(self, rows: Sequence[Row]) -> Headline:
        return ablation_headline(rows)

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        agree = [None, *(variant.folds_agree for variant in AblatedTarget.among(rows))]
        table = [row | {"parts agree": count} for row, count in zip(ablation_table(rows), agree, strict=True)]
        return [table, ablation_sentence(rows)]


STUDY = CrossFittedAblationStudy()


def _sweep(options: CrossFittedOptions, folder: str = "-") -> disable.DisableOptions:
    """Return the options of the ablation on each fold, for the model in `folder`."""
    return disable.DisableOptions(
        checkpoint=folder, task=options.task, data=options.data, split="train", limit=options.limit,
        dtype=options.dtype, seed=options.seed, what=options.what, operator=options.operator,
    )  # fmt: skip
