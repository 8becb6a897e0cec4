"""Packs of rows of many lengths under many variants give the numbers of one whole pass per variant."""

import itertools

import pytest
import torch

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.outputs import Donors
from core.capture.running import predict
from core.capture.stacks import stack_of
from core.capture.sweeping import packed_logits, packs
from tests.capture.test_interventions import classifier
from tests.capture.test_sweeping import KINDS, encodings, one_by_one

DEFAULT = {("bert", "zero", 200), ("gpt2", "disable", 1), ("bert", "first", 100_000)}
CASES = [
    case if case in DEFAULT else pytest.param(*case, marks=pytest.mark.slow)  # 1.5 CPU seconds each
    for case in itertools.product(("bert", "gpt2"), ("disable", "zero", "first"), (1, 200, 100_000))
]


@pytest.mark.thorough
@pytest.mark.parametrize(("family", "operator", "pack_tokens"), CASES)
def test_packing_changes_no_number(family, operator, pack_tokens):
    checkpoint = classifier(family)
    some, stack = encodings(checkpoint), stack_of(checkpoint)
    for kind, variants in KINDS.items():
        plain, changed = packed_logits(stack, some, variants, operator, pack_tokens)
        assert torch.allclose(plain, predict(checkpoint, some), atol=1e-5)
        assert torch.allclose(changed, one_by_one(checkpoint, some, variants, operator), atol=1e-5), kind


@pytest.mark.parametrize("family", ["bert mean", "gpt2 mean"])
def test_a_head_that_reads_the_mean_has_the_same_numbers(family):
    checkpoint, variants = classifier(family), KINDS["groups"]
    some = encodings(checkpoint)
    plain, changed = packed_logits(stack_of(checkpoint), some, variants, "zero", 200)
    assert torch.allclose(plain, predict(checkpoint, some), atol=1e-5)
    assert torch.allclose(changed, one_by_one(checkpoint, some, variants, "zero"), atol=1e-5)


def test_variants_come_back_in_the_order_given_whatever_layer_they_begin_in():
    checkpoint = classifier("bert")
    some, stack = encodings(checkpoint)[:2], stack_of(checkpoint)
    variants = [frozenset({Head(layer, 1)}) for layer in (2, 0, 1, 2, 0)]
    _, changed = packed_logits(stack, some, variants, "zero")
    assert torch.allclose(changed, one_by_one(checkpoint, some, variants, "zero"), atol=1e-5)
    assert torch.allclose(changed[0], changed[3], atol=1e-6)
    assert not torch.allclose(changed[0], changed[1], atol=1e-4)


def test_no_variant_gives_the_untouched_logits_alone():
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    plain, changed = packed_logits(stack_of(checkpoint), some, [], "zero")
    assert torch.allclose(plain, predict(checkpoint, some), atol=1e-5)
    assert changed.shape == (0, *plain.shape)


def test_fewer_variants_take_more_rows_a_pack():
    some = encodings(classifier("bert"))
    for variants, tokens in ((0, 60), (3, 60), (3, 10_000)):
        found = list(packs(some, variants, tokens))
        assert sorted(k for one in found for k in one) == list(range(len(some)))
        lengths = [[len(some[k]) for k in one] for one in found]
        assert all(one == sorted(one, reverse=True) for one in lengths)
        assert all(len(one) == 1 or sum(one) * (1 + variants) <= tokens for one in lengths)
    assert len(list(packs(some, 0, 60))) < len(list(packs(some, 3, 60)))


def test_each_layers_weights_are_read_once_a_pack(monkeypatch):
    """What makes few variants cheap: one call of a layer's matrices for all rows and lengths."""
    from core.capture import stacks

    checkpoint = classifier("bert")
    some, stack, calls = encodings(checkpoint), stack_of(checkpoint), []
    real = stacks.Linear.__call__
    monkeypatch.setattr(stacks.Linear, "__call__", lambda *a, **k: (calls.append(len(a[1])), real(*a, **k))[1])
    packed_logits(stack, some, [frozenset({Head(0, 0)})], "zero")
    full = 4 * (checkpoint.layers - 1) + 3  # qkv, out, wide, narrow; the last layer mixes at one position
    assert len(calls) == full


def test_outputs_that_a_source_gives_reach_their_own_rows():
    checkpoint = classifier("bert")
    some, stack = encodings(checkpoint), stack_of(checkpoint)
    source = Donors(checkpoint, tuple(some))
    variants = KINDS["groups"]
    _, changed = packed_logits(stack, some, variants, "resample", 200, source=source)
    wanted = [predict(checkpoint, some, interventions=[Intervention("resample", one, source)]) for one in variants]
    assert torch.allclose(changed, torch.stack(wanted), atol=1e-5)
