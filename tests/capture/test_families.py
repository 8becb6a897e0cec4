"""Families of today: self-checks, maps equal eager, windows as configured, and operators over what is visible."""

import sys

import numpy as np
import pytest
import torch
from transformers import AutoModel

from core.attention import Head
from core.capture.interventions import Intervention, Knockout
from core.capture.outputs import mean_outputs
from core.capture.running import capture, prepared, run
from core.capture.selfcheck import eager_parts, run_checks
from core.errors import InterventionError
from core.models.checkpoint import Checkpoint
from core.models.classifier import fresh_classifier
from core.models.family import FAMILIES as RECORDS
from core.models.family import Family, family_of
from core.models.opening import open_checkpoint
from tests.capture.conftest import NEW_FAMILIES, SHARED, SINKS, SIZES, TEXT, WINDOW, built, newer, tiny

REACHED = [name for name in NEW_FAMILIES if family_of(name).interceptable]
OUTSIDE = ["deberta", "deberta-v2", "falcon", "gpt_neo", "xlnet"]
WINDOWED = {  # the layers that see only a window, written down from each config in conftest.py
    "modernbert": {1},
    "mistral": {0, 1, 2},
    "qwen2": {1, 2},
    "gemma2": {0, 2},
    "gemma3_text": {0, 2},
    "phi3": {0, 1, 2},
}


@pytest.fixture(scope="module", params=NEW_FAMILIES)
def checkpoint(request):
    return newer(request.param)


def outside(name):
    return newer(name) if name in NEW_FAMILIES else tiny(name)


@pytest.fixture(scope="module", params=REACHED)
def reached(request):
    return newer(request.param)


def visible(checkpoint, layer, length):
    """Which keys a query sees [query, key], from the family's config alone."""
    away = torch.arange(length)[:, None] - torch.arange(length)
    seen = away >= 0 if checkpoint.causal else torch.ones(length, length, dtype=torch.bool)
    if layer in WINDOWED.get(checkpoint.family.model_type, ()):
        seen = seen & (away < WINDOW if checkpoint.causal else away.abs() <= WINDOW // 2)
    return seen


def states(checkpoint, encoding, *interventions):
    kept = []
    run(checkpoint, [encoding], [], interventions=interventions, on_batch=lambda _, output: kept.append(output[0][0]))
    return kept[0]


def disabling(layer, head):
    return Intervention("disable", frozenset({Head(layer, head)}))


def test_every_family_is_a_record():
    assert set(NEW_FAMILIES) <= set(RECORDS)


@pytest.mark.thorough
def test_every_family_passes_its_self_check(checkpoint):
    found = list(run_checks(checkpoint))
    assert len(found) == 6
    assert [finding for finding in found if not finding.passed] == []


@pytest.mark.thorough
def test_maps_equal_eager_output_attentions(checkpoint):
    for text, pair in ((TEXT[0], None), (TEXT[1], TEXT[2]), ("it", None)):
        encoding = checkpoint.encode(text, pair)
        off = np.abs(capture(checkpoint, encoding).weights - eager_parts(checkpoint, encoding)[0]).max()
        assert off <= 1e-6


def test_a_query_sees_the_window_that_its_layer_has(checkpoint):
    encoding = checkpoint.encode(TEXT[1])
    weights = capture(checkpoint, encoding).weights
    assert len(encoding) > 2 * WINDOW
    for layer in range(checkpoint.layers):
        seen = visible(checkpoint, layer, len(encoding)).numpy()
        assert np.array_equal((weights[layer] > 0).any(0), seen), layer


def test_a_pass_that_nobody_watches_equals_eager(reached):
    encoding = reached.encode(TEXT[0])
    plain = states(reached, encoding)
    reached.model.set_attn_implementation("eager")
    with torch.no_grad():
        wanted = reached.model(**reached.inputs([encoding]))[0][0]
    assert torch.allclose(plain, wanted, atol=1e-4)


def test_disabling_is_uniform_over_what_is_visible_and_equals_eager_rewritten(reached, monkeypatch):
    encoding = reached.encode(TEXT[1])
    source, layer_of = sys.modules[type(reached.model).__module__], []
    honest = source.eager_attention_forward

    def rewriting(module, query, key, value, attention_mask, **options):
        output, weights = honest(module, query, key, value, attention_mask, **options)
        layer_of.append(len(layer_of))
        seen = visible(reached, layer_of[-1], len(encoding)).float()
        output[0, :, 1] = seen / seen.sum(-1, keepdim=True) @ value[0, value.shape[1] // 4]  # head 2 of 4
        return output, weights

    heads = Intervention("disable", frozenset(Head(layer, 1) for layer in range(reached.layers)))
    changed = states(reached, encoding, heads)
    with monkeypatch.context() as patched:
        patched.setattr(source, "eager_attention_forward", rewriting)
        reached.model.set_attn_implementation("eager")
        with torch.no_grad():
            wanted = reached.model(**reached.inputs([encoding]))[0][0]
    assert layer_of == list(range(reached.layers))
    assert torch.allclose(changed, wanted, atol=1e-4)


@pytest.mark.thorough
def test_disabling_any_head_changes_what_comes_out(reached):
    encoding = reached.encode(TEXT[0])
    plain = states(reached, encoding)
    for layer in range(reached.layers):
        for head in range(reached.heads):
            assert (states(reached, encoding, disabling(layer, head)) - plain).abs().max() > 1e-6, Head(layer, head)


@pytest.mark.parametrize("family", ["gemma2", "falcon", "deberta-v2"])  # the first: no SDPA in transformers
def test_a_saved_one_opens(family, tmp_path):
    checkpoint = newer(family)
    checkpoint.model.save_pretrained(tmp_path)
    checkpoint.tokenizer.save_pretrained(tmp_path)
    opened = open_checkpoint(str(tmp_path), device="cpu")
    maps = (capture(one, one.encode(TEXT[0])).weights for one in (opened, checkpoint))
    assert np.allclose(*maps, atol=1e-6)


@pytest.mark.parametrize("family", OUTSIDE)
def test_a_family_outside_the_interface_obeys_every_operator_where_its_softmax_is(family):
    """The oracle: the model's own eager pass, its softmax rewritten for the call of one layer."""
    checkpoint = outside(family)
    encoding = checkpoint.encode(TEXT[1])
    honest, calls = torch.nn.functional.softmax, []

    def rewriting(scores, *arguments, **options):
        weights = honest(scores, *arguments, **options)
        calls.append(1)
        if len(calls) != 2:
            return weights
        seen = (scores[:, :1] > -1e29).to(weights.dtype)
        return torch.cat([weights[:, :1], seen / seen.sum(-1, keepdim=True), 0 * weights[:, 2:3], weights[:, 3:]], 1)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.nn.functional, "softmax", rewriting)
        with torch.no_grad():
            wanted = checkpoint.model(**checkpoint.inputs([encoding]))[0][0]
    changed = states(checkpoint, encoding, disabling(1, 1), Intervention("zero", frozenset({Head(1, 2)})))
    assert len(calls) == checkpoint.layers
    assert torch.allclose(changed, wanted, atol=1e-5)
    assert not torch.allclose(changed, states(checkpoint, encoding), atol=1e-3)


@pytest.mark.parametrize("family", OUTSIDE)
def test_a_gate_and_an_empty_cut_leave_such_a_family_as_it_is(family):
    checkpoint = outside(family)
    encoding = checkpoint.encode(TEXT[0])
    plain = states(checkpoint, encoding)
    with torch.no_grad(), prepared(checkpoint, gates=torch.ones(3, 4)):
        assert torch.equal(checkpoint.model(**checkpoint.inputs([encoding]))[0][0], plain)
    cut = Knockout(lambda one: torch.zeros(len(one), len(one), dtype=torch.bool), frozenset({0, 1, 2}))
    assert torch.equal(states(checkpoint, encoding, cut), plain)


def test_outputs_of_others_are_refused_outside_the_interface():
    checkpoint = newer("falcon")
    encoding = checkpoint.encode(TEXT[0])
    source = mean_outputs(newer("qwen3"), [newer("qwen3").encode(text) for text in TEXT])
    with pytest.raises(InterventionError, match="with falcon models, which do not"):
        capture(checkpoint, encoding, [Intervention("mean", frozenset({Head(0, 0)}), source)])


@pytest.mark.parametrize("family", ["modernbert", "mistral", "qwen2", "gemma2", "gemma3_text", "phi3"])
def test_windows_are_read_from_the_config_as_the_masks_have_them(family):
    checkpoint = newer(family)
    length = 4 * WINDOW
    for layer, window in enumerate(checkpoint.windows):
        most = int(visible(checkpoint, layer, length).sum(-1).max())
        assert (window or length) == most, layer


def test_windows_of_gpt_neo_and_of_a_model_without_any():
    assert tiny("gpt_neo").windows == (None, 256, None)
    assert tiny("bert").windows == ()


def test_cutting_all_that_a_window_shows_is_refused():
    checkpoint = newer("mistral")

    def near(encoding):
        away = torch.arange(len(encoding))[:, None] - torch.arange(len(encoding))
        return (away >= 0) & (away < WINDOW) & (torch.arange(len(encoding)) >= WINDOW)[:, None]

    cut = Knockout(near, frozenset({1}))
    with pytest.raises(InterventionError, match="no key left, because its layer has windowed attention"):
        states(checkpoint, checkpoint.encode(TEXT[0]), cut)


@pytest.mark.parametrize("padding", [0, 1])  # 1 as of the published checkpoints
def test_xlm_roberta_keeps_positions_up_to_its_padding_and_runs_at_its_longest(padding):
    made = newer("xlm-roberta")
    model = AutoModel.from_config(type(made.model.config)(**made.model.config.to_dict() | {"pad_token_id": padding}))
    checkpoint = Checkpoint(name="padded", model=model.eval(), tokenizer=made.tokenizer)
    longest = checkpoint.encode("dog " * 600)
    assert len(longest) == checkpoint.max_length == model.config.max_position_embeddings - padding - 1
    assert states(checkpoint, longest).isfinite().all()
    with torch.no_grad(), pytest.raises((IndexError, RuntimeError), match="out of"):  # not one more
        model(input_ids=torch.tensor([[longest.ids[1]] * (len(longest) + 1)]))


@pytest.mark.parametrize("family", ["gemma2", "gpt_oss"])  # no SDPA in transformers
def test_a_fresh_classifier_is_made_where_a_family_has_no_sdpa(family):
    checkpoint = newer(family) if family == "gemma2" else built("gpt_oss", SINKS, encodes=False)
    model = fresh_classifier(checkpoint, ("no", "yes"))
    encoding = checkpoint.encode(TEXT[0])
    with torch.no_grad():
        assert model(**checkpoint.inputs([encoding])).logits.shape == (1, 2)


@pytest.mark.parametrize(("family", "causal"), [("granite", True), ("ernie", False)])
def test_a_new_family_is_one_record_and_one_config(monkeypatch, family, causal):
    """The recipe of docs/architecture.md, with two families that have no record."""
    assert family not in RECORDS
    monkeypatch.setitem(RECORDS, family, Family(family, causal=causal))
    checkpoint = built(family, SHARED if causal else SIZES, encodes=not causal)
    assert checkpoint.causal is causal
    assert [finding for finding in run_checks(checkpoint) if not finding.passed] == []
