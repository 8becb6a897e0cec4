"""Pieces, offsets, BOS and separators, and what is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from tests.capture.conftest import TEXT, tiny

BERT, GPT2 = tiny("bert"), tiny("gpt2")


def test_an_encoder_keeps_segments_and_names_its_separators():
    encoding = BERT.encode("the dog", "a bag")
    assert encoding.tokens[0] == "[CLS]"
    assert [encoding.tokens[k] for k in encoding.separators] == ["[SEP]", "[SEP]"]
    assert encoding.separators[1] == len(encoding) - 1
    assert encoding.segments == tuple(0 if k <= encoding.separators[0] else 1 for k in range(len(encoding)))
    assert encoding.first == 0


def test_a_decoder_gets_bos_and_end_of_text_between_sentences():
    encoding = GPT2.encode("the dog", "a bag")
    assert encoding.tokens[0] == "<|endoftext|>"
    assert encoding.first == 0
    (between,) = encoding.separators
    assert encoding.sentence[between] is None
    assert encoding.sentence[between - 1] == 0
    assert encoding.sentence[between + 1] == 1


@pytest.mark.parametrize("checkpoint", [BERT, GPT2], ids=["bert", "gpt2"])
@settings(max_examples=80, deadline=None)
@given(text=st.text(min_size=1, max_size=60).filter(str.strip), pair=st.none() | st.text(min_size=1).filter(str.strip))
def test_offsets_lie_in_their_sentence(checkpoint, text, pair):
    try:
        encoding = checkpoint.encode(text, pair)
    except InputError:
        return
    for span, sentence in zip(encoding.offsets, encoding.sentence, strict=True):
        assert (span is None) == (sentence is None)
        if span is not None:
            assert 0 <= span[0] <= span[1] <= len((text, pair)[sentence])


def test_pieces_of_a_span_are_found_by_characters_not_by_string():
    text = "the dog saw the old dog"
    for checkpoint in (BERT, GPT2):
        encoding = checkpoint.encode(text)
        second = encoding.pieces(20, 23)
        assert second
        assert min(second) > max(encoding.pieces(4, 7))
        assert all(encoding.offsets[k][0] >= 20 and encoding.offsets[k][1] <= 23 for k in second)


@pytest.mark.parametrize("checkpoint", [BERT, GPT2], ids=["bert", "gpt2"])
@settings(max_examples=80, deadline=None)
@given(text=st.text(min_size=1, max_size=40).filter(str.strip), ends=st.tuples(st.integers(0, 39), st.integers(1, 40)))
def test_pieces_are_all_that_overlap_a_span(checkpoint, text, ends):
    start, end = min(ends[0], len(text) - 1), min(max(ends), len(text))
    try:
        encoding = checkpoint.encode(text)
    except InputError:
        return
    expected = [k for k, own in enumerate(encoding.offsets) if own is not None and own[0] < end and start < own[1]]
    if start < end:
        assert list(encoding.pieces(start, end)) == expected


def test_a_span_outside_its_text_is_refused():
    with pytest.raises(InputError, match="of 7 characters"):
        BERT.encode("the dog").pieces(4, 9)


@pytest.mark.parametrize("checkpoint", [BERT, GPT2], ids=["bert", "gpt2"])
def test_long_pairs_lose_pieces_of_the_longer_sentence_and_say_how_many(checkpoint):
    whole = checkpoint.encode("dog " * 30, "a bag")
    cut = checkpoint.encode("dog " * 30, "a bag", max_length=20)
    assert len(cut) == 20
    assert cut.cut == len(whole) - 20
    assert sum(one == 1 for one in cut.sentence) == sum(one == 1 for one in whole.sentence)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_text_is_one_sentence_to_the_user(text):
    with pytest.raises(InputError, match="Enter some text"):
        BERT.encode(text)
    with pytest.raises(InputError, match="second sentence"):
        BERT.encode(TEXT[0], text)


@pytest.mark.parametrize(
    "text", ["word " * 10_000, "🙂🙂", "שלום עולם", "a\x00b", "<script>alert(1)</script>", "e\u0301\u200d"]
)
@pytest.mark.parametrize("checkpoint", [BERT, GPT2], ids=["bert", "gpt2"])
def test_odd_texts_are_encoded_within_the_length(checkpoint, text):
    encoding = checkpoint.encode(text)
    assert 1 <= len(encoding.ordinary) <= checkpoint.max_length
    assert (encoding.cut > 0) == (text.startswith("word"))


def test_a_text_of_a_million_characters_is_refused_before_the_tokenizer():
    with pytest.raises(InputError, match="at most 200,000 characters"):
        BERT.encode("a" * 1_000_000)
