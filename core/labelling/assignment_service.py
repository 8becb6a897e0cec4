"""Assignment of maps to annotators, and storing of their labels.

The database is the record. A board (`assignment.Board`) is rebuilt from it on first use, updated with new events, and
changed only under the write lock. After any failure, it is discarded.
"""

import gc
import heapq
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import InputError
from ..patterns.snapshot import known_class_set
from ..store import labels, projects
from ..store.database import Database
from ..store.label_checks import TAKES_BACK, TOGETHER, check_annotator, likely_time
from ..store.people import person_name
from ..store.rows import now as utc_now
from . import adjudicating
from .assignment import AnnotatorStatus, Answered, Board, Choice, Claimed, Judged, Rules, Undone

UNDO_STEPS = 50
COUNTING = ("open", "paused")  # project states in which labels of assigned maps fill slots
_KEPT: "weakref.WeakKeyDictionary[Database, dict[str, _Kept]]" = weakref.WeakKeyDictionary()
_GUARD = threading.Lock()


@dataclass
class _Kept:
    """The board of a project, the number of database writes that it includes, and the last label event that counts."""

    board: Board
    marks: projects.Marks
    writes: int = -1
    frozen: int | None = None


@dataclass(frozen=True)
class Feedback:
    """Feedback on a labelled training example: the class that was assigned, the known class and its description."""

    map_id: str
    given: str | None
    known: str
    right: bool
    eye: str


@dataclass(frozen=True)
class Recorded:
    """The result of storing labels. `acknowledged` is the highest stored sequence number, and `statuses` contains the
    annotator's status by project ID."""

    acknowledged: int
    feedback: list[Feedback] = field(default_factory=list)
    statuses: dict[str, AnnotatorStatus] = field(default_factory=dict)


@dataclass(frozen=True)
class Handed:
    """The maps assigned to an annotator, the annotator's status, and the labels and skips that can still be undone."""

    choices: list[Choice]
    status: AnnotatorStatus
    complete: bool
    undoable: list[tuple[str, Choice, str | None]]


def rules_of(project: projects.Project) -> Rules:
    """Return the rules of a stored labelling project."""
    return Rules(**project.rules | {"people": tuple(map(person_name, project.rules.get("people", ())))})


def board_of(db: Database, project: str) -> Board:
    """Return the current state of a labelling project. Callers must not change the returned object."""
    with db.still(), db.snapshot() as moment:
        return _followed(db, moment, project).board


def next_maps(db: Database, project: str, person: str, *, now: datetime | None = None) -> Handed:
    """Reserve the next maps for a person. The rule `ahead` of the project limits the total number of reserved maps.
    Raises InputError if the project is not open."""
    person = person_name(person)
    db.person.signs(person)
    check_annotator(person)
    with _changing(db), db.write() as cursor:
        moment = now or utc_now()  # read under the lock, so that no reservation starts later than the next call
        project_record = projects.one_project(db, project)
        if project_record.state != "open":
            raise InputError(
                f"Maps are assigned only while a project is open; {project_record.title!r} is "
                f"{project_record.state}. Choose another project"
                f"{'' if project_record.state == 'archived' else ', or ask an admin to open it'}."
            )
        followed = _followed(db, cursor, project)
        board = followed.board
        _store_demoted(cursor, project, board)
        held = board.claimed(person, seconds(moment))
        new = board.choose(person, seconds(moment), board.rules.ahead - len(held))
        until = datetime.fromtimestamp(seconds(moment) + board.rules.lapse, UTC).replace(tzinfo=None)
        rows = [projects.ClaimRow(claim.map_id, person, claim.passing, claim.purpose, moment, until) for claim in new]
        projects.add_claims(cursor, project, rows)
        for claim in new:
            board.apply(Claimed(person, claim, seconds(until)))
        _wrote(db, cursor, followed)
        status = board.status(person)
        choices = [*held, *new] if status.phase != "paused" else []
        return Handed(choices, status, board.complete, board.undoable(person, UNDO_STEPS))


def record(
    db: Database, events: Sequence[Mapping[str, Any]], *, secret: str | None = None, now: datetime | None = None
) -> Recorded:
    """Store a batch of label events, either all or none, and update their labelling projects.

    A label fills a free slot; otherwise it is an extra annotation, as are labels in a closed project and by a paused
    person. `events` are as in `record_events`, with "project" (an ID) if they belong to a project. Raises InputError if
    the map was not assigned to the person in the project, the class set differs, a map needs no adjudication, or a
    stored event is sent again for another project; RightsError for a decision by a person outside the project.
    """
    moment = now or utc_now()
    events = [_stamped(event, moment) for event in events]
    for event in events:
        if str(event.get("batch")).startswith(labels.OWN_BATCHES):
            raise InputError(
                f"The batch ID of labels must not start with a reserved prefix ({', '.join(labels.OWN_BATCHES)}); got "
                f"{str(event.get('batch'))[:60]!r}. Reload the page to start a new batch."
            )
    taken_back = [event.get("undoes") for event in events if event.get("kind") in TAKES_BACK]
    if not taken_back and not any(event.get("project") or _is_decision(event) for event in events):
        return Recorded(labels.record_events(db, events, secret=secret).acknowledged)
    with _changing(db), db.write() as cursor:
        adjudicating.check_decisions(db, cursor, [event for event in events if _is_decision(event)])
        named = {str(event["project"]) for event in events if event.get("project")}
        project_by_id = {project: projects.one_project(db, project) for project in named}
        answer_of = projects.projects_answered(cursor, [name for name in taken_back if isinstance(name, str)])
        project_by_id |= {project: projects.one_project(db, project) for project in set(answer_of.values())}
        books = {project: _followed(db, cursor, project) for project in project_by_id}
        # Refuse labels from another class set than the project's
        for event in events:
            labelled_project = project_by_id.get(str(event.get("project") or ""))
            if labelled_project is not None and event.get("class_set") != labelled_project.class_set:
                raise InputError(
                    f"A label in this project must use the class set {labelled_project.class_set!r}; got "
                    f"{str(event.get('class_set'))[:60]!r}. Reload the project's Label page."
                )
        stored_before = labels.stored_events(
            cursor, [f"{event.get('batch')}:{event.get('sequence')}" for event in events]
        )
        saved = labels.record_events(db, events, secret=secret)
        sent = {acted.event: acted for acted in map(_Acted.of, events)}
        # Refuse a stored event that is sent again for another project
        again = [acted for acted in sent.values() if acted.event in stored_before]
        answers = projects.projects_answered(
            cursor, [other.event for other in again if other.kind in ("label", "skip")]
        )
        for other in again:
            stored = answers.get(other.event, "")
            if other.kind in ("label", "skip") and other.project not in ("", stored):
                raise InputError(
                    "A label event that is sent again must belong to the same project as before; "
                    f"{other.event[:60]!r} is stored for {f'another project, {stored!r}' if stored else 'no project'}. "
                    "Reload the page."
                )
        recorded = Recorded(saved.acknowledged)
        for acted in sent.values():
            if acted.event in stored_before:
                continue
            if acted.kind in TAKES_BACK:
                # An undo counts in the project of the label that it retracts, whatever the event says
                acted = replace(acted, project=answer_of.get(acted.undoes, ""))
            if acted.project:
                answer_of[acted.event] = acted.project
                counting = project_by_id[acted.project].state in COUNTING
                _answer(db, cursor, books[acted.project], acted, recorded, counting=counting)
        for book in books.values():
            _wrote(db, cursor, book)
        return recorded


def retire(db: Database, events: Sequence[str], *, annotator: str, why: str) -> labels.Saved:
    """Retract labels of any annotator, and update the affected labelling projects."""
    with _changing(db), db.write() as cursor:
        saved = labels.retire(db, events, annotator=annotator, why=why)
        for project in set(projects.projects_answered(cursor, list(events)).values()):
            followed = _followed(db, cursor, project, inside=True)
            _store_demoted(cursor, project, followed.board)
            _wrote(db, cursor, followed)
        return saved


def _stamped(event: Mapping[str, Any], moment: datetime) -> dict[str, Any]:
    """Return the event with its author and times as stored."""
    person = event.get("annotator")
    by = {"annotator": person_name(person)} if isinstance(person, str) else {}
    return {**event, **by, "stored": moment, "happened": likely_time(event.get("happened"), moment)}


def _is_decision(event: Mapping[str, Any]) -> bool:
    return event.get("kind") == "label" and event.get("queue_order") == "adjudication"


@dataclass(frozen=True)
class _Acted:
    """A label event's fields that a board needs. given: class, None for a skip; at: seconds since 1970."""

    event: str
    project: str
    kind: str
    person: str
    map_id: str
    passing: int
    given: str | None
    undoes: str
    at: float
    way: Any = None

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "_Acted":
        batch, sequence, kind, person = (event.get(name) for name in ("batch", "sequence", "kind", "annotator"))
        project, map_id, undoes = (str(event.get(name) or "") for name in ("project", "map_id", "undoes"))
        class_name = event.get("class") if kind == "label" else None
        passing, at = int(event.get("pass") or 1), seconds(event["stored"])
        return cls(
            f"{batch}:{sequence}",
            project,
            str(kind),
            str(person),
            map_id,
            passing,
            class_name,
            undoes,
            at,
            event.get("way"),
        )


def _answer(
    db: Database, cursor: Any, book: _Kept, acted: _Acted, recorded: Recorded, *, counting: bool = True
) -> None:
    """Store an event of a project, and apply it to the board unless frozen. counting: labels can fill slots."""
    project, person, now, class_name, board = acted.project, acted.person, acted.at, acted.given, book.board
    is_frozen = book.frozen is not None
    if acted.kind in TAKES_BACK:
        if not is_frozen:
            board.apply(Undone(acted.undoes, now))
    elif acted.kind in ("label", "skip"):
        choice = _handed(cursor, board, acted)
        if acted.way == TOGETHER and (choice.purpose != "label" or board.rules.order != "clusters"):
            raise InputError(
                "Maps can be labelled together only if the project assigned them as a group of similar maps; "
                f"{acted.map_id[:60]!r} must be labelled alone. Reload the project's Label page."
            )
        counting = counting and choice.purpose == "label" and class_name is not None
        counting = counting and board.status(person).phase != "paused"
        counted = counting and board.counts(person, choice.map_id, now)
        projects.add_answers(cursor, [projects.AnswerRow(acted.event, project, choice.purpose, counted)])
        if not is_frozen:
            board.apply(Answered(acted.event, person, choice, class_name, counted, now))
        if choice.purpose == "training":
            classes = known_class_set(db, projects.one_project(db, project).class_set)
            expected = classes.named(board.exemplars[choice.map_id])
            title = classes.named(class_name).title if class_name is not None else None
            recorded.feedback.append(
                Feedback(choice.map_id, title, expected.title, board.right(expected.name, class_name), expected.eye)
            )
    _store_demoted(cursor, project, board)
    recorded.statuses[project] = board.status(person)


def _handed(cursor: Any, board: Board, acted: _Acted) -> Choice:
    person, map_id, passing = acted.person, acted.map_id, acted.passing
    choice = board.given(person, map_id, passing)
    if choice is None and (purpose := projects.claimed(cursor, acted.project, map_id, person, passing)):
        choice = Choice(map_id, purpose, passing)  # type: ignore[arg-type]
    if choice is None:
        raise InputError(
            "A map in a project can only be labelled by an annotator to whom it is assigned; "
            f"{map_id[:60]!r} is not assigned to {person[:60]!r}. Reload the project's Label page."
        )
    return choice


def _store_demoted(cursor: Any, project: str, board: Board) -> None:
    """Mark labels as surplus if an undo restored them after their slot had been filled."""
    if board.demoted:
        rows = [projects.AnswerRow(event, project, "label", counted=False) for event in board.demoted]
        projects.add_answers(cursor, rows)
        board.demoted.clear()


# ---------------------------------------------------------------- boards kept in memory


@contextmanager
def _changing(db: Database) -> Iterator[None]:
    """Discard the boards of a database if the body fails; they are rebuilt on next use."""
    try:
        yield
    except BaseException:
        forget(db)
        raise


def forget(db: Database) -> None:
    """Discard the cached project states of a database. They are rebuilt on next use."""
    with _GUARD:
        _KEPT.pop(db.shared, None)


def _books(db: Database) -> "dict[str, _Kept]":
    with _GUARD:
        return _KEPT.setdefault(db.shared, {})


def _followed(db: Database, cursor: Any, project: str, *, inside: bool = False) -> _Kept:
    """Return a project's board, updated to the store, under the write lock. inside: a transaction that has written."""
    books = _books(db)
    followed = books.get(project)
    if followed is not None and followed.writes == db.writes and not inside:
        return followed
    marks = projects.marks(cursor, followed.marks if followed else projects.Marks())
    if (
        followed is None
        or followed.marks.erasures != marks.erasures
        or (followed.marks != marks and projects.changed_since(cursor, project, followed.marks))
    ):
        project_record = projects.one_project(db, project)
        maps = projects.project_maps(db, project)
        by_kind = {
            kind: {project_map.map_id: project_map.given or "" for project_map in maps if project_map.kind == kind}
            for kind in projects.MAP_KINDS
        }
        followed = _Kept(
            Board(rules_of(project_record), list(by_kind["label"]), by_kind["gold"], by_kind["exemplar"]),
            projects.Marks(),
            frozen=projects.frozen_at(cursor, project),
        )
        with _no_collection(), followed.board.counting_after():
            _follow(cursor, project, followed, lapse=followed.board.rules.lapse)
        for person, count in projects.handed(cursor, project).items():
            followed.board.set_handed(person, count)
        books[project] = followed
    elif followed.marks != marks:
        _follow(cursor, project, followed)
    if followed.marks.classes != marks.classes or not followed.board.present:
        classes = known_class_set(db, projects.one_project(db, project).class_set)
        followed.board.present = {name: classes.resolved(name) for name in (*classes.names, *dict(classes.merged))}
    followed.marks, followed.writes = marks, db.writes
    return followed


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause garbage collection: 300,000 new objects stay alive, and collecting takes as long as reading them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _wrote(db: Database, cursor: Any, followed: _Kept) -> None:
    """Record that the board includes the writes of this transaction."""
    followed.marks, followed.writes = projects.marks_after_own(cursor, followed.marks), db.writes + 1


def _follow(cursor: Any, project: str, followed: _Kept, *, lapse: float | None = None) -> None:
    """Apply the events since the last call, in order. `lapse`: as in `claims_since`.

    Reservations, answers and admissions share one sequence. Undos are ordered by label events: an undo is applied
    before the first answer whose label event is later.
    """
    board, since, last = followed.board, followed.marks, followed.frozen
    undone = projects.undone_since(cursor, project, since, last=last)
    entries = heapq.merge(
        ((at, None, Claimed(person, Choice(map_id, purpose, passing), until))
         for at, person, map_id, passing, purpose, until in projects.claims_since(cursor, project, since, lapse=lapse)),
        ((at, label, Answered(event, person, Choice(map_id, purpose, passing), class_name, counted, when))
         for at, label, event, person, map_id, passing, purpose, class_name, counted, when
         in projects.answers_since(cursor, project, since, last=last)),
        ((at, None, Judged(person, admitted))
         for at, person, admitted in projects.judgements_since(cursor, project, since)),
        key=lambda entry: entry[0],
    )  # fmt: skip
    position = 0
    for _, label, happening in entries:
        while label is not None and position < len(undone) and undone[position][0] < label:
            board.apply(Undone(undone[position][1]))
            position += 1
        board.apply(happening)  # type: ignore[arg-type]  # heapq.merge knows no union of tuples
    for _, event in undone[position:]:
        board.apply(Undone(event))


def seconds(moment: datetime) -> float:
    """Convert a UTC time without a time zone to seconds since 1970."""
    return moment.replace(tzinfo=UTC).timestamp()
