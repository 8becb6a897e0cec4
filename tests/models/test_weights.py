"""What is hashed and checked is what is loaded."""

import json
import os
import shutil

import pytest
from safetensors.numpy import load_file, save_file

from core import config
from core.errors import AtlasError
from core.models.opening import open_checkpoint
from core.models.present import stamp_of
from core.studies import worker_cache
from pages.parts.shell import resources
from tests.robustness.doors import one_sentence

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
META = {"format": "pt"}


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A checkpoint in the folder that the app was given."""
    shutil.copytree(config.BUNDLED_MODELS / config.ENCODER, tmp_path / "given" / "model")
    monkeypatch.setenv("ATLAS_FOLDERS", str(tmp_path / "given"))
    return tmp_path / "given" / "model"


def other_weights(folder):
    return {name: value + 0.01 for name, value in load_file(folder / "model.safetensors").items()}


def in_parts(folder, place=""):
    """model.safetensors as two parts with an index; `place`: a folder in front of the parts' names."""
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    parts = {f"{place}part-1.safetensors": names[::2], f"{place}part-2.safetensors": names[1::2]}
    for part, own in parts.items():
        (folder / part).parent.mkdir(exist_ok=True)
        save_file({name: weights[name] for name in own}, folder / part, metadata=META)
    index = {"metadata": {}, "weight_map": {name: part for part, own in parts.items() for name in own}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()


def refused(folder):
    with pytest.raises(AtlasError) as error:
        open_checkpoint(str(folder))
    one_sentence(str(error.value))
    return str(error.value)


def test_other_weights_have_another_hash_even_when_the_time_is_set_back(given):
    file, before = given / "model.safetensors", open_checkpoint(str(given)).weights_hash
    times = file.stat()
    save_file(other_weights(given), file, metadata=META)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert open_checkpoint(str(given)).weights_hash != before


def test_a_file_that_is_not_loaded_is_not_hashed(given):
    before = open_checkpoint(str(given)).weights_hash
    save_file(other_weights(given), given / "another.safetensors", metadata=META)
    assert open_checkpoint(str(given)).weights_hash == before


def test_parts_are_hashed_each(given):
    in_parts(given)
    before = open_checkpoint(str(given)).weights_hash
    part = given / "part-2.safetensors"
    save_file({name: value + 1 for name, value in load_file(part).items()}, part, metadata=META)
    assert open_checkpoint(str(given)).weights_hash != before


@pytest.mark.parametrize("place", ["../", "../../outside/", "sub/"])
def test_an_index_that_names_files_elsewhere_is_refused(given, place):
    (given.parents[1] / "outside").mkdir()
    in_parts(given, place)
    assert "must list safetensors files in its own folder" in refused(given)


@pytest.mark.parametrize(
    "index", ["[]", "{", '{"weight_map": {}}', '{"weight_map": {"a": 7}}', '{"weight_map": {"a": "none.safetensors"}}']
)
def test_an_index_with_a_slip_is_refused(given, index):
    (given / "model.safetensors").unlink()
    (given / "model.safetensors.index.json").write_text(index)
    refused(given)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "head.safetensors"])
def test_a_file_that_leads_out_of_the_folders_is_refused(given, name):
    outside = given.parents[1] / "outside"
    outside.write_bytes((given / name).read_bytes() if (given / name).exists() else b"")
    (given / name).unlink(missing_ok=True)
    (given / name).symlink_to(outside)
    assert "links to a file outside" in refused(given)


def test_weights_that_the_config_names_are_refused(given):
    said = json.loads((given / "config.json").read_text())
    (given / "config.json").write_text(json.dumps(said | {"transformers_weights": "other.safetensors"}))
    assert "another file" in refused(given)


def test_a_folder_without_a_tokenizer_is_refused(given):
    for file in given.glob("*token*"):
        file.unlink()
    assert "tokenizer" in refused(given)


def vocabulary(change):
    def write(folder):
        file = folder / "tokenizer.json"
        said = json.loads(file.read_text())
        said["model"]["vocab"] = change(said["model"]["vocab"])
        file.write_text(json.dumps(said))

    return write


VOCABULARIES = {
    "empty": vocabulary(lambda pieces: {}),
    "two pieces under one number": vocabulary(lambda pieces: pieces | {"zzz": 10}),
    "a number past the embeddings": vocabulary(lambda pieces: pieces | {"zzz": 10**6}),
    "a number below zero": vocabulary(lambda pieces: pieces | {"zzz": -1}),
    "a number that is a text": vocabulary(lambda pieces: pieces | {"zzz": "7"}),
    "a list": vocabulary(lambda pieces: list(pieces)),
    "only the special ones": vocabulary(lambda pieces: {k: v for k, v in pieces.items() if k in SPECIAL}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_vocabulary_that_is_not_the_models_is_refused(given, name):
    VOCABULARIES[name](given)
    refused(given)


@pytest.mark.thorough
def test_a_checkpoint_is_opened_again_when_any_of_its_files_changed_by_one_rule_for_workers_and_pages(given):
    """Where the time is set back too, and where the vocabulary alone is another one."""
    file, name = given / "model.safetensors", str(given)
    asked = (lambda: worker_cache.get_checkpoint(name), lambda: resources.open_checkpoint(name, None, "none"))
    before = [ask() for ask in asked]
    assert all(ask() is kept for ask, kept in zip(asked, before, strict=True))
    times = file.stat()
    save_file(other_weights(given), file, metadata=META)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = [ask() for ask in asked]
    assert all(now.weights_hash != kept.weights_hash for now, kept in zip(changed, before, strict=True))
    os.utime(given / "tokenizer.json")
    assert not any(ask() is kept for ask, kept in zip(asked, changed, strict=True))


def test_what_is_no_local_checkpoint_has_no_stamp(given, tmp_path):
    assert stamp_of(config.ENCODER)
    for name in ("owner/model", "owner/model@v2", "", "\0", "~nobody-here/model", str(tmp_path)):  # the last: not given
        assert stamp_of(name) == 0, name
