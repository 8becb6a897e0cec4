"""Links between words against plain loops; planted heads are found; positional heads are told apart."""

from collections import Counter

import numpy as np
import pytest
import torch

from core.capture.words import Word, word_weights
from core.scoring.link_batches import WordTable
from core.scoring.link_contrasts import cells_of
from core.scoring.tokens import LinkedWords, RelationAttention, best_distance, word_maps
from tests.scoring.maps import random_maps

# 9 positions: [CLS] three words (one of two pieces) [SEP] two words [SEP]
WORDS = ((0,), (1,), (2, 3), (4,), (5,), (6,), (7,), (8,))
SENTENCE = (-1, 0, 0, 0, -1, 1, 1, -1)
LINKS = ([(1, 2), (3, 2)], [(1, 5), (1, 6), (2, 6)])
INPUT = LinkedWords(WORDS, SENTENCE, LINKS)


def _observer(causal, layers=1, heads=3):
    return RelationAttention(layers, heads, ["dep:nsubj", "same-word"], across=[False, True], causal=causal)


def _expected(word, quantity, links, across, turned, causal):
    """Values of one head's word map [query, key] by the words of the docstring."""
    ordinary = [k for k, s in enumerate(SENTENCE) if s >= 0]

    def askable(q, k):
        same = SENTENCE[q] == SENTENCE[k]
        return q in ordinary and k in ordinary and q != k and (not same if across else same)

    pairs = [(b, a) if turned else (a, b) for a, b in links]
    pairs = [(q, k) for q, k in pairs if not causal or k < q]
    found = []
    for q, k in pairs:
        if quantity == "weight":
            found.append(word[q][k])
        elif quantity == "excess":
            others = [
                word[i][j] / len(WORDS[j])
                for i in ordinary
                for j in ordinary
                if askable(i, j) and (i, j) not in pairs and (i == q if across else j - i == k - q)
            ]
            if others:
                found.append(word[q][k] - len(WORDS[k]) * sum(others) / len(others))
        elif turned:
            found.append(float(max((i for i in ordinary if askable(i, k)), key=lambda i: word[i][k]) == q))
        else:
            found.append(float(max((j for j in ordinary if askable(q, j)), key=lambda j: word[q][j]) == k))
    return found


@pytest.mark.parametrize(("causal", "sink"), [(False, False), (True, False), (False, True)])
def test_weight_excess_and_accuracy_equal_loops(causal, sink):
    maps = random_maps(1, 2, 3, 9, 9, causal=causal)
    if sink:  # rows with no weight on any word: the first of the words that may be asked about is looked at
        maps[:, :, 1, :, 1:] = 0
    before = maps.clone()
    observer = _observer(causal)
    observer.take([INPUT, INPUT], [0, 1]).update(0, maps[0], [0, 1])
    torch.testing.assert_close(maps, before, rtol=0, atol=0)
    words = [Word("", positions, 0, None) for positions in WORDS]
    for (_, direction, parts), (number, turned) in zip(
        observer.result(), [(0, False), (0, True), (1, False), (1, True)], strict=True
    ):
        assert direction == ("backward" if turned else "forward")
        for quantity, estimate in parts.items():
            if quantity == "contrast":  # test_link_contrasts.py
                continue
            for head in range(3):
                found = []
                for k in range(2):
                    word = word_weights(maps[0, k, head].numpy(), words).tolist()
                    found += _expected(word, quantity, LINKS[number], number == 1, turned, causal)
                value = estimate.value[0, head, 0]
                assert (np.isnan(value) and not found) or value == pytest.approx(np.mean(found), abs=1e-6)
                assert estimate.n == len(found)


def test_word_maps_are_those_of_the_capture_core_and_sum_to_one():
    maps = random_maps(2, 3, 9, 9)
    inputs = [INPUT, LinkedWords([(k,) for k in range(9)], [0] * 9, ([], []))]
    found = torch.from_numpy(word_maps(cells_of(maps), inputs)).permute(0, 3, 1, 2)
    words = [Word("", positions, 0, None) for positions in WORDS]
    np.testing.assert_allclose(found[0, :, :8, :8], word_weights(maps[0].numpy(), words), atol=1e-12)
    assert not found[0, :, 8].any()
    torch.testing.assert_close(found[1], maps[1])
    torch.testing.assert_close(found[1].sum(-1), torch.ones(3, 9, dtype=torch.float64))


def test_a_planted_verb_to_subject_head_is_found_and_a_previous_token_head_is_not():
    """Head 0 looks at the previous word, head 1 from each verb at its subject, head 2 evenly."""
    chance = np.random.default_rng(0)
    inputs, maps = [], torch.full((40, 3, 10, 10), 0.1, dtype=torch.float64)
    for k in range(40):
        verb = int(chance.integers(3, 9))
        subject = verb - 1 if k % 4 else int(chance.integers(1, verb - 1))
        inputs.append(LinkedWords([(i,) for i in range(10)], [-1, *[0] * 8, -1], ([(subject, verb)], [])))
        maps[k, 0] = torch.eye(10).roll(-1, 1) * 0 + torch.diag(torch.ones(9), -1) * 0.9 + 0.01
        maps[k, 1, verb] = 0.02
        maps[k, 1, verb, subject] = 0.82
    maps /= maps.sum(-1, keepdim=True)
    observer = _observer(causal=False)
    observer.take(inputs, range(40)).update(0, maps, list(range(40)))
    backward = next(parts for name, way, parts in observer.result() if (name, way) == ("dep:nsubj", "backward"))
    assert backward["weight"].value[0, 0, 0] > 0.5  # the previous-token head scores on the weight alone
    p = backward["excess"].p_above()[0, :, 0]
    assert p[1] < 1e-9
    assert np.isnan(p[0]), "no input has any excess there, so there is no p"
    assert np.nanargmax(backward["excess"].value[0, :, 0]) == 1
    assert best_distance(observer.distances[0])[0] == 1


@pytest.mark.parametrize("spelled", [True, False])
def test_a_head_of_the_same_word_has_no_contrast_where_equal_words_are_known(spelled):
    """It looks at equal words alone; links are none of them, yet may lie beside some."""
    spellings, links = (0, 1, 2, 3, 1, 4, 3, 5), [(1, 2), (2, 3), (4, 5), (6, 5), (3, 2)]
    words = LinkedWords([(i,) for i in range(8)], [0] * 8, (links, []), spellings if spelled else ())
    equal = np.equal.outer(spellings, spellings) & ~np.eye(8, dtype=bool)
    maps = torch.from_numpy(np.where(equal, 0.6, 0.1))
    maps = (maps / maps.sum(-1, keepdim=True)).expand(20, 1, 8, 8)
    observer = _observer(causal=False, heads=1)
    observer.take([words] * 20, range(20)).update(0, maps, list(range(20)))
    found = [parts["contrast"].value[0, 0, 0] for name, _, parts in observer.result() if name == "dep:nsubj"]
    assert (np.abs(found) < 1e-9).all() == spelled


def test_words_are_alike_but_not_themselves():
    for words, wanted in ((LinkedWords([(0,), (1,), (2,)], [0, 0, 0], [], (7, 4, 7)), [[0, 2], [2, 0]]), (INPUT, [])):
        numbers = np.arange(len(words.words))
        assert np.argwhere(WordTable([words]).alike(np.array(0), numbers[:, None], numbers)).tolist() == wanted


def test_shards_merge_to_the_whole():
    maps = random_maps(4, 3, 9, 9)
    whole = _observer(causal=False)
    whole.take([INPUT] * 4, range(4)).update(0, maps, [0, 1, 2, 3])
    parts = [_observer(causal=False).take([INPUT] * 2, numbers) for numbers in ([0, 1], [2, 3])]
    parts[0].update(0, maps[:2], [0, 1])
    parts[1].update(0, maps[2:], [0, 1])
    parts[0].means.merge(parts[1].means)
    assert [a + b for a, b in zip(parts[0].distances, parts[1].distances, strict=True)] == list(whole.distances)
    for (*_, one), (*_, two) in zip(whole.result(), parts[0].result(), strict=True):
        for quantity in one:
            np.testing.assert_allclose(one[quantity].value, two[quantity].value, atol=1e-9)
            np.testing.assert_allclose(one[quantity].low, two[quantity].low, atol=1e-5)


def test_the_best_distance_is_the_commonest():
    assert best_distance(Counter({-1: 3, 2: 5, 20: 9})) == (2, 5 / 17)
    chosen, share = best_distance(Counter())
    assert chosen == 0
    assert np.isnan(share)


def test_one_word_has_no_link():
    observer = _observer(causal=True)
    observer.take([LinkedWords([(0,)], [0], ([], []))], [0]).update(0, torch.ones(1, 3, 1, 1), [0])
    assert all(parts["weight"].n == 0 for *_, parts in observer.result())


def test_the_null_of_a_link_reaches_to_the_last_word():
    """Four words of one sentence, a link to the next one: the other pairs of neighbours are its null."""
    maps = random_maps(1, 1, 4, 4)
    observer = RelationAttention(1, 1, ["next"], across=[False], causal=False)
    observer.take([LinkedWords([(k,) for k in range(4)], [0] * 4, [[(0, 1)]])], [0]).update(0, maps, [0])
    excess = [parts["excess"].value[0, 0, 0] for *_, parts in observer.result()]
    ahead, back = (maps[0, 0].diagonal(offset).numpy() for offset in (1, -1))
    assert excess == pytest.approx([side[0] - side[1:].mean() for side in (ahead, back)], abs=1e-6)
