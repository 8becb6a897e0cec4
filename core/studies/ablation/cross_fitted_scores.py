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

from ... import capture, studies
from ...errors import InputError
from ...store.rows import Row, plain
from ...tasks.glue import Task, task_of
from ...tasks.metrics import majority, metrics
from ...tuning.recipe import Seeds as RunSeeds
from ...tuning.recipe import check_initialisation
from ...tuning.saved_checkpoints import shown_folder
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline, defined
from ..options import Seeds
from ..outcomes import in_order
from ..provenance import provenance
from ..tuning.finetune import TunedRun, table_scores
from ..tuning.records import TunedRunScore, TunedScore, finetuned_task
from ..units import TrainingUnit
from . import cross_fitting, setup


@pydantic.dataclasses.dataclass(frozen=True)
class CrossFittedScoresOptions(cross_fitting.CrossFitting):
    """How examples are divided into folds, and from which initialisations models are trained."""

    initialisations: Annotated[
        tuple[str, ...], Flag("initialisation: pretrained, random, frozen or untrained; can be repeated", name="--init")
    ] = ("pretrained", "random", "untrained")
    seeds: Seeds = (0,)


@dataclass(frozen=True)
class TestedPart:
    """Predictions of a fine-tuned model for the fold that it was not trained on. `seed` sets the initial weights of the
    classifier and the order of examples; `number` is the fold."""

    initialisation: str
    seed: int
    number: int
    train_rows: int
    rows: np.ndarray
    gold: np.ndarray
    predicted: np.ndarray


@dataclass(frozen=True)
class TestedParts:
    """Predictions of several cross-fitted models, each for the fold that it was not trained on."""

    parts: tuple[TestedPart, ...]


class CrossFittedScores(Study[CrossFittedScoresOptions, TestedParts]):
    """Score all train examples for each initialisation and seed, by models fine-tuned without them."""

    name, options, partial, arguments = "cross-fitted-scores", CrossFittedScoresOptions, TestedParts, TrainingUnit
    question = "How well does the model score, tested on all train examples?"
    one_by_one = True
    kinds = (TunedScore, TunedRunScore)
    called = "Cross-fitted scores of {checkpoint} on {task}"
    needs = frozenset({Need.LABELS})

    def units(self, options: CrossFittedScoresOptions) -> list[Unit]:
        if not options.initialisations or not options.seeds:
            raise InputError("Cross-fitting needs at least one initialisation and one seed; got none. Choose them.")
        for initialisation in options.initialisations:
            check_initialisation(initialisation)
        cross_fitting.recipe_of(options)
        cross_fitting.cut_rows(options)
        size = cross_fitting.training_size(options)
        return [
            Unit(
                f"{initialisation}-s{seed}-{number}",
                TrainingUnit(source=initialisation, seeds=RunSeeds.all(seed), fold=number),
                size,
            )
            for initialisation in dict.fromkeys(options.initialisations)
            for seed in dict.fromkeys(options.seeds)
            for number in range(options.folds)
        ]

    def run(self, options: CrossFittedScoresOptions, unit: Unit) -> Done[TestedParts]:
        of: TrainingUnit = unit.arguments
        rows, folds = cross_fitting.cut_rows(options)
        left_out = folds == of.fold
        _, own_rows = cross_fitting.parted(rows, left_out)
        run = cross_fitting.run_without(options, of.fold, of.source, of.seeds.head)
        part = cross_fitting.tuned_part(options, run, rows, left_out)
        opened = setup.opened(setup.ExampleOptions(checkpoint=shown_folder(run.folder), task=options.task))
        predicted = opened.predicted(capture.running.predict(opened.checkpoint, opened.encoded(own_rows)))
        gold = np.array([row.label for row in own_rows])
        base = studies.worker_cache.get_checkpoint(options.checkpoint)
        facts = provenance(base, [row.id for row in own_rows], split="train", dtype=opened.checkpoint.dtype)
        tested = TestedPart(
            of.source, of.seeds.head, of.fold, part.train_rows, np.flatnonzero(left_out), gold, predicted
        )
        return Done(TestedParts((tested,)), facts)

    def results(self, options: CrossFittedScoresOptions, merged: TestedParts) -> list[TunedScore]:
        """Return one score per initialisation and seed, the means over seeds, and the score of the constant
        prediction."""
        several: dict[tuple[str, int], list[TestedPart]] = {}
        for part in merged.parts:
            several.setdefault((part.initialisation, part.seed), []).append(part)
        return table_scores([_over_all_rows(task_of(options.task), parts) for parts in several.values()])

    def headline(self, rows: Sequence[Row]) -> Headline:
        tuned = finetuned_task(rows)
        best = tuned.mean("pretrained") or tuned.means[0]
        scores = [f"{mean.initialisation} {100 * defined(mean.of_metric(tuned.metric)):.1f}" for mean in tuned.means]
        spread = best.spread(tuned.metric)
        floor = None if tuned.constant is None else tuned.constant.of_metric(tuned.metric)
        return Headline(
            (
                f"On {task_of(best.task).name}, cross-fitted over all training examples, the mean {tuned.metric} "
                f"by initialisation is: {'; '.join(scores)}."
            ),
            tuned.rows,
            "train examples",
            f"The standard deviation over {best.n} seeds is {100 * spread:.1f}." if spread else "",
            "" if floor is None else f"A constant prediction scores {100 * floor:.1f}.",
        )


STUDY = CrossFittedScores()


def _over_all_rows(task: Task, parts: Sequence[TestedPart]) -> TunedRun:
    """Return the joint score of all folds' models; `train_rows` is their smallest number of examples."""
    gold, predicted = in_order(parts, ("gold", "predicted")).values()
    answer, best_constant = majority(task, gold, gold)
    silent = sum(len(np.unique(part.predicted)) == 1 for part in parts)
    return TunedRun(
        task=task.key, initialisation=parts[0].initialisation, seed=parts[0].seed, metric=task.metric,
        metrics=plain(metrics(task, gold, predicted)), constant=silent == len(parts),
        note=f"constant predictions of {silent} of {len(parts)} models" if silent else "",
        train_rows=min(part.train_rows for part in parts), dev_rows=len(gold), cut_rows=0, seconds=math.nan,
        last_loss=None, folder="", majority=answer, baseline=plain(best_constant), epochs=[], held_heads=0, gold=gold,
        predicted=predicted,
    )  # fmt: skip
