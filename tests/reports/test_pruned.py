"""Heads that transformers 4 cut out of a checkpoint (`pruned_heads`): all other heads keep their numbers.

The idea is from a public report: transformers#27044.
"""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.pruning import pruned_heads
from core.capture.running import run
from core.capture.selfcheck import run_checks
from core.errors import CheckpointError
from core.models.opening import open_checkpoint
from tests.capture.conftest import TEXT, tiny

GONE = {0: [0, 2], 1: [3]}
READERS = {"bert": "encoder.layer.{}.attention.output.dense.weight", "gpt2": "h.{}.attn.c_proj.weight"}
CUT = {  # tensors of a layer, the axis along which heads lie, and how many parts of all heads lie along it
    "bert": [
        *((f"encoder.layer.{{}}.attention.self.{name}.{kind}", 0, 1)
          for name in ("query", "key", "value") for kind in ("weight", "bias")),
        (READERS["bert"], 1, 1),
    ],
    "gpt2": [("h.{}.attn.c_attn.weight", 1, 3), ("h.{}.attn.c_attn.bias", 0, 3), (READERS["gpt2"], 0, 1)],
}  # fmt: skip


def saved(family, folder, gone=GONE):
    """A folder as transformers 4 saved a model after prune_heads, and the states of the same model with these heads'
    outputs not read."""
    checkpoint = tiny(family)
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    width = 32 // checkpoint.heads
    state = checkpoint.model.state_dict()
    for layer, heads in gone.items():
        kept = [head for head in range(checkpoint.heads) if head not in heads]
        for name, axis, parts in CUT[family]:
            whole = weights[name.format(layer)].movedim(axis, 0)
            split = whole.reshape(parts, checkpoint.heads, width, *whole.shape[1:])[:, kept]
            cut = split.reshape(parts * len(kept) * width, *whole.shape[1:]).movedim(0, axis)
            weights[name.format(layer)] = cut.contiguous()
        read = state[READERS[family].format(layer)]
        for head in heads:
            part = slice(head * width, (head + 1) * width)
            read[(slice(None), part) if family == "bert" else part] = 0
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"pruned_heads": gone}))
    with torch.no_grad():
        return checkpoint.model(**checkpoint.inputs([checkpoint.encode(TEXT[0])]))[0][0]


def states(checkpoint, *changes):
    kept = []
    encoding = checkpoint.encode(TEXT[0])
    run(checkpoint, [encoding], [], interventions=changes, on_batch=lambda _, output: kept.append(output[0][0]))
    return kept[0]


@pytest.mark.parametrize("family", CUT)
def test_a_pruned_checkpoint_computes_what_the_whole_one_does_without_these_heads(family, tmp_path):
    wanted = saved(family, tmp_path)
    opened = open_checkpoint(str(tmp_path), device="cpu")
    assert torch.allclose(states(opened), wanted, atol=1e-5)
    assert pruned_heads(opened) == [Head(0, 0), Head(0, 2), Head(1, 3)]
    assert [finding.name for finding in run_checks(opened) if not finding.passed] == []


@pytest.mark.parametrize("family", CUT)
def test_heads_keep_their_numbers(family, tmp_path):
    saved(family, tmp_path)
    opened = open_checkpoint(str(tmp_path), device="cpu")
    plain = states(opened)
    for head in (Head(0, 0), Head(0, 2), Head(1, 3)):
        assert torch.allclose(states(opened, Intervention("disable", frozenset({head}))), plain, atol=1e-6)
    for head in (Head(0, 1), Head(0, 3), Head(1, 0)):
        assert not torch.allclose(states(opened, Intervention("disable", frozenset({head}))), plain, atol=1e-3)


def test_a_pruned_checkpoint_that_is_saved_again_opens_with_the_same_heads(tmp_path):
    wanted = saved("bert", tmp_path)
    opened = open_checkpoint(str(tmp_path), device="cpu")
    opened.model.save_pretrained(tmp_path)
    again = open_checkpoint(str(tmp_path), device="cpu")
    assert torch.allclose(states(again), wanted, atol=1e-5)
    assert pruned_heads(again) == pruned_heads(opened)


@pytest.mark.parametrize("said", [{"7": [0]}, {"0": [9]}, {"0": [0.5]}, {"0": [False]}, {"first": [0]}, [1, 2]])
def test_pruned_heads_that_do_not_exist_are_one_error(said, tmp_path):
    saved("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"pruned_heads": said}))
    with pytest.raises(CheckpointError, match=r"pruned_heads in config\.json must list existing heads .* for 3 layers"):
        open_checkpoint(str(tmp_path), device="cpu")


@pytest.mark.parametrize("named", [{0: [0, 2], 1: [3], 2: [1]}, {0: [0], 1: [3]}, {0: [0, 2], 2: [3]}])
def test_pruned_heads_that_are_others_than_those_in_the_file_are_one_error(named, tmp_path):
    """Of a layer with all its weights, heads that work would be listed as pruned."""
    saved("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"pruned_heads": named}))
    with pytest.raises(CheckpointError, match="must have the size of the remaining heads; those of layer"):
        open_checkpoint(str(tmp_path), device="cpu")


def test_weights_of_another_size_are_named_with_both_sizes(tmp_path):
    """transformers points to a report that is not there."""
    saved("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"pruned_heads": {}}))
    said = r"encoder\.layer\.0\.attention\.output\.dense\.weight of .* has \(32, 16\) in the file and \(32, 32\)"
    with pytest.raises(CheckpointError, match=said):
        open_checkpoint(str(tmp_path), device="cpu")


def test_heads_of_layers_that_share_their_weights_are_pruned_in_all(tmp_path):
    albert = tiny("albert")
    albert.model.save_pretrained(tmp_path)
    albert.tokenizer.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    for name in [name for name in weights if "attention." in name and "LayerNorm" not in name]:
        cut = weights[name][:, 8:] if "attention.dense.weight" in name else weights[name][8:]
        weights[name] = weights[name] if name.endswith("attention.dense.bias") else cut.contiguous()
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"pruned_heads": {"0": [0]}}))
    opened = open_checkpoint(str(tmp_path), device="cpu")
    assert pruned_heads(opened) == [Head(layer, 0) for layer in range(3)]
