"""Commands and settings that cannot be used: exit status 2, one sentence, nothing left behind."""

import subprocess
import sys

import pytest

from tests.pages.browsing import PROJECT
from tests.robustness.doors import refused_at_the_terminal
from tests.robustness.texts import COMMANDS, SETTINGS

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setenv("ATLAS_WORKERS", "1")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name):
    refused_at_the_terminal(*COMMANDS[name])


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(monkeypatch, name):
    for variable, value in SETTINGS[name].items():
        monkeypatch.setenv(variable, value)
    refused_at_the_terminal("jobs", "list")


def test_a_real_process_prints_a_sentence_and_ends_with_2(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "core", "jobs", "show", "none"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "ATLAS_DB": str(tmp_path / "a.duckdb"), "HOME": str(tmp_path)},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
