"""Conversion of the rows of a finished training to a stored classifier."""

import base64
from collections.abc import Iterable

import numpy as np

from ... import patterns
from ...errors import InputError
from ...patterns.snapshot import Snapshot
from ...store import classifiers
from ...store.database import Database
from ...store.rows import Row
from .records import FinalClassifier, HeldOutAnswers, HeldOutMap, HeldOutScore

RECIPE = ("kind", "epochs", "batch", "rate", "class_weights", "falling", "size", "folds", "seed")
ON = {"checkpoints": "unseen checkpoints", "heads": "unseen heads", "fold": "unseen inputs"}  # the headline first
ON_OWN = "unseen inputs, your maps"  # beside bundled ones
SCORES = ("scores", "checkpoint", "class", "confusion", "calibration", "curve")


def keep_classifier(
    db: Database, rows: list[Row], recipe: Row, snapshot: Snapshot, *, name: str, annotator: str = ""
) -> str:
    """Store a trained pattern classifier under a name. Raises InputError if training has not finished."""
    final = FinalClassifier.among(rows)
    if not final:
        raise InputError(
            "Training must be finished before the classifier is stored; this training was stopped earlier. "
            "Resume the training."
        )
    best, answers = headline(rows), HeldOutAnswers.among(rows)
    scores: Row = {
        "on": best.on,
        "macro_f1": best.macro_f1,
        "low": best.low,
        "high": best.high,
        "n": best.maps,
        "newest": snapshot.newest,
        "rows": [row for row in rows if row.get("part") in SCORES],
        "confusions": confusions(rows, snapshot.classes),
        "maps": [
            {"map_id": result.map_id, "truth": result.truth, "predicted": result.predicted}
            for result in HeldOutMap.among(rows)
        ],
    }
    if answers:
        (every,) = answers
        columns = {"map_ids": every.map_ids, "groups": every.groups, "truth": every.truth, "on": every.answers}
        scores["held_out"] = columns
    return classifiers.save_classifier(
        db,
        classifiers.Trained(
            snapshot.class_set,
            base64.b64decode(final[0].weights),
            annotator=annotator,
            recipe=recipe,
            classes=snapshot.classes,
            scores=scores,
            snapshot=snapshot.events,
        ),
        classifier=name,
    )


def headline(rows: Iterable[Row]) -> HeldOutScore:
    """Return the main score of a classifier: on held-out checkpoints, otherwise on heads, otherwise on inputs."""
    scored = {score.on: score for score in HeldOutScore.among(rows) if score.part == "scores"}
    for name in ON.values():
        if name in scored:
            return scored[name]
    raise InputError(
        "Results of the cross-validation need at least one finished fold; no fold has finished yet. Wait for the "
        "first fold."
    )


def confusions(rows: list[Row], classes: tuple[str, ...]) -> list[list[list[int]]]:
    """Return the confusion matrices on held-out maps [input, true, predicted], which serve to correct class shares."""
    held_out = HeldOutMap.among(rows)
    truth = np.array([classes.index(kept.truth) for kept in held_out])
    predicted = np.array([classes.index(kept.predicted) for kept in held_out])
    return patterns.evaluation.by_group(truth, predicted, [kept.group for kept in held_out], len(classes)).tolist()
