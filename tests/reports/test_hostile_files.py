"""config.json and training.json with anything in them: one sentence, and nothing large is allocated first."""

import json
import tracemalloc

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from transformers.models.bert.modeling_bert import BertLayer

from core import config
from core.capture.running import capture
from core.errors import AtlasError, CheckpointError
from core.models import memory
from core.models.opening import open_checkpoint, saved_head, weights_taken
from core.models.present import parts_of
from core.report.data import facts_of
from core.studies.ablation import setup
from core.studies.lookup import find_study
from core.studies.preflight import check_runnable
from core.studies.probing.transfer import layers_of
from core.studies.tuning.change import task_tuned_on
from core.tuning.saved_checkpoints import tuned_checkpoints
from pages.parts.widgets.checkpoint_chooser import _checkpoints_under
from pages.parts.widgets.context_bar import heads_of
from tests.capture.conftest import TEXT, tiny
from tests.families.tiny import tiny_of
from tests.reports.checkpoints import saved, with_config
from tests.reports.hostile import configs, logs
from tests.robustness.doors import one_sentence, refused

GOOD = {
    "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 32, "num_hidden_layers": 3,
    "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 200, "max_position_embeddings": 64,
    "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0,
    "id2label": {"0": "no", "1": "yes"},
}  # fmt: skip
LOG = {
    "kind": "fine-tuned", "base": "atlas-encoder", "base_hash": "a", "task": "sst2", "date": "2026-01-01T00:00:00",
    "recipe": {"train_limit": None, "pooling": "mean"}, "seeds": {"rows": 0}, "rows": {"train": 9},
    "train_rows_hash": "b", "dev_rows_hash": "c", "metrics": {"accuracy": 0.8}, "constant_predictions": False,
    "held": {},
}  # fmt: skip
CONFIGS, LOGS = dict(configs(GOOD)), dict(logs(LOG))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tiny("bert"), tmp_path_factory.mktemp("hostile") / "model")


def tried(*calls):
    """How many of the calls end; the others must refuse in one sentence."""
    ended = 0
    for call in calls:
        try:
            call()
            ended += 1
        except AtlasError as error:
            one_sentence(str(error))
    return ended


@pytest.mark.thorough
def test_any_config_opens_or_is_one_sentence_wherever_it_is_read(folder):
    name = str(folder)
    good = (folder / "config.json").read_text()

    def use():
        opened = open_checkpoint(name)
        capture(opened, opened.encode("the old engine ran"))

    readers = (saved_head, facts_of, layers_of)
    try:
        for text in CONFIGS.values():
            (folder / "config.json").write_bytes(text.encode())
            tried(use, *(lambda read=read: read(name) for read in readers))
            assert parts_of(name)
            assert len(heads_of(name)) <= 50_000
            assert len(_checkpoints_under(folder.parent)) <= 1
            assert weights_taken(name) >= 0
    finally:
        (folder / "config.json").write_text(good)
    assert tried(use, *(lambda read=read: read(name) for read in readers)) == 4


@pytest.mark.thorough
def test_any_training_log_is_read_or_left_out_of_the_list(folder):
    name, study = str(folder), find_study("disable")

    def listed():
        return [(one.name, one.task, one.facts) for one in tuned_checkpoints(folder.parent)]

    def unseen():
        setup._every.cache_clear()
        setup.rows_unseen_by(name, "sst2", None, 10, 0)

    try:
        for text in LOGS.values():
            (folder / "training.json").write_bytes(text.encode())
            listed()
            tried(
                lambda: open_checkpoint(name),
                lambda: check_runnable(study, {"checkpoint": name, "task": "sst2"}),
                lambda: task_tuned_on(name),
                unseen,
            )
        (folder / "training.json").write_text(json.dumps(LOG))
        assert len(listed()) == 1
        assert task_tuned_on(name) == "sst2"
        (folder / "training.json").write_text(json.dumps(LOG | {"date": 7}))
        assert listed() == []
    finally:
        (folder / "training.json").unlink()


@pytest.mark.parametrize(
    "sizes",
    [
        {"num_hidden_layers": 3000, "num_attention_heads": 3000},
        {"num_hidden_layers": 10**9},
        {"num_attention_heads": 10**9},
        {"vocab_size": 40_000_000, "hidden_size": 40_000_000},
        {"max_position_embeddings": 40_000_000},
        {"intermediate_size": 50_000_000},
        {"num_labels": 10**9},
        {"text_config": {"num_hidden_layers": 10**9}},
    ],
    ids=lambda sizes: ", ".join(sizes),
)
def test_sizes_are_checked_before_anything_is_allocated(folder, sizes):
    good = (folder / "config.json").read_text()
    (folder / "config.json").write_text(json.dumps(json.loads(good) | sizes))
    tracemalloc.start()
    try:
        refused(lambda: open_checkpoint(str(folder)))
        assert heads_of(str(folder)) == [] or len(heads_of(str(folder))) == 12
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
        (folder / "config.json").write_text(good)


@pytest.mark.parametrize(("layers", "heads"), [(900, 32), (1000, 8), (57, 4)])
def test_no_layer_is_built_of_a_config_that_describes_far_more_than_the_file(folder, monkeypatch, layers, heads):
    good, built = (folder / "config.json").read_text(), []
    monkeypatch.setattr(BertLayer, "__init__", lambda *_: built.append(1))
    monkeypatch.setattr(memory, "free_bytes", lambda _: 0)  # the message must not depend on free memory
    changed = {"num_hidden_layers": layers, "num_attention_heads": heads}
    (folder / "config.json").write_text(json.dumps(json.loads(good) | changed))
    try:
        with pytest.raises(CheckpointError, match=f"describes {layers:,} layers, but the weights have at most 3"):
            open_checkpoint(str(folder))
    finally:
        (folder / "config.json").write_text(good)
    assert built == []


COMPUTED = {"xlm": "sinusoidal_embeddings", "flaubert": "sinusoidal_embeddings", "distilbert": "sinusoidal_pos_embds"}


@pytest.mark.parametrize(
    "family", [*COMPUTED, "roformer", "marian", "pegasus", "ctrl", "xglm", "m2m_100", "fsmt", "bert", "gpt2"]
)
def test_no_table_of_positions_is_made_for_far_more_than_the_file_has(tmp_path, family):
    """Sinusoids are computed number by number in Python: a minute and a gigabyte for a million positions."""
    folder = saved(tiny_of(family), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    name = "n_positions" if "n_positions" in config else "max_position_embeddings"
    assert name in config
    on = {COMPUTED[family]: True} if family in COMPUTED else {}
    with_config(folder, **{name: 100_000} | on)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=r" 100,00\d rows of|and \(100\d\d\d, \d+\) by config.json"):
            open_checkpoint(str(folder))
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("family", ["marian", "roformer", "pegasus"])
def test_a_table_of_positions_that_the_file_leaves_out_is_computed(tmp_path, family):
    """Marian models are saved without it."""
    checkpoint = tiny_of(family)
    folder = saved(checkpoint, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    left = {key: value for key, value in weights.items() if "embed_positions" not in key}
    assert len(left) < len(weights)
    save_file(left, folder / "model.safetensors", {"format": "pt"})
    with_config(folder, max_position_embeddings=2048)
    opened, encoding = open_checkpoint(str(folder)), checkpoint.encode(TEXT[0])
    assert np.allclose(capture(opened, encoding).weights, capture(checkpoint, encoding).weights, atol=1e-6)


def test_a_folder_that_may_not_be_named_answers_like_one_that_is_not_there(folder, monkeypatch, tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    monkeypatch.setenv("ATLAS_FOLDERS", str(given))
    (folder / "training.json").write_text(json.dumps(LOG))
    there, nowhere = str(folder), str(folder.with_name("other"))
    study = find_study("disable")

    def answer(call, name):
        try:
            return call(name)
        except AtlasError as error:
            return type(error), str(error).replace(name, "NAME")

    calls = (
        open_checkpoint, saved_head, facts_of, layers_of, parts_of, heads_of, weights_taken, task_tuned_on,
        lambda name: check_runnable(study, {"checkpoint": name, "task": "sst2"}),
    )  # fmt: skip
    try:
        for call in calls:
            assert answer(call, there) == answer(call, nowhere)
    finally:
        (folder / "training.json").unlink()
    assert config.within(given)
