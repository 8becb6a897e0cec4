"""What taking a contribution away does to maps, beside a layer computed by hand."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from core.studies.explanation.why import removal
from tests.capture import conftest as tiny

HEADS, WIDTH = 4, 32


def maps(block, queries, keys):
    """A first layer's maps [head, query, key] of these states, read by the queries and by the keys."""
    projected = [block.attn.c_attn(block.ln_1(states)) for states in (queries, keys)]
    q, k = (
        part[:, at * WIDTH : (at + 1) * WIDTH].view(-1, HEADS, WIDTH // HEADS).transpose(0, 1)
        for at, part in enumerate(projected)
    )
    seen = torch.ones(len(keys), len(keys)).tril().bool()
    return torch.softmax((q @ k.mT / (WIDTH // HEADS) ** 0.5).masked_fill(~seen, -torch.inf), -1).numpy()


@pytest.mark.thorough
@pytest.mark.parametrize("side", ["query", "key"])
def test_maps_without_places_are_those_of_the_mean_place_with_the_norm_anew(side):
    """Of one side alone, with biases behind the norm, which its scale does not touch."""
    checkpoint = tiny.tiny("gpt2")
    model, block = checkpoint.model, checkpoint.model.h[0]
    encodings = [checkpoint.encode(text, None) for text in tiny.TEXT]
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for bias in (block.ln_1.bias, block.attn.c_attn.bias):
            bias.normal_(generator=generator)
        found = removal(checkpoint, encodings)[0]
        inputs = [(model.wte.weight[list(one.ids)], model.wpe.weight[: len(one)]) for one in encodings]
        mean = torch.cat([places for _, places in inputs]).mean(0)
        expected = np.zeros(HEADS)
        for words, places in inputs:
            whole, without = words + places, words + mean
            both = (without, whole) if side == "query" else (whole, without)
            apart = jensenshannon(maps(block, *both), maps(block, whole, whole), base=2, axis=-1)
            expected += apart.mean(1) / len(inputs)
    at = found.names.index(f"position in the {side}")
    assert found.recomputed[at] == pytest.approx(expected, rel=0.001)
    assert found.held[at] != pytest.approx(expected, rel=0.01)


def test_what_is_the_same_at_every_position_before_the_norm_changes_nothing():
    """Single sentences have one segment, which is its own mean: exactly 0, whatever the norm divided positions by."""
    checkpoint = tiny.tiny("bert")
    found = removal(checkpoint, [checkpoint.encode(text, None) for text in tiny.TEXT])[0]
    for side in ("query", "key"):
        assert found.recomputed[found.names.index(f"segment in the {side}")].tolist() == [0.0] * HEADS
    assert (found.held[found.names.index("segment in the query")] > 0.001).all()  # scales differ by position
    assert (found.recomputed[found.names.index("position in the query")] > 0.001).all()
