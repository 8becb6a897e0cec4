"""JSON of another type in stored rows: refused by imports, left out and named by readers."""

import re
from dataclasses import fields
from typing import get_type_hints

import pytest

from core.config import code_version
from core.errors import AtlasError, InputError
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe
from core.patterns.training import ClassifierRecipe
from core.store import bodies, classifiers, exchange, findings, frames, hypotheses, jobs, projects, runs
from core.store.bodies import collecting, leave_out, misfit
from core.store.database import Database
from core.store.findings import Number
from core.studies.imports import check_run, result_rows
from tests.pages.spoiled import whole_runs
from tests.spread import one_in
from tests.store.spoiling import SPOILED, fill, spoil


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A database file with one sound row of each kind, closed."""
    with Database(tmp_path_factory.mktemp("sound") / "atlas.duckdb") as db:
        fill(db)
    return db.path


@pytest.fixture
def stored(sound, tmp_path):
    path = tmp_path / "atlas.duckdb"
    path.write_bytes(sound.read_bytes())
    with Database(path) as db:
        yield db


def read_all(db):
    """What pages and commands read of all rows."""
    listed = jobs.jobs(db).job.tolist()
    known = classifiers.classifiers(db).classifier.tolist()
    classifiers.labels_since_newest(db, "bert")
    frames.skipped_of(db, "r")
    return {
        "run": runs.known_runs(db, "heads").run.tolist(),
        "job": [one["job"] for one in jobs.jobs_of(db, "heads")],
        "job_outcome": [jobs.job_provenance(db, name) for name in listed],
        "project": [one.title for one in projects.projects(db)],
        "classifier": known,
        "finding": [one.title for one in findings.findings(db)],
        "frame_annotation": frames.find_annotations(db, frames.Search(text="cat")).id.tolist(),
        "hypothesis_batch": hypotheses.batches(db),
        "hypothesis": hypotheses.hypotheses(db),
    }


@pytest.mark.thorough
def test_sound_rows_are_read_and_imported(stored, tmp_path):
    with collecting() as left_out:
        found = read_all(stored)
    assert left_out == []
    assert all(found.values())
    exchange.export_all(stored, tmp_path / "out")
    with Database(tmp_path / "other.duckdb") as other:
        exchange.import_all(other, tmp_path / "out", check_run=check_run)


@pytest.mark.thorough
@pytest.mark.parametrize("case", one_in(3, SPOILED), ids=lambda case: "-".join(case)[:60])
def test_a_spoiled_row_is_refused_by_an_import_and_left_out_by_readers(case, stored, tmp_path):
    table, column, text = case
    spoil(stored, table, column, text)
    with collecting() as left_out:
        found = read_all(stored)
    if table in found and table != "classifier" and (table, column) != ("job", "asked"):
        assert found[table] in ([], [[]])
        assert len(left_out) == 1
        assert f"{table}.{column}" in left_out[0]
    others = [name for name in found if name != table]
    assert all(found[name] for name in others)
    exchange.export_all(stored, tmp_path / "out")
    with Database(tmp_path / "other.duckdb") as other:
        with pytest.raises(InputError) as error:
            exchange.import_all(other, tmp_path / "out", check_run=check_run)
        assert "\n" not in str(error.value)
        assert not any(len(rows) for name, rows in read_all(other).items() if name != "job_outcome")


@pytest.mark.parametrize("column", ["recipe", "classes", "snapshot", "scores"])
def test_a_spoiled_classifier_is_named_when_it_is_opened(column, stored):
    ((name,),) = stored.cursor().execute("SELECT classifier FROM classifier").fetchall()
    spoil(stored, "classifier", column, "5")
    with pytest.raises(
        AtlasError, match=f"'A sound classifier' in the database cannot be read: classifier.{column} must be a JSON"
    ):
        classifiers.one_classifier(stored, name)


def test_a_spoiled_job_and_a_spoiled_run_are_named_when_they_are_opened(stored):
    (job,), (run,) = jobs.jobs(stored).job.tolist(), runs.runs(stored).run.tolist()
    spoil(stored, "job", "asked", "[]")
    spoil(stored, "run", "options", "[]")
    with pytest.raises(AtlasError, match=r"cannot be read: job[.]asked must be a JSON object"):
        jobs.one_job(stored, job)
    with pytest.raises(AtlasError, match=r"'A sound run' cannot be read: run[.]options must be a JSON object"):
        runs.one_run(stored, run)


def test_each_row_that_is_left_out_is_named(stored):
    ((job,),) = stored.cursor().execute("SELECT job FROM job").fetchall()
    (batch,), (one,) = hypotheses.batches(stored), hypotheses.hypotheses(stored)
    projects.order_maps(stored, projects.projects(stored)[0].project, ["m2"], annotator="ada")
    (project,) = projects.projects(stored)
    named = {
        ("run", "options"): "the result 'A sound run'",
        ("job", "options"): f"the job {job}",
        ("job_row", "body"): f"a row of the job {job}",
        ("job_outcome", "provenance"): f"what a unit of the job {job} reported",
        ("project_event", "body"): f"an order of maps in the project {project.project}",
        ("project", "recipe"): "the project 'A sound project'",
        ("classifier", "snapshot"): "labels of the newest classifier of 'bert'",
        ("finding", "numbers"): "the finding 'A sound finding'",
        ("frame_annotation", "body"): "the sentence a",
        ("frame_release", "skipped"): "r's skipped parts",
        ("hypothesis", "parameters"): f"the hypothesis {one.hypothesis}",
        ("hypothesis_batch", "judged"): f"the batch of hypotheses {batch.batch}",
    }
    for (table, column), name in named.items():
        spoil(stored, table, column, "5")
        with collecting() as left_out:
            read_all(stored)
            projects.project_maps(stored, project.project)
            jobs.job_rows(stored, job)
        assert [text for text in left_out if text.startswith(f"Left out {name}: {table}.{column} must be a JSON ")]


def test_messages_repeat_the_beginning_of_a_long_title(stored):
    spoiled = {"run": "options", "project": "rules", "finding": "numbers", "classifier": "scores"}
    for table, column in spoiled.items():
        spoil(stored, table, column, "5")
        with stored.write() as cursor:
            cursor.execute(f"UPDATE {table} SET title = ?", ["q" * 190])  # noqa: S608 - names of a test
    with collecting() as left_out:
        read_all(stored)
    said = {table: text for text in left_out for table, column in spoiled.items() if f"{table}.{column}" in text}
    for table, read in (("run", runs.one_run), ("classifier", classifiers.one_classifier)):
        ((name,),) = stored.rows(f"SELECT {table} FROM {table}")  # noqa: S608 - names of a test
        with pytest.raises(AtlasError) as error:
            read(stored, name)
        said[f"one {table}"] = str(error.value)
    letters = {name: [len(found) for found in re.findall("qq+", text)] for name, text in said.items()}
    assert letters == {"run": [80], "project": [60], "finding": [60], "one run": [80], "one classifier": [60]}


def test_what_is_left_out_is_said_once_and_logged(caplog):
    with collecting() as left_out:
        leave_out("a row")
        leave_out("a row")
    leave_out("a row")
    assert left_out == ["a row"]
    assert [record.message for record in caplog.records] == ["a row", "a row"]


@pytest.mark.parametrize(
    ("keys", "record"),
    [(bodies.RULES, Rules), (bodies.RECIPE, ProjectRecipe), (bodies.CLASSIFIER_RECIPE, ClassifierRecipe),
     (bodies.NUMBER, Number)],
)  # fmt: skip
def test_the_types_of_columns_are_those_of_the_records_that_are_stored(keys, record):
    lists = {tuple[str, ...]: list[str], tuple[int, ...]: list[int]}
    hints = get_type_hints(record)
    assert {field.name: lists.get(hints[field.name], hints[field.name]) for field in fields(record)} == dict(keys)


def test_every_json_column_of_the_database_has_a_type(stored):
    listed = stored.cursor().execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE data_type = 'JSON' AND NOT internal"
    )
    apart = {("attention_map", "tokens"), ("attention_map", "separators")}  # checked with the map
    tables = set(exchange.tables(stored))
    assert {column for column in listed.fetchall() if column[0] in tables} - apart <= set(bodies.BODIES)


def test_keys_of_other_versions_are_no_fault():
    assert misfit("project", "rules", '{"new": [1], "k": 2}') == ""
    assert misfit("project", "rules", "{}") == ""
    assert misfit("finding", "numbers", '[{"name": "a", "what": "b", "value": null, "new": 1}]') == ""


# ---------------------------------------------------------------- rows of runs


def test_rows_of_an_earlier_version_that_lack_a_column_are_imported_and_left_out(tmp_path):
    run = whole_runs()["importance"]
    lacking = {name: value for name, value in run["rows"][0].items() if name != "value"}
    with Database(tmp_path / "a.duckdb") as db, Database(tmp_path / "b.duckdb") as other:
        for number, version in enumerate(("0.1.0+abc", code_version())):
            about = runs.Provenance("c", code_version=version)
            runs.record_run(db, "importance", run["options"], about, title=f"Run {number}", run=f"r{number}")
            runs.store_rows(db, f"r{number}", [lacking, *run["rows"][1:5]])
        exchange.export_all(db, tmp_path / "both")
        with pytest.raises(InputError, match=r"must have the column 'value'.*Export the run again"):
            exchange.import_all(other, tmp_path / "both", check_run=check_run)
        with db.write() as cursor:
            cursor.execute("DELETE FROM run WHERE run = 'r1'")
            cursor.execute("DELETE FROM study_row WHERE run = 'r1'")
        exchange.export_all(db, tmp_path / "old")
        with collecting() as said:
            exchange.import_all(other, tmp_path / "old", check_run=check_run)
        assert len(said) == 1
        assert "from another version are imported but not shown" in said[0]
        assert "must have the column 'value'" in said[0]
        with collecting() as left_out:
            assert result_rows(other, "r0") == run["rows"][1:5]
        assert len(left_out) == 1
        assert left_out[0].startswith(
            "Left out 1 of 5 rows of the result 'Run 0': A row of the study importance must have"
        )
