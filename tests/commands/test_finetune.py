import json

import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.commands.finetune import settings_of
from core.errors import InputError
from tests.capture.conftest import tiny


@pytest.fixture
def base(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    checkpoint = tiny("bert")
    checkpoint.model.save_pretrained(tmp_path / "tiny")
    checkpoint.tokenizer.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def test_finetune_then_change(base, tmp_path):
    asked = ["finetune", str(base), "--task", "rte", "--seeds", "2", "--folder", str(tmp_path / "runs"), "--json"]
    for one in ("epochs=1", "train_limit=16", "dev_limit=8", "max_length=24"):
        asked += ["--set", one]
    found = CliRunner().invoke(app, asked, catch_exceptions=False)
    printed = json.loads(found.stdout.strip().splitlines()[-1])
    assert printed["study"] == "finetune"
    assert printed["provenance"]["task"] == "rte"
    runs = [row for row in printed["rows"] if row["kind"] == "run"]
    assert [row["seed"] for row in runs] == [0, 1]
    changed = CliRunner().invoke(
        app, ["study", "change", str(base), runs[0]["folder"], "--limit", "6", "--json"], catch_exceptions=False
    )
    rows = json.loads(changed.stdout.strip().splitlines()[-1])["rows"]
    assert {row["n"] for row in rows} == {6}
    assert len([row for row in rows if row["kind"] == "head" and row["statistic"] == "cosine"]) == 12


def test_settings():
    assert settings_of(["epochs=1", "learning_rate=0.001", "keep=best", "bucketed=false"]) == {
        "epochs": 1, "learning_rate": 0.001, "keep": "best", "bucketed": False}  # fmt: skip
    for wrong in ("epochs", "epochs=many"):
        with pytest.raises(InputError, match="written like epochs=1"):
            settings_of([wrong])
