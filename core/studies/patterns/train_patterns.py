"""Training of a pattern classifier on labelled maps, and its evaluation on inputs that it was not trained on.

Kovaleva et al. 2019, section 4.1, report F1 0.86 without stating the split. Here the main score is macro F1 on held-out
checkpoints or, with labels of one checkpoint only, in cross-validation grouped by input. Only maps that were sampled at
random and labelled without a suggestion are scored; all are used for training.
"""

import base64
import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic.dataclasses

from ... import config, patterns
from ...errors import InputError
from ...patterns.snapshot import Snapshot, read
from ...store import classifiers
from ...store.database import Database
from ...store.rows import Row
from ..contract import Done, Finished, Study, TrainingUnit, Unit
from ..options import Seed
from ..records import Result
from .records import (
    Calibration,
    ClassScore,
    Confusion,
    FinalClassifier,
    HeldOutAnswers,
    HeldOutMap,
    HeldOutScore,
    LearningPoint,
)

if TYPE_CHECKING:
    from ...patterns.evaluation import Scores


RECIPE = ("kind", "epochs", "batch", "rate", "class_weights", "falling", "size", "folds", "seed")
ON = {"checkpoints": "unseen checkpoints", "heads": "unseen heads", "fold": "unseen inputs"}  # the headline first
ON_OWN = "unseen inputs, your maps"  # beside bundled ones
SCORES = ("scores", "checkpoint", "class", "confusion", "calibration", "curve")
QUICK = "trees"  # fitted in seconds, so every training leaves checkpoints out
CURVE = (0.25, 0.5, 0.75)  # shares of the training inputs of a fold
CURVE_FOLDS = 2


@dataclass(frozen=True)
class Predictions:
    """Predictions of a pattern classifier for the maps of one held-out fold.

    Attributes:
        cropped: number of held-out maps that are too long for the classifier.
        truth: class numbers.
        probabilities: *Shape:* (map, class).
        identity: class predicted from the head alone, as a baseline.
        outside: whether the map is outside the training distribution.
    """

    of: TrainingUnit
    trained_on: int
    cropped: int
    map_ids: tuple[str, ...]
    groups: tuple[str, ...]
    checkpoints: tuple[str, ...]
    truth: np.ndarray
    probabilities: np.ndarray
    identity: np.ndarray
    outside: np.ndarray

    def of_checkpoint(self, name: str) -> "Predictions":
        return self.at([k for k, checkpoint in enumerate(self.checkpoints) if checkpoint == name])

    def among(self, map_ids: Container[str]) -> "Predictions":
        return self.at([k for k, name in enumerate(self.map_ids) if name in map_ids])

    def at(self, places: Sequence[int]) -> "Predictions":
        texts = ("map_ids", "groups", "checkpoints")
        numbers, places = ("truth", "probabilities", "identity", "outside"), list(places)
        kept: dict[str, Any] = {name: tuple(getattr(self, name)[k] for k in places) for name in texts}
        return replace(self, **kept | {name: getattr(self, name)[places] for name in numbers})


def curve(folds: Sequence[Predictions], snapshot: Snapshot) -> list[LearningPoint]:
    """Compute macro F1 for classifiers trained on different numbers of labels, always on the same held-out folds."""
    parts = [fold for fold in folds if fold.of.kind == "curve"]
    whole = [fold for fold in folds if fold.of.kind == "fold"]
    numbers = {fold.of.fold for fold in parts}
    points = []
    for share in [*sorted({fold.of.share for fold in parts if fold.of.share}), *([1.0] if numbers else [])]:
        chosen = (
            [fold for fold in whole if fold.of.fold in numbers]
            if share == 1
            else [fold for fold in parts if fold.of.share == share]
        )
        if not chosen:
            continue
        truth, likely, groups = _numbers(chosen)
        held_out = patterns.evaluation.scores(truth, likely.argmax(1), groups, snapshot.classes)
        maps = [fold.trained_on for fold in chosen for _ in fold.map_ids]
        points.append(
            LearningPoint(
                labels=round(float(np.mean(maps))),
                macro_f1=held_out.macro_f1,
                low=held_out.low,
                high=held_out.high,
                maps=held_out.maps,
            )
        )
    return points


@pydantic.dataclasses.dataclass(frozen=True)
class TrainPatternsOptions:
    """Options for training a pattern classifier: the labels, the recipe, and additional measurements.

    `log` is the folder for the loss, `curve` requests a learning curve, and `beside` holds out checkpoints for every
    kind of classifier.
    """

    snapshot: str = ""
    log: str = ""
    kind: str = "trees"
    epochs: int = 200
    batch: int = 64
    rate: float = 1e-3
    class_weights: bool = False
    falling: float = 0.25
    size: int | None = None
    folds: int = 5
    seed: Seed = 0
    curve: bool = True
    beside: bool = True
    annotator: str = ""

    def recipe(self) -> Row:
        return {name: getattr(self, name) for name in RECIPE}


@dataclass(frozen=True)
class Final:
    """The trained pattern classifier (safetensors in base64), its map size, and the number of cropped training maps."""

    weights: str
    size: int
    cropped: int


@dataclass(frozen=True)
class Trained:
    """The predictions of cross-validated classifiers for the held-out folds, and the final pattern classifier."""

    folds: tuple[Predictions, ...] = ()
    finals: tuple[Final, ...] = ()


class TrainPatternsStudy(Study[TrainPatternsOptions, Trained]):
    """Train a pattern classifier on labelled attention maps. Its macro F1 is measured on held-out inputs."""

    name, options, partial, arguments = "train-patterns", TrainPatternsOptions, Trained, TrainingUnit
    typed_after = None
    kinds = (
        HeldOutScore,
        ClassScore,
        Confusion,
        Calibration,
        HeldOutMap,
        HeldOutAnswers,
        LearningPoint,
        FinalClassifier,
    )
    counts, started_by = "maps", "annotator"

    def units(self, options: TrainPatternsOptions) -> list[Unit]:
        kept = read(options.snapshot)
        patterns.training.check_labels(kept.column("class"), kept.classes, kept.column("group"), folds=options.folds)
        if not any(kept.column("headline")):
            raise InputError(
                "Evaluation needs maps that were drawn at random and labelled without a suggestion; got none among "
                f"{len(kept.maps)} labelled maps. Label some maps in random order with "
                "suggestions off."
            )
        maps = len(kept.maps)
        units = [
            Unit(f"fold {k}", TrainingUnit(kind="fold", split="group", fold=k), maps) for k in range(options.folds)
        ]
        units.append(Unit("final", TrainingUnit(kind="final"), maps))
        if options.beside or options.kind == QUICK:
            checkpoints = sorted(set(kept.column("checkpoint")))
            units += [
                Unit(
                    f"unseen checkpoint {k + 1}",
                    TrainingUnit(kind="checkpoints", split="checkpoint", fold=k),
                    len(kept.maps),
                )
                for k in range(len(checkpoints) if len(checkpoints) > 1 else 0)
            ]
        heads = len(set(zip(kept.column("layer"), kept.column("head"), strict=True)))
        units += [
            Unit(f"unseen heads {k}", TrainingUnit(kind="heads", split="heads", fold=k), len(kept.maps))
            for k in range(options.folds if heads >= options.folds else 0)
        ]
        if options.curve:
            units += [
                Unit(
                    f"{share:.0%} of the labels, fold {k}",
                    TrainingUnit(kind="curve", split="group", fold=k, share=share),
                    int(maps * share) or 1,
                )
                for k in range(min(CURVE_FOLDS, options.folds))
                for share in CURVE
            ]
        return units

    def run(self, options: TrainPatternsOptions, unit: Unit) -> Done[Trained]:
        fold: TrainingUnit = unit.arguments
        kept = read(options.snapshot)
        train, test = split_of(kept, options, fold)
        names = ("map_id", "group", "checkpoint", "class", "layer", "head", "headline")
        map_ids, groups, checkpoints, labels, layers, numbers, headline = (kept.column(name) for name in names)
        measured = _measured(options.snapshot) if options.kind == QUICK else None
        log, state = _files(options, unit)
        fitted = kept.repeated(train)
        classifier = patterns.training.fit(
            [kept.maps[k] for k in fitted],
            [labels[k] for k in fitted],
            kept.classes,
            patterns.training.ClassifierRecipe(**options.recipe()),
            known=patterns.training.Known(
                None if kept.soft is None else kept.soft[fitted],
                [checkpoints[k] for k in fitted],
                [kept.heads[k] for k in fitted],
                None if measured is None else measured[fitted],
            ),
            course=patterns.training.Course(_told(log, unit.key), state),
        )
        if state:
            state.unlink(missing_ok=True)
        if fold.kind == "final":
            weights = base64.b64encode(classifier.as_bytes()).decode()
            return Done(Trained(finals=(Final(weights, classifier.size, classifier.cropped),)))
        places_of = list(zip(checkpoints, layers, numbers, strict=True))
        held_out = [k for k in test if headline[k]]
        judgement = patterns.suggestions.judged(
            classifier, [kept.maps[k] for k in held_out], measured=None if measured is None else measured[held_out]
        )
        guesses = patterns.evaluation.by_identity(
            [labels[k] for k in train], [places_of[k] for k in train], [places_of[k] for k in held_out]
        )
        predictions = Predictions(
            fold,
            len(train),
            judgement.cropped,
            tuple(map_ids[k] for k in held_out),
            tuple(groups[k] for k in held_out),
            tuple(checkpoints[k] for k in held_out),
            np.array([kept.classes.index(labels[k]) for k in held_out]),
            np.array([[round(float(p), 5) for p in row] for row in judgement.probabilities]),
            np.array([kept.classes.index(guess) for guess in guesses]),
            np.array(judgement.outside, dtype=bool),
        )
        return Done(Trained((predictions,)))

    def results(self, options: TrainPatternsOptions, merged: Trained) -> list[Result]:
        kept = read(options.snapshot)
        results: list[Result] = []
        folds = [fold for fold in merged.folds if fold.map_ids]
        parts = {part: [fold for fold in folds if fold.of.kind == part] for part in ON}
        measured = [part for part in ON if parts[part]]
        for part in measured:
            results.append(scored(part, parts[part], kept, kind=options.kind, seed=options.seed))
        results += of_own(parts["fold"], kept, kind=options.kind, seed=options.seed)
        results += of_checkpoints([fold for fold in folds if fold.of.kind == "checkpoints"], kept)
        results += details(parts[measured[0]], kept, seed=options.seed) if measured else []
        results += [answers_of({ON[part]: parts[part] for part in measured})] if measured else []
        results += curve(folds, kept)
        labels = len(kept.maps)
        return results + [FinalClassifier(**vars(final), n_labels=labels) for final in merged.finals]

    def keep(self, db: Database, run: Finished[TrainPatternsOptions, Trained]) -> None:
        """Store the trained classifier under the ID of the run. Raises InputError if training has not finished."""
        options, rows, snapshot = run.options, run.rows, read(run.options.snapshot)
        final = FinalClassifier.among(rows)
        if not final:
            raise InputError(
                "Training must be finished before the classifier is stored; this training was stopped earlier. "
                "Resume the training."
            )
        best = main_score(rows)
        scores: Row = {
            "on": best.on,
            "macro_f1": best.macro_f1,
            "low": best.low,
            "high": best.high,
            "n": best.maps,
            "newest": snapshot.newest,
            "rows": [row for row in rows if row.get("part") in SCORES],
            "confusions": _confusions(rows, snapshot.classes),
            "maps": [
                {"map_id": result.map_id, "truth": result.truth, "predicted": result.predicted}
                for result in HeldOutMap.among(rows)
            ],
        }
        for every in HeldOutAnswers.among(rows):
            columns = {"map_ids": every.map_ids, "groups": every.groups, "truth": every.truth, "on": every.answers}
            scores["held_out"] = columns
        classifiers.save_classifier(
            db,
            classifiers.Trained(
                snapshot.class_set,
                base64.b64decode(final[0].weights),
                annotator=options.annotator,
                recipe=options.recipe(),
                classes=snapshot.classes,
                scores=scores,
                snapshot=snapshot.events,
            ),
            classifier=run.run[:12],
        )


STUDY = TrainPatternsStudy()


@lru_cache(maxsize=1)
def _measured(snapshot: str) -> np.ndarray:
    """Return the statistics of all maps of the labelled set, which every training of a job uses."""
    return patterns.shapes.statistics(read(snapshot).maps)


def split_of(snapshot: Snapshot, options: TrainPatternsOptions, fold: TrainingUnit) -> tuple[list[int], list[int]]:
    """Return the indices of the training and test maps in a fold. `fold.split` states what the two sets must not share:
    inputs, heads or checkpoints."""
    everything = list(range(len(snapshot.maps)))
    if fold.kind == "final":
        return everything, []
    if fold.split == "checkpoint":
        checkpoints, inputs = snapshot.column("checkpoint"), snapshot.column("group")
        out = sorted(set(checkpoints))[fold.fold]
        test = [k for k in everything if checkpoints[k] == out]
        held_out = {inputs[k] for k in test}  # the same inputs through another checkpoint would leak
        train = [k for k in everything if inputs[k] not in held_out]
        # with every input in both checkpoints there is no clean split; then only the checkpoint is unseen
        return train or [k for k in everything if checkpoints[k] != out], test
    places = [f"{layer}/{head}" for layer, head in zip(snapshot.column("layer"), snapshot.column("head"), strict=True)]
    groups = snapshot.column("group") if fold.split == "group" else places
    every_fold = patterns.training.folds(snapshot.column("class"), groups, count=options.folds, seed=options.seed)
    train, test = every_fold[fold.fold]  # type: ignore[assignment]
    if fold.share is not None:
        train = [int(k) for k in train]
        ids = sorted({groups[k] for k in train})
        count = max(2, round(fold.share * len(ids)))
        kept = set(np.random.default_rng(options.seed).choice(ids, size=min(count, len(ids)), replace=False))
        train = [k for k in train if groups[k] in kept]
    return [int(k) for k in train], [int(k) for k in test]


def _files(options: TrainPatternsOptions, unit: Unit) -> tuple[Path | None, Path | None]:
    """Return the files for the loss and the state of a training; None without the folder (on a cluster)."""
    folder = config.inside(options.log, to_write=True) if options.log else None
    if folder is None or not folder.is_dir():
        return None, None
    name = unit.key.replace(" ", "-").replace("%", "")
    log, state = (config.inside(folder / f"{name}{ending}", to_write=True) for ending in (".jsonl", ".safetensors"))
    return log, state


def _told(log: Path | None, key: str) -> Callable[[Any], bool] | None:
    if log is None:
        return None

    def tell(epoch: Any) -> bool:
        with log.open("a", encoding="utf-8") as out:
            out.write(
                json.dumps({"unit": key, "epoch": epoch.number, "of": epoch.of, "loss": epoch.loss, "f1": epoch.f1})
                + "\n"
            )
        return True

    return tell


# ---------------------------------------------------------------- result records


def _numbers(folds: Sequence[Predictions]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the gold classes [map], probabilities [map, class] and inputs of all maps in these folds."""
    truth, likely = (np.concatenate([getattr(fold, name) for fold in folds]) for name in ("truth", "probabilities"))
    return truth, likely, [group for fold in folds for group in fold.groups]


def scored(part: str, folds: Sequence[Predictions], snapshot: Snapshot, *, kind: str, seed: int) -> HeldOutScore:
    """Score a classifier, and a baseline that knows only the checkpoint, layer and head of a map, on held-out maps."""
    truth, likely, groups = _numbers(folds)
    held_out = patterns.evaluation.scores(truth, likely.argmax(1), groups, snapshot.classes, seed=seed)
    guessed = np.concatenate([fold.identity for fold in folds])
    identity = patterns.evaluation.scores(truth, guessed, groups, snapshot.classes, seed=seed)
    return HeldOutScore(
        part="scores", on=ON[part], kind=kind, **_score_columns(held_out), inputs=held_out.inputs,
        identity_f1=identity.macro_f1, identity_low=identity.low, identity_high=identity.high,
        n_labels=len(snapshot.maps), folds=len({fold.of.fold for fold in folds}), **_sureness(folds, snapshot),
    )  # fmt: skip


def _score_columns(scores: "Scores") -> Any:
    return {name: getattr(scores, name) for name in ("macro_f1", "low", "high", "accuracy", "maps", "macro_f1_all")}


def _sureness(folds: Sequence[Predictions], snapshot: Snapshot) -> Any:
    """Return the calibration error with its interval over heads, and the fractions of uncertain and unusual maps."""
    truth, likely, _ = _numbers(folds)
    of = dict(zip(snapshot.column("map_id"), snapshot.heads, strict=True))
    heads = [of[name] for fold in folds for name in fold.map_ids]
    return {
        **patterns.evaluation.calibration_figures(likely, truth, heads),
        "unsure": float(np.mean(likely.max(1) < patterns.suggestions.UNSURE)),
        "outside": float(np.mean(np.concatenate([fold.outside for fold in folds]))),
    }


def of_own(folds: Sequence[Predictions], snapshot: Snapshot, *, kind: str, seed: int) -> list[HeldOutScore]:
    """Score the classifier on held-out maps that the user labelled. Return [] if no bundled maps were used."""
    own = {snapshot.facts[k]["map_id"] for k in snapshot.own}
    chosen = [fold.among(own) for fold in folds]
    chosen = [fold for fold in chosen if fold.map_ids]
    return [replace(scored("fold", chosen, snapshot, kind=kind, seed=seed), on=ON_OWN)] if chosen else []


def of_checkpoints(folds: Sequence[Predictions], snapshot: Snapshot) -> list[HeldOutScore]:
    """Score a pattern classifier on each checkpoint whose maps were not used for training."""
    results = []
    for name in sorted({checkpoint for fold in folds for checkpoint in fold.checkpoints}):
        mine = [fold.of_checkpoint(name) for fold in folds if name in fold.checkpoints]
        truth, likely, groups = _numbers(mine)
        held_out = patterns.evaluation.scores(truth, likely.argmax(1), groups, snapshot.classes)
        about = {**_score_columns(held_out), **_sureness(mine, snapshot)}
        results.append(HeldOutScore(part="checkpoint", checkpoint=name, **about))
    return results


def details(folds: Sequence[Predictions], snapshot: Snapshot, *, seed: int) -> list[Result]:
    """Return records of the scores by class, the confusion matrix, the calibration curve, and every held-out map."""
    truth, likely, groups = _numbers(folds)
    held_out = patterns.evaluation.scores(truth, likely.argmax(1), groups, snapshot.classes, seed=seed)
    results: list[Result] = [ClassScore.of(row) for row in held_out.per_class]
    results += [
        Confusion(truth=a, predicted=b, n=int(held_out.confusion[i, j]))
        for i, a in enumerate(snapshot.classes)
        for j, b in enumerate(snapshot.classes)
    ]
    reliability, error = patterns.evaluation.calibration(likely, truth)
    results += [Calibration.of(row | {"error": error}) for row in reliability]
    names = [name for fold in folds for name in fold.map_ids]
    return results + [
        HeldOutMap(
            map_id=name, group=group, truth=snapshot.classes[number], predicted=snapshot.classes[int(p.argmax())],
            probability=float(p.max()),
        )
        for name, group, number, p in zip(names, groups, truth.tolist(), likely, strict=True)
    ]  # fmt: skip


def answers_of(parts: Mapping[str, Sequence[Predictions]]) -> HeldOutAnswers:
    """Collect the held-out predictions for every map. Keys of `parts`, such as "unseen inputs", state what was held
    out."""
    facts = {
        name: (group, int(number))
        for folds in parts.values()
        for fold in folds
        for name, group, number in zip(fold.map_ids, fold.groups, fold.truth, strict=True)
    }
    answers: dict[str, Any] = {}
    for on, folds in parts.items():
        likely = {name: row for fold in folds for name, row in zip(fold.map_ids, fold.probabilities, strict=True)}
        answers[on] = {
            "predicted": [int(likely[name].argmax()) if name in likely else None for name in facts],
            "probability": [round(float(likely[name].max()), 3) if name in likely else None for name in facts],
        }
    groups, truth = zip(*facts.values(), strict=True)
    return HeldOutAnswers(map_ids=list(facts), groups=groups, truth=truth, answers=answers)


# ---------------------------------------------------------------- the stored classifier


def main_score(rows: Iterable[Row]) -> HeldOutScore:
    """Return the main score of a classifier: on held-out checkpoints if available, otherwise on heads or inputs."""
    scored = {score.on: score for score in HeldOutScore.among(rows) if score.part == "scores"}
    for name in ON.values():
        if name in scored:
            return scored[name]
    raise InputError(
        "Results of the cross-validation need at least one finished fold; no fold has finished yet. Wait for the "
        "first fold."
    )


def _confusions(rows: list[Row], classes: tuple[str, ...]) -> list[list[list[int]]]:
    """Return the confusion matrices on held-out maps [input, true, predicted], which correct class shares."""
    held_out = HeldOutMap.among(rows)
    truth = np.array([classes.index(kept.truth) for kept in held_out])
    predicted = np.array([classes.index(kept.predicted) for kept in held_out])
    return patterns.evaluation.by_group(truth, predicted, [kept.group for kept in held_out], len(classes)).tolist()
