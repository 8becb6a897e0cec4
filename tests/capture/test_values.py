"""Value vectors are those that the heads really mix: weights times values give the head's output."""

import numpy as np
import pytest
import torch

from core.capture.projections import maps_and_values
from core.errors import InputError
from core.scoring.effective import effective_attention
from tests.capture.conftest import DECODERS, ENCODERS, tiny

REACHED = [name for name in (*ENCODERS, *DECODERS) if name not in ("xlnet", "gpt_neo")]
SENTENCE = "nobody in the village heard it stop , did they ?"


def _outputs(checkpoint, encoding):
    """Heads' outputs [layer, head, query, dim], from the layer that projects them: a way round the code tested."""
    found = []
    names = ("dense", "c_proj", "out_proj", "o_proj", "out_lin", "Wo")
    handles = []
    for path, module in checkpoint.model.named_modules():
        inside = any(part in path for part in ("attention", "attn")) and "bottleneck" not in path
        if inside and path.split(".")[-1] in names and hasattr(module, "weight"):
            handles.append(module.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0].clone())))
    with torch.no_grad():
        checkpoint.model(input_ids=torch.tensor([encoding.ids]), attention_mask=torch.ones(1, len(encoding)))
    for handle in handles:
        handle.remove()
    return [one.reshape(len(encoding), checkpoint.heads, -1).permute(1, 0, 2).double().numpy() for one in found]


@pytest.mark.thorough
@pytest.mark.parametrize("family", REACHED)
def test_weights_times_values_and_bias_is_the_output_of_each_head(family):
    checkpoint = tiny(family)
    with torch.no_grad():
        for name, value in checkpoint.model.named_parameters():
            if name.endswith("bias"):
                value.normal_(std=0.2)  # fresh biases are 0, which would hide a bias left in
    encoding = checkpoint.encode(SENTENCE)
    weights, values = maps_and_values(checkpoint, encoding)
    mixed = weights @ values
    outputs = _outputs(checkpoint, encoding)
    assert len(outputs) == len(mixed)
    for layer, output in enumerate(outputs):
        rest = output - mixed[layer]
        near = 1e-5 * max(1.0, np.abs(output).max())  # float32 sums of values of that size
        np.testing.assert_allclose(rest, np.broadcast_to(rest[:, :1], rest.shape), atol=near)  # the bias alone


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_model_is_left_without_hooks(family):
    checkpoint = tiny(family)
    maps_and_values(checkpoint, checkpoint.encode(SENTENCE))
    assert not [module for module in checkpoint.model.modules() if module._forward_hooks]


@pytest.mark.parametrize("family", ["xlnet"])
def test_families_that_keep_their_values_say_so(family):
    checkpoint = tiny(family)
    with pytest.raises(InputError, match=r"value vectors.*Choose a checkpoint like BERT"):
        maps_and_values(checkpoint, checkpoint.encode(SENTENCE))


def test_the_output_projection_does_not_change_effective_attention():
    """T = E W^V H and E W^V give the same projection where the head's slice of H has full row rank."""
    checkpoint = tiny("bert")
    encoding = checkpoint.encode(SENTENCE)
    weights, values = maps_and_values(checkpoint, encoding)
    projection = checkpoint.model.encoder.layer[1].attention.output.dense.weight.detach().double().numpy().T
    dim = values.shape[-1]
    for head in range(checkpoint.heads):
        whole = values[1, head] @ projection[head * dim : (head + 1) * dim]
        np.testing.assert_allclose(
            effective_attention(weights[1, head], values[1, head]),
            effective_attention(weights[1, head], whole),
            atol=1e-8,
        )
