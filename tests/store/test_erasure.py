"""A name that is erased is gone from labels, options of jobs and runs, and what a project says of people."""

from core.store import erasure, exchange, jobs, labels, runs
from core.store.runs import Provenance
from tests.store.labelling import SET, a_map, event


def test_a_name_is_replaced_in_the_options_of_its_own_jobs_and_runs(db):
    labels.store_maps(db, [a_map()])
    labels.record_events(db, [event(1), event(1, batch="other", annotator="eve")])
    asked = {name: jobs.add_job(db, "train-patterns", "T", {"annotator": name, "seed": 3}) for name in ("ada", "eve")}
    runs_of = {
        name: runs.record_run(db, "train-patterns", {"annotator": name}, Provenance()) for name in ("ada", "eve")
    }
    assert erasure.known_people(db) == ["ada", "eve"]
    found = erasure.erase_name(db, "ada", annotator="eve")
    assert (found.kind, found.pseudonym, found.events, found.annotator) == ("name", "erased-1", 1, "eve")
    assert erasure.known_people(db) == ["erased-1", "eve"]
    for name, now in (("ada", "erased-1"), ("eve", "eve")):
        job = jobs.one_job(db, asked[name])
        assert job["options"] == job["asked"] == {"annotator": now, "seed": 3}
        assert runs.one_run(db, runs_of[name])["options"] == {"annotator": now}
    assert labels.decided(db, SET, "erased-1") == {"m1": "vertical"}
    tables = [db.cursor().execute(f'SELECT * FROM "{name}"').fetchall() for name in exchange.tables(db)]  # noqa: S608
    texts = [str(row) for rows in tables for row in rows]
    assert not [text for text in texts if "'ada'" in text or '"ada"' in text]
