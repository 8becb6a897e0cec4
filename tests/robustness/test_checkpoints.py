"""Checkpoints that are none, or have one thing wrong: one sentence, and no code of theirs runs."""

import json
import time

import pytest

from core import config
from core.errors import AtlasError, CheckpointError
from core.models import tokenizing
from core.models.opening import open_checkpoint
from tests.robustness.doors import one_sentence, refused, refused_or_fine
from tests.robustness.folders import FOLDERS, by_pattern, made, with_rules, written
from tests.robustness.texts import NAMES, TEXTS
from tests.spread import one_in


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_nowhere(name):
    refused(lambda: open_checkpoint(NAMES[name]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOLDERS)
def test_folders_with_one_thing_wrong(tmp_path, name):
    folder = made(config.BUNDLED_MODELS / config.ENCODER, FOLDERS[name], tmp_path)

    def use():
        from core.capture.running import capture

        opened = open_checkpoint(str(folder))
        capture(opened, opened.encode("Paul bought a car."))

    refused(use)
    assert not (tmp_path / "owned").exists(), "code of the checkpoint ran"


def with_pattern(place, pattern):
    folder = made(config.BUNDLED_MODELS / config.ENCODER, with_rules(pre_tokenizer=by_pattern(pattern)), place)
    return open_checkpoint(str(folder))


@pytest.mark.thorough
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", r"(a+a+)+\d", r"([a-z]+)*\d"])
def test_a_tokenizer_that_its_library_stops_at_is_a_sentence_in_workers_too(tmp_path, pattern):
    """The library's PanicException is no Exception: what catches errors of a job would not catch it."""
    opened = with_pattern(tmp_path, pattern)
    with pytest.raises(CheckpointError) as error:
        opened.encode("a" * 60 + "!")
    one_sentence(str(error.value))
    assert opened.encode("Paul").ids  # it goes on with what it can split


def test_a_tokenizer_that_takes_too_long_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tokenizing, "SECONDS", 0.1)
    opened = with_pattern(tmp_path, "(a{1,12}){1,5}$")  # stays below the library's own bound, at each of the letters
    slow, began = "a" * 3000 + "!", time.monotonic()
    for _ in range(3):
        refused(lambda: opened.encode(slow))
    assert time.monotonic() - began < 5


def test_what_training_left_beside_a_checkpoint_may_be_anything(tmp_path):
    left = written("training.json", "[" * 5_000)
    folder = made(config.BUNDLED_MODELS / config.ENCODER, left, tmp_path)
    assert open_checkpoint(str(folder)).weights_hash


def test_tokenizers_that_ship_are_called_as_they_are(encoder):
    assert encoder.tokenizer not in tokenizing._FOREIGN


@pytest.mark.parametrize("name", ["atlas-encoder", "atlas-decoder"])
def test_rules_of_real_tokenizers_are_within_bounds(name):
    folder = config.BUNDLED_MODELS / name
    assert (folder / "tokenizer.json").is_file()
    tokenizing.refuse_wild_rules(folder, name)


LLAMA = {
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"},
            {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        ],
    },
    "pre_tokenizer": {
        "type": "Sequence",
        "pretokenizers": [by_pattern(r"\p{N}{1,3}"), {"type": "ByteLevel", "use_regex": False}],
    },
}


def test_rules_that_tokenizers_of_today_have_are_within_bounds(tmp_path):
    folder = made(config.BUNDLED_MODELS / config.ENCODER, with_rules(**LLAMA), tmp_path)
    assert json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["normalizer"] == LLAMA["normalizer"]
    tokenizing.refuse_wild_rules(folder, "llama")


@pytest.fixture(scope="module")
def encoder():
    return open_checkpoint(config.ENCODER)


@pytest.mark.thorough
@pytest.mark.parametrize("name", one_in(2, TEXTS))
def test_texts(encoder, name):
    """A text is captured, its rows summing to 1, or refused in a sentence; alone and as a second sentence."""
    from core.capture.running import capture

    for arguments in ((TEXTS[name],), ("A first sentence.", TEXTS[name])):
        try:
            maps = capture(encoder, encoder.encode(*arguments))
        except AtlasError as error:
            one_sentence(str(error))
        else:
            assert abs(maps.weights.sum(-1) - 1).max() < 1e-3
    refused_or_fine(lambda: encoder.encode(TEXTS[name]).pieces(0, 10**6))
