"""Value zeroing against whole forwards with the value projection's output zeroed by hand."""

import numpy as np
import pytest
import torch

from core.capture.projections import layer_modules
from core.capture.zeroing import value_zeroing
from core.errors import InputError
from tests.capture.conftest import translator
from tests.capture.test_norms import OTHERS, REACHED, any_tiny, biased

SENTENCE = "the old engine ran ."


def _outputs(checkpoint, encoding, layer, layers):
    kept = []
    handles = [
        one.register_forward_hook(lambda _, __, output: kept.append(output if torch.is_tensor(output) else output[0]))
        for one in layers
    ]
    with torch.no_grad():
        checkpoint.model(**checkpoint.inputs([encoding]))
    for handle in handles:
        handle.remove()
    return kept[layer].reshape(len(encoding), -1).double().numpy()


def _zeroed_by_hand(checkpoint, encoding, layer, token, layers):
    """The layer's outputs in a forward of the whole model whose value projection gives 0 for the token."""
    if checkpoint.model.config.model_type == "bert":
        module, start = checkpoint.model.encoder.layer[layer].attention.self.value, 0
    else:
        module, start = checkpoint.model.h[layer].attn.c_attn, 2 * 32

    def zero(_, __, output):
        output = output.clone()
        output[:, token, start:] = 0
        return output

    handle = module.register_forward_hook(zero)
    try:
        return _outputs(checkpoint, encoding, layer, layers)
    finally:
        handle.remove()


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_scores_are_cosine_distances_to_a_forward_with_the_value_zeroed(family):
    checkpoint = biased(family)
    encoding = checkpoint.encode(SENTENCE)
    layers = layer_modules(checkpoint)
    rows = value_zeroing(checkpoint, encoding)
    scores = np.zeros_like(rows)
    for layer in range(checkpoint.layers):
        own = _outputs(checkpoint, encoding, layer, layers)
        for token in range(len(encoding)):
            other = _zeroed_by_hand(checkpoint, encoding, layer, token, layers)
            for i in range(len(encoding)):
                alike = own[i] @ other[i] / np.sqrt((own[i] @ own[i]) * (other[i] @ other[i]))
                scores[layer, i, token] = 1 - alike
    assert scores.max() > 1e-3
    sums = scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(rows * sums, scores, atol=1e-6)
    assert (sums > 1e-3)[:, 1:].all()


@pytest.mark.thorough
@pytest.mark.parametrize("family", REACHED)
def test_rows_sum_to_one_and_decoders_see_nothing_ahead(family):
    checkpoint = biased(family)
    encoding = checkpoint.encode(SENTENCE)
    before = _outputs(checkpoint, encoding, 2, layer_modules(checkpoint))
    rows = value_zeroing(checkpoint, encoding)
    assert rows.shape == (3, len(encoding), len(encoding))
    np.testing.assert_allclose(rows.sum(-1)[:, 1:], 1)
    assert (rows[:, 2, 1] > 1e-3).all()
    if not before[0].any():  # the padding's, without biases: states and values of 0, so there is nothing to lose
        assert (rows[:, 1:, 0] < 1e-9).all()
        assert not rows[:, 0].any()
    else:
        np.testing.assert_allclose(rows.sum(-1)[:, 0], 1)
        assert (rows[:, 1, 0] > 1e-3).all()
    if checkpoint.causal:
        assert not np.triu(rows, 1).any()
    np.testing.assert_array_equal(_outputs(checkpoint, encoding, 2, layer_modules(checkpoint)), before)
    assert not [module for module in checkpoint.model.modules() if module._forward_hooks]


@pytest.mark.parametrize("family", [*OTHERS, "bart", "t5"])
def test_another_family_gets_one_sentence(family):
    checkpoint = translator(family) if family in ("bart", "t5") else any_tiny(family)
    with pytest.raises(InputError, match=rf"which {family} models do not have. Choose a checkpoint like BERT"):
        value_zeroing(checkpoint, checkpoint.encode(SENTENCE))
