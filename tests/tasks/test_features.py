"""Which words carry a feature, under both label sets; negation on the text."""

import pytest

from core.errors import InputError
from core.tasks.features import FEATURES, NEGATIONS, TaggedSentence, TaggedWord, feature_of, feature_spans


def sentence(text, rows):
    """rows: (word, tag, pos, dep, head)."""
    words, cursor = [], 0
    for word, tag, pos, dep, head in rows:
        start = text.index(word, cursor)
        cursor = start + len(word)
        words.append(TaggedWord(word, start, cursor, tag, pos, dep, head))
    return TaggedSentence(text, tuple(words))


def universal(subject="nsubj", thing="obj"):
    return sentence(
        "She saw minor knots, not him.",
        [
            ("She", "PRP", "PRON", subject, 1),
            ("saw", "VBD", "VERB", "root", 1),
            ("minor", "JJ", "ADJ", "amod", 3),
            ("knots", "NNS", "NOUN", thing, 1),
            (",", ",", "PUNCT", "punct", 6),
            ("not", "RB", "PART", "advmod", 6),
            ("him", "PRP", "PRON", "conj", 3),
            (".", ".", "PUNCT", "punct", 1),
        ],
    )


def found(name, tagged):
    return [tagged.text[start:end] for start, end in feature_spans(feature_of(name), tagged)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("noun", ["knots"]),
        ("verb", ["saw"]),
        ("pronoun", ["She", "him"]),
        ("subject", ["She"]),
        ("object", ["knots"]),
        ("negation", ["not"]),
        ("punctuation", [",", "."]),
        ("tag:JJ", ["minor"]),
        ("pos:PART", ["not"]),
        ("dep:amod", ["minor"]),
        ("start", []),
    ],
)
def test_features_are_read_off_tags_and_dependencies(name, words):
    assert found(name, universal()) == words


@pytest.mark.parametrize(("subject", "thing"), [("nsubj:pass", "iobj"), ("nsubjpass", "dobj"), ("csubj", "dative")])
def test_both_label_sets_are_understood(subject, thing):
    tagged = universal(subject, thing)
    assert found("subject", tagged) == ["She"]
    assert found("object", tagged) == ["knots"]


@pytest.mark.parametrize("text", ["nothing", "DON'T", "don’t", "do n't", "Nowhere"])
def test_negation_is_matched_on_the_text_whole_and_in_any_spelling(text):
    assert found("negation", TaggedSentence(f"a {text} b", ())) == [text]


def test_negation_is_not_found_inside_words():
    assert not found("negation", TaggedSentence("minor knots, notable nonesuch; cannot", ()))
    assert len(NEGATIONS) == 17


def test_a_dependency_covers_its_subtypes_and_nothing_else():
    assert found("dep:nsubj", universal("nsubj:pass")) == ["She"]
    assert found("dep:nsubj:pass", universal()) == []


def test_unknown_features_are_one_sentence():
    with pytest.raises(InputError, match=r'A feature must be one of noun.*got "adverbs"'):
        feature_of("adverbs")
    with pytest.raises(InputError, match="Choose one"):
        feature_of("tag:")
    assert all(feature_of(name).name == name for name in FEATURES)
