"""The paper's selection, rule by rule on hand-made sentences, and on FrameNet 1.5."""

import pytest

from core.errors import InputError
from core.frames.records import AnnotatedSentence, Element, place
from core.studies.frames.frame_heads import NO_FILTER, Filter, select, why_dropped


def made(text: str, target: str, **elements: str) -> AnnotatedSentence:
    """core elements by keyword; a keyword that starts with "not_" is outside the FEcoreSets."""
    spans = [
        Element(name, (place(text, words),), "Core", not name.startswith("not_")) for name, words in elements.items()
    ]
    return AnnotatedSentence("a", text, (place(text, target),), "F", "x.v", tuple(spans))


def test_the_papers_example_passes():
    assert why_dropped(made("Now he was becoming agitated .", "agitated", who="he"), Filter()) is None


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        (
            made("He was slowly becoming really quite very agitated over one two three .", "agitated", who="He"),
            "12 tokens",
        ),
        (made("The very old man was becoming agitated", "agitated", who="The very old man"), "more than 3 tokens"),
        (made("By now he got agitated", "agitated", who="he"), "nearer than 3"),
        (made("He was becoming agitated", "agitated", not_who="He"), "no core element"),
        (made("He was gradually taking off", "taking off", who="He"), "not one token"),
    ],
)
def test_each_rule_drops_what_it_names(sentence, reason):
    assert reason in why_dropped(sentence, Filter())


def test_a_rule_that_is_off_drops_nothing():
    long = made("He was slowly becoming really quite very agitated over one two three .", "agitated", who="He")
    assert why_dropped(long, Filter(longest_sentence=None)) is None
    assert why_dropped(made("He was gradually taking off", "taking off", who="He"), Filter(one_word=False)) is None
    assert why_dropped(long, NO_FILTER) is None


def test_any_long_element_drops_the_sentence_core_or_not():
    text = "He was by then agitated for a long time"
    assert "more than 3" in why_dropped(made(text, "agitated", who="He", not_time="for a long time"), Filter())


def test_strings_and_places_disagree_where_a_word_is_repeated():
    """The notebook compares spellings: "he" beside the target drops a sentence whose element is the far "He"."""
    sentence = made("the dog knew that the cat saw the mouse", "cat", who="the#1")
    assert "nearer" in why_dropped(sentence, Filter())
    assert why_dropped(sentence, Filter(distance="places")) is None


def test_two_target_spans_are_dropped():
    base = made("He was slowly letting the matter drop", "letting", who="He")
    split = AnnotatedSentence("a", base.text, (*base.target, place(base.text, "drop")), elements=base.elements)
    assert why_dropped(split, Filter()) == "target in several spans"


def test_dropped_sentences_are_counted_by_their_first_reason():
    good = made("Now he was becoming agitated .", "agitated", who="he")
    near = made("By now he got agitated", "agitated", who="he")
    found = select([good, near, near], Filter())
    assert found.kept == (good,)
    assert found.dropped == {"an element nearer than 3 tokens": 2}


@pytest.mark.parametrize("bad", [{"core": "coreness"}, {"distance": "pieces"}, {"nearest": 0}])
def test_unknown_rules_are_refused(bad):
    with pytest.raises(InputError):
        Filter(**bad)


@pytest.mark.slow  # 20 CPU seconds of NLTK reading a whole release
def test_on_release_1_5_the_papers_sentences_of_a_frame_pass(release, shared_data):
    """Those of the paper's 473 that release 1.5 holds among these lexical units come out of the filter."""
    import json

    units = [
        one for one in release.lexical_units if one.name in {"agitated.a", "abashed.a", "offended.a", "agitation.n"}
    ]
    found = select([one for unit in units for one in release.exemplars(unit).sentences])
    texts = {one.text.strip() for one in found.kept}
    paper = {row["sentence"].strip() for row in json.loads((shared_data / "paper/framenet_473.json").read_text())}
    assert len(texts & paper) >= 5
    assert all(len(one.text.split()) <= 12 for one in found.kept)
    assert "no core element (core_sets)" in found.dropped
