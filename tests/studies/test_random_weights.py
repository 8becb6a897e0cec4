"""Fresh weights that hypotheses are compared with spread as the checkpoint's own heads do."""

import pytest
import torch

from core.capture.running import run
from core.models.classifier import random_copy
from core.scoring.counterparts import mean_entropy
from core.studies import worker_cache
from tests.capture.conftest import tiny, translator


def entropies(checkpoint):
    return torch.stack([mean_entropy(rows) for rows in worker_cache._rows_of(checkpoint)])


@pytest.mark.thorough
@pytest.mark.parametrize("model_type", ["bert", "gpt2", "llama", "xlnet"])  # the last is reached at its softmax
def test_each_head_has_the_mean_entropy_of_the_head_at_its_place(model_type):
    known = tiny(model_type)
    fresh = random_copy(known, seed=3)
    spread = worker_cache.spread_as(fresh, known)
    asked, drawn, found = (entropies(one) for one in (known, fresh, spread))
    assert found.numpy() == pytest.approx(asked.numpy(), abs=0.02)
    assert (drawn - asked).abs().max() > 0.1


@pytest.mark.thorough
def test_an_encoder_decoder_has_its_encoder_scaled_alone():
    known = translator("bart")
    spread = worker_cache.spread_as(random_copy(known, seed=3), known)
    assert sorted(spread.sharpness) == list(known.sets[0].calls)
    assert entropies(spread).numpy() == pytest.approx(entropies(known).numpy(), abs=0.02)


def test_a_factor_multiplies_scores():
    """Rows of the scaled head are powers of its rows; the other heads' are as they were, in that layer."""
    known = tiny("bert")
    encodings = [known.encode("The dog sees a bird.")]
    seen = []
    for sharpness in ({}, {0: torch.tensor([1.0, 2.0, 1.0, 1.0])}):
        observer = worker_cache._Rows()
        run(worker_cache.replace(known, sharpness=sharpness), encodings, [observer])
        seen.append(observer.by_layer[0][0])
    powers = seen[0][1] ** 2
    assert torch.allclose(seen[1][1], powers / powers.sum(-1, keepdim=True), atol=1e-6)
    assert torch.equal(seen[0][[0, 2, 3]], seen[1][[0, 2, 3]])
