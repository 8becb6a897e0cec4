"""Families that never call transformers' attention interface: an ablation has its effect, or an error names the family.

The idea is from public reports: bertviz#80 (BigBird), attention_sinks#11 (GPT-J).
"""

import copy

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.interventions import Intervention, Knockout
from core.capture.reach import reach_of
from core.capture.running import capture, run
from core.capture.selfcheck import eager_parts
from core.errors import CheckpointError, InterventionError
from core.models.checkpoint import Checkpoint
from tests.capture.conftest import TEXT, tiny
from tests.families.tiny import tiny_of

WRITERS = {  # the output projection of layer {}, of the families whose heads must be reached
    "mpnet": "encoder.layer.{}.attention.attn.o",
    "roformer": "encoder.layer.{}.attention.output.dense",
    "rembert": "encoder.layer.{}.attention.output.dense",
    "megatron-bert": "encoder.layer.{}.attention.output.dense",
    "gptj": "h.{}.attn.out_proj",
    "codegen": "h.{}.attn.out_proj",
    "bloom": "h.{}.self_attention.dense",
    "mpt": "blocks.{}.attn.out_proj",
    "xglm": "layers.{}.self_attn.out_proj",
}
QUERIES = {  # the query projection, of families whose scores are nothing but query times key
    "roformer": "encoder.layer.{}.attention.self.query",
    "megatron-bert": "encoder.layer.{}.attention.self.query",
    "rembert": "encoder.layer.{}.attention.self.query",
    "gptj": "h.{}.attn.q_proj",
    "xglm": "layers.{}.self_attn.q_proj",
}
HEAD = Head(1, 2)


def states(checkpoint: Checkpoint, *changes) -> torch.Tensor:
    kept = []
    encoding = checkpoint.encode(TEXT[1])
    run(checkpoint, [encoding], [], interventions=changes, on_batch=lambda _, output: kept.append(output[0][0]))
    return kept[0]


def with_zeros(checkpoint: Checkpoint, path: str, *, inputs: bool) -> Checkpoint:
    """A copy in which the head's part of a projection is 0: its inputs, or its outputs and their bias."""
    model = copy.deepcopy(checkpoint.model)
    module = model.get_submodule(path.format(HEAD.layer))
    width = module.weight.shape[1 if inputs else 0] // checkpoint.heads
    part = slice(HEAD.head * width, (HEAD.head + 1) * width)
    with torch.no_grad():
        if inputs:
            module.weight[:, part] = 0
        else:
            module.weight[part] = 0
            if module.bias is not None:
                module.bias[part] = 0
    return Checkpoint("copy", model, checkpoint.tokenizer)


@pytest.mark.thorough
@pytest.mark.parametrize("family", WRITERS)
def test_a_zeroed_head_equals_a_model_whose_output_projection_does_not_read_it(family):
    checkpoint = tiny_of(family)
    changed = states(checkpoint, Intervention("zero", frozenset({HEAD})))
    wanted = states(with_zeros(checkpoint, WRITERS[family], inputs=True))
    assert torch.allclose(changed, wanted, atol=1e-5)
    assert not torch.allclose(changed, states(checkpoint), atol=1e-3)


@pytest.mark.parametrize("family", QUERIES)
def test_a_disabled_head_equals_a_model_whose_queries_are_zero(family):
    checkpoint = tiny_of(family)
    changed = states(checkpoint, Intervention("disable", frozenset({HEAD})))
    wanted = states(with_zeros(checkpoint, QUERIES[family], inputs=False))
    assert torch.allclose(changed, wanted, atol=1e-5)
    assert not torch.allclose(changed, states(checkpoint), atol=1e-3)


@pytest.mark.parametrize("family", WRITERS)
def test_maps_are_the_models_own_and_a_cut_edge_gets_no_weight(family):
    checkpoint = tiny_of(family)
    encoding = checkpoint.encode(TEXT[1])
    maps = capture(checkpoint, encoding).weights
    assert np.abs(maps - eager_parts(checkpoint, encoding)[0]).max() < 1e-6
    edges = torch.zeros(len(encoding), len(encoding), dtype=torch.bool)
    edges[3, 1] = True
    cut = capture(checkpoint, encoding, [Knockout(lambda _: edges, frozenset({0}))]).weights
    assert (maps[0, :, 3, 1] > 0).all()
    assert (cut[0, :, 3, 1] == 0).all()


@pytest.mark.parametrize("family", ["mpnet", "gptj", "squeezebert", "roformer"])
def test_a_model_that_learns_is_reached_as_one_that_does_not(family):
    """Studies that fine-tune with changed heads refused these families: with dropout, two passes differ."""
    learning = Checkpoint("learning", copy.deepcopy(tiny_of(family).model).train(), tiny_of(family).tokenizer)
    assert reach_of(learning) == reach_of(tiny_of(family))
    assert all(module.training for module in learning.model.modules())


@pytest.fixture
def replaced() -> Checkpoint:
    """A BERT whose attention somebody replaced with a function that computes no weights."""
    checkpoint = tiny("bert")
    for layer in checkpoint.model.encoder.layer:
        layer.attention.self.forward = lambda states, *_, **__: (states, None)
    return checkpoint


def test_an_intervention_that_touches_nothing_is_an_error_that_names_the_family(replaced):
    with pytest.raises(InterventionError, match=r"family bert\), only 0 of the 3 layers do"):
        states(replaced, Intervention("disable", frozenset({HEAD})))


def test_an_observation_that_sees_no_layer_is_an_error_that_names_the_family(replaced):
    with pytest.raises(CheckpointError, match=r"family bert\), only 0 of the 3 layers do"):
        capture(replaced, replaced.encode(TEXT[0]))


def test_a_layer_that_is_left_out_is_an_error_too(replaced):
    del replaced.model.encoder.layer[0].attention.self.forward
    with pytest.raises(InterventionError, match=r"in tiny-bert .* only 1 of the 3 layers do so"):
        states(replaced, Intervention("zero", frozenset({Head(0, 0)})))


def test_attention_without_weights_is_refused_in_one_sentence():
    checkpoint = tiny_of("yoso")
    with pytest.raises(CheckpointError, match="a yoso model does not compute one attention map per head"):
        reach_of(checkpoint)
    with pytest.raises(CheckpointError, match="a yoso model"):
        states(checkpoint, Intervention("zero", frozenset({HEAD})))
