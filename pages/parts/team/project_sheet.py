"""Labelling in a project: its sheet with the assigned maps, and storing of the labels from any sheet."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import AtlasError, StoreError
from core.labelling import assignment_service
from core.labelling.assignment import AnnotatorStatus, Choice
from core.labelling.queue import alike_maps
from core.patterns.snapshot import known_class_set
from core.store import labels, projects
from core.store.database import Database
from pages.parts.label import map_pictures
from pages.parts.label.label_sheet import header_of, send_maps, show_sheet, with_maps
from pages.parts.shell import people, url
from pages.parts.shell.messages import plain

MOST_BOXES, MOST_EVENTS = 10, 200  # outboxes of a request, and events of each: some seconds of the store's time
# a map of the group, by database and project, and by map: the maps of a project never change
_GROUPS: dict[tuple[str, str], dict[str, str]] = {}


class Sheet(NamedTuple):
    """The payload that the browser draws, and its name."""

    name: str
    data: bytes
    maps: int


def next_sheet(db: Database, project: str, annotator: str) -> Sheet:
    """Return the assigned maps of this person, filled up; none if the person is paused or everything is done."""
    handed = assignment_service.next_maps(db, project, annotator)
    project_record = projects.one_project(db, project)
    classes = known_class_set(db, project_record.class_set)
    passes = {handed_out.map_id: {"pass": handed_out.passing} for handed_out in handed.choices}
    order, choices = assignment_service.rules_of(project_record).order, handed.choices
    if order == "clusters":
        choices, group = grouped(db, project, choices)
        for name, facts in passes.items():
            facts["group"] = group[name]
    mode = "together" if order == "clusters" else "single"
    header = header_of(db, classes, annotator, 1, order, mode=mode) | {
        "per_sheet": 48,
        "queued": len(handed.choices),
        # what is on this sheet is undecided: the first pass of a map that comes again says nothing about it
        "stack": [
            {
                "event": event,
                "kind": "label" if class_name else "skip",
                "map_id": choice.map_id,
                "pass": choice.passing,
                "class": classes.resolved(class_name) if class_name else None,
            }
            for event, choice, class_name in handed.undoable
            if choice.map_id not in passes
        ],
        "project": project,
        "word": word(handed.status, complete=handed.complete, empty=not handed.choices),
    }
    rows = labels.maps_of(db, [handed_out.map_id for handed_out in choices])
    name, payload = with_maps(header, rows, about=passes)
    return Sheet(name, payload, len(rows))


def grouped(db: Database, project: str, choices: Sequence[Choice]) -> tuple[list[Choice], dict[str, int]]:
    """Return assigned maps with alike maps next to each other, and the group of each; gold maps, exemplars and repeats
    have a group each."""
    if (known := _GROUPS.get((db.id, project))) is None:
        names = [one.map_id for one in projects.project_maps(db, project) if one.kind == "label"]
        known = {name: group[0] for group in alike_maps(db, names) for name in group}
        _GROUPS[db.id, project] = known
    units: dict[str, list[Choice]] = {}
    for choice in choices:
        first = choice.purpose == "label" and choice.passing == 1
        units.setdefault(known[choice.map_id] if first else f"alone {choice.map_id}", []).append(choice)
    group = {choice.map_id: number for number, unit in enumerate(units.values()) for choice in unit}
    return [choice for unit in units.values() for choice in unit], group


def word(status: AnnotatorStatus, *, complete: bool = False, empty: bool = False) -> str:
    """Return a message about the status of a person, or ""."""
    if status.phase == "paused":
        return status.why
    if status.phase == "training":
        return (
            f"Training, round {status.round}: {status.exemplars} maps labelled, {status.trained} of them correctly. "
            f"After each map you see the correct class."
        )
    if complete:
        return "The project is complete: every map has its labels. Thank you."
    if empty:
        return (
            "No map is free for you now, because all remaining maps are reserved for other people. Come back when "
            "their reservations have expired."
        )
    return ""


class Box(NamedTuple):
    """One outbox as a browser sent it. Each event has a whole number as its sequence."""

    batch: str
    events: list[dict[str, Any]]


def boxes_for(db: Database, sent: dict[str, Any]) -> list[Box]:
    """Return the outboxes that belong to this database; others and invalid ones are ignored."""
    outboxes, belonging = sent.get("boxes"), []
    for box in outboxes if isinstance(outboxes, list) else []:
        if isinstance(box, dict) and box.get("database") == db.id and isinstance(box.get("events"), list):
            good = [event for event in box["events"] if isinstance(event, dict) and type(event.get("sequence")) is int]
            belonging.append(Box(str(box.get("batch")), good))
    return belonging


def take(db: Database, sent: dict[str, Any]) -> dict[str, Any]:
    """Store the outboxes that a browser sent: acknowledged numbers by batch, feedback, status, and reasons for
    refusals.

    With `drop`, valid events are stored one by one, and the others acknowledged too. Only the first events of each
    outbox are processed; `more` in the answer requests the others.
    """
    reply: dict[str, Any] = {"acknowledged": {}, "feedback": [], "word": ""}
    secret = str(sent.get("secret") or "")
    boxes = boxes_for(db, sent)
    reply["more"] = len(boxes) > MOST_BOXES or any(len(box.events) > MOST_EVENTS for box in boxes)
    for batch, events in boxes[:MOST_BOXES]:
        earliest = sorted(events, key=lambda event: event["sequence"])[:MOST_EVENTS]
        stamped = [{**event, "batch": batch} for event in earliest]
        try:
            if sent.get("drop") is True:
                reply["acknowledged"][batch] = _keep_what_can_be(db, stamped, secret)
            else:
                _take(db, stamped, secret, reply)
        except AtlasError as error:
            reply |= {"refused": str(error), "again": isinstance(error, StoreError)}
    return reply


def _take(db: Database, events: list[dict[str, Any]], secret: str, reply: dict[str, Any]) -> None:
    if not events:
        return
    recorded = assignment_service.record(db, events, secret=secret)
    reply["acknowledged"][events[0]["batch"]] = recorded.acknowledged
    reply["feedback"] += [vars(answer) for answer in recorded.feedback]
    for status in recorded.statuses.values():
        reply["word"] = word(status)
        reply["paused"] = status.phase == "paused"


def _keep_what_can_be(db: Database, events: list[dict[str, Any]], secret: str) -> int:
    """Store the events one by one. Raises StoreError if the store accepts nothing; then nothing is dropped."""
    for event in events:
        try:
            assignment_service.record(db, [event], secret=secret)
        except StoreError:
            raise
        except AtlasError:
            continue  # this is one that cannot be kept
    return max((event["sequence"] for event in events), default=0)


# ---------------------------------------------------------------- a project on the Label page


def open_projects(db: Database) -> dict[str, projects.Project]:
    return {project.project: project for project in projects.projects(db) if project.state in ("open", "paused")}


def pick_project(open_: dict[str, projects.Project]) -> projects.Project | None:
    """Ask for one of these projects (None: labelling outside of projects)."""
    chosen = url.pick(
        st.selectbox,
        "Project",
        ["", *open_],
        key="project",
        format_func=lambda name: open_[name].title if name else "without a project",
        label_visibility="collapsed",
    )
    return open_.get(chosen)


def work(db: Database, project: projects.Project, annotator: str, beside: DeltaGenerator) -> None:
    """Show the messages and the sheet of a project, with its codebook in `beside`. Raises InputError if no map is
    available."""
    db.person.must("annotator", "label")
    classes = known_class_set(db, project.class_set)
    map_pictures.codebook(db, classes, beside)
    if project.codebook:
        st.caption(plain(project.codebook))
    key = (project.project, annotator, project.state, classes)
    cached_sheet = st.session_state.get("project_sheet")
    if cached_sheet is None or cached_sheet[0] != key:  # what the browser holds stays as it is until it asks for more
        cached_sheet = (key, next_sheet(db, project.project, annotator))
        st.session_state["project_sheet"] = cached_sheet
    sheet = cached_sheet[1]
    send_maps(sheet.data)
    show_sheet(sheet.name)
    board = assignment_service.board_of(db, project.project)
    st.caption(
        plain(
            f"{project.title} · {board.counted} of {board.needed} labels when this page was opened · "
            f"{board.rules.k} people per map · keys: digits label, Space skips, Backspace undoes"
        )
    )
    if not people.sign_in_configured():
        st.caption("Sign-in is not set up, so names of annotators are not verified. Enter the same name each time.")
