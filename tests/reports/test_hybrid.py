"""Hybrids, in which only some layers have attention, and ALBERT with inner groups: layers keep their own numbers."""

import copy

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.outputs import mean_outputs
from core.capture.running import capture, run
from core.capture.selfcheck import eager_parts, self_check
from core.errors import InputError, InterventionError
from core.models.checkpoint import Checkpoint
from tests.capture.conftest import TEXT
from tests.families.tiny import tiny_of

ATTENDING = {"jamba": (1, 3), "qwen3_next": (3,)}  # of four layers, counted from 0


@pytest.fixture(params=ATTENDING)
def hybrid(request: pytest.FixtureRequest) -> Checkpoint:
    return tiny_of(request.param)


def states(checkpoint: Checkpoint, *changes) -> torch.Tensor:
    kept = []
    encoding = checkpoint.encode(TEXT[0])
    run(checkpoint, [encoding], [], interventions=changes, on_batch=lambda _, output: kept.append(output[0][0]))
    return kept[0]


def test_maps_stand_under_the_layers_own_numbers(hybrid):
    encoding = hybrid.encode(TEXT[0])
    maps = capture(hybrid, encoding)
    attending = ATTENDING[hybrid.family.model_type]
    assert maps.layers == hybrid.layers == 4
    assert np.array_equal(maps.weights[list(attending)], eager_parts(hybrid, encoding)[0])
    assert np.isnan(maps.weights[[k for k in range(4) if k not in attending]]).all()
    assert maps.of(Head(3, 1)).shape == (len(encoding), len(encoding))


def test_every_check_passes(hybrid):
    assert [finding.name for finding in self_check(hybrid) if not finding.passed] == []


def test_an_observer_gets_the_same_layers_in_every_batch(hybrid):
    seen = []

    class Keep:
        takes_hybrids = True

        def update(self, layer, weights, inputs):
            seen.append((layer, tuple(inputs)))

    run(hybrid, [hybrid.encode(text) for text in TEXT[:3]], [Keep()], batch_tokens=1)
    attending = ATTENDING[hybrid.family.model_type]
    assert sorted(seen) == sorted((layer, (k,)) for layer in attending for k in range(3))


def test_a_head_is_ablated_under_its_layers_own_number(hybrid):
    head = Head(3, 2)
    model = copy.deepcopy(hybrid.model)
    projection = model.layers[head.layer].self_attn.o_proj
    width = projection.weight.shape[1] // hybrid.heads
    with torch.no_grad():
        projection.weight[:, head.head * width : (head.head + 1) * width] = 0
    wanted = states(Checkpoint("copy", model, hybrid.tokenizer))
    assert torch.allclose(states(hybrid, Intervention("zero", frozenset({head}))), wanted, atol=1e-5)
    assert not torch.allclose(states(hybrid), wanted, atol=1e-3)


def test_a_head_of_a_layer_without_attention_does_not_exist(hybrid):
    with pytest.raises(InputError, match="layer 1 has none, so there is no L1H1"):
        states(hybrid, Intervention("zero", frozenset({Head(0, 0)})))
    with pytest.raises(InputError, match="layer 1 has none"):
        capture(hybrid, hybrid.encode(TEXT[0])).of(Head(0, 0))


def test_a_statistic_of_every_layer_is_refused_in_one_sentence(hybrid):
    class Count:
        def update(self, layer, weights, inputs):
            raise AssertionError("maps of a hybrid were handed over")

    numbers = ", ".join(str(layer + 1) for layer in ATTENDING[hybrid.family.model_type])
    with pytest.raises(InterventionError, match=f"only some layers have attention: {numbers}"):
        run(hybrid, [hybrid.encode(TEXT[0])], [Count()])


def test_outputs_stand_under_the_layers_own_numbers(hybrid):
    source = mean_outputs(hybrid, [hybrid.encode(text) for text in TEXT])
    given = source.given([hybrid.encode(TEXT[0])], [0])
    filled = [bool((layer != 0).any()) for layer in given.outputs]
    assert filled == [layer in ATTENDING[hybrid.family.model_type] for layer in range(4)]


def test_every_attention_layer_of_albert_with_inner_groups_has_a_map():
    checkpoint = tiny_of("albert")
    assert checkpoint.model.config.inner_group_num == 2
    weights = capture(checkpoint, checkpoint.encode(TEXT[0])).weights
    assert len(weights) == checkpoint.layers == 2 * checkpoint.model.config.num_hidden_layers
    assert len({layer.tobytes() for layer in weights}) == len(weights)
    assert [finding.name for finding in self_check(checkpoint) if not finding.passed] == []
