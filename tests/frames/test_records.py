"""Sentences with a target and elements: which links they have, and what is refused."""

import pytest

from core.errors import InputError
from core.frames.records import AnnotatedSentence, Element, Link, check, check_apart, links_of

TEXT = "The nurse was pleased about the quiet night"


def sentence(*elements: Element, target=((14, 21),), text=TEXT, links=None) -> AnnotatedSentence:
    return AnnotatedSentence("a", text, target, "Emotion_directed", "pleased.a", elements, links=links)


def test_core_is_decided_by_core_sets_or_by_core_type():
    both = sentence(
        Element("Experiencer", ((0, 9),), "Core", True),
        Element("Degree", ((22, 27),), "Peripheral", False),
        Element("Event", ((28, 43),), "Core", False),
    )
    assert [one.name for one in links_of(both)] == ["Experiencer"]
    assert [one.name for one in links_of(both, core="core_type")] == ["Experiencer", "Event"]
    assert len(links_of(both, core="any")) == 3


def test_an_element_whose_source_is_silent_about_coreness_counts():
    assert len(links_of(sentence(Element("Experiencer", ((0, 9),))))) == 1
    assert len(links_of(sentence(Element("Experiencer", ((0, 9),))), core="core_type")) == 1


def test_an_element_on_the_target_itself_has_no_link():
    assert links_of(sentence(Element("Experiencer", ((10, 21),), "Core", True))) == ()


def test_links_given_by_the_source_are_kept():
    given = (Link("x", ((0, 3),), ((4, 9),)),)
    assert links_of(sentence(Element("Experiencer", ((0, 9),)), links=given)) == given


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (sentence(target=()), "must have a target"),
        (sentence(target=((40, 50),)), "within its text of 43"),
        (sentence(target=((5, 5),)), "must be non-empty"),
        (sentence(Element("A", ((0, 2), (1, 4)))), "must not overlap"),
        (sentence(Element("A", ())), "must have spans"),
        (sentence(Element("A", ((10, 16),))), 'overlaps "pleased"'),
        (sentence(text="  "), "must not be empty"),
    ],
)
def test_bad_spans_are_refused_in_a_sentence(bad, said):
    with pytest.raises(InputError, match=said):
        check_apart(bad)


def test_a_good_sentence_passes_unchanged():
    good = sentence(Element("Experiencer", ((0, 3), (4, 9))))
    assert check(good) is check_apart(good) is good
