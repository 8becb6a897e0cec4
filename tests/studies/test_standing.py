"""Of which weights a stored result is: by the hash of what its name leads to now."""

import json

import pytest

from core import config
from core.models.present import present_weights
from core.studies.stored_runs import standing

NOW = {"encoder": "e1", "decoder": "d1", "owner/model": "m2", "owner/model@v1": "m1"}


@pytest.fixture(autouse=True)
def names(monkeypatch):
    monkeypatch.setattr("core.studies.stored_runs.present_weights", NOW.get)


def run(checkpoint, weights, **others):
    return {"study": "statistics", "checkpoint": checkpoint, "weights_hash": weights, "options": {}} | others


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (run("encoder", "e1"), "present"),
        (run("encoder", "e0"), "earlier"),
        (run("encoder", None), "unrecorded"),
        (run("encoder", float("nan")), "unrecorded"),
        (run("gone", "x"), "elsewhere"),
        (run("gone", None), "elsewhere"),
        (run(None, None), "elsewhere"),
        (run("encoder, decoder", "e1, d1"), "present"),
        (run("encoder, decoder", "e1, d0"), "earlier"),
        (run("encoder and gone", "e1 and x"), "present"),
        (run("encoder and gone", "e0 and x"), "earlier"),
        (run("encoder", "e1, d1", options={"compare": "decoder"}), "present"),
        (run("encoder", "e1, d0", options=json.dumps({"compare": "decoder"})), "earlier"),
        (run("encoder", "e0, d1", options={"compare": "decoder"}), "earlier"),
        (run("encoder", "a, b, c", study="cross-fitted"), "elsewhere"),
        (run("encoder", "a", study="cross-fitted"), "elsewhere"),
        (run("encoder", "e0, e9"), "earlier"),
        (run("owner/model", "m1", options={"revision": "v1"}), "present"),
    ],
)
def test_a_run_is_of_the_weights_that_its_names_lead_to_or_not(stored, expected):
    assert standing(stored) == expected


def test_the_hash_is_that_of_an_opened_checkpoint_and_follows_the_file(tmp_path):
    from core.models.opening import open_checkpoint

    assert present_weights(config.ENCODER) == open_checkpoint(config.ENCODER).weights_hash
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert present_weights(str(folder)) is None  # no weights in it
    (folder / "model.safetensors").write_bytes(b"one")
    first = present_weights(str(folder))
    (folder / "model.safetensors").write_bytes(b"two")
    second = present_weights(str(folder))
    (folder / "head.safetensors").write_bytes(b"head")
    assert len({first, second, present_weights(str(folder))}) == 3


@pytest.mark.parametrize(
    "name", ["", "\0", "no/such", "~nobody-there/x", "/", "a" * 5000, "owner/model@v2", "../..", "."]
)
def test_a_name_that_leads_nowhere_has_no_weights(name):
    assert present_weights(name) is None


def test_a_checkpoint_that_was_downloaded_is_at_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "hub_cache", lambda: tmp_path)
    stored, commit = tmp_path / "models--owner--model", "0" * 40
    (stored / "refs").mkdir(parents=True)
    (stored / "refs" / "v2").write_text(commit)
    folder = stored / "snapshots" / commit
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    assert present_weights("owner/model@v2")
    assert present_weights("owner/model@v3") is None
