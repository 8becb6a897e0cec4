"""Inputs of different lengths in one row of tokens have the maps that they have alone."""

from contextlib import nullcontext

import pytest
import torch

from core.capture import running
from core.capture.running import FLAT_FAMILIES, capture, run
from core.errors import CheckpointError
from tests.capture.conftest import ENCODERS, NEW_DECODERS, SHARED, TEXT, built, tiny, writer


class Kept:
    """The maps of every input, and the inputs of each call."""

    def __init__(self):
        self.maps, self.calls = {}, []

    def update(self, layer, weights, inputs):
        self.calls.append(inputs)
        for number, maps in zip(inputs, weights, strict=True):
            self.maps[number, layer] = maps.clone()


@pytest.fixture
def rows(monkeypatch):
    """The shapes of the token IDs that a model gets, with passes of any size flattened."""
    monkeypatch.setattr(running, "FEWEST", 1)
    return []


def watched(checkpoint, rows):
    checkpoint.model.register_forward_pre_hook(
        lambda _, __, given: rows.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    return checkpoint


def opened(name):
    if name in ("qwen2", "qwen3"):
        return built(name, NEW_DECODERS[name] | SHARED | {"use_sliding_window": False}, encodes=False)
    return tiny(name)


@pytest.mark.parametrize("name", sorted(FLAT_FAMILIES))
def test_maps_are_those_of_each_input_alone(name, rows):
    checkpoint, kept = opened(name), Kept()
    encodings = [checkpoint.encode(text, None) for text in (*TEXT, "it", TEXT[0], TEXT[1][::-1])]
    alone = [capture(checkpoint, encoding).weights for encoding in encodings]
    run(watched(checkpoint, rows), encodings, [kept])
    assert rows == [(1, sum(map(len, encodings)))]
    assert len(kept.maps) == len(encodings) * checkpoint.layers
    for (number, layer), maps in kept.maps.items():
        assert torch.allclose(maps, torch.from_numpy(alone[number][layer]), atol=2e-5), (number, layer)


@pytest.mark.parametrize("name", ["bert", "electra"])
def test_pairs_keep_their_segments(name, rows):
    checkpoint, kept = tiny(name), Kept()
    encodings = [checkpoint.encode(text, TEXT[2]) for text in TEXT]
    run(watched(checkpoint, rows), encodings, [kept])
    assert len(rows) == 1
    for (number, layer), maps in kept.maps.items():
        alone = capture(checkpoint, encodings[number]).weights[layer]
        assert torch.allclose(maps, torch.from_numpy(alone), atol=2e-5)


def test_long_rows_are_split_by_tokens_and_by_the_memory_of_their_maps(rows, monkeypatch):
    checkpoint = watched(tiny("bert"), rows)
    encodings = [checkpoint.encode(" ".join(["dog"] * size), None) for size in (1, 2, 3, 4)]
    run(checkpoint, encodings, [Kept()], batch_tokens=25)
    assert rows == [(1, 14 + 11), (1, 8 + 5)]
    rows.clear()
    monkeypatch.setattr(running, "JOINED_BYTES", 3 * 4 * (14**2 + 11**2) * 4)
    run(checkpoint, encodings, [Kept()])
    assert rows == [(1, 14 + 11), (1, 8 + 5)]


def test_streamed_inputs_chosen_layers_and_outputs_are_not_flattened(rows, monkeypatch):
    checkpoint = watched(tiny("gpt2"), rows)
    encodings = [checkpoint.encode(text, None) for text in TEXT[:2]]
    both = [(1, len(encoding)) for encoding in sorted(encodings, key=len, reverse=True)]
    run(checkpoint, encodings, [Kept()], layers=[1])
    run(checkpoint, encodings, [Kept()], on_batch=lambda inputs, output: None)
    run(checkpoint, encodings, [])
    monkeypatch.setattr(running, "STREAMED_FROM", 5)
    run(checkpoint, encodings, [Kept()])
    assert rows == 4 * both


@pytest.mark.parametrize("name", ["roberta", "opt", "mistral"])
def test_other_families_and_windows_are_not_flattened(name, rows):
    checkpoint = watched(writer("mistral") if name == "mistral" else tiny(name), rows)
    encodings = [checkpoint.encode(text, None) for text in TEXT[:2]]
    run(checkpoint, encodings, [Kept()])
    assert len(rows) == 2


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_a_broken_weight_names_the_layer_and_the_token_within_its_input(name, rows):
    checkpoint = built(name, ENCODERS["bert"] | {"num_key_value_heads": 4}, encodes=name == "bert")
    encodings = [checkpoint.encode(text, None) for text in TEXT[:2]]
    last = encodings[1].ids[-2]
    assert last not in encodings[0].ids
    with torch.no_grad():
        checkpoint.model.get_input_embeddings().weight[last] = torch.nan
    with pytest.raises(CheckpointError, match=f"at token {len(encodings[1]) - 1}"):
        run(checkpoint, encodings, [Kept()])


@pytest.mark.parametrize(("name", "intel", "packs"), [("bert", True, 0), ("bert", False, 1), ("roberta", True, 1)])
def test_long_rows_need_no_packed_weights_on_the_cpus_that_mkl_is_made_for(name, intel, packs, rows, monkeypatch):
    asked, checkpoint = [], tiny(name)
    monkeypatch.setattr(running, "is_intel", lambda: intel)
    monkeypatch.setattr(running, "packed", lambda device, tokens: asked.append(tokens) or nullcontext())
    run(checkpoint, [checkpoint.encode(text, None) for text in TEXT], [Kept()])
    assert len(asked) == packs
