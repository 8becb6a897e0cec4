"""A sweep whose process is killed in the middle and started again gives the table of one that was not."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import core.__main__
from core.store import jobs
from core.store.database import Database
from tests.studies.planted import save_planted, write_rows
from tests.studies.through_json import rows_of

ROOT = Path(__file__).resolve().parents[2]
KILLED = """
import os, signal, sys
from core.jobs import scheduler
keep, kept = scheduler.store.store_outcome, []
def dying(*arguments, **options):
    keep(*arguments, **options)
    kept.append(1)
    if len(kept) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
scheduler.store.store_outcome = dying
from core.__main__ import main
main()
"""


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_to_the_same_table(tmp_path):
    checkpoint, data = save_planted(tmp_path / "planted"), write_rows(tmp_path / "data", rows=200)
    asked = ["study", "disable", str(checkpoint), "--data", str(data), "--workers", "1", "--json"]
    environment = {"ATLAS_DB": str(tmp_path / "atlas.duckdb"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", KILLED, *asked]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Database(tmp_path / "atlas.duckdb") as db:
        (job,) = jobs.jobs(db)["job"]
        assert len(jobs.job_rows(db, job)) == 2  # of four units
    again = CliRunner().invoke(core.__main__.app, asked, env=environment)
    assert again.exit_code == 0, again.output
    assert f"Resuming job {job}" in again.stderr
    whole = rows_of("disable", {"checkpoint": str(checkpoint), "data": str(data)})
    assert json.loads(again.stdout)["rows"] == json.loads(json.dumps(whole))
