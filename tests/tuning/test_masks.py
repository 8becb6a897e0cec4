"""Weights held at 0: which go, that nothing changes at 0 %, and that nothing is left but a constant at 100 %."""

import pytest
import torch

from core.attention import Head
from core.capture.components import LayerBlock
from core.capture.interventions import Intervention
from core.capture.pruning import block_gradients, every_component, masks_without
from core.capture.running import predict
from core.errors import InputError
from core.models.checkpoint import Checkpoint
from core.models.classifier import fresh_classifier
from core.tuning.model import hold, magnitude_masks, prunable, zeroed
from tests.capture.conftest import tiny

TEXTS = ["the old engine ran", "every cat slept all night ;", "the old cat"]


@pytest.fixture(params=["bert", "gpt2"])
def classifier(request):
    base = tiny(request.param)
    model = fresh_classifier(base, ("no", "yes"), seed=1).eval()
    return Checkpoint("tiny", model, base.tokenizer)


def settle(model, masks):
    """End `hold`: the weights are plain parameters again, masked ones 0."""
    for name in masks:
        path, _, parameter = name.rpartition(".")
        torch.nn.utils.prune.remove(model.get_submodule(path), parameter)


def logits(checkpoint):
    return predict(checkpoint, [checkpoint.encode(text) for text in TEXTS])


@pytest.mark.parametrize("scope", ["global", "layer"])
def test_nothing_pruned_changes_no_logit_and_all_pruned_predicts_one_thing(classifier, scope):
    before = logits(classifier)
    masks = magnitude_masks(classifier.model, 0.0, scope)
    hold(classifier.model, masks)
    assert torch.equal(logits(classifier), before)
    settle(classifier.model, masks)
    assert torch.equal(logits(classifier), before)
    zeroed(classifier.model, magnitude_masks(classifier.model, 1.0, scope))
    after = logits(classifier)
    if not classifier.causal:  # [CLS] then sees nothing of its sentence; a decoder's last token still is itself
        torch.testing.assert_close(after, after[:1].expand_as(after))


def share_gone(masks):
    return float(torch.cat([~mask.flatten() for mask in masks.values()]).float().mean())


def test_the_smallest_weights_go_and_as_many_as_said(classifier):
    layers, values = prunable(classifier.model), dict(classifier.model.named_parameters())
    assert len(layers) == 3
    assert not any(
        "embed" in name or "norm" in name.lower() or "classifier" in name for some in layers.values() for name in some
    )
    masks = magnitude_masks(classifier.model, 0.3, "global")
    assert share_gone(masks) == pytest.approx(0.3, abs=1e-4)
    gone = torch.cat([values[name][~mask].abs() for name, mask in masks.items()])
    kept = torch.cat([values[name][mask].abs() for name, mask in masks.items()])
    assert gone.max() <= kept.min()
    by_layer = magnitude_masks(classifier.model, 0.3, "layer")
    for names in layers.values():
        assert share_gone({name: by_layer[name] for name in names}) == pytest.approx(0.3, abs=1e-3)
    with pytest.raises(InputError, match=r"must be from 0 to 1; got 1\.2"):
        magnitude_masks(classifier.model, 1.2, "global")


def test_held_weights_stay_away_while_the_others_learn(classifier):
    masks = magnitude_masks(classifier.model, 0.5, "global")
    before = {name: value.detach().clone() for name, value in classifier.model.named_parameters()}
    hold(classifier.model, masks)
    optimizer = torch.optim.AdamW(classifier.model.parameters(), lr=0.01)
    ids = torch.tensor([classifier.encode(TEXTS[0]).ids])
    for _ in range(3):
        optimizer.zero_grad()
        classifier.model(ids).logits.logsumexp(-1).sum().backward()
        optimizer.step()
    settle(classifier.model, masks)
    after = dict(classifier.model.named_parameters())
    assert set(after) == set(before)
    for name, mask in masks.items():
        assert (after[name][~mask] == 0).all()
    assert any((after[name][mask] != before[name][mask]).any() for name, mask in masks.items())


def test_a_head_and_a_block_without_weights_are_as_if_taken_out(classifier):
    from core.capture.blocks import PartChange

    head, block = Head(1, 2), LayerBlock(0, "feedforward")
    zero = Intervention("zero", frozenset([head]))
    encodings = [classifier.encode(text) for text in TEXTS]
    without_head = predict(classifier, encodings, interventions=[zero])
    without_block = predict(classifier, encodings, interventions=[PartChange(block)])
    saved = {name: value.detach().clone() for name, value in classifier.model.named_parameters()}
    for one, expected in ((head, without_head), (block, without_block)):
        zeroed(classifier.model, masks_without(classifier, [one]))
        torch.testing.assert_close(logits(classifier), expected)
        with torch.no_grad():
            for name, value in classifier.model.named_parameters():
                value.copy_(saved[name])
    assert len(every_component(classifier)) == 3 * 4 + 3


def test_importance_of_blocks_is_the_slope_of_the_loss(classifier):
    encodings = [classifier.encode(text) for text in TEXTS[:1]]
    found = block_gradients(classifier, encodings, [1])
    from core.capture.blocks import writer

    step = 1e-3
    for layer in range(3):
        losses = []
        for sign in (1, -1):
            gate = 1 + sign * step
            handle = writer(classifier, LayerBlock(layer, "feedforward")).register_forward_hook(
                lambda m, a, o, g=gate: o * g
            )
            losses.append(float(torch.nn.functional.cross_entropy(logits_of_one(classifier), torch.tensor([1]))))
            handle.remove()
        assert float(found[layer]) == pytest.approx(abs(losses[0] - losses[1]) / (2 * step), rel=0.05, abs=2e-4)


def logits_of_one(checkpoint):
    return predict(checkpoint, [checkpoint.encode(TEXTS[0])])
