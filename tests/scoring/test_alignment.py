"""Words of two inputs: partners by difflib and by the swap; maps compared on partners only."""

import numpy as np
import pytest

from core.errors import InputError
from core.scoring.alignment import WordAlignment, align_words, map_change


def test_identical_words_in_order_and_the_swapped_one():
    first, second = ["Anna", "has", "a", "red", "bag"], ["John", "has", "a", "bag"]
    found = align_words(first, second)
    assert found.pairs == ((0, 0), (1, 1), (2, 2), (4, 3))
    assert found.first_alone == (3,)
    assert found.second_alone == ()


def test_sentences_and_special_tokens_are_kept_apart():
    first = ["[CLS]", "a", "dog", "[SEP]", "a", "cat", "[SEP]"]
    marks = [None, 0, 0, None, 1, 1, None]
    found = align_words(first, ["[CLS]", "a", "cat", "[SEP]"], (marks, [None, 0, 0, None]))
    assert found.pairs == ((0, 0), (1, 1), (2, 2), (6, 3))
    assert found.first_alone == (3, 4, 5)
    same = align_words(first, first, (marks, marks))
    assert same.pairs == tuple((k, k) for k in range(7))


def test_scrambled_words_that_lost_their_order_have_no_partner():
    found = align_words(["one", "two", "three", "four"], ["four", "one", "two", "three"])
    assert found.pairs == ((0, 1), (1, 2), (2, 3))
    assert (found.first_alone, found.second_alone) == ((3,), (0,))


def random_maps(words, seed):
    maps = np.random.default_rng(seed).random((2, 3, words, words))
    return maps / maps.sum(-1, keepdims=True)


def test_cosine_over_partners_after_each_row_is_scaled_there():
    first, second = random_maps(5, 0), random_maps(4, 1)
    alignment = align_words(["a", "b", "c", "d", "e"], ["a", "x", "c", "e"])
    pairs = alignment.pairs
    found = map_change(first, second, alignment)
    for layer in range(2):
        for head in range(3):
            rows, elsewhere = [[], []], [[], []]
            for side, maps in enumerate((first, second)):
                for query in pairs:
                    row = [maps[layer, head, query[side], key[side]] for key in pairs]
                    elsewhere[side].append(1 - sum(row))
                    rows[side] += [value / sum(row) for value in row]
            one, two = map(np.array, rows)
            wanted = one @ two / np.sqrt((one @ one) * (two @ two))
            assert found.cosine[layer, head] == pytest.approx(wanted)
            assert found.first_elsewhere[layer, head] == pytest.approx(np.mean(elsewhere[0]))
            assert found.second_elsewhere[layer, head] == pytest.approx(np.mean(elsewhere[1]))


def test_the_same_input_changes_exactly_nothing():
    maps = random_maps(6, 2).astype(np.float32)
    found = map_change(maps, maps, align_words(list("abcdef"), list("abcdef")))
    assert (found.cosine == 1).all()
    assert (found.first_elsewhere == 0).all()
    assert (found.second_elsewhere == 0).all()


def test_no_partner_is_refused():
    with pytest.raises(InputError, match="these inputs share none"):
        map_change(random_maps(2, 0), random_maps(2, 1), WordAlignment((), (0, 1), (0, 1)))


def test_partners_of_every_sentence_are_kept_and_case_is_ignored():
    first, second = ["The", "dog", "Barks", "[SEP]", "a", "cat"], ["the", "DOG", "barks", "[SEP]", "A", "cat"]
    marks = [0, 0, 0, None, 1, 1]
    assert align_words(first, second, (marks, marks)).pairs == tuple((k, k) for k in range(6))
    # a sentence that only the first has, and then specials that come after words: earlier partners stay
    longer = [*first, "more", "[SEP]"]
    found = align_words(longer, [*second[:3], "[SEP]"], ([*marks, 2, None], [0, 0, 0, None]))
    assert found.pairs == ((0, 0), (1, 1), (2, 2), (3, 3))


def test_a_replaced_run_of_another_number_has_no_partner():
    assert align_words(["a", "x", "b"], ["a", "p", "q", "b"]).pairs == ((0, 0), (2, 3))
    assert align_words(["a", "x", "y", "b"], ["a", "p", "q", "b"]).pairs == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert align_words(["a", "x", "b"], ["a", "b"]).pairs == ((0, 0), (2, 1))


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        (3, 2, ((0, 0), (2, 1))),
        (1, 3, ((0, 0),)),
        (3, 1, ((0, 0),)),
        (0, 2, ()),
        (2, 0, ()),
        (2, 4, ((0, 0), (1, 3))),
    ],
)
def test_special_tokens_of_other_numbers_meet_at_their_ends(left, right, pairs):
    assert align_words(["s"] * left, ["s"] * right, ([None] * left, [None] * right)).pairs == pairs


def test_long_texts_of_few_words_are_aligned_whole():
    words = ["a", "b"] * 150  # difflib would take a word that makes up 1 % of 200 words for noise
    assert align_words(words, words[1:]).pairs == tuple((k + 1, k) for k in range(299))


def test_words_that_look_only_at_strangers_have_no_cosine():
    """Both rows of head 1 give everything to the word without a partner; of head 0 one row does."""
    first = np.zeros((1, 2, 3, 3))
    first[0, 0] = [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    first[0, 1, :, 2] = 1
    second = np.array([[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]])
    found = map_change(first, second, WordAlignment(((0, 0), (1, 1)), (2,), ()))
    assert found.cosine[0, 0] == pytest.approx(1 / np.sqrt(2))
    assert np.isnan(found.cosine[0, 1])
    assert found.first_elsewhere.tolist() == [[0.5, 1.0]]
    assert found.second_elsewhere.tolist() == [[0.0, 0.0]]
