"""Optimal constants: never worse than mean and zero where they were fitted; losses are those of a sweep."""

import pytest
import torch

from core.attention import Head
from core.capture.constants import optimal_constants
from core.capture.outputs import mean_outputs
from core.capture.sweeping import every_head, sweep
from core.errors import CheckpointError, InputError
from tests.capture.conftest import TEXT
from tests.capture.test_interventions import classifier

ROWS = [(TEXT[0], None), (TEXT[1], None), (TEXT[2], TEXT[0]), (TEXT[3], None), (TEXT[3], TEXT[1]), ("a dog", None)]
LABELS = [0, 1, 0, 1, 1, 0]


def losses_of(checkpoint, some, source, operator="constant"):
    """Mean cross-entropy [layer, head] with each head alone at what stands in, from the sweep's logits."""
    logits = sweep(checkpoint, some, every_head(3, 4), operator, source=source).changed
    rows = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(LABELS).repeat(12), reduction="none")
    return rows.view(12, -1).mean(1).view(3, 4)


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_fit_is_at_most_mean_and_zero_and_its_losses_are_those_of_a_sweep(family):
    checkpoint = classifier(family)
    some = [checkpoint.encode(*row) for row in ROWS]
    fitted = optimal_constants(checkpoint, some, LABELS, steps=8)
    assert bool((fitted.fitted <= torch.minimum(fitted.mean, fitted.zero) + 1e-9).all())
    assert (fitted.fitted < fitted.mean - 1e-4).float().mean() > 0.5
    assert torch.allclose(losses_of(checkpoint, some, fitted.source), fitted.fitted.float(), atol=1e-5)
    assert torch.allclose(losses_of(checkpoint, some, mean_outputs(checkpoint, some), "mean"), fitted.mean, atol=1e-5)
    assert torch.allclose(losses_of(checkpoint, some, None, "zero"), fitted.zero.float(), atol=1e-5)
    assert not any(value.grad is not None for value in checkpoint.model.parameters())


def test_some_heads_are_fitted_as_they_are_among_all():
    checkpoint = classifier("bert")
    some = [checkpoint.encode(*row) for row in ROWS]
    whole = optimal_constants(checkpoint, some, LABELS, steps=4)
    fitted = optimal_constants(checkpoint, some, LABELS, steps=4, heads={Head(0, 1), Head(1, 2)})
    for layer, head in ((0, 1), (1, 2)):
        alike = [one.source.outputs[layer, :, head] for one in (fitted, whole)]
        assert torch.allclose(*alike, atol=1e-5)
        assert float(fitted.fitted[layer, head]) == pytest.approx(float(whole.fitted[layer, head]), abs=1e-5)
    means = mean_outputs(checkpoint, some).outputs
    assert torch.equal(fitted.source.outputs[2], means[2])
    assert torch.equal(fitted.source.outputs[0, :, 0], means[0, :, 0])
    assert int(fitted.fitted.isfinite().sum()) == 2
    assert fitted.stuck() == []


def test_without_steps_the_fit_is_the_better_start_and_says_that_it_found_nothing():
    checkpoint = classifier("bert")
    some = [checkpoint.encode(*row) for row in ROWS]
    fitted = optimal_constants(checkpoint, some, LABELS, steps=0)
    assert torch.equal(fitted.fitted, torch.minimum(fitted.mean, fitted.zero))
    assert len(fitted.stuck()) == 12


def test_a_head_that_reaches_nothing_is_stuck_and_the_others_are_not():
    checkpoint = classifier("bert")
    with torch.no_grad():
        checkpoint.model.bert.encoder.layer[1].attention.output.dense.weight[:, 8:16] = 0
    fitted = optimal_constants(checkpoint, [checkpoint.encode(*row) for row in ROWS], LABELS, steps=6)
    assert Head(1, 1) in {Head(*one) for one in fitted.stuck()}
    assert len(fitted.stuck()) < 6


def test_what_cannot_be_fitted_is_refused_in_a_sentence():
    checkpoint = classifier("bert")
    with pytest.raises(InputError, match="got 1 examples and 6 labels"):
        optimal_constants(checkpoint, [checkpoint.encode("a")], LABELS)
    other = classifier("opt")
    with pytest.raises(CheckpointError, match="architecture of BERT or GPT-2"):
        optimal_constants(other, [other.encode(*row) for row in ROWS], LABELS)
