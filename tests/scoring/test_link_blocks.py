"""Links read from blocks of queries, against the same links read from whole maps."""

import numpy as np
import pytest
import torch

from core.map_sums import MapSums
from core.scoring.link_batches import in_order
from core.scoring.tokens import LinkedWords, RelationAttention
from tests.scoring.maps import random_maps

LENGTH = 14
NOTHING = np.zeros(0)
WORDS = ((0,), (1, 2), (3,), (4, 5, 6), (7,), (8,), (9,), (10, 11), (12,), (13,))
SENTENCE = (-1, 0, 0, 0, 0, -1, 1, 1, 1, -1)
LINKS = ([(1, 3), (3, 2), (4, 2), (7, 8), (2, 1)], [(1, 7), (3, 6), (2, 7), (4, 8)])
PLAIN = LinkedWords([(k,) for k in range(LENGTH)], [0] * LENGTH, ([(2, 9), (9, 3), (5, 6)], []))
INPUT = LinkedWords(WORDS, SENTENCE, LINKS)


def observer(causal):
    return RelationAttention(1, 2, ["dep:nsubj", "same-word"], across=[False, True], causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [1, 4, 5, LENGTH])
def test_links_read_block_by_block_are_those_of_whole_maps(causal, size):
    """A block may end within a word; two layers in turn use the same sums."""
    layers = random_maps(2, 2, 2, LENGTH, LENGTH, causal=causal)
    inputs, numbers = [INPUT, PLAIN], [4, 7]
    blocks = observer(causal).take(inputs, numbers)
    for maps in layers:
        whole = observer(causal).take(inputs, numbers)
        whole.update(0, maps, [0, 1])
        blocks.means = type(whole.means)(1, 2, whole.means.sums.shape[-1])
        needs = blocks.needs([0, 1], LENGTH, LENGTH)
        sums = []
        for weights, need in zip(maps, needs, strict=True):
            for start in range(0, LENGTH, size):
                for head in range(2):
                    need.blocks(head, start, weights[head, start : start + size])
            cells = weights.numpy()[:, need.cells[:, 0], need.cells[:, 1]]
            sums.append(MapSums(*[NOTHING] * 6, cells))
        blocks.update_sums(0, sums, [0, 1])
        for (*names, found), (*_, wanted) in zip(blocks.result(), whole.result(), strict=True):
            for quantity, estimate in wanted.items():
                assert found[quantity].n == estimate.n, (names, quantity)
                np.testing.assert_allclose(found[quantity].value, estimate.value, atol=1e-6, err_msg=str(names))


def test_what_a_word_sees_most_is_kept_over_blocks_and_layers():
    """Every word looks most at the word linked to it in one layer, and at another one in the next."""
    links = [(1, 3), (3, 1)]
    words = LinkedWords([(k,) for k in range(5)], [0] * 5, (links, []))
    near, far = torch.full((5, 5), 0.1), torch.full((5, 5), 0.1)
    near[1, 3] = near[3, 1] = far[1, 2] = far[3, 2] = far[0, 3] = far[0, 1] = 0.6
    own = observer(causal=False).take([words], [0])
    for layer, right in ((near, 1.0), (far, 0.0)):
        (need,) = own.needs([0], 5, 5)
        own.means = type(own.means)(1, 2, own.means.sums.shape[-1])
        for start in (0, 2, 4):
            for head in range(2):
                need.blocks(head, start, layer[start : start + 2])
        own.update_sums(0, [MapSums(*[NOTHING] * 6, np.ones((2, len(need.cells))))], [0])
        accuracies = [
            parts["accuracy"].value[0, :, 0].tolist() for name, _, parts in own.result() if name != "same-word"
        ]
        assert accuracies == [[right, right], [right, right]]


def test_words_out_of_order_or_with_gaps_need_whole_maps():
    assert in_order(INPUT, LENGTH)
    assert not in_order(INPUT, LENGTH + 1)
    swapped = LinkedWords(((0,), (2,), (1,)), (0, 0, 0), ([], []))
    assert not in_order(swapped, 3)
    assert observer(causal=False).take([INPUT, swapped], [0, 1]).needs([0, 1], LENGTH, LENGTH) is None
    assert observer(causal=False).take([INPUT], [0]).needs([0], LENGTH, LENGTH + 1) is None  # a sink
    without = LinkedWords(WORDS, SENTENCE, ([], []))
    (need,) = observer(causal=False).take([without], [0]).needs([0], LENGTH, LENGTH)
    assert need.blocks is need.cells is None
