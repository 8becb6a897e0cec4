"""Hands the maps of projects to people and takes their labels: the books of `assignment`, kept beside the store.

The store is the record. The books are rebuilt from it when they are first needed, follow it by what is new, and change
only under its write lock; where anything fails they are thrown away.
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
from ..store.label_checks import TAKES_BACK, check_annotator, likely_time
from ..store.label_checks import now as utc_now
from ..store.people import person_name
from . import adjudicating
from .assignment import Answered, Board, Choice, Claimed, Judged, Rules, Standing, Undone

UNDO_STEPS = 50
COUNTING = ("open", "paused")  # states of a project in which labels of maps that were handed out take places
_KEPT: "weakref.WeakKeyDictionary[Database, dict[str, _Kept]]" = weakref.WeakKeyDictionary()
_GUARD = threading.Lock()


@dataclass
class _Kept:
    """The books of one project and how far they have followed the store: to which marks, after how many writes.
    frozen: the last label event that counts, of a project that is closed or archived."""

    board: Board
    marks: projects.Marks
    writes: int = -1
    frozen: int | None = None


@dataclass(frozen=True)
class Feedback:
    """What a person is told about an exemplar they labelled: classes as they are called now, and the words of the
    right one."""

    map_id: str
    given: str | None
    known: str
    right: bool
    eye: str


@dataclass(frozen=True)
class Recorded:
    """What became of a batch. acknowledged: its highest number in the store. standing: by project."""

    acknowledged: int
    feedback: list[Feedback] = field(default_factory=list)
    standing: dict[str, Standing] = field(default_factory=dict)


@dataclass(frozen=True)
class Handed:
    """Maps for a person, the ones they hold already first, how they stand, and what they can take back: event, what
    for, class."""

    choices: list[Choice]
    standing: Standing
    complete: bool
    undoable: list[tuple[str, Choice, str | None]]


def rules_of(project: projects.Project) -> Rules:
    """A stored project's rules."""
    return Rules(**project.rules | {"people": tuple(map(person_name, project.rules.get("people", ())))})


def board_of(db: Database, project: str) -> Board:
    """The books of a project as they stand; look, and change nothing."""
    with db.still(), db.one_moment() as moment:
        return _followed(db, moment, project).board


def next_maps(db: Database, project: str, person: str, *, now: datetime | None = None) -> Handed:
    """Fill what a person holds up to the project's `ahead` maps. Raises InputError unless the project is open."""
    person = person_name(person)
    db.person.signs(person)
    check_annotator(person)
    with _changing(db), db.write() as cursor:
        moment = now or utc_now()  # under the lock, so that no claim begins later than the next look at it
        project_record = projects.one_project(db, project)
        if project_record.state != "open":
            raise InputError(
                f"Maps are handed out while a project is open; {project_record.title!r} is {project_record.state}: "
                "choose another project, or ask an admin to open it."
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
        standing = board.standing(person)
        choices = [*held, *new] if standing.phase != "paused" else []
        return Handed(choices, standing, board.complete, board.undoable(person, UNDO_STEPS))


def record(
    db: Database, events: Sequence[Mapping[str, Any]], *, secret: str | None = None, now: datetime | None = None
) -> Recorded:
    """Store label events of one batch, as `core.store.labels.record_events` does; those with a "project" answer it.

    A label takes a place where one is free and is surplus otherwise, also in a project that is closed, and of somebody
    who was paused. All or none are stored.

    Args:
        db: where labels and projects are stored.
        events: as `record_events` takes them, and the id of a "project" where they answer one.
        now: the time in UTC that they are stored at, without a time zone; None for the present.

    Returns:
        The batch's highest number in the store, what to tell of exemplars, and where people stand by project.

    Raises:
        InputError: a label of a map that its person was not handed in that project, or of another class set; a decision
            on a map that is not in dispute; an event sent again for another project.
        RightsError: a decision by somebody who is not of the people of a project that has the map.
    """
    moment = now or utc_now()
    events = [_stamped(event, moment) for event in events]
    _check_batches(events)
    taken_back = [event.get("undoes") for event in events if event.get("kind") in TAKES_BACK]
    if not taken_back and not any(event.get("project") or _is_decision(event) for event in events):
        return Recorded(labels.record_events(db, events, secret=secret).acknowledged)
    with _changing(db), db.write() as cursor:
        adjudicating.check_decisions(db, cursor, [event for event in events if _is_decision(event)])
        project_by_id = {project: projects.one_project(db, project) for project in _projects_of(events)}
        answer_of = projects.projects_answered(cursor, [name for name in taken_back if isinstance(name, str)])
        project_by_id |= {project: projects.one_project(db, project) for project in set(answer_of.values())}
        books = {project: _followed(db, cursor, project) for project in project_by_id}
        _check_class_sets(events, project_by_id)
        stored_before = labels.stored_events(
            cursor, [f"{event.get('batch')}:{event.get('sequence')}" for event in events]
        )
        saved = labels.record_events(db, events, secret=secret)
        sent = {acted.event: acted for acted in map(_Acted.of, events)}
        _check_sent_again(cursor, [acted for acted in sent.values() if acted.event in stored_before])
        recorded = Recorded(saved.acknowledged)
        for acted in sent.values():
            if acted.event in stored_before:
                continue
            if acted.kind in TAKES_BACK:  # counts in the project of what it takes back, whatever it says itself
                acted = replace(acted, project=answer_of.get(acted.undoes, ""))
            if acted.project:
                answer_of[acted.event] = acted.project
                counting = project_by_id[acted.project].state in COUNTING
                _answer(db, cursor, books[acted.project], acted, recorded, counting=counting)
        for book in books.values():
            _wrote(db, cursor, book)
        return recorded


def retire(db: Database, events: Sequence[str], *, annotator: str, why: str) -> labels.Saved:
    """Take back labels of others, as `core.store.labels.retire`, and settle the places of their projects at once."""
    with _changing(db), db.write() as cursor:
        saved = labels.retire(db, events, annotator=annotator, why=why)
        for project in set(projects.projects_answered(cursor, list(events)).values()):
            followed = _followed(db, cursor, project, inside=True)
            _store_demoted(cursor, project, followed.board)
            _wrote(db, cursor, followed)
        return saved


def _stamped(event: Mapping[str, Any], moment: datetime) -> dict[str, Any]:
    """An event as it is stored: when, and by whom."""
    person = event.get("annotator")
    by = {"annotator": person_name(person)} if isinstance(person, str) else {}
    return {**event, **by, "stored": moment, "happened": likely_time(event.get("happened"), moment)}


def _is_decision(event: Mapping[str, Any]) -> bool:
    return event.get("kind") == "label" and event.get("queue_order") == "adjudication"


def _check_batches(events: Sequence[Mapping[str, Any]]) -> None:
    """InputError for the name of a batch that only this program gives: what is in such a batch counts as its own."""
    for event in events:
        if str(event.get("batch")).startswith(labels.OWN_BATCHES):
            raise InputError(
                f"An outbox of a browser must not be called {str(event.get('batch'))[:60]!r}: names that begin with "
                f"{', '.join(labels.OWN_BATCHES)} are this program's own. Open the page again, which starts another."
            )


def _check_sent_again(cursor: Any, again: Sequence["_Acted"]) -> None:
    """InputError where an event that is stored is said to answer another project than it does."""
    answers = projects.projects_answered(cursor, [acted.event for acted in again if acted.kind in ("label", "skip")])
    for acted in again:
        stored = answers.get(acted.event, "")
        if acted.kind in ("label", "skip") and acted.project not in ("", stored):
            raise InputError(
                f"An event is sent again as it was; {acted.event[:60]!r} is stored as an answer to "
                f"{f'another project, {stored!r}' if stored else 'no project'}: open the page again, which starts a "
                "new outbox."
            )


@dataclass(frozen=True)
class _Acted:
    """A label event as a project's books need it. given: the class of a label, None for a skip; at: seconds."""

    event: str
    project: str
    kind: str
    person: str
    map_id: str
    passing: int
    given: str | None
    undoes: str
    at: float

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "_Acted":
        """From an event that the store has taken, so that what must be there is there."""
        batch, sequence, kind, person = (event.get(name) for name in ("batch", "sequence", "kind", "annotator"))
        project, map_id, undoes = (str(event.get(name) or "") for name in ("project", "map_id", "undoes"))
        class_name = event.get("class") if kind == "label" else None
        passing, at = int(event.get("pass") or 1), seconds(event["stored"])
        return cls(f"{batch}:{sequence}", project, str(kind), str(person), map_id, passing, class_name, undoes, at)


def _projects_of(events: Sequence[Mapping[str, Any]]) -> set[str]:
    return {str(project) for event in events if (project := event.get("project"))}


def _check_class_sets(events: Sequence[Mapping[str, Any]], project_by_id: Mapping[str, projects.Project]) -> None:
    """InputError for a label of another class set than its project's: it would take a place and answer nothing."""
    for event in events:
        labelled_project = project_by_id.get(str(event.get("project") or ""))
        if labelled_project is not None and event.get("class_set") != labelled_project.class_set:
            raise InputError(
                f"A label of a project is of its class set, {labelled_project.class_set!r}; "
                f"{str(event.get('class_set'))[:60]!r} is another: open the project's Label page again."
            )


def _answer(
    db: Database, cursor: Any, book: _Kept, acted: _Acted, recorded: Recorded, *, counting: bool = True
) -> None:
    """Enter one stored event of a project into the record and the books; into the record alone where the books are
    frozen. counting: whether labels still take places."""
    project, person, now, class_name, board = acted.project, acted.person, acted.at, acted.given, book.board
    is_frozen = book.frozen is not None
    if acted.kind in TAKES_BACK:
        if not is_frozen:
            board.apply(Undone(acted.undoes, now))
    elif acted.kind in ("label", "skip"):
        choice = _handed(cursor, board, acted)
        counting = counting and choice.purpose == "label" and class_name is not None
        counting = counting and board.standing(person).phase != "paused"
        counted = counting and board.counts(person, choice.map_id, now)
        projects.add_answers(cursor, [projects.AnswerRow(acted.event, project, choice.purpose, counted)])
        if not is_frozen:
            board.apply(Answered(acted.event, person, choice, class_name, counted, now))
        if choice.purpose == "training":
            recorded.feedback.append(_feedback(db, board, project, choice.map_id, class_name))
    _store_demoted(cursor, project, board)
    recorded.standing[project] = board.standing(person)


def _handed(cursor: Any, board: Board, acted: _Acted) -> Choice:
    person, map_id, passing = acted.person, acted.map_id, acted.passing
    choice = board.given(person, map_id, passing)
    if choice is None and (purpose := projects.claimed(cursor, acted.project, map_id, person, passing)):
        choice = Choice(map_id, purpose, passing)  # type: ignore[arg-type]
    if choice is None:
        raise InputError(
            f"In a project people label the maps they are handed; {map_id[:60]!r} was not handed to {person[:60]!r} "
            "there: open the project's Label page again."
        )
    return choice


def _feedback(db: Database, board: Board, project: str, map_id: str, class_name: str | None) -> Feedback:
    classes = known_class_set(db, projects.one_project(db, project).class_set)
    expected = classes.named(board.exemplars[map_id])
    title = classes.named(class_name).title if class_name is not None else None
    return Feedback(map_id, title, expected.title, board.right(expected.name, class_name), expected.eye)


def _store_demoted(cursor: Any, project: str, board: Board) -> None:
    """Labels that an undo brought back after their place was given away are surplus from now on."""
    if board.demoted:
        rows = [projects.AnswerRow(event, project, "label", counted=False) for event in board.demoted]
        projects.add_answers(cursor, rows)
        board.demoted.clear()


# ---------------------------------------------------------------- the books


class _changing:  # noqa: N801 - read as a word at its use
    """What is done to books inside: where it fails, they are thrown away and read anew."""

    def __init__(self, db: Database):
        self._db = db.shared

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            forget(self._db)


def forget(db: Database) -> None:
    """Throw the books of a database away; they are rebuilt from the store when they are needed."""
    with _GUARD:
        _KEPT.pop(db.shared, None)


def _books(db: Database) -> "dict[str, _Kept]":
    with _GUARD:
        return _KEPT.setdefault(db.shared, {})


def _followed(db: Database, cursor: Any, project: str, *, inside: bool = False) -> _Kept:
    """The books of a project after everything the store has; called under the write lock. inside: this transaction has
    written already."""
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
        followed = _Kept(_new_board(db, project), projects.Marks(), frozen=projects.frozen_at(cursor, project))
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
    """Answers that are read are objects that stay: to look for garbage among 300,000 takes as long as reading them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _wrote(db: Database, cursor: Any, followed: _Kept) -> None:
    """The books have what this transaction wrote, and nobody else writes until it is committed."""
    followed.marks, followed.writes = projects.marks_after_own(cursor, followed.marks), db.writes + 1


def _new_board(db: Database, project: str) -> Board:
    project_record = projects.one_project(db, project)
    maps = projects.project_maps(db, project)
    by_kind = {
        kind: {project_map.map_id: project_map.given or "" for project_map in maps if project_map.kind == kind}
        for kind in projects.MAP_KINDS
    }
    return Board(rules_of(project_record), list(by_kind["label"]), by_kind["gold"], by_kind["exemplar"])


def _follow(cursor: Any, project: str, followed: _Kept, *, lapse: float | None = None) -> None:
    """Take in what the store has since, in the order in which it happened. lapse: as in `claims_since`.

    Claims, answers and judgements count on one sequence. An undo counts on that of label events: it came before the
    first answer whose label event is later.
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
    """Seconds since 1970 of a time in UTC as the store keeps it."""
    return moment.replace(tzinfo=UTC).timestamp()
