"""Settings come from the environment and from what follows `streamlit run app.py --`."""

from pathlib import Path

import pytest

from core import config


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
    assert config.code_version().startswith("0.")


def test_checkpoints_lie_beside_the_database(monkeypatch, tmp_path):
    monkeypatch.delenv("ATLAS_DB", raising=False)
    assert config.settings().runs == config.DATA / "runs"
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "a.duckdb"))
    assert config.settings().runs == tmp_path / "runs"
