"""Former names of studies: commands, scripts, the bundled record, run files, exports and databases of before."""

import duckdb
import pyarrow.parquet as pq
import pytest
import typer

from core import __main__ as main
from core import config
from core.atlas import scores as atlas_scores
from core.store import exchange, jobs, runs, shipped_record
from core.store.database import Database
from core.store.runs import Provenance
from core.studies import lookup
from core.studies.contract import identity
from core.study_names import CURRENT_NAMES

FORMER = sorted(CURRENT_NAMES)


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as database:
        yield database


def test_no_former_name_is_a_study_and_every_present_one_is():
    assert not CURRENT_NAMES.keys() & lookup.study_modules().keys()
    assert set(CURRENT_NAMES.values()) <= lookup.study_modules().keys()


@pytest.mark.thorough
@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_finds_the_study_and_its_runs_and_jobs(db, former):
    present = CURRENT_NAMES[former]
    assert lookup.find_study(former) is lookup.find_study(present)
    assert identity(former, {"a": 1}) == identity(present, {"a": 1})
    run = runs.record_run(db, former, {}, Provenance())
    job = jobs.add_job(db, former, "", {})
    for name in (former, present):
        assert runs.runs(db, name)["run"].tolist() == [run]
        assert [known["job"] for known in jobs.jobs_of(db, name)] == [job]
    assert runs.one_run(db, run)["study"] == present


def test_a_database_of_before_gets_the_present_names(tmp_path):
    path = tmp_path / "before.duckdb"
    with Database(path) as db:
        made = {former: runs.record_run(db, former, {}, Provenance()) for former in FORMER}
        queued = {former: jobs.add_job(db, former, "", {}) for former in FORMER}
    with duckdb.connect(str(path)) as connection:  # as the version before migration 15 left it
        for former in FORMER:
            connection.execute("UPDATE run SET study = ? WHERE run = ?", [former, made[former]])
            connection.execute("UPDATE job SET study = ? WHERE job = ?", [former, queued[former]])
        connection.execute("DELETE FROM migration WHERE number = 15")
    with Database(path) as db:
        for former, present in CURRENT_NAMES.items():
            assert runs.runs(db, present)["run"].tolist() == [made[former]]
            assert [known["job"] for known in jobs.jobs_of(db, present)] == [queued[former]]


def test_an_export_of_before_gets_the_present_names(db, tmp_path):
    runs.record_run(db, "race", {}, Provenance())
    exchange.export_all(db, tmp_path / "export")
    file = tmp_path / "export" / "run.parquet"
    table = pq.read_table(file)
    former = table.set_column(table.schema.get_field_index("study"), "study", [["race"]])
    pq.write_table(former.cast(table.schema), file)
    with Database(tmp_path / "other.duckdb") as other:
        exchange.import_all(other, tmp_path / "export")
        assert runs.runs(other)["study"].tolist() == ["sequential-test"]


def test_the_bundled_record_is_read_with_the_present_names():
    assert not set(shipped_record.runs()["study"]) & CURRENT_NAMES.keys()
    assert len(shipped_record.runs("pattern-shares")) == len(shipped_record.runs("classify-maps")) > 0


def test_a_command_of_a_former_name_is_there_and_not_listed():
    studies = typer.main.get_command(main.app).commands["study"].commands
    for former, present in CURRENT_NAMES.items():
        if present in studies:
            assert studies[former].hidden
            assert not studies[present].hidden
            assert [one.opts for one in studies[former].params] == [one.opts for one in studies[present].params]
    assert {"race", "sequential-test"} <= studies.keys()


@pytest.mark.parametrize("checkpoint", [config.ENCODER, config.DECODER, config.CLASSIFIER])
def test_no_bundled_score_of_a_head_bears_a_former_name(checkpoint):
    scores = atlas_scores.bundled_rows(checkpoint)["score"].str.partition("/")[0]
    assert len(scores)
    assert not CURRENT_NAMES.keys() & set(scores)
