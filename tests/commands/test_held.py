"""Studies from the terminal while the app holds the file: done, printed, and left for one click on the Jobs page."""

import contextlib
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.commands import output
from core.errors import StoreError
from core.store import exchange, labels
from core.store.database import Database
from core.store.label_files import export_labels
from tests.store.labelling import a_map, event
from tests.studies.test_train_patterns import label_everything

HOLD = """
import sys
from core.jobs import api
from core.store.database import Database
db = Database(sys.argv[1])
if sys.argv[2:]:  # as the app does once a page was opened
    api.runner(db)
print(1, flush=True)
input()
"""
WORDS = {
    "features": ["study", "features", config.ENCODER, "--text", "The keys were on the table.", "--json"],
    "pattern-shares": ["study", "shares", config.ENCODER, "--task", "mrpc", "--limit", "2", "--json"],
    "train-patterns": ["patterns", "train", "--kind", "baseline", "--json", "--labels"],
}


@pytest.fixture
def held(tmp_path, monkeypatch):
    """A file that another process holds until it is told to end; yields the file and what ends it."""
    path = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(path))
    monkeypatch.setenv("ATLAS_WORKERS", "1")
    with holding(path, "answers") as let_go:
        yield path, let_go


@contextlib.contextmanager
def holding(path, *words):
    """Another process that holds the file until it is told to end; yields what ends it."""
    command = [sys.executable, "-c", HOLD, str(path), *words]
    with subprocess.Popen(command, cwd=config.PROJECT, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline().strip() == "1"
        yield lambda: process.communicate("\n")
        if process.poll() is None:
            process.communicate("\n")


def labels_of(folder):
    with Database(folder / "source.duckdb") as db:
        label_everything(db)
        export_labels(db, folder / "labels.jsonl")
    return str(folder / "labels.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("study", WORDS)
def test_a_study_leaves_its_rows_beside_the_held_file(held, study, tmp_path):
    path, let_go = held
    words = WORDS[study] + ([labels_of(tmp_path)] if study == "train-patterns" else [])
    done = CliRunner().invoke(core.__main__.app, words)
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["rows"]
    assert "Import them on the Jobs page" in done.stderr
    let_go()
    with Database(path) as db:
        (waiting,) = exchange.waiting_runs(db).itertuples()
        assert (waiting.study, waiting.error) == (study, "")
        assert waiting.rows >= len(printed["rows"])
        assert not list(exchange.runs_folder(path).glob("*.duckdb"))


@pytest.mark.thorough
def test_labels_that_a_held_database_has_are_read_from_a_copy(tmp_path, monkeypatch):
    path = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(path))
    with Database(path) as db:
        labels.store_maps(db, [a_map("m1")])
        labels.record_events(db, [event(1)])
    with holding(path, "answers"), output.database(held="copy") as copy:
        assert labels.decided(copy, "bert", "ada") == {"m1": "vertical"}
        assert copy.path != path
    assert not list(exchange.runs_folder(path).iterdir())  # nothing of it stays


def test_what_cannot_be_read_is_refused_in_a_sentence_and_no_classifier_is_trained_without_it(tmp_path, monkeypatch):
    path = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(path))
    monkeypatch.setattr(output, "COPIED_WITHIN", 0.3)
    with holding(path):
        for words in (["patterns", "train"], ["study", "shares", config.ENCODER, "--task", "mrpc"]):
            done = CliRunner().invoke(core.__main__.app, words)
            assert isinstance(done.exception, StoreError), done.output
            assert "has not answered within 0.3 seconds" in str(done.exception)
    assert not list(exchange.runs_folder(path).iterdir())
