"""Commands and settings that cannot be used: exit status 2, one sentence, nothing left behind."""

import subprocess
import sys

import pytest

from core import config
from tests.pages.browsing import PROJECT
from tests.robustness.doors import refused_at_the_terminal

COMMANDS = {
    "no such command": ["dance"],
    "check nothing": ["check", "nobody/none"],
    "check a file": ["check", "/etc/passwd"],
    "maps to a folder that is none": ["maps", config.ENCODER, "--text", "Hi.", "--out", "/no/such/maps.npz"],
    "maps of an empty text": ["maps", config.ENCODER, "--text", " ", "--out", "never.npz"],
    "maps to a folder": ["maps", config.ENCODER, "--text", "Hi.", "--out", "/etc"],
    "heads without the target": ["heads", config.ENCODER, "--sentence", "A cat.", "--target", "dog", "--element", "A"],
    "heads of a place that is none": [
        "heads",
        config.ENCODER,
        "--sentence",
        "A b.",
        "--target",
        "A#7",
        "--element",
        "b",
    ],
    "heads in no direction": [
        *["heads", config.ENCODER, "--sentence", "A cat ran.", "--target", "ran", "--element", "cat"],
        *["--direction", "up"],
    ],
    "heads of no pairing": [
        *["heads", config.ENCODER, "--sentence", "A cat ran.", "--target", "ran", "--element", "cat"],
        *["--pairing", "up"],
    ],
    "labels to a folder that is none": ["labels", "export", "/no/such/labels.jsonl"],
    "labels of another form": ["labels", "import", "/etc/passwd"],
    "labels that are missing": ["labels", "import", "/no/labels.jsonl"],
    "an export to a file": ["export", "/etc/passwd"],
    "an import of nothing": ["import", "/etc"],
    "a job that is none": ["jobs", "show", "none"],
    "a job with a path": ["jobs", "cancel", "../x"],
    "a job to resume": ["jobs", "resume", "'; DROP TABLE job; --"],
    "a study that is none": ["jobs", "start", "os"],
    "a study upwards": ["jobs", "start", "..errors"],
    "an option without a value": ["jobs", "start", "heads", "--set", "limit"],
    "forms that exclude each other": ["jobs", "list", "--json", "--csv"],
    "shares with no classifier": ["study", "shares", config.ENCODER, "--task", "sst2", "--classifier", "none"],
    "shares of a task that is none": ["study", "shares", config.ENCODER, "--task", "none", "--limit", "2"],
    "shares of no rows": ["study", "shares", config.ENCODER, "--task", "sst2", "--limit", "0"],
    "features of a task that is none": ["study", "features", config.ENCODER, "--task", "none"],
    "features of a feature that is none": [
        *["study", "features", config.ENCODER, "--task", "sst2", "--feature", "none", "--limit", "4"]
    ],
    "frame heads of a file that is none": ["study", "frame-heads", config.ENCODER, "--sentences", "/no/such.jsonl"],
    "frame heads of another rule": ["study", "frame-heads", config.ENCODER, "--core", "none"],
    "an index of nothing": ["study", "index-frames", "/no/such/fndata"],
    "train on a file that is none": ["patterns", "train", "--labels", "/no/labels.jsonl"],
    "train classes that are none": ["patterns", "train", "--class-set", "none"],
    "train a kind that is none": ["patterns", "train", "--kind", "none"],
}
SETTINGS = {
    "workers that are a word": {"ATLAS_WORKERS": "many"},
    "a fraction of jobs": {"ATLAS_JOBS_AT_ONCE": "1.5"},
    "a folder for a database": {"ATLAS_DB": "/etc"},
    "a database under a file": {"ATLAS_DB": "/etc/passwd/x.duckdb"},
    "a text for a database": {"ATLAS_DB": "/etc/passwd"},
    "a database at somebody unknown's": {"ATLAS_DB": "~nobody-here/a.duckdb"},
}


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
