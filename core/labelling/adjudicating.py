"""Maps to decide on: those whose labels differ and those whose label a classifier doubts, until somebody settles them.

A decision is a label event in the order "adjudication" and a pass of its own, so that nobody's vote is lost by it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import patterns
from ..errors import InputError
from ..patterns.agreement import disputed, rater
from ..patterns.snapshot import Snapshot, known_class_set
from ..store import labels, projects
from ..store.database import Database
from ..store.people import RightsError, person_name
from .crowd import votes_of

# -------------------- Labels that are probably wrong, found with a classifier


@dataclass(frozen=True)
class Suspect:
    """A map whose label is in doubt.

    Attributes:
        margin: its probability less that of the given class, over 0 up to 1.
    """

    map_id: str
    given: str
    suggested: str
    margin: float


def label_errors(labels: pd.Series, probabilities: pd.DataFrame) -> list[Suspect]:
    """Maps to adjudicate, the widest margin first.

    A class's threshold is its mean probability over the maps labelled so; a map is suspect when another class passes
    its own threshold and exceeds the given one. A class nobody was given has no threshold and is never suggested.

    Args:
        probabilities: of each class (columns) by map id, out of fold, so no map was trained on its own label.

    Returns:
        The suspects; none where no label is in doubt.

    Raises:
        InputError: a labelled map or class has no probability, a map has two labels, or rows do not sum to 1.
    """
    p = _checked(labels, probabilities)
    classes = probabilities.columns.to_numpy()
    chosen = probabilities.columns.get_indexer(labels)  # [map]
    thresholds = np.array([p[chosen == k, k].mean() if (chosen == k).any() else np.inf for k in range(len(classes))])
    own_probability = p[np.arange(len(p)), chosen]
    confident = np.where((p >= thresholds) & (p > own_probability[:, None]), p, -1.0)  # [map, class]
    best = confident.argmax(axis=1)
    suspects = [
        Suspect(
            str(labels.index[row]),
            str(labels.iloc[row]),
            str(classes[best[row]]),
            float(p[row, best[row]] - own_probability[row]),
        )
        for row in np.flatnonzero(confident.max(axis=1) >= 0)
    ]
    return sorted(suspects, key=lambda suspect: (-suspect.margin, suspect.map_id))


def _checked(labels: pd.Series, probabilities: pd.DataFrame) -> np.ndarray:
    """Probabilities [map, class] in the order of the labels."""
    unknown = sorted(set(labels) - set(probabilities.columns))
    missing = sorted(set(labels.index) - set(probabilities.index))
    if unknown or missing or labels.index.has_duplicates:
        clause = f"classes without one: {', '.join(unknown)}; " if unknown else ""
        raise InputError(
            "Label errors need one label a map and a probability of every labelled class for every labelled map; "
            f"{clause}{len(missing)} of {len(labels)} maps without one: classify these maps with these classes first."
        )
    p = probabilities.loc[labels.index].to_numpy(dtype=float)
    if not np.allclose(p.sum(axis=1), 1, atol=1e-3) or (p < 0).any():
        raise InputError(
            "Probabilities of a map must be 0 or more and sum to 1; calibrate the classifier that gave them."
        )
    return p


# ----------------------------------------------------------------


PASS = 100  # of decisions; people's own passes are 1 to 9
FOLDS = 5
DOUBTS = "doubts-"  # the batches of doubts; no browser may send one of this name


class Doubt(NamedTuple):
    """A class that a classifier is confident of instead of a label's. queued_by: who put it among what is decided on;
    ordinal: of its event."""

    suggested: str
    queued_by: str
    ordinal: int


@dataclass(frozen=True)
class Dispute:
    """A map to decide on. votes: (who, class) in the order given; notes: (who, words); doubt: the class that a
    classifier is confident of instead, or None; queued_by: who queued that doubt."""

    map_id: str
    votes: tuple[tuple[str, str], ...]
    notes: tuple[tuple[str, str], ...] = ()
    doubt: str | None = None
    queued_by: str | None = None


def disputes(
    db: Database,
    class_set: str,
    project: str | None = None,
    *,
    map_id: str | None = None,
    without_decisions_of: str | None = None,
) -> list[Dispute]:
    """Maps that nobody has settled since: first those with most different classes, then those that are doubted.

    Args:
        db: where labels are stored.
        project: only by the labels given in it; None for all.
        without_decisions_of: a person whose own decisions are left out, who may decide anew.
    """
    votes = votes_of(db, class_set, project, map_id=map_id)
    if without_decisions_of is not None:
        votes = votes[(votes.queue_order != "adjudication") | (votes.annotator != without_decisions_of)]
    doubts, notes = _doubts_and_notes(db, class_set, map_id)
    settled = votes[votes.queue_order == "adjudication"].groupby("map_id")["ordinal"].max()
    open_doubts = {
        name: doubt for name, doubt in doubts.items() if not (name in settled.index and settled[name] > doubt.ordinal)
    }
    plain = votes[votes.queue_order != "adjudication"]
    disputed_votes = plain[plain.map_id.isin({*disputed(votes), *open_doubts})]
    unsettled = []
    for name, map_votes in disputed_votes.groupby("map_id", sort=True):
        doubt = open_doubts.get(str(name))
        cast = tuple(
            (rater(who, number), cls)
            for who, number, cls in map_votes[["annotator", "pass", "class"]].itertuples(index=False)
        )
        about_doubt = (doubt.suggested, doubt.queued_by) if doubt else (None, None)
        unsettled.append(Dispute(str(name), cast, tuple(notes.get(str(name), ())), *about_doubt))
    return sorted(
        unsettled, key=lambda dispute: (-len({cls for _, cls in dispute.votes}), dispute.doubt is None, dispute.map_id)
    )


def _doubts_and_notes(
    db: Database, class_set: str, map_id: str | None
) -> tuple[dict[str, Doubt], dict[str, list[tuple[str, str]]]]:
    """The newest doubt of each map, and its notes (who, words), oldest first."""
    flagged = labels.flagged(db, class_set, map_id=map_id)
    is_doubt = (flagged.kind == "flag") & flagged.suggestion.notna() & flagged.batch.str.startswith(DOUBTS)
    doubted = flagged[is_doubt].drop_duplicates("map_id")  # the newest one, as it came in
    doubts = {
        name: Doubt(suggestion, who, int(ordinal))
        for name, suggestion, who, ordinal in zip(
            doubted.map_id, doubted.suggestion, doubted.annotator, doubted.ordinal, strict=True
        )
    }
    notes: dict[str, list[tuple[str, str]]] = {}
    written = flagged[flagged.kind == "note"].iloc[::-1]
    for name, who, note in zip(written.map_id, written.annotator, written.note, strict=True):
        notes.setdefault(name, []).append((who, note))
    return doubts, notes


# ---------------------------------------------------------------- who may decide, and on what


def check_decisions(db: Database, cursor: Any, events: Sequence[Mapping[str, Any]]) -> None:
    """Refuse decisions that are not due; those that are stored already are not looked at.

    A map of a project that is open or paused is decided on by the project's own people (the named ones; everybody where
    nobody is named) and by admins, and only if labels of such a project differ or a classifier doubts one. A person may
    replace their own decision.

    Args:
        events: label events in the order "adjudication".

    Raises:
        InputError: a map is not in dispute.
        RightsError: the person is not one of the people of a project that has the map.
    """
    new = [
        event
        for event in events
        if all(isinstance(event.get(name), str) for name in ("map_id", "class_set", "annotator"))
    ]
    if not new:
        return
    stored = labels.stored_events(cursor, [f"{event.get('batch')}:{event.get('sequence')}" for event in new])
    for event in new:
        if f"{event.get('batch')}:{event.get('sequence')}" not in stored:
            _check_decision(db, cursor, event["map_id"], event["class_set"], event["annotator"])


def _check_decision(db: Database, cursor: Any, map_id: str, class_set: str, person: str) -> None:
    its_projects = projects.projects_with(cursor, class_set, map_id)
    for project in its_projects:
        about = projects.one_project(db, project)
        named = set(map(person_name, about.rules.get("people", ())))
        if not db.person.may("admin") and (
            (named and person not in named) or projects.is_excluded(cursor, project, person)
        ):
            raise RightsError(
                f"A map of the project {about.title!r} must be decided on by its own people or an admin; "
                f"{person[:60]!r} is not one of them. Ask an admin to be added."
            )
    asked: list[str | None] = [*its_projects] or [None]
    if not any(disputes(db, class_set, project, map_id=map_id, without_decisions_of=person) for project in asked):
        raise InputError(
            f"A decision needs a map whose labels differ or are doubted; {map_id[:60]!r} is not in dispute, or "
            "somebody else has decided on it. Open Adjudication again to see what is left."
        )


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
    batch = f"{DOUBTS}{hashlib.sha256(f'{class_set} {annotator} {text}'.encode()).hexdigest()[:16]}"
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
