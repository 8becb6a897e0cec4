"""Packed products of long passes, against the plain products of torch."""

import pytest
import torch
from transformers.pytorch_utils import Conv1D

from core.capture import stacks
from core.capture.running import run
from tests.benchmarks.capture import random_encoding
from tests.capture.conftest import built

CPU = torch.device("cpu")
SIZES = {"hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 1024}
SIZES |= {"initializer_range": 0.02}


@pytest.fixture
def laid_out(monkeypatch):
    """The weights that were laid out."""
    found, packs = [], stacks.packs

    class Counted(stacks.Linear):
        def __init__(self, weight, bias, dtype):
            found.append(tuple(weight.shape))
            super().__init__(weight, bias, dtype, gradients=not packs(weight.device, dtype))

    monkeypatch.setattr(stacks, "Linear", Counted)
    monkeypatch.setattr(stacks, "packs", lambda device, dtype: True)
    return found


@pytest.mark.parametrize("made", [torch.nn.Linear, lambda into, out: Conv1D(out, into)])
def test_products_with_large_weights_are_packed(made, laid_out):
    layer, x = made(512, 1024).requires_grad_(False), torch.randn(3, 5, 512)
    plain = layer(x)
    with stacks.packed(CPU, stacks.FEWEST):
        assert torch.allclose(layer(x), plain, atol=1e-5)
        assert torch.allclose(layer(x[:1]), plain[:1], atol=1e-5)
    assert laid_out == [(1024, 512)], "once"
    assert torch.equal(layer(x), plain)


def test_small_weights_few_tokens_and_other_types_stay_plain(laid_out, monkeypatch):
    small, large = (torch.nn.Linear(size, size).requires_grad_(False) for size in (64, 1024))
    with stacks.packed(CPU, stacks.FEWEST):
        small(torch.randn(2, 64))
        large.double()(torch.randn(2, 1024).double())
    with stacks.packed(CPU, stacks.FEWEST - 1):
        large.float()(torch.randn(2, 1024))
    monkeypatch.setattr(stacks, "MOST", 2**22 - 1)
    with stacks.packed(CPU, stacks.FEWEST):
        large(torch.randn(2, 1024))
    assert laid_out == []


class Kept:
    def __init__(self):
        self.maps = []

    def update(self, layer, weights, inputs):
        self.maps.append(weights.clone())


def test_a_pass_packs_only_where_nobody_compares_outputs(laid_out, monkeypatch):
    checkpoint, encoding = built("bert", SIZES, encodes=True), random_encoding(16)
    encoding = type(encoding)(**vars(encoding) | {"ids": tuple(k % 20 for k in encoding.ids)})
    plain, packed, outputs = Kept(), Kept(), []
    run(checkpoint, [encoding], [plain])
    monkeypatch.setattr(stacks, "FEWEST", 1)
    run(checkpoint, [encoding], [packed], on_batch=lambda _, output: outputs.append(output))
    assert not laid_out
    assert all(map(torch.equal, plain.maps, packed.maps[:2]))
    run(checkpoint, [encoding], [packed])
    assert laid_out == [(1024, 512), (512, 1024)], "the feed-forward layer below the last maps"
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(plain.maps, packed.maps[2:], strict=True))
