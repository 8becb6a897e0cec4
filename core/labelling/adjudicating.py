"""Maps to decide on: those whose labels differ and those whose label a classifier doubts, until somebody settles them.

A decision is a label event in the order "adjudication" and a pass of its own, so that nobody's vote is lost by it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd

from core import patterns
from core.errors import InputError
from core.labelling.crowd import votes_of
from core.patterns.agreement import disputed, rater
from core.patterns.label_errors import Suspect, label_errors
from core.patterns.snapshot import Snapshot, known_class_set
from core.store import labels
from core.store.database import Database

PASS = 100  # of decisions; people's own passes are 1 to 9
FOLDS = 5


@dataclass(frozen=True)
class Dispute:
    """A map to decide on. votes: (who, class) in the order given; notes: (who, words); doubt: the class that a
    classifier is confident of instead, or None."""

    map_id: str
    votes: tuple[tuple[str, str], ...]
    notes: tuple[tuple[str, str], ...] = ()
    doubt: str | None = None


def disputes(db: Database, class_set: str, project: str | None = None) -> list[Dispute]:
    """Maps that nobody has settled since: first those with most different classes, then those that are doubted."""
    votes = votes_of(db, class_set, project)
    doubts, notes = _doubts_and_notes(db, class_set)
    settled = votes[votes.queue_order == "adjudication"].groupby("map_id")["happened"].max()
    open_doubts = {
        name: suggestion
        for name, (suggestion, when) in doubts.items()
        if not (name in settled.index and settled[name] >= when)
    }
    plain = votes[votes.queue_order != "adjudication"]
    disputed_votes = plain[plain.map_id.isin({*disputed(votes), *open_doubts})]
    unsettled = [
        Dispute(
            str(name),
            tuple(
                (rater(who, number), cls)
                for who, number, cls in map_votes[["annotator", "pass", "class"]].itertuples(False)
            ),
            tuple(notes.get(str(name), ())),
            open_doubts.get(str(name)),
        )
        for name, map_votes in disputed_votes.groupby("map_id", sort=True)
    ]
    return sorted(
        unsettled, key=lambda dispute: (-len({cls for _, cls in dispute.votes}), dispute.doubt is None, dispute.map_id)
    )


def _doubts_and_notes(
    db: Database, class_set: str
) -> tuple[dict[str, tuple[str, datetime]], dict[str, list[tuple[str, str]]]]:
    """The newest doubt of each map (the class suggested, when), and its notes (who, words), oldest first."""
    flagged = labels.flagged(db, class_set)
    doubted = flagged[(flagged.kind == "flag") & flagged.suggestion.notna()].drop_duplicates("map_id")
    doubts = {
        map_id: (suggestion, happened)
        for map_id, suggestion, happened in zip(doubted.map_id, doubted.suggestion, doubted.happened, strict=True)
    }
    notes: dict[str, list[tuple[str, str]]] = {}
    written = flagged[flagged.kind == "note"].iloc[::-1]
    for map_id, who, note in zip(written.map_id, written.annotator, written.note, strict=True):
        notes.setdefault(map_id, []).append((who, note))
    return doubts, notes


# ---------------------------------------------------------------- labels a classifier doubts


def doubted(snapshot: Snapshot) -> list[Suspect]:
    """Labels that trees doubt which never saw their input (`label_errors`), the widest margin first.

    Raises InputError when there is too little to train on.
    """
    snapshot = snapshot.without_ties()  # a tie is listed as one, among what raters part on
    label_names, groups, origins = (snapshot.column(name) for name in ("class", "group", "checkpoint"))
    patterns.training.check_labels(label_names, snapshot.classes, groups, folds=FOLDS)
    likely = np.zeros((len(label_names), len(snapshot.classes)))
    for train, test in patterns.training.folds(label_names, groups, count=FOLDS, seed=0):
        classifier = patterns.training.fit(
            [snapshot.maps[k] for k in train],
            [label_names[k] for k in train],
            snapshot.classes,
            patterns.training.ClassifierRecipe(kind="trees", seed=0),
            known=patterns.training.Known(origins=[origins[k] for k in train]),
        )
        likely[test] = patterns.suggestions.judged(classifier, [snapshot.maps[k] for k in test]).probabilities
    names = snapshot.column("map_id")
    return label_errors(
        pd.Series(label_names, index=names), pd.DataFrame(likely, index=names, columns=list(snapshot.classes))
    )


def queue_doubts(db: Database, class_set: str, suspects: Sequence[Suspect], *, annotator: str) -> int:
    """Put doubted labels among the maps to decide on, as flags that carry the suggestion; returns how many were new.

    Queueing the same doubts again changes nothing. InputError for a class that the set does not have.
    """
    classes = known_class_set(db, class_set)
    wrong = [suspect.suggested for suspect in suspects if suspect.suggested not in classes.names]
    if wrong:
        raise InputError(
            f"A doubt suggests a class of {class_set!r} ({', '.join(classes.names)}); {wrong[0][:60]!r} is none: train "
            "on the classes as they are now."
        )
    text = "\n".join(f"{suspect.map_id} {suspect.given} {suspect.suggested}" for suspect in suspects)
    batch = f"doubts-{hashlib.sha256(f'{class_set} {annotator} {text}'.encode()).hexdigest()[:16]}"
    events = [
        {
            "batch": batch,
            "sequence": number,
            "kind": "flag",
            "class_set": class_set,
            "map_id": suspect.map_id,
            "annotator": annotator,
            "note": f"labelled {suspect.given}; a classifier that never saw this input is confident of "
            f"{suspect.suggested}",
            "queue_order": "adjudication",
            "suggestion": suspect.suggested,
        }
        for number, suspect in enumerate(suspects, start=1)
    ]
    return labels.record_events(db, events).new
