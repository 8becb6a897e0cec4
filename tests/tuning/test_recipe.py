import pytest

from core.errors import InputError
from core.tuning.recipe import PRESET_NOTES, PRESETS, Recipe


def test_presets_are_the_sources_settings():
    paper, replication = Recipe.of(), Recipe.of("replication")
    assert (paper.batch, paper.epochs, paper.learning_rate, paper.warm_up, paper.decay, paper.max_length) == (
        32,
        3,
        5e-5,
        0.1,
        "linear",
        128,
    )
    assert (replication.learning_rate, replication.decay, replication.dropout) == (1e-3, "none", 0.0)
    assert (replication.train_limit, replication.dev_limit) == (3000, 500)
    assert set(PRESETS) == set(PRESET_NOTES)


def test_changes_and_mistakes():
    assert Recipe.of("paper", {"epochs": 1}).epochs == 1
    for changes, message in [
        ({"epoch": 1}, 'got "epoch"'),
        ({"learning_rate": 7.0}, "from 0 to 1; got 7"),
        ({"keep": "first"}, "keep must be one of"),
        ({"pooling": "max"}, "pooling must be one of auto, cls, sep, mean, last"),
        ({"train_limit": 0}, "train_limit must be from 1"),
        ({"dev_limit": -2}, "dev_limit must be from 1"),
        ({"train_last": -1}, "train_last must be from 0"),
        ({"dropout": 1.0}, "dropout must be from 0 to 0.99"),
    ]:
        with pytest.raises(InputError, match=message):
            Recipe.of("paper", changes)
    with pytest.raises(InputError, match="paper, replication, small, bundled, long"):
        Recipe.of("fast")
