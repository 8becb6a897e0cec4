"""The sentences that come with the project: they pass the paper's filter and agree with FrameNet."""

import pytest

from core import config
from core.frames.records import links_of, words
from core.frames.rows import read_sentences
from core.studies.frames.frame_heads import Filter, select


@pytest.fixture(scope="module")
def sentences():
    found = read_sentences(config.SAMPLES / "frames/sentences.jsonl")
    assert found.skipped == ()
    return found.sentences


@pytest.mark.thorough
@pytest.mark.parametrize("rules", [Filter(), Filter(distance="places"), Filter(core="core_type")])
def test_every_sentence_passes_the_papers_filter(sentences, rules):
    assert select(sentences, rules).dropped == {}


def test_they_are_many_varied_and_not_all_about_who_comes_first(sentences):
    links = [(one, link) for one in sentences for link in links_of(one)]
    before = sum(link.element < link.target for _, link in links)
    pronouns = sum(
        words(one.text, link.element).lower() in {"i", "you", "he", "she", "we", "they"} for one, link in links
    )
    assert len(sentences) >= 110
    assert len({one.frame for one in sentences}) >= 40
    assert 0.3 < before / len(links) < 0.7
    assert pronouns <= 5
    assert len({one.text for one in sentences}) == len(sentences)


@pytest.mark.slow  # 10 CPU seconds of NLTK reading a release
def test_every_annotation_agrees_with_framenet(sentences, release):
    units = {(one.name, one.frame) for one in release.lexical_units}
    for one in sentences:
        facts = release.frame(one.frame)
        assert (one.lexical_unit, one.frame) in units, one
        for element in one.elements:
            assert facts.elements[element.name] == element.coreness, (one, element)
            assert (element.name in facts.in_core_sets) is element.in_core_set, (one, element)


@pytest.mark.slow  # 10 CPU seconds of NLTK reading a release
def test_no_sentence_is_framenets(sentences, shared_data, release):
    """None of the texts stands in the paper's list or in the exemplars that the tests unpack."""
    import json

    paper = {row["sentence"].strip() for row in json.loads((shared_data / "paper/framenet_473.json").read_text())}
    tokens = {" ".join(text.split()).rstrip(" .").lower() for text in paper}
    assert not {one.text.rstrip(" .").lower() for one in sentences} & tokens
