"""Blocks and layers off: equal to a forward written by hand in float64, by shared prefixes and by whole passes."""

import copy

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture import blocks
from core.capture.blocks import PartChange
from core.capture.components import LayerBlock, every_part, parse_components
from core.capture.running import predict
from core.capture.sweeping import Computing, changes_of, sweep
from core.errors import InputError, InterventionError
from core.models.checkpoint import Checkpoint
from tests.capture import by_hand
from tests.capture.test_interventions import classifier, encodings

FAMILIES = ("bert", "gpt2")
SETS = [
    frozenset({LayerBlock(0, "attention"), LayerBlock(2, "feedforward")}),
    frozenset({LayerBlock(1, "layer"), Head(0, 1), Head(2, 3)}),
    frozenset({LayerBlock(0, "layer"), LayerBlock(1, "layer"), LayerBlock(2, "attention")}),
]
VARIANTS = [frozenset({part}) for part in every_part(3, ("attention", "feedforward", "layer"))] + SETS


def double(family):
    checkpoint = classifier(family)
    return Checkpoint(checkpoint.name, copy.deepcopy(checkpoint.model).double(), checkpoint.tokenizer)


def taken_out(variant):
    """The same by hand."""

    def change(layer, what, tensor, before=None):
        if what == "heads":
            tensor = tensor.copy()
            for one in variant:
                if isinstance(one, Head) and one.layer == layer:
                    tensor[:, one.head] = 0
            return tensor
        if LayerBlock(layer, what) not in variant:
            return tensor
        return before if what == "layer" else np.zeros_like(tensor)

    return change


@pytest.mark.thorough
@pytest.mark.parametrize("family", FAMILIES)
def test_every_set_of_components_equals_the_forward_without_it_written_by_hand(family):
    exact, single = double(family), classifier(family)
    some = encodings(exact)
    found, rough = (
        sweep(exact, some, VARIANTS, "zero", computing=Computing(dtype="float64")),
        sweep(single, some, VARIANTS, "zero"),
    )
    assert found.fast
    assert rough.fast
    for number, variant in enumerate(VARIANTS):
        for row, encoding in enumerate(some):
            wanted = torch.from_numpy(by_hand.logits(exact, encoding, taken_out(variant)))
            assert (found.changed[number, row] - wanted).abs().max() < 1e-9
            assert (rough.changed[number, row] - wanted).abs().max() < 1e-5
        whole = predict(exact, some, interventions=changes_of(variant, "zero"))
        assert (whole - found.changed[number]).abs().max() < 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("family", [name for name in blocks._WRITERS if name not in FAMILIES])
def test_each_part_off_changes_the_logits_of_every_family_and_leaves_the_model(family):
    checkpoint = classifier(family)
    some = encodings(checkpoint)
    plain, seen = predict(checkpoint, some), []
    for part in every_part(3, ("attention", "feedforward", "layer")):
        changed = predict(checkpoint, some, interventions=[PartChange(part)])
        assert (changed - plain).abs().max() > 1e-5, part
        assert all((changed - other).abs().max() > 1e-6 for other in seen), part
        seen.append(changed)
    assert torch.equal(predict(checkpoint, some), plain)


def test_all_heads_zeroed_differ_from_the_block_off_by_its_bias():
    """Zeroing every head leaves the output projection's bias; the block off does not."""
    checkpoint = classifier("bert")
    dense = checkpoint.model.bert.encoder.layer[1].attention.output.dense
    with torch.no_grad():
        dense.bias += torch.linspace(-1, 1, 32)  # a constant would vanish in the LayerNorm
    some, every = encodings(checkpoint), frozenset(Head(1, head) for head in range(4))
    pair = [every, frozenset({LayerBlock(1, "attention")})]
    apart = sweep(checkpoint, some, pair, "zero").changed
    assert (apart[0] - apart[1]).abs().max() > 1e-3
    with torch.no_grad():
        dense.bias.zero_()
    alike = sweep(checkpoint, some, pair, "zero").changed
    assert (alike[0] - alike[1]).abs().max() < 1e-5


def test_components_are_read_and_written():
    assert parse_components("L1H2, L3-attention,l2-layer") == [
        Head(0, 1),
        LayerBlock(2, "attention"),
        LayerBlock(1, "layer"),
    ]
    assert str(LayerBlock(2, "feedforward")) == "L3-feedforward"
    with pytest.raises(InputError, match='got "L0-layer"'):
        LayerBlock.parse("L0-layer")
    with pytest.raises(InputError, match='got "mlp"'):
        every_part(3, ["mlp"])


def test_what_cannot_be_taken_out_is_refused_in_a_sentence():
    bert, albert = classifier("bert"), classifier("albert")
    some = encodings(bert)
    with pytest.raises(InputError, match='method "zero"; got the method "disable"'):
        sweep(bert, some, [frozenset({LayerBlock(0, "layer")})])
    with pytest.raises(InputError, match="from L1 to L3; got L5-layer"):
        sweep(bert, some, [frozenset({LayerBlock(4, "layer")})], "zero")
    with pytest.raises(InterventionError, match="got a model of the family albert"):
        predict(albert, encodings(albert), interventions=[PartChange(LayerBlock(0, "attention"))])
