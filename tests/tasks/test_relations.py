"""Links of a tree, under both label sets; the same word across a pair; unknown names."""

import pytest

from core.errors import InputError
from core.tasks.relations import RELATIONS, links, links_across, relation_of
from tests.tasks.test_features import sentence, universal


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("verb-subject", [(0, 1)]),
        ("verb-object", [(3, 1)]),
        ("determiner-noun", []),
        ("noun-pronoun", [(6, 3)]),
        ("dep:amod", [(2, 3)]),
        ("dep:root", []),
        ("same-word", []),
    ],
)
def test_links_go_from_the_dependent_to_its_governor(name, pairs):
    assert links(relation_of(name), universal().words) == pairs
    assert links(relation_of(name), universal("nsubjpass", "dobj").words) == pairs


def test_subjects_of_adjectives_are_no_verb_subject_links():
    tagged = sentence(
        "It is red",
        [("It", "PRP", "PRON", "nsubj", 2), ("is", "VBZ", "AUX", "cop", 2), ("red", "JJ", "ADJ", "root", 2)],
    )
    assert links(relation_of("verb-subject"), tagged.words) == []
    assert links(relation_of("dep:nsubj"), tagged.words) == [(0, 2)]


def test_the_same_word_in_the_other_sentence_in_any_case():
    first = sentence("The dog , the cat", [(word, "", "", "", 0) for word in ["The", "dog", ",", "the", "cat"]])
    second = sentence("A Dog , the end", [(word, "", "", "", 0) for word in ["A", "Dog", ",", "the", "end"]])
    assert links_across(first.words, second.words) == [(0, 3), (1, 1), (3, 3)]


def test_unknown_relations_are_one_sentence():
    with pytest.raises(InputError, match=r'got "coreference"'):
        relation_of("coreference")
    assert all(relation_of(name).name == name for name in RELATIONS)
