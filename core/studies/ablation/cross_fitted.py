"""Cross-fitted ablation: every head (or layer) in turn, over all training examples.

The training examples are divided into folds. For each fold, a model is fine-tuned on the other folds and ablated on
this fold, so no example is tested by a model that was trained on it or on one of its sentences. All models start from
the same weights. The result has the rows of `disable` over all examples, with the number of folds that agree in sign,
and one row per fold. Confidence intervals refer to examples, not to other models.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture, studies
from ...errors import InputError
from ...store.rows import Row
from ...tasks.glue import task_of
from ...tuning.saved_checkpoints import shown_folder
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline
from ..options import Dtype
from ..outcomes import outcomes
from ..provenance import provenance
from ..records import Result
from ..units import ExampleUnit, TrainingUnit
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
    """How examples are divided into folds, and how the heads of each fold's model are ablated."""

    operator: Annotated[
        str, Flag("ablation method: disable (uniform attention), zero, previous, current, next or first")
    ] = "disable"
    what: Annotated[str, Flag("what is ablated in turn: heads or layers")] = "heads"
    dtype: Dtype = "float32"


@dataclass(frozen=True)
class CrossFitted:
    """Ablation results on examples that the ablated models were not trained on. `folds` holds the fold of each example,
    and `runs` the model of each fold."""

    swept: disable.Ablations
    folds: np.ndarray
    runs: tuple[cross_fitting.TunedPart, ...]


class CrossFittedStudy(Study[CrossFittedOptions, CrossFitted]):
    """Ablate every head or layer on all train examples, by models that were fine-tuned without these examples."""

    name, options, partial, arguments = "cross-fitted", CrossFittedOptions, CrossFitted, TrainingUnit
    question = "Which head does the score depend on, tested on all train examples?"
    one_by_one = True
    kinds = (Unmodified, AblatedTarget, SplitHalf, MeanOverHeads, CrossFittedPart)
    short_in = ("table", "latex")
    called = "Cross-fitted sweep of {checkpoint} on {task}"
    needs = frozenset({Need.LABELS})

    def units(self, options: CrossFittedOptions) -> list[Unit]:
        cross_fitting.recipe_of(options)
        if options.operator not in capture.interventions.OPERATORS:
            raise InputError(
                "The ablation method must be one of "
                f'{", ".join(capture.interventions.OPERATORS)}; got "{options.operator}". Choose '
                "one of them."
            )
        if options.what not in TARGETS:
            raise InputError(
                f"Only {' or '.join(TARGETS)} can be ablated in a cross-fitted ablation; got "
                f'"{options.what}". Choose one of them.'
            )
        cross_fitting.cut_rows(options)
        return _units(options, ())

    def more(self, options: CrossFittedOptions, partials: Sequence[CrossFitted]) -> list[Unit]:
        """Return the units that recompute possibly significant effects in float32."""
        if any(not len(part.swept.changed) for part in partials):
            return []
        near = disable.near_claims(_sweep(options), self.merge(options, partials).swept)
        return _units(options, near) if near else []

    def run(self, options: CrossFittedOptions, unit: Unit) -> Done[CrossFitted]:
        of: TrainingUnit = unit.arguments
        all_rows, folds = cross_fitting.cut_rows(options)
        places = np.flatnonzero(folds == of.fold)
        rows = [all_rows[k] for k in places]
        run = cross_fitting.run_without(options, of.fold)
        runs = () if of.targets else (cross_fitting.tuned_part(options, run, all_rows, folds == of.fold),)
        opened = setup.opened(_sweep(options, shown_folder(run.folder)))
        some = ExampleUnit(tuple(places.tolist()), targets=of.targets)
        swept, dtype = disable.swept_rows(_sweep(options), opened, rows, some)
        # whose the result is: the parts are tuned from it
        base = studies.worker_cache.get_checkpoint(options.checkpoint)
        facts = provenance(base, [row.id for row in rows], split="train", dtype=dtype)
        return Done(CrossFitted(swept, folds[places], runs), facts)

    def merge(self, options: CrossFittedOptions, partials: Sequence[CrossFitted]) -> CrossFitted:
        first = sorted((part for part in partials if len(part.swept.changed)), key=lambda part: part.folds[0])
        swept = disable.STUDY.merge(_sweep(options), [part.swept for part in partials])
        places = np.concatenate([part.swept.rows for part in first])
        folds = np.concatenate([part.folds for part in first])
        return CrossFitted(swept, folds[np.argsort(places)], tuple(run for part in first for run in part.runs))

    def results(self, options: CrossFittedOptions, merged: CrossFitted) -> list[Result]:
        """Return the records of `disable`, with the number of folds that agree in sign, then one record per fold."""
        task, swept, folds = task_of(options.task), merged.swept, np.unique(merged.folds)
        difference = outcomes(task, swept.gold, swept.changed) - outcomes(task, swept.gold, swept.plain)
        overall = np.sign(difference.mean(1))
        signs = [np.sign(difference[:, merged.folds == fold].mean(1)) for fold in folds]
        agree = iter(np.sum([(sign == overall) & (overall != 0) for sign in signs], axis=0).tolist())
        told = [
            replace(result, statistic=None, folds=options.folds, folds_agree=next(agree))  # no score of one checkpoint
            if isinstance(result, AblatedTarget)
            else result
            for result in disable.STUDY.results(_sweep(options), swept)
        ]
        parts = [
            cross_fitting.part_score(task, number, run, swept.gold[own], swept.plain[own])
            for number, run in zip(folds, merged.runs, strict=True)
            for own in [merged.folds == number]
        ]
        return [*told, *parts]

    def headline(self, rows: Sequence[Row]) -> Headline:
        return ablation_headline(rows)

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        agree = [None, *(variant.folds_agree for variant in AblatedTarget.among(rows))]
        table = [row | {"parts agree": count} for row, count in zip(ablation_table(rows), agree, strict=True)]
        return [table, ablation_sentence(rows)]


STUDY = CrossFittedStudy()


def _units(options: CrossFittedOptions, variants: tuple[int, ...]) -> list[Unit]:
    size = cross_fitting.training_size(options)
    name = "again" if variants else "fold"
    return [
        Unit(f"{name}-{k}", TrainingUnit(fold=k, targets=variants), max(1, size // 4) if variants else size)
        for k in range(options.folds)
    ]


def _sweep(options: CrossFittedOptions, folder: str = "-") -> disable.DisableOptions:
    """Return the options of the ablation on each fold, for the model in `folder`."""
    return disable.DisableOptions(
        checkpoint=folder, task=options.task, data=options.data, split="train", limit=options.limit,
        dtype=options.dtype, seed=options.seed, what=options.what, operator=options.operator,
    )  # fmt: skip
