"""Studies from the terminal while the app holds the file: done, printed, and left for one click on the Jobs page."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.store import exchange
from core.store.database import Database
from core.store.label_files import export_labels
from tests.studies.test_train_patterns import label_everything

pytestmark = pytest.mark.slow

HOLD = "import sys; from core.store.database import Database; db = Database(sys.argv[1]); print(1, flush=True); input()"
WORDS = {
    "features": ["study", "features", config.ENCODER, "--text", "The keys were on the table.", "--json"],
    "classify-maps": ["study", "shares", config.ENCODER, "--task", "mrpc", "--limit", "2", "--json"],
    "train-patterns": ["patterns", "train", "--kind", "baseline", "--json", "--labels"],
}


@pytest.fixture
def held(tmp_path, monkeypatch):
    """A file that another process holds until it is told to end; yields the file and what ends it."""
    path = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(path))
    monkeypatch.setenv("ATLAS_WORKERS", "1")
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, cwd=config.PROJECT, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline().strip() == "1"
        yield path, lambda: process.communicate("\n")
        if process.poll() is None:
            process.communicate("\n")


def labels_of(folder):
    with Database(folder / "source.duckdb") as db:
        label_everything(db)
        export_labels(db, folder / "labels.jsonl")
    return str(folder / "labels.jsonl")


@pytest.mark.parametrize("study", WORDS)
def test_a_study_leaves_its_rows_beside_the_held_file(held, study, tmp_path):
    path, let_go = held
    words = WORDS[study] + ([labels_of(tmp_path)] if study == "train-patterns" else [])
    done = CliRunner().invoke(core.__main__.app, words)
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["rows"]
    assert "import them on the Jobs page" in done.stderr
    let_go()
    with Database(path) as db:
        (waiting,) = exchange.waiting_runs(db).itertuples()
        assert (waiting.study, waiting.error) == (study, "")
        assert waiting.rows >= len(printed["rows"])
        assert not list(exchange.runs_folder(path).glob("*.duckdb"))
