"""A name that is erased is gone from labels, options of jobs and runs, and what a project says of people."""

import json
from datetime import datetime

from core.store import erasure, exchange, findings, hypotheses, jobs, labels, projects, runs
from core.store.projects import AnswerRow, ClaimRow, Heading, ProjectMap
from core.store.runs import Provenance
from tests.store.labelling import SET, a_map, event


def test_a_name_is_replaced_in_the_options_of_its_own_jobs_and_runs(db):
    labels.store_maps(db, [a_map()])
    labels.record_events(db, [event(1), event(1, batch="other", annotator="eve")])
    asked = {name: jobs.add_job(db, "train-patterns", "T", {"annotator": name, "seed": 3}) for name in ("ada", "eve")}
    runs_of = {
        name: runs.record_run(db, "train-patterns", {"annotator": name}, Provenance()) for name in ("ada", "eve")
    }
    assert labels.annotators(db) == ["ada", "eve"]
    found = erasure.erase_name(db, "ada", annotator="eve")
    assert (found.kind, found.pseudonym, found.events, found.annotator) == ("name", "erased-1", 1, "eve")
    assert labels.annotators(db) == ["erased-1", "eve"]
    for name, now in (("ada", "erased-1"), ("eve", "eve")):
        job = jobs.one_job(db, asked[name])
        assert job["options"] == job["asked"] == {"annotator": now, "seed": 3}
        assert runs.one_run(db, runs_of[name])["options"] == {"annotator": now}
    assert labels.decided(db, SET, "erased-1") == {"m1": "vertical"}
    tables = [db.cursor().execute(f'SELECT * FROM "{name}"').fetchall() for name in exchange.tables(db)]  # noqa: S608
    texts = [str(row) for rows in tables for row in rows]
    assert not [text for text in texts if "'ada'" in text or '"ada"' in text]


def test_events_of_a_person_are_deleted_and_nothing_of_others(db):
    """What is left is what a database has in which the person never labelled, except for the pseudonym elsewhere."""
    day = datetime(2026, 1, 31, 12)
    labels.store_maps(db, [a_map("m1"), a_map("m2")])
    mine = [event(1), event(2, "m2"), event(3, kind="undo", undoes="tab:1")]
    others = [event(1, batch="other", annotator="eve"), event(2, batch="other", annotator="eve", name="m2")]
    labels.record_events(db, [*mine, *others])
    rules = {"people": ["eve", "ada"], "raters": 2}
    project = projects.add_project(
        db,
        Heading("P", SET, annotator="ada"),
        recipe={"known_from": "ada"},
        rules=rules,
        maps=[ProjectMap("m1", "label", None)],
    )
    projects.judge_person(db, project, "ada", admitted=True, annotator="eve")
    with db.write() as cursor:
        claims = [ClaimRow("m1", name, 1, "agreement", day, day) for name in ("ada", "eve")]
        projects.add_claims(cursor, project, claims)
        answers = [AnswerRow(f"{batch}:1", project, "agreement", counted=True) for batch in ("tab", "other")]
        projects.add_answers(cursor, answers)
    found = erasure.erase_events(db, "ada", annotator="ada")
    assert (found.kind, found.annotator, found.events) == ("events", found.pseudonym, 6)  # 3, a claim, 2 of projects
    rows = lambda sql: db.cursor().execute(sql).fetchall()  # noqa: E731
    assert rows("SELECT event FROM label_event ORDER BY event") == [("other:1",), ("other:2",)]
    assert rows("SELECT annotator FROM claim") == [("eve",)]
    assert rows("SELECT event FROM project_label") == [("other:1",)]
    (stored,) = projects.projects(db)
    assert (stored.made_by, json.loads(rows("SELECT rules FROM project")[0][0])) == (
        found.pseudonym,
        rules | {"people": ["eve", found.pseudonym]},
    )
    assert json.loads(rows("SELECT recipe FROM project")[0][0]) == {"known_from": found.pseudonym}
    assert rows("SELECT DISTINCT person FROM project_event WHERE person IS NOT NULL") == [(found.pseudonym,)]
    assert erasure.erasures(db) == [found]


def test_a_name_is_replaced_in_findings_and_hypotheses(db):
    findings.pin(db, findings.Finding("run", "T", "", "", "", annotator="ada"))
    batch = hypotheses.StoredBatch("m", "w", {}, {}, (), (), 1, 0.05, annotator="ada")
    _, (identifier,) = hypotheses.add_batch(db, batch, [(0, 0, "offset", (("offset", "next"),))])
    hypotheses.withdraw(db, identifier, annotator="ada")
    assert erasure.erasable(db) == ["ada"]
    assert erasure.erase_name(db, "ada", annotator="eve").events == 3
    tables = ("finding", "hypothesis_batch", "hypothesis_event")
    names = [db.cursor().execute(f"SELECT DISTINCT annotator FROM {name}").fetchall() for name in tables]  # noqa: S608
    assert names == [[("erased-1",)]] * 3
