"""The fine-tuned checkpoint that ships is what its card says, and stands for "latest" until one is made."""

import json

import pytest
import torch

from core import config
from core.models.opening import open_checkpoint
from core.models.present import present_weights
from core.studies.lookup import find_study
from core.tasks.glue import read_rows
from core.tuning.saved_checkpoints import tuned_checkpoints
from data.recipes import tuned_encoder

FOLDER = config.BUNDLED_MODELS / config.CLASSIFIER
FACTS = json.loads((FOLDER / "training.json").read_text(encoding="utf-8"))


def test_it_is_of_todays_encoder_and_its_card_is_made_from_its_facts():
    assert FACTS["base_hash"] == present_weights(config.ENCODER)
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == tuned_encoder.card(FACTS)
    assert [tuned.name for tuned in tuned_checkpoints(config.BUNDLED_MODELS)] == [config.CLASSIFIER]


@pytest.mark.thorough
def test_what_ships_is_right_as_often_as_its_training_said():
    opened = open_checkpoint(config.CLASSIFIER, head="classifier")
    rows = read_rows("sst2", "dev")
    with torch.no_grad():
        guesses = [int(opened.model(torch.tensor([opened.encode(row.text).ids])).logits.argmax()) for row in rows]
    right = [guess == row.label for guess, row in zip(guesses, rows, strict=True)]
    assert sum(right) / len(rows) == pytest.approx(FACTS["metrics"]["accuracy"], abs=0.01)  # float16 on disk
    assert FACTS["metrics"]["accuracy"] > 0.8


def test_a_run_of_another_seed_is_not_shipped(tmp_path):
    (tmp_path / "training.json").write_text(json.dumps(FACTS | {"seed": 1}))
    with pytest.raises(SystemExit, match="seed 0"):
        tuned_encoder.ship(tmp_path, tmp_path / "out")


def test_latest_is_the_bundled_one_where_nothing_was_tuned(monkeypatch, tmp_path):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    options = find_study("disable").read({"checkpoint": "latest", "task": "sst2"})
    assert options.checkpoint == config.CLASSIFIER
