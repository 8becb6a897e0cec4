"""What a project keeps: the order of its maps, what was handed to whom, and which labels answer it."""

from dataclasses import replace
from datetime import datetime

from core.store import erasure, labels, projects
from core.store.projects import AnswerRow, ClaimRow, Heading, Marks, ProjectMap
from tests.store.labelling import SET, a_map, event

DAY = datetime(2026, 1, 31, 12)


def test_the_newest_order_of_maps_holds_and_what_it_does_not_name_comes_last(db):
    labels.store_maps(db, [a_map(name) for name in ("m1", "m2", "m3")])
    maps = [ProjectMap(name, "label", None) for name in ("m1", "m2", "m3")]
    project = projects.add_project(db, Heading("Own", SET), recipe={}, rules={}, maps=maps)
    assert projects.project_maps(db, project) == maps
    for order in (["m2", "m1"], ["m3", "m1"]):
        projects.order_maps(db, project, order, annotator="ada")
    assert [entry.map_id for entry in projects.project_maps(db, project)] == ["m3", "m1", "m2"]


def test_labels_after_a_closing_do_not_count_until_the_project_is_open_again(db):
    labels.store_maps(db, [a_map("m1"), a_map("m2")])
    maps = [ProjectMap("m1", "label", None)]
    project, other = (projects.add_project(db, Heading(name, SET), recipe={}, rules={}, maps=maps) for name in "PQ")
    ordinals = []
    for number, kind in enumerate(("pause", "close", "open", "close", "archive"), start=1):
        labels.record_events(db, [event(number, cls="block" if number % 2 else "diagonal")])
        newest = db.cursor().execute("SELECT max(ordinal) FROM label_event").fetchall()[0][0]
        ordinals.append(newest)
        projects.change_project(db, project, kind, annotator="ada")
        expected = {"pause": None, "close": newest, "open": None, "archive": ordinals[-2:][0]}[kind]
        assert projects.frozen_now(db, project) == expected, kind
        assert projects.frozen_now(db, other) is None
        assert projects.projects_with(db.cursor(), SET, "m1") == ([project, other] if expected is None else [other])
    labels.record_events(db, [event(9)])
    assert projects.frozen_now(db, project) == ordinals[-2] > 0
    assert projects.projects_with(db.cursor(), SET, "m2") == []


def test_what_was_handed_to_whom_and_which_labels_answer_it(db):
    labels.store_maps(db, [a_map("m1")])
    labels.record_events(db, [event(1), event(2)])
    with db.write() as cursor:
        projects.add_claims(cursor, "p", [ClaimRow("m1", "ada", 1, "agreement", DAY, DAY)])
        projects.add_answers(cursor, [AnswerRow("tab:1", "p", "agreement", counted=True)])
        assert projects.claimed(cursor, "p", "m1", "ada", 1) == "agreement"
        for project, map_id, annotator, passing in (
            ("q", "m1", "ada", 1),
            ("p", "m2", "ada", 1),
            ("p", "m1", "eve", 1),
            ("p", "m1", "ada", 2),
        ):
            assert projects.claimed(cursor, project, map_id, annotator, passing) is None
        assert projects.projects_answered(cursor, ["tab:1", "tab:2"]).keys() == {"tab:1"}
        assert projects.handed(cursor, "p") == {"ada": 1}


def test_marks_are_the_newest_rows_and_what_came_since_is_read_once(db):
    labels.store_maps(db, [a_map("m1"), a_map("m2")])
    maps = [ProjectMap(name, "label", None) for name in ("m1", "m2")]
    project, other = (projects.add_project(db, Heading(name, SET), recipe={}, rules={}, maps=maps) for name in "PQ")
    cursor = db.cursor()
    start = projects.marks(cursor, Marks())
    assert (start.label, start.classes, start.erasures) == (0, 0, 0)

    def write(number, *, of=project):
        labels.record_events(db, [event(number, f"m{number}")])
        with db.write() as writing:
            projects.add_claims(writing, of, [ClaimRow(f"m{number}", "ada", 1, "label", DAY, DAY)])
            projects.add_answers(writing, [AnswerRow(f"tab:{number}", of, "label", counted=number == 1)])

    write(1)
    first = projects.marks(cursor, start)
    assert first == projects.marks_after_own(cursor, start) == projects.marks(cursor, first)
    assert first.ordinal > start.ordinal
    (newest,) = cursor.execute("SELECT max(ordinal) FROM label_event").fetchone()
    assert first.label == newest
    write(2, of=other)
    second = projects.marks_after_own(cursor, replace(first, classes=7, erasures=8))
    assert second == replace(projects.marks(cursor, first), classes=7, erasures=8)
    assert second.ordinal > first.ordinal
    assert second.label > first.label
    for of, since, wanted in ((project, start, ["m1"]), (project, first, []), (other, first, ["m2"])):
        assert [row[1:5] for row in projects.claims_since(cursor, of, since)] == [
            ("ada", name, 1, "label") for name in wanted
        ]
        assert [row[2:9] for row in projects.answers_since(cursor, of, since)] == [
            (f"tab:{name[1]}", "ada", name, 1, "label", "vertical", name == "m1") for name in wanted
        ]
    assert projects.answers_since(cursor, other, first, last=first.label) == []

    projects.judge_person(db, project, "eve", admitted=False, annotator="ada")
    assert not projects.changed_since(cursor, project, second)
    projects.order_maps(db, project, ["m2", "m1"], annotator="ada")
    projects.judge_person(db, project, "eve", admitted=True, annotator="ada")
    assert projects.changed_since(cursor, project, second)
    judged = projects.judgements_since(cursor, project, second)
    assert [row[1:] for row in judged] == [("eve", False), ("eve", True)]
    third = projects.marks(cursor, second)
    assert third.ordinal == judged[1][0] > judged[0][0] > second.ordinal
    for of, since in ((project, third), (other, second)):
        assert not projects.changed_since(cursor, of, since)
        assert projects.judgements_since(cursor, of, since) == []
    assert projects.marks_after_own(cursor, second) == second  # neither a claim nor a label

    labels.record_events(db, [event(3, "m1", kind="undo", undoes="tab:1")])
    (undone,) = projects.undone_since(cursor, project, third)
    assert undone == (projects.marks(cursor, third).label, "tab:1")
    assert projects.undone_since(cursor, other, third) == []
    assert projects.undone_since(cursor, project, third, last=third.label) == []
    assert projects.undone_since(cursor, project, projects.marks(cursor, third)) == []
    labels.change_class(db, SET, labels.ClassChange("add", "wave", title="Wave", eye="A wave."), annotator="ada")
    erasure.erase_name(db, "ada", annotator="eve")
    last = projects.marks(cursor, third)
    assert (last.classes > 0, last.erasures) == (True, 1)
