"""What a checkpoint takes is known before it is opened, and what does not fit is refused in a sentence."""

import sys

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, MistralConfig, MistralModel, Phi3Config, Phi3Model

from core import config
from core.atlas.example import PAIR, TEXT
from core.capture.running import capture
from core.capture.selfcheck import run_checks
from core.errors import CheckpointError
from core.models import memory, opening
from core.models.memory import LARGE, Stored, maps_bytes, shown, stored_weights
from core.models.opening import open_checkpoint, weights_taken
from core.models.present import parts_of
from tests.capture.conftest import byte_level, wordpiece

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


@pytest.fixture(params=["float32", "float16", "bfloat16"])
def stored(request, tmp_path):
    """A folder with a BERT in this dtype, its parameters, and the dtype."""
    model = BertModel(BertConfig(vocab_size=len(wordpiece()), **SIZES)).to(getattr(torch, request.param))
    model.save_pretrained(tmp_path)
    wordpiece().save_pretrained(tmp_path)
    return tmp_path, sum(one.numel() for one in model.parameters()), request.param


def test_headers_say_how_many_weights_there_are_and_in_which_dtype(stored):
    folder, parameters, dtype = stored
    found = stored_weights([folder / "model.safetensors"])
    assert found == Stored(parameters, dtype)
    assert weights_taken(str(folder), "stored") == parameters * (4 if dtype == "float32" else 2)
    assert weights_taken(str(folder), "float32") == parameters * 4


def test_a_checkpoint_opens_as_it_is_stored_where_that_is_asked_for(stored):
    folder, parameters, dtype = stored
    assert open_checkpoint(str(folder), dtype="stored", device="cpu").dtype == dtype
    small = open_checkpoint(str(folder), dtype="auto", device="cpu")
    assert (small.dtype, small.size) == ("float32", 4 * parameters)
    assert Stored(LARGE, dtype).opened_as("auto") == dtype


def test_what_does_not_fit_is_refused_before_a_weight_is_read(stored, monkeypatch):
    folder = stored[0]
    monkeypatch.setattr(opening, "_load", lambda *_: pytest.fail("weights were read"))
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10_000)
    with pytest.raises(CheckpointError, match=r"must fit into memory; .* are free. Close other programs"):
        open_checkpoint(str(folder), dtype="stored", device="cpu")


def test_half_precision_is_named_where_it_would_fit(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 3_000_000_000)
    billion = Stored(1_000_000_000, "bfloat16")
    with pytest.raises(
        CheckpointError, match=r"needs 4.0 GB for its weights as float32.*Open it as bfloat16 \(2.0 GB\)"
    ):
        memory.refuse_too_large("big", billion, "float32", "cpu")
    with pytest.raises(CheckpointError, match=r"51.5 GB for its maps"):
        memory.refuse_too_large("big", billion, "bfloat16", "cpu", maps=maps_bytes(16, 32, 4096))
    assert memory.refuse_too_large("big", billion, "bfloat16", "cpu") == (
        "2.0 GB of weights as bfloat16; 3.0 GB are free."
    )


def test_what_will_be_taken_is_told_before_it_is_read(stored):
    folder, _, _ = stored
    told = []
    open_checkpoint(str(folder), device="cpu", on_progress=lambda share, doing: told.append(doing))
    assert "of weights as float32 and 3 MB of maps; " in told[0]  # 2 layers x 4 heads x 256 x 256 x 6 bytes
    assert [shown(size) for size in (1, 12_000_000, 2_100_000_000)] == ["1 MB", "12 MB", "2.1 GB"]


def test_a_window_longer_than_the_positions_is_refused(tmp_path):
    config = MistralConfig(
        **SIZES, vocab_size=len(byte_level()), num_key_value_heads=2, sliding_window=100, max_position_embeddings=64
    )
    MistralModel(config).save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"has a window of 100 but only 64 positions\. Correct sliding_window, or set it to null"
    ):
        open_checkpoint(str(tmp_path), device="cpu")


def test_a_window_of_stretched_positions_stands_for_none(tmp_path):
    """As config.json of Phi-3-mini-128k has it: 4,096 positions stretched to 131,072, and a window of 262,144."""
    factors = [1.0] * 4
    config = Phi3Config(
        **SIZES,
        vocab_size=len(byte_level()),
        num_key_value_heads=2,
        sliding_window=100,
        max_position_embeddings=64,
        original_max_position_embeddings=16,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10_000.0,
            "long_factor": factors,
            "short_factor": factors,
            "original_max_position_embeddings": 16,
        },
    )
    Phi3Model(config).save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    opened = open_checkpoint(str(tmp_path), device="cpu")
    assert opened.windows == ()
    assert opened.max_length == 64
    assert [finding for finding in run_checks(opened) if not finding.passed] == []
    maps = capture(opened, opened.encode("dog " * 40)).weights
    assert maps.shape[-1] == 64  # beyond the 16 of the first training
    assert (maps[:, :, -1] > 0).all()


def test_parts_are_read_without_opening_anything():
    assert parts_of("atlas-translator") == ("encoder", "decoder", "cross")
    assert parts_of("atlas-encoder") == parts_of("no/such") == parts_of("a\0b") == ("",)


def test_parts_of_a_downloaded_checkpoint_are_read_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "hub_cache", lambda: tmp_path)
    folder = tmp_path / "models--google-t5--t5-small" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "t5"}')
    (tmp_path / "models--google-t5--t5-small" / "refs").mkdir()
    (tmp_path / "models--google-t5--t5-small" / "refs" / "main").write_text("abc")
    assert parts_of("google-t5/t5-small") == ("encoder", "decoder", "cross")


def test_eight_bits_pass_the_self_check_and_stay_near_float32():
    pytest.importorskip("torchao", reason="torchao is no requirement; tried with 0.18.0")
    exact, eight = (open_checkpoint("atlas-encoder", dtype=dtype, device="cpu") for dtype in ("float32", "int8"))
    assert [finding for finding in run_checks(eight) if not finding.passed] == []
    encoding = exact.encode(TEXT, PAIR)
    off = np.abs(capture(exact, encoding).weights - capture(eight, encoding).weights)
    assert 0 < off.max() < 0.02


def test_without_torchao_eight_bits_are_refused_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    with pytest.raises(CheckpointError, match="need torchao, which cannot be imported"):
        open_checkpoint("atlas-encoder", dtype="int8", device="cpu")


def test_eight_bits_need_linear_layers():
    with pytest.raises(CheckpointError, match=r"atlas-decoder has none \(GPT-2 uses Conv1D layers\)"):
        open_checkpoint("atlas-decoder", dtype="int8", device="cpu")
