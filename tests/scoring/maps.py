"""Made-up attention maps for tests: rows sum to 1, of any shape, causal or not."""

import numpy as np
import torch


def random_maps(*shape: int, causal: bool = False, seed: int = 0) -> torch.Tensor:
    """Maps [..., length, length], float64, peaked enough that heads differ."""
    scores = torch.from_numpy(np.random.default_rng(seed).normal(0, 2, shape))
    if causal:
        length = shape[-1]
        scores = scores.masked_fill(torch.triu(torch.ones(length, length, dtype=torch.bool), 1), -torch.inf)
    return scores.softmax(-1)
