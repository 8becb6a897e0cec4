"""Importance: the gradient of each example's loss with respect to each head's gate, checked by differences."""

import pytest
import torch

from core.capture.function import NAME
from core.capture.importance import gradients, importance
from core.capture.running import prepared
from core.errors import CheckpointError, InputError
from tests.capture.conftest import TEXT, tiny
from tests.capture.test_interventions import INTERCEPTABLE, classifier

LABELS = [1, 0, 1]


def encodings(checkpoint):
    return [checkpoint.encode(TEXT[0]), checkpoint.encode(TEXT[1], TEXT[3]), checkpoint.encode(TEXT[0])]


def loss_with(checkpoint, encoding, label, gates):
    with torch.no_grad(), prepared(checkpoint, gates=gates):
        logits = checkpoint.model(**checkpoint.inputs([encoding])).logits.double()
    return float(torch.nn.functional.cross_entropy(logits, torch.tensor([label])))


@pytest.mark.thorough
@pytest.mark.parametrize("family", INTERCEPTABLE)
def test_the_formula_per_example_by_finite_differences(family):
    """2% wide: LLaMA takes its norms in float32 whatever the model's dtype, so differences carry its rounding."""
    checkpoint = classifier(family)
    checkpoint.model.double()
    some, step = encodings(checkpoint), 1e-4
    found = importance(gradients(checkpoint, some, LABELS), normalize=False)
    for layer, head in ((0, 1), (1, 3), (2, 0)):
        moved = []
        for encoding, label in zip(some, LABELS, strict=True):
            ends = []
            for sign in (1, -1):
                gates = torch.ones(3, 4, dtype=torch.float64)
                gates[layer, head] += sign * step
                ends.append(loss_with(checkpoint, encoding, label, gates))
            moved.append(abs(ends[0] - ends[1]) / (2 * step))
        assert found[layer, head] == pytest.approx(sum(moved) / 3, rel=2e-2)


def test_the_code_per_token_is_context_times_its_gradient():
    """The paper's code: |ctx . grad_ctx| per token, summed, over real tokens; the last layer over examples."""
    checkpoint, encoding = classifier("bert"), classifier("bert").encode(TEXT[0])
    contexts = []

    def keep(module, arguments):
        arguments[0].retain_grad()
        contexts.append(arguments[0])

    hooks = [
        layer.attention.output.dense.register_forward_pre_hook(keep) for layer in checkpoint.model.bert.encoder.layer
    ]
    embedded = checkpoint.model.bert.embeddings(torch.tensor([encoding.ids])).requires_grad_()
    inputs = checkpoint.inputs([encoding]) | {"input_ids": None, "inputs_embeds": embedded}
    inputs["inputs_embeds"] = checkpoint.model.bert.embeddings.word_embeddings(
        torch.tensor([encoding.ids])
    ).requires_grad_()
    logits = checkpoint.model(**inputs).logits
    torch.nn.functional.cross_entropy(logits, torch.tensor([1])).backward()
    for hook in hooks:
        hook.remove()
    wanted = torch.stack([(one * one.grad).view(-1, 4, 8).sum(-1).abs().sum(0) for one in contexts]).double()
    sums = gradients(checkpoint, [encoding], [1])
    assert torch.allclose(sums.token, wanted, atol=1e-6)
    scores = importance(sums, reading="token", normalize=False, last_by_inputs=True)
    assert torch.allclose(scores[0], wanted[0] / len(encoding), atol=1e-6)
    assert torch.allclose(scores[2], wanted[2], atol=1e-6)


def test_signs_do_not_cancel_between_examples_and_batches_do_not_matter():
    checkpoint = classifier("gpt2")
    some = encodings(checkpoint)
    whole = gradients(checkpoint, some, LABELS)
    parts = [gradients(checkpoint, [one], [label]) for one, label in zip(some, LABELS, strict=True)]
    added = parts[0] + parts[1] + parts[2]
    assert torch.allclose(whole.example, added.example, atol=1e-6)
    assert torch.allclose(whole.token, added.token, atol=1e-6)
    assert (added.inputs, added.tokens) == (whole.inputs, whole.tokens) == (3, sum(len(one) for one in some))


def test_normalized_layers_have_length_1_and_a_dead_layer_stays_0():
    checkpoint = classifier("bert")
    with torch.no_grad():
        checkpoint.model.bert.encoder.layer[1].attention.output.dense.weight.zero_()
    sums = gradients(checkpoint, encodings(checkpoint), LABELS)
    scores = importance(sums)
    assert torch.allclose(scores.norm(dim=-1), torch.tensor([1.0, 0.0, 1.0]).double())
    raw = importance(sums, normalize=False)
    assert torch.allclose(raw[0] / raw[0].norm(), scores[0])


def test_a_pruned_head_stays_pruned_while_others_are_weighed():
    checkpoint, zeroed = classifier("bert"), torch.ones(3, 4)
    some = encodings(checkpoint)
    zeroed[0, 2] = 0
    free, pruned = gradients(checkpoint, some, LABELS), gradients(checkpoint, some, LABELS, zeroed=zeroed)
    assert not torch.allclose(free.example, pruned.example, rtol=1e-3)


def test_the_model_gets_no_gradients_and_stays_as_it_was():
    checkpoint = classifier("bert")
    before = {name: value.clone() for name, value in checkpoint.model.state_dict().items()}
    gradients(checkpoint, encodings(checkpoint), LABELS)
    assert all(value.grad is None for value in checkpoint.model.parameters())
    assert all(torch.equal(before[name], value) for name, value in checkpoint.model.state_dict().items())
    assert checkpoint.model.config._attn_implementation == NAME
    assert not checkpoint.model.training


def test_scores_use_squared_error():
    from transformers import BertForSequenceClassification

    from core.models.checkpoint import Checkpoint

    bare = tiny("bert")
    bare.model.config.num_labels = 1
    torch.manual_seed(0)
    checkpoint = Checkpoint("scores", BertForSequenceClassification(bare.model.config).eval(), bare.tokenizer)
    encoding = checkpoint.encode(TEXT[0])
    near, far = (gradients(checkpoint, [encoding], [label]).example for label in (1.0, 101.0))
    with torch.no_grad():
        value = float(checkpoint.model(**checkpoint.inputs([encoding])).logits)
    assert torch.allclose(far / abs(value - 101), near / abs(value - 1), rtol=1e-3)  # d(v - y)^2 = 2 (v - y) dv


def test_what_cannot_be_weighed_is_refused_in_a_sentence():
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    with pytest.raises(InputError, match="3 examples and 1 labels"):
        gradients(checkpoint, some, [1])
    with pytest.raises(CheckpointError, match="classification head"):
        gradients(tiny("bert"), some, LABELS)


def test_a_family_outside_the_interface_is_weighed_too():
    checkpoint = classifier("xlnet")
    assert (gradients(checkpoint, encodings(checkpoint), LABELS).example > 0).all()
