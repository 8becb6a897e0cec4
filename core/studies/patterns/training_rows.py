"""The rows of a training of a pattern classifier: what its fits said of maps they did not see, scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import patterns
from ...patterns.snapshot import Snapshot
from ..records import Result
from .records import (
    Calibration,
    ClassScore,
    Confusion,
    HeldOutAnswers,
    HeldOutMap,
    HeldOutScore,
    LearningPoint,
)
from .trained_classifier import ON

if TYPE_CHECKING:
    from ...patterns.evaluation import Scores


@dataclass(frozen=True)
class Fold:
    """What is fitted.

    Attributes:
        part: fold, heads, checkpoints, curve or final.
        share: of the training inputs; None for all.
    """

    part: str
    split: str = ""
    fold: int = 0
    share: float | None = None


@dataclass(frozen=True)
class Predictions:
    """Held-out predictions of one fold.

    Attributes:
        cropped: how many of the held-out maps are too long for the classifier.
        truth: numbers of their classes. *Shape:* (map,), int.
        probabilities: rows sum to 1. *Shape:* (map, class).
        identity: the class that the map's head alone makes one guess, a baseline that looks at no map. *Shape:* (map,),
            int.
        outside: whether the map lies beyond what the fit was trained on. *Shape:* (map,), bool.
    """

    of: Fold
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
        """The maps of one checkpoint alone."""
        places = [k for k, checkpoint in enumerate(self.checkpoints) if checkpoint == name]
        texts = ("map_ids", "groups", "checkpoints")
        numbers = ("truth", "probabilities", "identity", "outside")
        kept: dict[str, Any] = {name: tuple(getattr(self, name)[k] for k in places) for name in texts}
        return replace(self, **kept | {name: getattr(self, name)[places] for name in numbers})


def _numbers(folds: Sequence[Predictions]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Truth [map], probabilities [map, class] and inputs of all maps of these folds."""
    truth, likely = (np.concatenate([getattr(fold, name) for fold in folds]) for name in ("truth", "probabilities"))
    return truth, likely, [group for fold in folds for group in fold.groups]


def scored(part: str, folds: Sequence[Predictions], snapshot: Snapshot, *, kind: str, seed: int) -> HeldOutScore:
    """How good the fits are on what one part left out, beside a guess from the head alone."""
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
    """The calibration error with its interval over heads, and shares of maps: wrong though it was sure, unsure, beyond
    what it was trained on."""
    truth, likely, _ = _numbers(folds)
    of = dict(zip(snapshot.column("map_id"), snapshot.heads, strict=True))
    heads = [of[name] for fold in folds for name in fold.map_ids]
    return {
        **patterns.evaluation.calibration_figures(likely, truth, heads),
        "unsure": float(np.mean(likely.max(1) < patterns.suggestions.UNSURE)),
        "outside": float(np.mean(np.concatenate([fold.outside for fold in folds]))),
    }


def of_checkpoints(folds: Sequence[Predictions], snapshot: Snapshot) -> list[HeldOutScore]:
    """How good the classifier was on each checkpoint when it was the one left out."""
    results = []
    for name in sorted({checkpoint for fold in folds for checkpoint in fold.checkpoints}):
        mine = [fold.of_checkpoint(name) for fold in folds if name in fold.checkpoints]
        truth, likely, groups = _numbers(mine)
        held_out = patterns.evaluation.scores(truth, likely.argmax(1), groups, snapshot.classes)
        about = {**_score_columns(held_out), **_sureness(mine, snapshot)}
        results.append(HeldOutScore(part="checkpoint", checkpoint=name, **about))
    return results


def details(folds: Sequence[Predictions], snapshot: Snapshot, *, seed: int) -> list[Result]:
    """Classes, confusion, calibration and maps of the headline."""
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
    """What was said of every scored map when it was left out, for comparisons with a later training. parts: by what was
    left out."""
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


def curve(folds: Sequence[Predictions], snapshot: Snapshot) -> list[LearningPoint]:
    """Macro F1 of the same folds at each number of labels, the full number last."""
    parts = [fold for fold in folds if fold.of.part == "curve"]
    whole = [fold for fold in folds if fold.of.part == "fold"]
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
