import io
import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from core import config
from core.__main__ import app
from core.errors import InputError
from core.studies.options import settings_of
from tests.capture.conftest import tiny
from tests.robustness.doors import refused_at_the_terminal, terminal

pytestmark = pytest.mark.slow


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


def test_table_1_as_csv_and_a_second_run_of_the_same_command(base, tmp_path):
    asked = ["finetune", str(base), "--task", "stsb", "--task", "sst2", "--init", "untrained", "--init", "frozen"]
    asked += ["--folder", str(tmp_path / "runs"), "--preset", "small", "--csv"]
    for one in ("epochs=1", "train_limit=16", "dev_limit=8", "max_length=24"):
        asked += ["--set", one]
    status, out, said = terminal(*asked)
    assert status == 0, said
    table = pd.read_csv(io.StringIO(out))
    means = table[table["kind"] == "mean"]
    assert set(zip(means["task"], means["initialisation"], strict=True)) == {
        (task, one) for task in ("stsb", "sst2") for one in ("untrained", "frozen")
    }
    constant = table[table["kind"] == "baseline"].set_index("task")["initialisation"]
    assert constant["stsb"] == "always mean"
    assert constant["sst2"] in {"always negative", "always positive"}  # the commoner of the 16 rows drawn
    assert terminal(*asked)[0] == 0  # folders that are there already are replaced
    assert len([one for one in (tmp_path / "runs").iterdir() if one.is_dir()]) == 4


def test_change_of_a_given_task_from_rows_of_a_folder(base, tmp_path):
    place = tmp_path / "glue" / "SST-2"
    place.mkdir(parents=True)
    (place / "dev.tsv").write_text("sentence\tlabel\n" + "".join(f"the old engine {k}\t{k % 2}\n" for k in range(5)))
    asked = ["study", "change", str(base), str(base), "--task", "SST-2", "--data", str(tmp_path / "glue"), "--json"]
    status, out, said = terminal(*asked)
    assert status == 0, said
    rows = json.loads(out.strip().splitlines()[-1])["rows"]
    assert {(row["n"], row["task"]) for row in rows} == {(5, "sst2")}
    assert all(row["value"] == pytest.approx(1 if row["statistic"] == "cosine" else 0, abs=1e-6) for row in rows)


FINETUNE = ("finetune", config.ENCODER, "--task")
CHANGE = ("study", "change", config.ENCODER)
WRONG = {
    "a task that is none": ([*FINETUNE, "cola"], "A task must be one of"),
    "a setting that is none": ([*FINETUNE, "rte", "--set", "speed=9"], "'speed' is none"),
    "a setting without a value": ([*FINETUNE, "rte", "--set", "epochs"], "written like epochs=1"),
    "forms that exclude each other": ([*FINETUNE, "rte", "--json", "--latex"], "one output format"),
    "no seeds": ([*FINETUNE, "rte", "--seeds", "0"], "greater than or equal to 1"),
    "nothing after": ([*CHANGE], "Missing argument"),
    "a pair of two families": ([*CHANGE, config.DECODER, "--task", "sst2", "--limit", "2"], "equal shapes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    words, sentence = WRONG[name]
    assert sentence in " ".join(refused_at_the_terminal(*words).split())


def test_a_checkpoint_that_cannot_be_opened_fails_the_job_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    assert "must be a folder, a hub ID or a bundled name" in refused_at_the_terminal(
        "finetune", "no such/one", "--task", "rte"
    )


def test_settings():
    assert settings_of(["epochs=1", "learning_rate=0.001", "keep=best", "bucketed=false"]) == {
        "epochs": 1,
        "learning_rate": 0.001,
        "keep": "best",
        "bucketed": False,
    }
    for wrong in ("epochs", "epochs=many", "bucketed=yes"):
        with pytest.raises(InputError, match="written like epochs=1"):
            settings_of([wrong])
