"""The attention-only probe on maps that are made by hand: gold trees, noise, shuffled distances."""

import numpy as np
import pytest
import torch

from core.probing import attention
from core.probing.attention import Sentences
from core.probing.ragged import Ragged
from core.scoring import trees
from core.scoring.intervals import share_of

RNG = np.random.default_rng(5)


def random_tree(words, rng):
    heads = np.zeros(words, dtype=int)
    order = rng.permutation(words)
    heads[order[0]] = order[0]
    for k, word in enumerate(order[1:], start=1):
        heads[word] = order[rng.integers(k)]
    return heads


def maps_of(heads, *, gold, rng):
    """[2 heads, places, places]: head 1 looks at the next word; head 0 at the gold head (or at random)."""
    places = len(heads) + 2
    maps = np.full((2, places, places), 0.02)
    for word, head in enumerate(heads):
        target = 0 if head == word else head + 1
        maps[0, word + 1, target if gold else rng.integers(places)] = 1.0
        maps[1, word + 1, word + 2] = 1.0
    return maps / maps.sum(-1, keepdims=True)


def sentences_of(folder, count, *, gold, seed):
    rng = np.random.default_rng(seed)
    heads = [random_tree(int(rng.integers(3, 9)), rng) for _ in range(count)]
    maps = Ragged.create(folder / f"{seed}", "maps", [(2, len(one) + 2, len(one) + 2) for one in heads])
    for number, one in enumerate(heads):
        maps.put(number, maps_of(one, gold=gold, rng=rng).astype(np.float16))
    return Sentences(maps, heads, [np.ones(len(one), dtype=bool) for one in heads])


def uas(probe, sentences):
    scores = attention.predict(probe, sentences)
    hits = [
        trees.attached(gold, attention.greedy(one), np.ones(len(gold), dtype=bool))
        for gold, one in zip(sentences.heads, scores, strict=True)
    ]
    return share_of(hits, [len(gold) for gold in sentences.heads])


@pytest.mark.thorough
def test_maps_of_gold_trees_give_a_score_of_one(tmp_path):
    train, dev, test = (sentences_of(tmp_path, n, gold=True, seed=seed) for n, seed in ((120, 0), (30, 1), (40, 2)))
    probe = attention.train(train, dev)
    assert uas(probe, test).value == 1.0
    for number, scores in enumerate(attention.predict(probe, test)):
        assert trees.likeliest_tree(scores).tolist() == test.heads[number].tolist()
        np.testing.assert_allclose(np.exp(scores).sum(-1), 1, rtol=1e-5)


def test_shuffled_distances_stay_at_the_best_fixed_distance(tmp_path):
    from dataclasses import replace

    train, dev, test = (sentences_of(tmp_path, n, gold=True, seed=seed) for n, seed in ((200, 0), (60, 1), (150, 2)))
    # gold trees in which the next word is the head of most: the fixed distance has something to find
    for part in (train, dev, test):
        for number, heads in enumerate(part.heads):
            part.heads[number] = np.where(RNG.random(len(heads)) < 0.5, trees.right_branching(len(heads)), heads)
    moved = [replace(part, heads=attention.shuffled(part.heads, seed=1)) for part in (train, dev)]
    for part, other in zip((train, dev), moved, strict=True):
        assert sum(np.concatenate(part.heads) == np.concatenate(other.heads)) < 0.7 * len(np.concatenate(part.heads))
        assert all(0 <= head < len(heads) for heads in other.heads for head in heads)
    learned = uas(attention.train(*moved), test)
    hits = [
        trees.attached(gold, trees.at_offsets([1] * len(gold)), np.ones(len(gold), dtype=bool)) for gold in test.heads
    ]
    fixed = share_of(hits, [len(gold) for gold in test.heads])
    assert learned.low <= fixed.high
    assert fixed.low <= learned.high


def test_scores_against_a_triple_loop_with_words():
    torch.manual_seed(0)
    probe = attention.AttentionProbe(3, 4)
    for value in probe.parameters():
        torch.nn.init.normal_(value)
    maps, words = torch.rand(2, 3, 6, 6), torch.rand(2, 4, 4)
    scores = probe(maps, words).detach()
    for b, i, j in ((0, 0, 3), (1, 2, 1), (1, 3, 0)):
        expected = 0.0
        for k in range(3):
            there, back = maps[b, k, i + 1, j + 1], maps[b, k, j + 1, i + 1]
            weights = probe.by_word[:, :, k]
            expected += there * (probe.there[k] + weights[0, 0] @ words[b, i] + weights[0, 1] @ words[b, j])
            expected += back * (probe.back[k] + weights[1, 0] @ words[b, i] + weights[1, 1] @ words[b, j])
        assert float(scores[b, i, j + 1]) == pytest.approx(float(expected), rel=1e-4)
        root = probe.rootless[0] + sum(
            probe.root[0, k] * maps[b, k, i + 1, 0]
            + probe.root[1, k] * maps[b, k, i + 1, -1]
            + probe.root[2, k] * maps[b, k, 0, i + 1]
            + probe.root[3, k] * maps[b, k, -1, i + 1]
            for k in range(3)
        )
        assert float(scores[b, i, 0]) == pytest.approx(float(root), rel=1e-4)
    assert torch.isinf(scores[:, torch.arange(4), torch.arange(4) + 1]).all()
