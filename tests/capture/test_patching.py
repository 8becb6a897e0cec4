"""Patching: all layers at all positions restore A, nothing changes none, a planted head alone brings back."""

import copy
from dataclasses import replace

import pytest
import torch

from core.attention import Head
from core.capture.components import LayerBlock, every_part
from core.capture.interventions import Intervention
from core.capture.outputs import Alignment
from core.capture.patching import InputPairs, everywhere, first_order, patch, untouched
from core.capture.running import answers, predict
from core.capture.sweeping import Computing, every_head, sweep
from core.errors import CheckpointError, InputError, InterventionError
from core.models.checkpoint import Checkpoint
from tests.capture import by_hand
from tests.capture.conftest import TEXT, tiny
from tests.capture.test_components import double
from tests.capture.test_interventions import classifier

LAYERS = frozenset(every_part(3, ["layer"]))
HEADS = frozenset(Head(layer, head) for layer in range(3) for head in range(4))


def equal_lengths(checkpoint):
    first = checkpoint.encode("a small dog", "the can")
    second = checkpoint.encode("a heavy dog", "the can")
    if len(first) != len(second):
        second = checkpoint.encode("a small dog", "the bag")
    ids = list(first.ids)
    ids[2], ids[-3] = ids[-3], ids[2]
    return first, replace(first, ids=tuple(ids))


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "gpt2", "opt", "llama", "gpt_neox"])
def test_every_layer_at_all_positions_restores_the_first_input_and_nothing_changes_none(family):
    checkpoint = classifier(family)
    first, second = equal_lengths(checkpoint)
    found = patch(checkpoint, InputPairs((first,), (second,), (everywhere(first, second),)), [LAYERS, frozenset()])
    assert (found.first - found.second).abs().max() > 1e-4
    assert (found.patched[0] - found.first).abs().max() < 1e-5
    assert torch.equal(found.patched[1], found.second)


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["bert", "gpt2"])
@pytest.mark.parametrize(
    "variant",
    [
        {LayerBlock(1, "attention")},
        {LayerBlock(0, "feedforward"), LayerBlock(2, "attention")},
        {LayerBlock(1, "layer")},
        {Head(1, 2), LayerBlock(2, "feedforward")},
        HEADS,
    ],
)
def test_some_components_at_some_places_equal_a_forward_by_hand(family, variant):
    checkpoint = double(family)
    first, second = checkpoint.encode(TEXT[0]), checkpoint.encode(TEXT[2])
    pairs, kept = ((0, 0), (3, 2), (5, len(second) - 1)), {}

    def keep(layer, what, tensor, before=None):
        kept[layer, what] = tensor
        return tensor

    by_hand.logits(checkpoint, first, keep)

    def change(layer, what, tensor, before=None):
        tensor = tensor.copy()
        for theirs, own in pairs:
            if what == "heads":
                for one in variant:
                    if isinstance(one, Head) and one.layer == layer:
                        tensor[own, one.head] = kept[layer, what][theirs, one.head]
            elif LayerBlock(layer, what) in variant:
                tensor[own] = kept[layer, what][theirs]
        return tensor

    wanted = torch.from_numpy(by_hand.logits(checkpoint, second, change))
    found = patch(checkpoint, InputPairs((first,), (second,), (Alignment(pairs),)), [frozenset(variant)])
    tolerance = (
        1e-9 if any(isinstance(one, LayerBlock) for one in variant) else 1e-5
    )  # a sweep answers in float32 or more
    assert (found.patched[0, 0] - wanted).abs().max() < tolerance


def planted(family="bert"):
    """A classifier in which only L2H3 carries anything from word to word to the logits, apart from the input itself."""
    exact = double(family)
    model = copy.deepcopy(exact.model)
    with torch.no_grad():
        for layer, block in enumerate(model.bert.encoder.layer):
            dense = block.attention.output.dense
            kept = dense.weight[:, 16:24].clone()
            dense.weight.zero_()
            if layer == 1:
                dense.weight[:, 16:24] = kept * 4
    return Checkpoint("planted", model, exact.tokenizer)


def test_a_planted_head_is_the_only_one_that_brings_anything_back():
    checkpoint = planted()
    first, second = equal_lengths(checkpoint)
    pairs = InputPairs((first,), (second,), (everywhere(first, second),))
    found = patch(checkpoint, pairs, every_head(3, 4))
    brought = (found.patched - found.second).abs().amax((1, 2))
    assert brought[1 * 4 + 2] > 1e-3
    assert brought[[k for k in range(12) if k != 6]].max() < 1e-9
    assert (found.patched[6] - found.first).abs().max() < 1e-6  # it carries all that differs
    linear = first_order(checkpoint, pairs, lambda logits, inputs: logits[:, 0] - logits[:, 1])[0]
    assert int(linear.abs().argmax()) == 6


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_first_order_picture_is_the_slope_of_patching(family):
    """(m(B + t (A - B)) - m(B)) / t for a small t, in float64."""
    checkpoint = double(family)
    first, second = equal_lengths(checkpoint)
    pairs = InputPairs((first,), (second,), (everywhere(first, second),))
    linear = first_order(checkpoint, pairs, lambda logits, inputs: logits[:, 0] - logits[:, 1])[0]
    t, outputs = 1e-4, {}

    def keep(layer, what, tensor, before=None):
        if what == "heads":
            outputs[layer] = tensor
        return tensor

    by_hand.logits(checkpoint, first, keep)
    for one in (Head(0, 1), Head(1, 3), Head(2, 0)):

        def change(layer, what, tensor, before=None, one=one):
            if what != "heads" or layer != one.layer:
                return tensor
            tensor = tensor.copy()
            tensor[:, one.head] += t * (outputs[layer][:, one.head] - tensor[:, one.head])
            return tensor

        moved = by_hand.logits(checkpoint, second, change) - by_hand.logits(checkpoint, second)
        assert float(linear[one.layer, one.head]) == pytest.approx((moved[0] - moved[1]) / t, rel=2e-2, abs=1e-4)


def test_many_pairs_give_what_each_gives_alone():
    checkpoint = classifier("bert")
    texts = [(TEXT[0], TEXT[2]), (TEXT[3], TEXT[0]), ("a dog", "a bag")]
    firsts, seconds = (tuple(checkpoint.encode(pair[side]) for pair in texts) for side in (0, 1))
    aligned = tuple(Alignment(((0, 0), (1, 1), (len(a) - 1, len(b) - 1))) for a, b in zip(firsts, seconds, strict=True))
    variants = [*every_head(3, 4), frozenset({LayerBlock(1, "attention")})]
    together = patch(checkpoint, InputPairs(firsts, seconds, aligned), variants)
    for k in range(3):
        alone = patch(checkpoint, InputPairs(firsts[k : k + 1], seconds[k : k + 1], aligned[k : k + 1]), variants)
        assert torch.allclose(together.patched[:, k], alone.patched[:, 0], atol=1e-5)


def words_of(family):
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    bare = tiny(family)
    torch.manual_seed(1)
    kind = AutoModelForCausalLM if bare.causal else AutoModelForMaskedLM
    return Checkpoint("words", kind.from_config(bare.model.config).eval(), bare.tokenizer)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "gpt2", "opt", "distilbert"])
def test_a_language_model_is_patched_at_a_place(family):
    checkpoint = words_of(family)
    first, second = equal_lengths(checkpoint)
    place = len(first) - 1 if checkpoint.causal else 4
    pairs = InputPairs((first, second), (second, first), (everywhere(first, second),) * 2, ((place, place),) * 2)
    before = untouched(checkpoint, pairs)
    heads = [frozenset({Head(1, 1)}), frozenset({Head(0, 2), Head(2, 3)}), frozenset({Head(2, 0)})]
    found = patch(checkpoint, pairs, [LAYERS, *heads], before)
    assert found.first.shape == (2, checkpoint.model.config.vocab_size)
    assert (found.patched[0] - found.first).abs().max() < 1e-5
    assert (found.patched[1] - found.second).abs().max() > 1e-6
    for number, variant in enumerate(heads, 1):  # shared prefixes, or whole passes: the same numbers
        changes = [Intervention("patch", variant, before.source)]
        whole = answers(checkpoint, pairs.seconds, [place] * 2, changes)
        assert torch.allclose(found.patched[number], whole, atol=1e-5)
    fast = sweep(
        checkpoint, [second], heads, "patch", source=before.source.of_input(0), computing=Computing(place=place)
    ).fast
    assert fast == (family in ("bert", "roberta", "electra", "gpt2"))


def test_outputs_of_another_checkpoint_are_refused():
    one, other = (replace(classifier("bert"), weights_hash=name * 32) for name in ("ab", "cd"))
    first, second = equal_lengths(one)
    source = untouched(one, InputPairs((first,), (second,), (everywhere(first, second),))).source
    said = r"weights \(cdcdcdcd\); these outputs come from a model with the weights abababab"
    with pytest.raises(InterventionError, match=said):
        sweep(other, [second], every_head(3, 4), "patch", source=source)
    with pytest.raises(InterventionError, match=said):
        predict(other, [second], interventions=[Intervention("patch", HEADS, source)])
    predict(one, [second], interventions=[Intervention("patch", HEADS, source)])


def test_what_cannot_be_patched_is_refused_in_a_sentence():
    checkpoint = classifier("bert")
    first, second = checkpoint.encode(TEXT[0]), checkpoint.encode("a dog")
    with pytest.raises(InputError, match="same number of tokens to be aligned by position; got"):
        everywhere(first, second)
    with pytest.raises(InputError, match="second input must be from 1 to 6; got 10"):
        InputPairs((first,), (second,), (Alignment(((1, 9),)),))
    with pytest.raises(InputError, match="must have corresponding tokens"):
        InputPairs((first,), (second,), (Alignment(()),))
    with pytest.raises(InputError, match="got 1 first inputs, 2 second"):
        InputPairs((first,), (second, second), (Alignment(((0, 0),)),))
    with pytest.raises(CheckpointError, match="has neither a classification head nor a language model head"):
        answers(tiny("bert"), [tiny("bert").encode("a")], [0])
