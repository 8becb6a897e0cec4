"""Weights times values: all of them together are the block's output, and norms are those of a loop."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from core.capture.blocks import writer
from core.capture.components import LayerBlock
from core.capture.norms import Contributions, contributions, norm_maps, normalised, run_norms
from core.errors import InputError
from tests.capture.conftest import (
    DECODERS,
    ENCODERS,
    FAMILIES,
    NEW_DECODERS,
    NEW_ENCODERS,
    NEW_FAMILIES,
    SINKS,
    built,
    translator,
)

BLOCKS = ["bert", "roberta", "electra", "distilbert", "modernbert", "gpt2", "opt", "llama", "gpt_neox"]
WRITERS = {  # of the other families that are intercepted: what the module of W_O is called in a layer
    "albert": "attention.dense",
    "mobilebert": "attention.output.dense",
    "xlm-roberta": "attention.output.dense",
    "phi": "self_attn.dense",
    **dict.fromkeys(
        ["eurobert", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "olmo2", "gpt_oss"],
        "self_attn.o_proj",
    ),
}
REACHED = [*BLOCKS, *WRITERS]
OTHERS = [name for name in (*FAMILIES, *NEW_FAMILIES) if name not in REACHED]
SENTENCES = ["nobody in the village heard it stop , did they ?", "the old engine ran", "a small dog can carry"]


def any_tiny(family):
    sizes = {**ENCODERS, **DECODERS, **NEW_ENCODERS, **NEW_DECODERS, "gpt_oss": SINKS}[family]
    return built(family, sizes, encodes=family in ENCODERS or family in NEW_ENCODERS)


def biased(family):
    """A tiny checkpoint whose biases are not 0, as fresh ones are: that would hide a bias left out or counted twice."""
    checkpoint = any_tiny(family)
    with torch.no_grad():
        for name, value in checkpoint.model.named_parameters():
            if name.endswith("bias"):
                value.normal_(std=0.2)
    return checkpoint


@contextmanager
def written(checkpoint):
    """What every layer's module of W_O gives, by its name in the family's own code: kept in order."""
    kept, model = [], checkpoint.model
    if checkpoint.family.model_type in BLOCKS:
        modules = [writer(checkpoint, LayerBlock(layer, "attention")) for layer in range(checkpoint.layers)]
    else:
        end = WRITERS[checkpoint.family.model_type]
        modules = [module for name, module in model.named_modules() if name.endswith("." + end)]
    handles = [module.register_forward_hook(lambda _, __, output: kept.append(output)) for module in modules]
    yield kept
    for handle in handles:
        handle.remove()


@pytest.mark.thorough
@pytest.mark.parametrize("family", REACHED)
def test_over_heads_and_keys_it_is_the_output_of_the_attention_block(family):
    checkpoint = biased(family)
    encodings = [checkpoint.encode(text) for text in SENTENCES]
    taken = {}

    def take(layer: int, batch: Contributions, inputs: list[int]) -> None:
        taken.update({(layer, k): batch.output()[row] for row, k in enumerate(inputs)})

    contributions(checkpoint, encodings, take)
    for k, encoding in enumerate(encodings):
        with torch.no_grad(), written(checkpoint) as kept:
            checkpoint.model(**checkpoint.inputs([encoding]))
        assert len(kept) == checkpoint.layers
        for layer, output in enumerate(kept):
            near = 1e-5 * max(1.0, float(output.abs().max()))  # float32 sums of values of that size
            torch.testing.assert_close(taken[layer, k], output.reshape(len(encoding), -1), atol=near, rtol=0)


def _by_hand(checkpoint, encoding, layer, head):
    """W_V, W_O of a head as slices, and what comes into the layer's attention: BERT and GPT-2, float64."""
    with torch.no_grad():
        inputs = checkpoint.inputs([encoding])
        before = checkpoint.model(**inputs, output_hidden_states=True).hidden_states[layer][0]
        dim, hidden = before.shape[1] // checkpoint.heads, before.shape[1]
        own = slice(head * dim, (head + 1) * dim)
        if checkpoint.model.config.model_type == "bert":
            part = checkpoint.model.encoder.layer[layer].attention
            value, out = part.self.value, part.output.dense
            parts = (before, value.weight[own].T, value.bias[own], out.weight[:, own].T)
        else:
            part = checkpoint.model.h[layer]
            joint, place = part.attn.c_attn, slice(2 * hidden + own.start, 2 * hidden + own.stop)
            parts = (part.ln_1(before), joint.weight[:, place], joint.bias[place], part.attn.c_proj.weight[own])
    return [one.detach().double().numpy() for one in parts]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_norms_are_those_of_a_loop_over_the_definition(family):
    checkpoint = biased(family)
    encoding = checkpoint.encode(SENTENCES[1])
    seen = {}
    contributions(checkpoint, [encoding], lambda layer, batch, _: seen.update({layer: batch.weights[0].numpy()}))
    maps, layer, length = norm_maps(checkpoint, encoding), 1, len(encoding)
    together = np.zeros((length, length, 32))
    for head in range(checkpoint.heads):
        x, into, bias, out = _by_hand(checkpoint, encoding, layer, head)
        for i in range(length):
            for j in range(length):
                added = seen[layer][head, i, j] * ((x[j] @ into + bias) @ out)
                together[i, j] += added
                assert maps.heads[layer, head, i, j] == pytest.approx(np.sqrt((added**2).sum()), abs=1e-4, rel=1e-4)
    np.testing.assert_allclose(maps.layers[layer], np.sqrt((together**2).sum(-1)), atol=1e-4, rtol=1e-4)


def test_observers_see_every_input_once_with_rows_that_sum_to_one():
    checkpoint, seen = biased("bert"), []

    class Count:
        def update(self, layer, weights, inputs):
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
            seen.extend((layer, k) for k in inputs)

    run_norms(checkpoint, [checkpoint.encode(text) for text in SENTENCES], [Count()])
    assert sorted(seen) == [(layer, k) for layer in range(3) for k in range(3)]


def test_a_row_that_adds_nothing_stays_zero():
    rows = normalised(torch.tensor([[[1.0, 3.0], [0.0, 0.0]]]))
    assert rows.tolist() == [[[0.25, 0.75], [0.0, 0.0]]]


@pytest.mark.parametrize("family", [*OTHERS, "bart", "t5"])
def test_another_family_gets_one_sentence(family):
    checkpoint = translator(family) if family in ("bart", "t5") else any_tiny(family)
    with pytest.raises(InputError, match=rf"cannot be read from {family} models. Choose a checkpoint like BERT"):
        norm_maps(checkpoint, checkpoint.encode(SENTENCES[1]))
