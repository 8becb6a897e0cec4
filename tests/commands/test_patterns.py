"""Training, labels and shares from the terminal, on a database of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core import config
from core.store.database import Database
from core.store.label_files import export_labels
from tests.studies.test_train_patterns import label_everything

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
needs_encoder = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / config.ENCODER / "config.json").is_file(),
    reason="the bundled encoder is not in this checkout",
)


@pytest.fixture
def label_file(tmp_path):
    db = Database(tmp_path / "source.duckdb")
    label_everything(db)
    file = tmp_path / "labels.jsonl"
    export_labels(db, file)
    db.close()
    return file


@pytest.fixture
def atlas(tmp_path):
    def call(*words, status=0):
        environment = os.environ | {"ATLAS_DB": str(tmp_path / "atlas.duckdb"), "ATLAS_WORKERS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "core", *map(str, words)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


@needs_encoder
def test_train_on_a_file_then_shares_of_a_task(atlas, label_file):
    found = json.loads(
        atlas("patterns", "train", "--class-set", "bert", "--labels", label_file, "--kind", "baseline", "--json").stdout
    )
    assert {"macro_f1", "low", "high", "per_class", "n_labels"} <= found.keys()
    assert found["n_labels"] == 40
    assert 0 <= found["low"] <= found["macro_f1"] <= found["high"] <= 1
    rows = json.loads(atlas("study", "shares", config.ENCODER, "--task", "mrpc", "--limit", 6, "--json").stdout)["rows"]
    for part in ("share", "corrected"):
        assert sum(row["share"] for row in rows if row["part"] == part) == pytest.approx(1)
    assert sum(row["maps"] for row in rows if row["part"] == "share") == 6 * 36
    assert len([row for row in rows if row["part"] == "head"]) == 36
    wrong = atlas("study", "shares", config.ENCODER, "--task", "mrpc", "--class-set", "mine", status=2)
    assert len(wrong.stderr.strip().splitlines()) == 1


def test_labels_go_in_and_out(atlas, label_file, tmp_path):
    assert "40 new" in atlas("labels", "import", label_file).stdout
    assert "40 stored already" in atlas("labels", "import", label_file).stdout
    atlas("labels", "export", tmp_path / "out.parquet")
    atlas("labels", "export", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == label_file.read_text()
    with label_file.open("a") as out:
        out.write("not json\n")
    assert "row 41" in atlas("labels", "import", label_file, "--all-or-nothing", status=2).stderr


def test_errors_are_one_sentence(atlas, tmp_path):
    none = tmp_path / "none.jsonl"
    assert "cannot be opened" in atlas("patterns", "train", "--labels", none, status=2).stderr
    assert "cannot be opened" in atlas("labels", "import", none, status=2).stderr
