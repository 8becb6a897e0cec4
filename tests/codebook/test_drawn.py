"""Drawn maps are what the words of their class say."""

import numpy as np
import pytest

from core.codebook.registry import BERT, GPT2, drawn_map


@pytest.mark.parametrize("one", [BERT, GPT2], ids=lambda one: one.name)
def test_every_shipped_class_can_be_drawn_as_a_map(one):
    for name in one.names:
        weights = drawn_map(one.name, name, length=24, seed=1)
        assert weights.shape == (24, 24)
        assert np.allclose(weights.sum(-1), 1, atol=1e-5)
        assert (one is BERT) or not np.triu(weights, 1).any()


def test_the_words_hold():
    vertical, diagonal, block = (
        drawn_map("bert", name, length=24, seed=3) for name in ("vertical", "diagonal", "block")
    )
    assert vertical[:, 0].mean() > 5 * np.delete(vertical, np.argsort(vertical.mean(0))[-2:], axis=1).mean()
    assert max(np.diagonal(diagonal, k).mean() for k in (-1, 0, 1)) > 10 * np.median(diagonal)
    inside = max(block[:k, :k].sum() + block[k:, k:].sum() for k in range(1, 24))
    assert inside > 0.9 * block.sum()


def test_a_class_of_ones_own_is_not_drawn():
    assert drawn_map("bert", "striped", length=24, seed=0) is None
    assert drawn_map("sea", "wave", length=24, seed=0) is None
