"""Weights that are no numbers: functions that call the model themselves name the layer and head, or the layer."""

import pytest
import torch

from core.capture import gating, importance, patching
from core.capture.patching import InputPairs
from core.errors import CheckpointError
from tests.capture.test_importance import LABELS, encodings
from tests.capture.test_interventions import classifier
from tests.capture.test_patching import equal_lengths, everywhere


def broken(projection):
    """A classifier with a NaN in a projection of L2H3, or in the last feed-forward block."""
    checkpoint = classifier("bert")
    layer = checkpoint.model.base_model.encoder.layer[2 if projection == "feedforward" else 1]
    with torch.no_grad():
        if projection == "feedforward":
            layer.output.dense.weight.requires_grad_(False)[0, 0] = float("nan")
        else:
            width = checkpoint.model.config.hidden_size // checkpoint.heads
            weight = getattr(layer.attention.self, projection).weight.requires_grad_(False)
            weight[2 * width, 0] = float("nan")
    return checkpoint


def patched(checkpoint):
    first, second = equal_lengths(checkpoint)
    pairs = InputPairs((first,), (second,), (everywhere(first, second),))
    return patching.patch(checkpoint, pairs, [frozenset()])


RUNS = {
    "patching": patched,
    "gating": lambda one: gating.gated_losses(one, encodings(one), LABELS, torch.ones(1, one.layers, one.heads)),
    "importance": lambda one: importance.gradients(one, encodings(one), LABELS),
    "slopes": lambda one: importance.separator_slopes(one, encodings(one), LABELS),
}


@pytest.mark.parametrize("projection", ["query", "key", "value"])
@pytest.mark.parametrize("run", RUNS)
def test_a_head_that_computes_no_numbers_is_named(run, projection):
    with pytest.raises(CheckpointError, match=r"must be finite numbers; L2H3 has a NaN or infinite value"):
        RUNS[run](broken(projection))


@pytest.mark.parametrize("run", RUNS)
def test_other_parts_that_compute_no_numbers_are_named_by_their_layer(run):
    with pytest.raises(CheckpointError, match=r"layer 3 computes NaN"):
        RUNS[run](broken("feedforward"))
