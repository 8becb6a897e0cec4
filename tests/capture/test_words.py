"""Word-level maps: sum over key pieces, mean over query pieces, rows still sum to 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.capture.running import capture
from core.capture.words import spaced_words, word_maps, word_weights, words_of
from tests.capture.conftest import TEXT, tiny

CHECKPOINTS = {name: tiny(name) for name in ("bert", "gpt2")}


@pytest.mark.parametrize("family", CHECKPOINTS)
def test_word_maps_equal_a_loop(family):
    checkpoint = CHECKPOINTS[family]
    encoding = checkpoint.encode(TEXT[2], TEXT[3])
    maps = capture(checkpoint, encoding)
    words = words_of(encoding)
    found = word_maps(maps, encoding).weights
    before = maps.weights.copy()
    for a, query in enumerate(words):
        for b, key in enumerate(words):
            loop = np.mean([sum(maps.weights[1, 2, q, k] for k in key.positions) for q in query.positions])
            assert found[1, 2, a, b] == pytest.approx(loop, abs=1e-6)
    assert np.array_equal(before, maps.weights)


@pytest.mark.parametrize("family", CHECKPOINTS)
@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=40).filter(str.strip))
def test_words_cover_every_position_once_and_rows_sum_to_1(family, text):
    from core.errors import InputError

    checkpoint = CHECKPOINTS[family]
    try:
        encoding = checkpoint.encode(text)
    except InputError:
        return  # only invisible characters: the encoder says so
    words = words_of(encoding)
    assert [k for word in words for k in word.positions] == list(range(len(encoding)))
    rows = word_weights(np.full((len(encoding), len(encoding)), 1 / len(encoding)), words).sum(-1)
    assert np.allclose(rows, 1)


def test_a_piece_that_spans_two_words_joins_them():
    encoding = CHECKPOINTS["bert"].encode("they can't stop")
    spans = [[(0, 4), (5, 7), (7, 10), (11, 15)]]  # ca | n't, as spaCy splits; the pieces are can ' t
    texts = [word.text for word in words_of(encoding, spans)]
    assert texts == ["[CLS]", "they", "can't", "stop", "[SEP]"]


def test_spaced_words_have_offsets():
    assert spaced_words(" it is\tso ") == [(1, 3), (4, 6), (7, 9)]
