"""How useful each layer is for a task: a classifier on the output of every layer, and fine-tuning with frozen layers.

Liu et al. 2019 found middle layers most transferable. "classifier": logistic (or ridge) regression on one layer, at the
classifying token or the mean over tokens, compared with random weights. "frozen": the first k layers and the embeddings
are not trained. "best layer": chosen on one half of dev, with its gain over the last layer on the other half.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture, config, models, probing, studies
from ...models.encoding import Encoding
from ...probing.ragged import Ragged
from ...scoring.influence import mean_score, score_difference
from ...store.rows import Row
from ...tasks.glue import task_of
from ...tasks.metrics import majority
from ...tuning.recipe import Recipe
from ...tuning.recipe import Seeds as RunSeeds
from ..contract import Done, Flag, Need, Study, TrainingUnit, Unit, provenance
from ..headline import Headline, defined, percent, points_more
from ..options import Checkpoint, Data, Preset, Seeds, Settings, TunedTasks
from ..outcomes import metrics_of
from ..records import Result, picked
from ..tuning.records import BestLayer, Transferred
from .syntax import RANDOM, TRAINED

if TYPE_CHECKING:
    from .trials import Bench


READINGS = {"first": "classifying token", "mean": "mean over tokens"}
LAYER, FREEZE = "layer", "freeze"
SHORT = {"train_limit": 2000, "dev_limit": 500, "epochs": 2}  # many runs, so short ones


@pydantic.dataclasses.dataclass(frozen=True)
class TransferOptions:
    """Options for a study of layer transfer: the tasks, and the settings of fine-tuning with frozen layers."""

    checkpoint: Checkpoint = config.ENCODER
    tasks: TunedTasks = ("sst2",)
    data: Data = None
    seeds: Seeds = (0,)
    preset: Preset = "small"
    settings: Settings = field(default_factory=dict)
    freeze: Annotated[
        bool, Flag("also fine-tune the checkpoint with its first layers frozen", name="--freeze/--no-freeze")
    ] = True

    @property
    def recipe(self) -> Recipe:
        return Recipe.of(self.preset, SHORT | self.settings)


@dataclass(frozen=True)
class Predicted:
    """Dev predictions of a classifier on the output of one layer, or of a model that was fine-tuned with frozen layers.

    Attributes:
        reading: one of READINGS for a classifier; "" for a fine-tuned model.
        layer: layer of the classifier (0: embeddings), or number of frozen layers.
        seed: of fine-tuning; 0 for a classifier.
        baseline: score of the constant prediction; None if undefined.
    """

    what: str
    task: str
    source: str
    reading: str
    layer: int
    layers: int
    seed: int
    gold: np.ndarray
    predicted: np.ndarray
    train_rows: int
    constant: str
    baseline: float | None


@dataclass(frozen=True)
class TransferPartial:
    """The dev predictions from one or more work units."""

    predicted: tuple[Predicted, ...]


class TransferStudy(Study[TransferOptions, TransferPartial]):
    """Compare layers on a task by training classifiers on their outputs and by fine-tuning with frozen layers."""

    name, options, partial, arguments = "transfer", TransferOptions, TransferPartial, TrainingUnit
    question = "Which layer is best for the task?"
    kinds = (Transferred, BestLayer)
    called = "Transfer by layer of {checkpoint}"
    needs = frozenset({Need.LABELS})

    def units(self, options: TransferOptions) -> list[Unit]:
        every = []
        for task in dict.fromkeys(task_of(name).key for name in options.tasks):
            train, dev = studies.probing.trials.task_rows(task_of(task), options.recipe, options.data)
            size = sum(len(row.text) + len(row.pair or "") for row in [*train, *dev]) // 4
            for source in (TRAINED, RANDOM):
                every.append(Unit(f"{task}|{source}", TrainingUnit(task, LAYER, source), size))
            layers = layers_of(options.checkpoint) if options.freeze else -1
            every += [
                Unit(
                    f"{task}|freeze {k}|{seed}",
                    TrainingUnit(task, FREEZE, TRAINED, RunSeeds.all(seed), frozen=k),
                    size * options.recipe.epochs * 3,
                )
                for seed in dict.fromkeys(options.seeds)
                for k in range(layers + 1)
            ]
        return every

    def run(self, options: TransferOptions, unit: Unit) -> Done[TransferPartial]:
        of: TrainingUnit = unit.arguments
        base = studies.probing.probe_features.open_source(
            options.checkpoint, random=of.source == RANDOM, seed=options.seeds[0]
        )
        on = studies.probing.trials.bench(base, task_of(of.task), options.recipe, options.data)
        name, constant = majority(on.task, [row.label for row in on.train_rows], on.gold)
        metric = metrics_of(on.task)[0]
        shared = (len(on.train_rows), name, constant.get(metric))
        if of.kind == FREEZE:
            recipe = replace(options.recipe, train_last=base.layers - of.frozen)
            told = json.dumps([options.checkpoint, of.task, options.data, asdict(recipe)], sort_keys=True, default=str)
            key = f"freeze-{of.frozen}-s{of.seeds.head}-{hashlib.sha256(told.encode()).hexdigest()[:10]}"
            _, predicted = studies.probing.trials.trial(on, recipe, of.seeds.head, key)
            about = (FREEZE, of.task, TRAINED, "", of.frozen, base.layers, of.seeds.head)
            done = [Predicted(*about, on.gold, predicted, *shared)]
        else:
            done = [
                Predicted(LAYER, of.task, of.source, reading, layer, rows.shape[0] - 1, 0, on.gold, row, *shared)
                for reading, rows in layer_predictions(on).items()
                for layer, row in enumerate(rows)
            ]
        return Done(TransferPartial(tuple(done)), provenance(base, [row.id for row in on.dev_rows], split="dev"))

    def results(self, options: TransferOptions, merged: TransferPartial) -> list[Result]:
        results: list[Result] = []
        for task in dict.fromkeys(predicted.task for predicted in merged.predicted):
            mine = [predicted for predicted in merged.predicted if predicted.task == task]
            first = mine[0]
            metric = metrics_of(task_of(first.task))[0]
            results += [
                Transferred(
                    kind="baseline",
                    task=first.task,
                    name=f"always {first.constant}",
                    metric=metric,
                    value=first.baseline,
                    n=len(first.gold),
                ),
                *_classifiers(mine, metric),
                *_best_layers(mine, metric),
                *_frozen_layers(mine, metric),
            ]
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        best = max(BestLayer.defined(rows), key=lambda layer: layer.n)
        floor = picked(Transferred.defined(rows), kind="baseline", task=best.task)[0]
        return Headline(
            (
                f"Layer {best.layer} is the best layer for a classifier that reads the {best.reading}, chosen on half "
                "of the dev examples. On the other half, the classifier scores "
                f"{points_more(defined(best.value), 'the same classifier on the last layer')}."
            ),
            best.n,
            "dev examples",
            percent(best.low, best.high),
            f"A constant prediction scores {100 * defined(floor.value):.1f}.",
        )


STUDY = TransferStudy()


def layers_of(checkpoint: str) -> int:
    """Read the number of layers from the config of a checkpoint. Raises CheckpointError if it cannot be read."""
    folder = models.opening.locate(checkpoint)
    return models.config_files.layers_in(models.config_files.read_config(folder, checkpoint))


# ---------------------------------------------------------------- rows


def _classifiers(mine: Sequence[Predicted], metric: str) -> list[Transferred]:
    """Return one record per reading and layer, compared with random weights."""
    results = []
    known = {(read.source, read.reading, read.layer): read for read in mine if read.what == LAYER}
    for (source, reading, layer), classifier in known.items():
        if source == RANDOM:
            continue
        transferred = Transferred(
            kind="classifier", task=classifier.task, reading=READINGS[reading], layer=layer,
            name=f"{READINGS[reading]}, layer {layer}", metric=metric, n=len(classifier.gold),
            constant=classifier.baseline, train_rows=classifier.train_rows,
            **mean_score(metric, classifier.gold, classifier.predicted[None]).fields(),
        )  # fmt: skip
        fresh = known.get((RANDOM, reading, layer))
        if fresh is not None:
            more = score_difference(metric, classifier.gold, classifier.predicted[None], fresh.predicted[None])
            random_weights = mean_score(metric, classifier.gold, fresh.predicted[None]).value
            transferred = replace(
                transferred, random_weights=random_weights, gain=more.value, gain_low=more.low, gain_high=more.high
            )
        results.append(transferred)
    return results


def _best_layers(mine: Sequence[Predicted], metric: str) -> list[BestLayer]:
    """Choose the best layer of each reading on every other dev example, and return its gain on the rest."""
    results = []
    for reading, words in READINGS.items():
        own = [read for read in mine if (read.what, read.source, read.reading) == (LAYER, TRAINED, reading)]
        if not own or len(own[0].gold) < 4:
            continue
        by_layer = sorted(own, key=lambda read: read.layer)
        gold, predicted = own[0].gold, np.stack([read.predicted for read in by_layer])
        scores = [mean_score(metric, gold[::2], row[None, ::2]).value for row in predicted]
        best = int(np.argmax([-2.0 if value is None else value for value in scores]))
        judged = slice(1, None, 2)
        more = score_difference(metric, gold[judged], predicted[best][None, judged], predicted[-1][None, judged])
        best_layer = BestLayer(
            task=own[0].task, reading=words, layer=best, layers=len(predicted) - 1,
            name=f"layer {best} less the last", metric=metric, n=len(gold[judged]), note="chosen on the other rows",
            **more.fields(),
        )  # fmt: skip
        results.append(best_layer)
    return results


def _frozen_layers(mine: Sequence[Predicted], metric: str) -> list[Transferred]:
    """Return one record per number of frozen layers: the mean over seeds, and its difference from no frozen layers."""
    by_depth: dict[int, list[Predicted]] = {}
    for tuned in mine:
        if tuned.what == FREEZE:
            by_depth.setdefault(tuned.layer, []).append(tuned)
    if not by_depth:
        return []
    results, free = [], np.stack([tuned.predicted for tuned in by_depth[min(by_depth)]])
    for frozen, some in sorted(by_depth.items()):
        gold, predicted = some[0].gold, np.stack([tuned.predicted for tuned in some])
        change = score_difference(metric, gold, predicted, free)
        transferred = Transferred(
            kind="frozen", task=some[0].task, frozen=frozen, layers=some[0].layers,
            name=f"first {frozen} layers frozen", metric=metric, n=len(gold), seeds=len(some),
            **mean_score(metric, gold, predicted).fields(),
            change=change.value, change_low=change.low, change_high=change.high,
            constant=some[0].baseline, train_rows=some[0].train_rows,
        )  # fmt: skip
        results.append(transferred)
    return results


# ---------------------------------------------------------------- probes of frozen layers


def layer_predictions(on: "Bench") -> dict[str, np.ndarray]:
    """Train a classifier on each layer's output. Return dev predictions [layer, example] for each way of pooling."""
    parts = [_pooled(on.base, [example.encoding for example in some]) for some in (on.train, on.dev)]
    labels = [np.array([row.label for row in rows]) for rows in (on.train_rows, on.dev_rows)]
    predictions = {}
    for place, reading in enumerate(READINGS):
        train, dev = (vectors[:, place] for vectors in parts)
        if on.task.is_score:
            predictions[reading] = _ridge(train, labels[0], dev)
            continue
        examples = [
            probing.layers.Examples(vectors, np.arange(len(own)), own, np.arange(len(own)), ("",) * len(own))
            for vectors, own in zip((train, dev), labels, strict=True)
        ]
        predictions[reading] = probing.layers.fit(examples[0], len(on.task.labels), probing.layers.LINEAR).predict(
            examples[1]
        )
    return predictions


def _pooled(checkpoint: "models.checkpoint.Checkpoint", encodings: Sequence[Encoding]) -> np.ndarray:
    """Return the vectors [example, reading, layer, hidden] of all examples, stored on disk."""
    features = studies.probing.probe_features
    shapes = [(2, checkpoint.layers + 1, int(checkpoint.model.config.hidden_size))] * len(encodings)

    def fill(stored: Ragged) -> None:
        for chosen, states in capture.outputs.layer_outputs(checkpoint, encodings):
            for row, number in enumerate(chosen):
                own, encoding = states[:, row].numpy(), encodings[number]
                at = studies.attention.measures.classifying(encoding, causal=checkpoint.causal)
                both = np.stack([own[:, at], own[:, list(encoding.ordinary)].mean(1)])
                stored.put(number, features.half_precision(both))

    stored = features.kept_features("pooled", checkpoint, features.texts_of(encodings), shapes, fill)
    return stored.data[: int(stored.starts[-1])].reshape(len(encodings), *shapes[0])


def _ridge(train: np.ndarray, scores: np.ndarray, dev: np.ndarray) -> np.ndarray:
    """Fit a ridge regression to the standardised output of every layer, and return its predictions for dev."""
    from sklearn.linear_model import RidgeCV  # 1 s of start-up
    from sklearn.pipeline import make_pipeline  # 1 s of start-up
    from sklearn.preprocessing import StandardScaler  # 1 s of start-up

    predictions = []
    for layer in range(train.shape[1]):
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 4, 9)))
        model.fit(train[:, layer].astype(np.float64), scores)
        predictions.append(model.predict(dev[:, layer].astype(np.float64)))
    return np.stack(predictions)
