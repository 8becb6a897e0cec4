"""Tokens as the paper's filter counts them, and places of words."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.frames.records import covered, distance, place, places, spaced_places, word_spans


def spelled(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


def test_tokens_are_those_of_nltk_in_their_place():
    assert spelled('He didn\'t say "no", did he?') == ["He", "did", "n't", "say", '"', "no", '"', ",", "did", "he", "?"]
    assert spelled("` I 'm not hungry . ''") == ["`", "I", "'m", "not", "hungry", ".", "''"]


@given(st.text(alphabet="ab'\"` .,\n-…é", max_size=40))
def test_tokens_follow_each_other_and_lie_inside_the_text(text):
    spans = word_spans(text)
    assert all(start < end <= len(text) for start, end in spans)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))


def test_a_phrase_is_found_as_whole_words_only():
    assert places("he saw the cathedral cat", "cat") == [(21, 24)]
    assert places("then he and he", "he") == [(5, 7), (12, 14)]
    assert spaced_places("did n't and n't", "n't") == [(4, 7), (12, 15)]
    assert places("abc", "") == []


def test_a_phrase_that_occurs_twice_is_placed_by_its_number():
    text = "The dog bit the other dog"
    assert place(text, "dog#2") == (22, 25)
    assert place(text, "bit") == (8, 11)
    with pytest.raises(InputError, match=r'occurs 2 times. Write "dog#1"'):
        place(text, "dog", "element")
    with pytest.raises(InputError, match="The number after # must be from 1 to 2, because the"):
        place(text, "dog#3")
    with pytest.raises(InputError, match='"wolf" is not in'):
        place(text, "wolf", "target")


def test_distance_counts_tokens_between_the_nearest_words():
    text = "The old man was becoming agitated"
    tokens = word_spans(text)
    assert covered(((0, 11),), tokens) == [0, 1, 2]
    assert distance(((0, 11),), ((25, 33),), tokens) == 3
    assert distance(((25, 33),), ((0, 11),), tokens) == 3
    assert distance(((0, 11),), ((4, 7),), tokens) == 0
