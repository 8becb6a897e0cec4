"""Adjudication of maps whose labels differ, or whose label a classifier doubts.

A decision is a label event with the queue order "adjudication" and a separate pass, so every vote is preserved.
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

# ---------------------------------------------------------------- likely label errors (Northcutt et al. 2021)


@dataclass(frozen=True)
class Suspect:
    """A map with a likely label error. `margin` is P(suggested class) minus P(given class)."""

    map_id: str
    given: str
    suggested: str
    margin: float


def label_errors(labels: pd.Series, probabilities: pd.DataFrame) -> list[Suspect]:
    """Find attention maps with likely label errors by confident learning. Maps with the largest margin come first.

    The threshold of a class is its mean probability over the maps with that label. A map is a suspect if another class
    reaches its threshold and has a higher probability than the given class. `probabilities` are out-of-fold, of each
    class (columns) for each map ID (index). Raises InputError if a labelled map or class has no probability, a map has
    two labels, or rows do not sum to 1.
    """
    unknown = sorted(set(labels) - set(probabilities.columns))
    missing = sorted(set(labels.index) - set(probabilities.index))
    if labels.index.has_duplicates:
        twice = labels.index[labels.index.duplicated()][0]
        raise InputError(f"Every labelled map must have only one label; {str(twice)[:60]!r} has several. Keep one.")
    if unknown:
        raise InputError(
            f"Every class in the labels must have a predicted probability; {', '.join(unknown)[:200]} has none. "
            "First run a classifier that predicts these classes."
        )
    if missing:
        raise InputError(
            f"Every labelled map must have class probabilities; {len(missing)} of {len(labels)} maps have none. "
            "Classify these maps first."
        )
    p = probabilities.loc[labels.index].to_numpy(dtype=float)
    if not np.allclose(p.sum(axis=1), 1, atol=1e-3) or (p < 0).any():
        raise InputError(
            "The class probabilities of a map must be at least 0 and sum to 1; those of at least one map do not. "
            "Correct the probabilities."
        )
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


PASS = 100  # the pass of adjudication decisions; annotators' own passes are 1 to 9
FOLDS = 5
DOUBTS = "doubts-"  # prefix of the batches of likely label errors; browsers may not use it


class Doubt(NamedTuple):
    """A class that a classifier confidently predicts for a map with a different label. `queued_by` is the person who
    queued the map for adjudication."""

    suggested: str
    queued_by: str
    ordinal: int


@dataclass(frozen=True)
class Dispute:
    """An attention map that needs adjudication, because annotators disagree or a classifier contradicts its label.

    Attributes:
        votes, notes: (annotator, class) in the order of labelling, and (annotator, text).
        doubt, queued_by: class that a classifier is confident of instead, or None, and who queued that doubt.
    """

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
    """Return the maps that need adjudication, sorted by decreasing number of different classes.

    `project` restricts to the labels of one project. `without_decisions_of` ignores the decisions of a person, so that
    they can decide again.
    """
    votes = votes_of(db, class_set, project, map_id=map_id)
    if without_decisions_of is not None:
        votes = votes[(votes.queue_order != "adjudication") | (votes.annotator != without_decisions_of)]
    flagged = labels.flagged(db, class_set, map_id=map_id)
    is_doubt = (flagged.kind == "flag") & flagged.suggestion.notna() & flagged.batch.str.startswith(DOUBTS)
    doubted = flagged[is_doubt].drop_duplicates("map_id")  # the newest one: `flagged` sorts by newest first
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


# ---------------------------------------------------------------- checking decisions


def check_decisions(db: Database, cursor: Any, events: Sequence[Mapping[str, Any]]) -> None:
    """Check that new adjudications are allowed. Adjudications that are already stored are not checked.

    A map of an open or paused project is adjudicated by the people of the project (everybody if no people are named)
    and by admins, and only if labels differ in such a project or a classifier doubts one. People may replace their own
    decisions. `events` have the queue order "adjudication". Raises InputError if a map needs no adjudication, and
    RightsError unless the person belongs to every such project with the map.
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
            map_id = event["map_id"]
            class_set = event["class_set"]
            person = event["annotator"]
            its_projects = projects.projects_with(cursor, class_set, map_id)
            for project in its_projects:
                about = projects.one_project(db, project)
                named = set(map(person_name, about.rules.get("people", ())))
                if db.person.may("admin"):
                    continue
                if projects.is_excluded(cursor, project, person):
                    raise RightsError(
                        f"People who are excluded from the project {about.title!r} cannot adjudicate its maps; "
                        f"{person[:60]!r} is excluded. Ask an admin to admit you again."
                    )
                if named and person not in named:
                    raise RightsError(
                        f"Only members of the project {about.title!r} and admins can adjudicate its maps; "
                        f"{person[:60]!r} is neither. Ask an admin to add you to the project."
                    )
            asked: list[str | None] = [*its_projects] or [None]
            if not any(
                disputes(db, class_set, project, map_id=map_id, without_decisions_of=person) for project in asked
            ):
                raise InputError(
                    f"Only maps with differing labels or a likely label error can be adjudicated; {map_id[:60]!r} has "
                    "neither, or is already decided. Reload the Adjudication page."
                )


# ---------------------------------------------------------------- likely label errors of stored labels


def doubted(snapshot: Snapshot) -> list[Suspect]:
    """Find likely label errors with cross-validated tree classifiers. Raises InputError if there are too few labels."""
    snapshot = snapshot.without_ties()  # ties are adjudicated because annotators differ
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
    """Queue likely label errors for adjudication and return how many are new. Raises InputError for unknown classes."""
    classes = known_class_set(db, class_set)
    wrong = [suspect.suggested for suspect in suspects if suspect.suggested not in classes.names]
    if wrong:
        raise InputError(
            f"A suggested class must be one of {', '.join(classes.names)} (class set {class_set!r}); got "
            f"{wrong[0][:60]!r}. Retrain the classifier on the current classes."
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
            "note": f"labelled {suspect.given}; a classifier that was not trained on this input is confident of "
            f"{suspect.suggested}",
            "queue_order": "adjudication",
            "suggestion": suspect.suggested,
        }
        for number, suspect in enumerate(suspects, start=1)
    ]
    return labels.record_events(db, events).new
