"""Settings come from the environment and from what follows `streamlit run app.py --`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core import __version__, config
from core.store.people import ROLES


@pytest.mark.parametrize("arguments", [["app.py", "--db", "/data/a.duckdb"], ["--other", "x", "--db=/data/a.duckdb"]])
def test_db_after_the_dashes_wins_over_the_environment(monkeypatch, arguments):
    monkeypatch.setenv("ATLAS_DB", "/data/b.duckdb")
    assert config.settings().database == Path("/data/b.duckdb")
    config.take_arguments(arguments)
    assert config.settings().database == Path("/data/a.duckdb")


def test_without_a_choice_the_file_is_in_the_data_folder(monkeypatch):
    monkeypatch.delenv("ATLAS_DB", raising=False)
    config.take_arguments(["app.py"])
    assert config.settings().database == config.DATA / "atlas.duckdb"


def test_the_code_version_is_stable_text():
    assert config.code_version() == config.code_version()
    assert config.code_version().startswith(f"{__version__}+")


def test_checkpoints_lie_beside_the_database(monkeypatch, tmp_path):
    monkeypatch.delenv("ATLAS_DB", raising=False)
    assert config.settings().runs == config.DATA / "runs"
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "a.duckdb"))
    assert config.settings().runs == tmp_path / "runs"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ATLAS_WORKERS", value) for value in ("x", "0", "-1", "1.5", "1e3", "10000000000", "9" * 5000, " ", "٣x")),
        *(("ATLAS_JOBS_AT_ONCE", value) for value in ("1000000000", "0", "many", "1,5", "nan")),
        *(("ATLAS_DEVICE", value) for value in ("toaster", "cuda:", "cuda:-1", "CPU ", "cpu\nmps")),
        *(("ATLAS_VISITORS", value) for value in ("Admin", "admins", "admin,viewer", "root")),
        *(("ATLAS_CLUSTER", value) for value in ("scheduler", "tcp://", "tcp://a b:1", "tcp://host:port", "host:1;x")),
        *(("ATLAS_FRAME_ANCESTORS", value) for value in (
            "*", "https:", "https://a.b; script-src *", "'none'", "https://a.b,https://c.d", "data:", "https://a.b/path",
            "https://*", "https://a.b\r\nx: y",
        )),
        ("ATLAS_DB", "/"), ("ATLAS_DB", "~nobody-here/a.duckdb"),
        ("ATLAS_GLUE", "/no/such/folder"), ("ATLAS_FRAMENET", __file__), ("ATLAS_FOLDERS", "~nobody-here/a"),
    ],
)  # fmt: skip
def test_a_variable_that_cannot_be_is_named_with_what_to_do(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    (fault,) = config.environment_faults()
    assert fault.startswith(name)
    assert len(fault) < 400


def test_the_usual_environment_has_no_fault(monkeypatch):
    for name, value in {
        "ATLAS_WORKERS": "2", "ATLAS_JOBS_AT_ONCE": "", "ATLAS_DEVICE": "cuda:1", "ATLAS_VISITORS": "viewer",
        "ATLAS_CLUSTER": "tcp://scheduler.example:8786", "ATLAS_FRAME_ANCESTORS": "https://a.b:8443  http://*.c.d",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert config.environment_faults() == []


def test_the_app_says_every_fault_at_once_and_does_not_start(tmp_path):
    wrong = {"ATLAS_WORKERS": "x", "ATLAS_JOBS_AT_ONCE": "1000000000", "ATLAS_DB": str(tmp_path / "a.duckdb")}
    told = subprocess.run(
        [sys.executable, "-c", "import app"], cwd=config.PROJECT, env=os.environ | wrong, capture_output=True, text=True
    )
    assert told.returncode == 1
    assert [line.split()[0] for line in told.stderr.splitlines()] == ["ATLAS_WORKERS", "ATLAS_JOBS_AT_ONCE"]


def test_the_roles_of_visitors_are_those_of_people():
    assert config.VISITORS == ROLES
