"""Interventions in every family: equal to eager attention rewritten by hand, dead nowhere, undone afterwards."""

import sys

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from core.attention import Head
from core.capture.interventions import OPERATORS, Intervention, operator_of, pointing, uniform
from core.capture.running import predict, run
from core.errors import InputError, InterventionError
from core.models.checkpoint import Checkpoint
from core.models.classifier import fresh_classifier
from core.models.family import family_of
from tests.capture.conftest import FAMILIES, TEXT, tiny

INTERCEPTABLE = [name for name in FAMILIES if family_of(name).interceptable]  # others: test_families.py


def classifier(family: str) -> Checkpoint:
    """A tiny random classifier: so that "changes the logits" is about logits. "bert mean": reads the mean."""
    family, *pooling = family.split()
    bare = tiny(family)
    if pooling:
        model = fresh_classifier(bare, ("no", "yes"), pooling=pooling[0], seed=1).eval()
        return Checkpoint(name=f"{family}-classifier", model=model, tokenizer=bare.tokenizer)
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_config(bare.model.config).eval()
    return Checkpoint(name=f"{family}-classifier", model=model, tokenizer=bare.tokenizer)


@pytest.fixture(scope="module", params=INTERCEPTABLE)
def classifying(request) -> Checkpoint:
    return classifier(request.param)


def encodings(checkpoint):
    return [checkpoint.encode(TEXT[0]), checkpoint.encode(TEXT[1], TEXT[3]), checkpoint.encode(TEXT[3])]


def touched(operator, *heads):
    return [Intervention(operator, frozenset(Head(*head) for head in heads))]


def operators_of(checkpoint):
    return [one for one in OPERATORS if not (one == "next" and checkpoint.causal)]


# ---------------------------------------------------------------- the slow reference


def rewritten_row(operator, query, length, causal):
    """One row of a changed map, spelled out."""
    visible = range(query + 1) if causal else range(length)
    if operator == "disable":
        return [1 / len(visible) if key in visible else 0.0 for key in range(length)]
    target = {"previous": query - 1, "current": query, "next": query + 1, "first": 0}[operator]
    target = target if target in visible else query
    return [float(key == target) for key in range(length)]


def reference_logits(checkpoint, encoding, operator, heads, monkeypatch):
    """Logits of transformers' own eager attention with its weights rewritten row by row, then multiplied by V."""
    source = sys.modules[type(checkpoint.model).__module__]
    honest, calls = source.eager_attention_forward, []

    def rewriting(module, query, key, value, attention_mask, **options):
        layer = len(calls)
        calls.append(layer)
        output, weights = honest(module, query, key, value, attention_mask, **options)
        groups = weights.shape[1] // value.shape[1]
        for one in heads:
            if one[0] != layer:
                continue
            if operator == "zero":
                output[:, :, one[1]] = 0
                continue
            rows = [rewritten_row(operator, q, len(encoding), checkpoint.causal) for q in range(len(encoding))]
            output[0, :, one[1]] = torch.tensor(rows) @ value[0, one[1] // groups]
        return output, weights

    with monkeypatch.context() as patched:
        patched.setattr(source, "eager_attention_forward", rewriting)
        checkpoint.model.set_attn_implementation("eager")
        with torch.no_grad():
            logits = checkpoint.model(**checkpoint.inputs([encoding])).logits[0]
    assert len(calls) == checkpoint.layers
    return logits


@pytest.mark.thorough
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_equals_eager_attention_rewritten_by_hand(classifying, operator, monkeypatch):
    if operator not in operators_of(classifying):
        with pytest.raises(InterventionError, match="next"):
            predict(classifying, encodings(classifying), interventions=touched(operator, (0, 0)))
        return
    heads = [(0, 1), (1, 0), (1, 3), (2, 2)]
    for encoding in encodings(classifying):
        wanted = reference_logits(classifying, encoding, operator, heads, monkeypatch)
        found = predict(classifying, [encoding], interventions=touched(operator, *heads))[0]
        assert torch.allclose(found, wanted, atol=1e-5)


# ---------------------------------------------------------------- dead nowhere


@pytest.mark.thorough
def test_disabling_any_head_in_any_layer_changes_the_logits(classifying):
    some = encodings(classifying)
    plain = predict(classifying, some)
    for layer in range(classifying.layers):
        for head in range(classifying.heads):
            changed = predict(classifying, some, interventions=touched("disable", (layer, head)))
            assert (changed - plain).abs().max() > 1e-6, Head(layer, head)


def make_uniform(model, heads):
    """Zero every query: all scores are 0 and attention is uniform over what is visible."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            if any(part in name for part in ("query.", "q_lin", "q_proj")):
                value.zero_()
            elif "Wqkv" in name:
                value[: value.shape[0] // 3] = 0
            elif "c_attn" in name:
                value[..., : value.shape[-1] // 3] = 0
            elif "query_key_value" in name:
                value.view(heads, 3, -1)[:, 0] = 0


@pytest.mark.thorough
def test_disabling_heads_that_are_uniform_already_changes_nothing():
    for family in INTERCEPTABLE:
        checkpoint = classifier(family)
        some = encodings(checkpoint)
        before = predict(checkpoint, some)
        make_uniform(checkpoint.model, checkpoint.heads)
        plain = predict(checkpoint, some)
        every = [(layer, head) for layer in range(checkpoint.layers) for head in range(checkpoint.heads)]
        changed = predict(checkpoint, some, interventions=touched("disable", *every))
        assert not torch.allclose(before, plain, atol=1e-4), family  # the queries did matter
        assert torch.allclose(changed, plain, atol=1e-5), family


# ---------------------------------------------------------------- batches, undoing, sharing


@pytest.mark.thorough
def test_a_batch_of_mixed_lengths_gives_the_logits_of_single_inputs(classifying):
    some = [*encodings(classifying), classifying.encode(TEXT[0]), classifying.encode("a dog")]
    for operator in operators_of(classifying):
        chosen = touched(operator, (0, 2), (2, 0))
        together = predict(classifying, some, interventions=chosen)
        alone = torch.cat([predict(classifying, [one], interventions=chosen) for one in some])
        assert torch.allclose(together, alone, atol=1e-5), operator


@pytest.mark.thorough
def test_the_model_is_identical_after_every_operator(classifying):
    some = encodings(classifying)
    before = {name: value.clone() for name, value in classifying.model.state_dict().items()}
    plain = predict(classifying, some)
    for operator in operators_of(classifying):
        predict(classifying, some, interventions=touched(operator, (1, 1)))
    assert torch.equal(predict(classifying, some), plain)
    assert all(torch.equal(before[name], value) for name, value in classifying.model.state_dict().items())
    assert not any(value.requires_grad and value.grad is not None for value in classifying.model.parameters())


# ---------------------------------------------------------------- what each operator is


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_zero_equals_a_head_whose_output_projection_is_zero(family):
    checkpoint, (layer, head) = classifier(family), (1, 2)
    some, width = encodings(checkpoint), 8
    found = predict(checkpoint, some, interventions=touched("zero", (layer, head)))
    columns = slice(head * width, (head + 1) * width)
    with torch.no_grad():
        if family == "bert":
            checkpoint.model.bert.encoder.layer[layer].attention.output.dense.weight[:, columns] = 0
        else:
            checkpoint.model.transformer.h[layer].attn.c_proj.weight[columns] = 0
    assert torch.allclose(found, predict(checkpoint, some), atol=1e-6)


def seen(length, causal):
    every = torch.ones(length, length, dtype=torch.bool)
    return (every.tril() if causal else every)[None, None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("operator", [one for one in OPERATORS if one != "zero"])
def test_patterns_row_by_row(operator, causal):
    if operator == "next" and causal:
        pytest.skip("refused on causal models: tested above")
    visible = seen(6, causal)
    found = (uniform(visible) if operator == "disable" else pointing(operator, visible))[0, 0]
    wanted = torch.tensor([rewritten_row(operator, query, 6, causal) for query in range(6)])
    assert torch.allclose(found, wanted)
    assert torch.allclose(found.sum(-1), torch.ones(6))


def test_maps_that_are_watched_are_the_changed_ones():
    checkpoint, kept = tiny("bert"), {}

    class Keep:
        def update(self, layer, weights, inputs):
            kept[layer] = weights[0, 3].clone()

    encoding = checkpoint.encode(TEXT[0])
    run(checkpoint, [encoding], [Keep()], interventions=touched("disable", (1, 3)))
    assert torch.allclose(kept[1], torch.full_like(kept[1], 1 / len(encoding)))
    assert not torch.allclose(kept[0], torch.full_like(kept[0], 1 / len(encoding)), atol=1e-3)


# ---------------------------------------------------------------- refused


def test_what_cannot_be_done_is_refused_in_a_sentence():
    checkpoint = classifier("bert")
    some = encodings(checkpoint)
    with pytest.raises(InterventionError, match="An ablation method must be one of disable, zero"):
        operator_of("median", causal=False)
    with pytest.raises(InterventionError, match="only one ablation method; L1H1"):
        predict(checkpoint, some, interventions=touched("disable", (0, 0)) + touched("zero", (0, 0)))
    with pytest.raises(InputError, match="from L1H1 to L3H4; got L4H1"):
        predict(checkpoint, some, interventions=touched("disable", (3, 0)))
