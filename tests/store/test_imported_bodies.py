"""Runs that come in have rows and options of their study's types, and unfinished jobs bring no results with them."""

import json
from functools import cache

import pytest

from core.errors import AtlasError, InputError, JobError
from core.jobs import api
from core.jobs.records import progress
from core.store import exchange, jobs, runs, shipped_record
from core.store.database import Database
from core.store.rows import from_json
from core.studies.contract import declared
from core.studies.imports import check_run
from core.studies.lookup import find_study
from core.studies.records import known_fields, record_kind
from tests.commands.test_output import here
from tests.store.filling import fill_every_table


def is_a_study(name):
    try:
        return bool(find_study(name))
    except JobError:
        return False


@cache
def shipped():
    """A bundled run of every study that has rows of a kind: its options, and a row of each kind."""
    found = {}
    for run in shipped_record.runs(None).to_dict("records"):
        if run["study"] in found or not is_a_study(run["study"]):
            continue
        kinds = {record_kind(find_study(run["study"]).kinds, row): row for row in shipped_record.run_rows(run["run"])}
        kinds.pop(None, None)
        if kinds:
            options = from_json(run["options"]) if isinstance(run["options"], str) else run["options"]
            found[run["study"]] = (options, list(kinds.values()))
    return found


def accepted(study, options, rows):
    """Whether such a run comes in; what refuses it is one sentence."""
    try:
        check_run(study, options, rows)
    except InputError as error:
        return "\n" in str(error) or not str(error).endswith("Export the run again.")
    return True


@pytest.fixture(autouse=True)
def bundled(monkeypatch, request):
    """The record that ships, also where a test has none."""
    monkeypatch.delenv("ATLAS_RECORD", raising=False)


@pytest.mark.thorough
def test_rows_as_a_study_writes_them_come_in():
    assert len(shipped()) > 15
    assert [study for study, (options, rows) in shipped().items() if not accepted(study, options, rows)] == []


@pytest.mark.thorough
def test_rows_with_a_value_of_another_type_are_refused():
    tried, wrongly = 0, []
    for study, (options, rows) in shipped().items():
        for row in rows:
            kind = record_kind(find_study(study).kinds, row)
            for known in known_fields(kind):
                if known.read is not None or known.column == kind.BY or row.get(known.column) is None:
                    continue
                is_plain = isinstance(row[known.column], (str, int, float))
                wrongs = [{"a": 1}, [[1]]] if is_plain else ["text", 5]
                wrongs += ["text", float("inf")] if known.number else []
                runs_of = [[row | {known.column: wrong}] for wrong in wrongs]
                if known.required:
                    runs_of.append([{name: held for name, held in row.items() if name != known.column}])
                tried += len(runs_of)
                wrongly += [(study, kind.__name__, one) for one in runs_of if accepted(study, options, one)]
    assert tried > 300
    assert wrongly == []


def test_options_of_another_type_are_refused():
    wrongly = [
        (study, name)
        for study, (options, rows) in shipped().items()
        for name, value in options.items()
        if name in declared(find_study(study).options)
        and isinstance(value, (str, int, float))
        and accepted(study, options | {name: [{"a": 1}]}, rows)
    ]
    assert wrongly == []


def test_a_study_that_is_none_is_left_alone():
    rows = [{"a": 1}]
    check_run("heads", {}, rows)
    assert rows == [{"a": 1}]


ROW = {"statistic": "s", "layer": 0, "head": 0, "value": 0.5}
BODIES = [
    ROW | {"value": {"a": 1}}, ROW | {"statistic": 5},     ROW | {"n": "many"}, ROW | {"checkpoint": ["c"]},
]  # fmt: skip


@pytest.fixture
def measured(tmp_path):
    """A database with a run of the study statistics, and a job with work left and one result."""
    options, rows = shipped()["statistics"]
    with Database(tmp_path / "a.duckdb") as db:
        run = runs.record_run(db, "statistics", options, runs.Provenance("c"), title="T")
        runs.store_rows(db, run, rows)
        job = jobs.add_job(db, "statistics", "t", {})
        jobs.add_units(db, job, {}, [{"key": k, "size": 3, "arguments": {}} for k in "ab"])
        jobs.store_outcome(db, job, 0, jobs.UnitEnd(rows=[{"b": 1}], seconds=0.25))
        jobs.set_state(db, job, "cancelled")
        yield db, run, job


@pytest.mark.thorough
@pytest.mark.parametrize("body", BODIES, ids=str)
def test_a_command_refuses_an_export_and_a_run_with_such_a_row(body, measured, tmp_path):
    db, run, _ = measured
    with db.write() as cursor:
        cursor.execute("UPDATE study_row SET body = ? WHERE run = ? AND position = 0", [json.dumps(body), run])
    exchange.export_all(db, tmp_path / "out")
    with pytest.raises(AtlasError, match="Export"):
        here("import", str(tmp_path / "out"), database=tmp_path / "b.duckdb")
    file = exchange.export_run(db, run, tmp_path / "run.jsonl")
    with Database(tmp_path / "b.duckdb") as other:
        assert runs.runs(other).empty
        with pytest.raises(AtlasError, match="Export"):
            api.take_in(other, file)
        assert runs.runs(other).empty


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_file_of_a_run_with_a_number_that_is_none_is_refused(constant, measured, tmp_path):
    db, run, _ = measured
    file = exchange.export_run(db, run, tmp_path / "run.jsonl")
    text = file.read_text("utf-8").splitlines()
    file.write_text("\n".join([text[0], f'{{"statistic": "s", "layer": 0, "head": 0, "value": {constant}}}']), "utf-8")
    with Database(tmp_path / "b.duckdb") as other, pytest.raises(InputError, match="must be JSON Lines"):
        api.take_in(other, file)


def test_an_unfinished_job_of_an_export_brings_no_results(measured, tmp_path):
    db, _, job = measured
    assert progress(db, job).done == 1
    exchange.export_all(db, tmp_path / "out")
    with Database(tmp_path / "b.duckdb") as other:
        exchange.import_all(other, tmp_path / "out")
        assert (progress(other, job).done, progress(other, job).units) == (0, 2)


@pytest.mark.thorough
def test_a_classifier_of_an_export_says_so(tmp_path):
    with Database(tmp_path / "a.duckdb") as db, Database(tmp_path / "b.duckdb") as other:
        fill_every_table(db)
        exchange.export_all(db, tmp_path / "out")
        exchange.import_all(other, tmp_path / "out")
        titles = other.cursor().execute("SELECT title FROM classifier").fetchall()
        assert titles
        assert all(title.endswith(exchange.IMPORTED) for (title,) in titles)
