"""Cross-fitted scores of models fine-tuned from several initialisations, over all training examples.

For each initialisation, seed and fold, a model is fine-tuned on the other folds and tested on this fold. The folds are
always the same. The result has the rows of `finetune`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...errors import check_range
from ...store.rows import Row, plain
from ...tasks.glue import Task, task_of
from ...tasks.metrics import majority, metrics
from ...tuning.recipe import Seeds as RunSeeds
from ...tuning.recipe import check_initialisation
from ..contract import TrainingUnit, Unit
from ..headline import Headline, defined
from ..merging import MergedBy, PerExample, Positions, Smallest, Summed
from ..options import Initialisations, Seeds
from ..tuning.finetune import TunedRun, scores_of, table_scores
from ..tuning.records import TunedRunScore, TunedScore, finetuned_task
from . import cross_fitting, setup


@pydantic.dataclasses.dataclass(frozen=True)
class CrossFittedScoresOptions(cross_fitting.CrossFitting):
    """Options for cross-fitted scores: how examples are divided into folds, and which initial weights are used."""

    initialisations: Initialisations = ("pretrained", "random", "untrained")
    seeds: Seeds = (0,)


@dataclass(frozen=True)
class TestedModels:
    """Held-out predictions of models with the same initialisation and seed. Each model was trained without one fold,
    and predicts the examples of this fold."""

    initialisation: str
    seed: int
    rows: Positions
    gold: PerExample
    predicted: PerExample
    train_rows: Smallest[int]
    models: Summed[int]
    constant: Summed[int]


@dataclass(frozen=True)
class CrossFittedPredictions:
    """Predictions of models with different initialisations and seeds for examples that were not used to train them."""

    tested: Annotated[tuple[TestedModels, ...], MergedBy("initialisation", "seed")]


class CrossFittedScoresStudy(cross_fitting.CrossFittedStudy[CrossFittedScoresOptions, CrossFittedPredictions]):
    """For each initialisation and seed, score every training example with a model fine-tuned on the other folds."""

    name, options, partial = "cross-fitted-scores", CrossFittedScoresOptions, CrossFittedPredictions
    question = "How well does the model score, tested on all train examples?"
    kinds = (TunedScore, TunedRunScore)
    called = "Cross-fitted scores of {checkpoint} on {task}"

    def units(self, options: CrossFittedScoresOptions) -> list[Unit]:
        check_range("The number of initialisations", len(options.initialisations), 1)
        check_range("The number of seeds", len(options.seeds), 1)
        for initialisation in options.initialisations:
            check_initialisation(initialisation)
        cross_fitting.recipe_of(options)
        cross_fitting.cut_rows(options)
        return [
            unit
            for initialisation in dict.fromkeys(options.initialisations)
            for seed in dict.fromkeys(options.seeds)
            for unit in cross_fitting.fold_units(
                options, f"{initialisation}-s{seed}", source=initialisation, seeds=RunSeeds.all(seed)
            )
        ]

    def on_fold(
        self, options: CrossFittedScoresOptions, fold: cross_fitting.Fold, of: TrainingUnit
    ) -> tuple[CrossFittedPredictions, str]:
        opened = setup.opened(setup.ExampleOptions(checkpoint=fold.model.folder, task=options.task))
        predicted = opened.predicted(capture.running.predict(opened.checkpoint, opened.encoded(fold.rows)))
        gold = np.array([row.label for row in fold.rows])
        tested = TestedModels(
            of.source, of.seeds.head, fold.places, gold, predicted, fold.model.train_rows, 1,
            int(len(np.unique(predicted)) == 1),
        )  # fmt: skip
        return CrossFittedPredictions((tested,)), opened.checkpoint.dtype

    def results(self, options: CrossFittedScoresOptions, merged: CrossFittedPredictions) -> list[TunedScore]:
        return table_scores([_over_all_rows(task_of(options.task), tested) for tested in merged.tested])

    def headline(self, rows: Sequence[Row]) -> Headline:
        tuned = finetuned_task(rows)
        best = tuned.mean("pretrained") or tuned.means[0]
        task = task_of(best.task).name
        scores = [f"{100 * defined(mean.of_metric(tuned.metric)):.1f} ({mean.initialisation})" for mean in tuned.means]
        depending = ", depending on the initialisation" if len(scores) > 1 else ""
        spread = best.spread(tuned.metric)
        floor = None if tuned.constant is None else tuned.constant.of_metric(tuned.metric)
        return Headline(
            (
                f"The mean cross-fitted {tuned.metric} on the train examples of {task} is {', '.join(scores)}"
                f"{depending}."
            ),
            tuned.rows,
            "train examples",
            f"The standard deviation of the score over {best.n} seeds is {100 * spread:.1f}." if spread else "",
            "" if floor is None else f"A constant prediction scores {100 * floor:.1f}.",
        )


STUDY = CrossFittedScoresStudy()


def _over_all_rows(task: Task, tested: TestedModels) -> TunedRun:
    """Score the predictions of all cross-fitting folds together. `train_rows` is the smallest training set."""
    gold, predicted, constant = tested.gold, tested.predicted, tested.constant
    answer, best_constant = majority(task, gold, gold)
    score = TunedRunScore(
        task=task.key, initialisation=tested.initialisation, seed=tested.seed, metric=task.metric,
        constant=constant == tested.models,
        note=f"constant predictions of {constant} of {tested.models} models" if constant else "",
        train_rows=tested.train_rows, dev_rows=len(gold), cut_rows=0, seconds=math.nan, folder="", majority=answer,
        baseline=plain(best_constant), epochs=[], kept_because="", **scores_of(metrics(task, gold, predicted)),
    )  # fmt: skip
    return TunedRun(score, gold, predicted)
