"""Facts of the paper's 473 sentences and the replication's 23, from our reader."""

import json
import re
from collections import Counter

import pytest

from core.errors import InputError
from core.frames.papers import read_list
from core.frames.records import distance, links_of, words


@pytest.fixture(scope="module")
def kovaleva(shared_data):
    return read_list(shared_data / "paper/framenet_473.json")


@pytest.fixture(scope="module")
def links(kovaleva):
    return [(one, link) for one in kovaleva.sentences for link in links_of(one)]


def spaced(text):
    return [found.span() for found in re.finditer(r"\S+", text)]


def test_it_has_481_links_in_473_sentences(kovaleva, links):
    assert len(kovaleva.sentences) == 473
    assert len({one.text for one in kovaleva.sentences}) == 470  # repeated ones stay, as in the notebook
    assert len(links) == 481
    assert Counter(len(links_of(one)) for one in kovaleva.sentences) == {1: 465, 2: 8}


def test_lengths_and_places_of_the_elements(links):
    lengths = Counter(len(words(one.text, link.element).split()) for one, link in links)
    assert lengths == {1: 330, 2: 125, 3: 26}
    assert sum(link.element < link.target for _, link in links) == 441
    far = Counter(distance(link.element, link.target, spaced(one.text)) for one, link in links)
    assert [far[3], far[4], far[5], far[6], sum(n for d, n in far.items() if d >= 7)] == [212, 116, 76, 34, 43]


def test_310_elements_begin_their_sentence_and_311_by_the_spelling_rule(links):
    """The published 311 strips quotes and compares spellings, so it takes the I of "In those days I" for the element
    (and that of "If so , I"), and misses "… Everybody"; by place there are 310."""
    by_place = [one for one, link in links if not re.search(r"\w", one.text[: link.element[0][0]])]
    spelling = [
        one for one, link in links if re.sub("^[`'\"“ ]+", "", one.text).startswith(words(one.text, link.element))
    ]
    assert len(by_place) == 310
    assert len(spelling) == 311


def test_strings_that_occur_twice_are_listed_and_the_first_is_taken(kovaleva):
    elements = [note for note in kovaleva.notes if 'element "' in note.why]
    targets = [note for note in kovaleva.notes if 'target "' in note.why]
    assert sorted(re.search('"(.*?)"', note.why)[1] for note in elements) == ["I", "I", "he", "he", "we"]
    assert len(targets) == 8
    taste = next(one for one in kovaleva.sentences if one.text.startswith("I , I had a little taste"))
    assert taste.elements[0].spans == ((0, 1),)


def test_the_replication_keeps_its_own_links(shared_data):
    found = read_list(shared_data / "paper/replication_23.json")
    assert len(found.sentences) == 23
    assert sum(len(links_of(one)) for one in found.sentences) == 32
    first = found.sentences[0]
    assert [words(first.text, side) for side in (first.links[0].element, first.links[0].target)] == ["I", "said"]
    married = next(one for one in found.sentences if one.id == "s22")
    assert words(married.text, married.links[0].element) == "Sameer"


@pytest.mark.parametrize("text", ["{", '[{"sentence": "x"}]', '{"sentence": 1}'])
def test_a_file_of_another_form_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=r"JSON|must be strings"):
        read_list(tmp_path / "x.json")


def test_a_string_that_is_not_in_its_sentence_is_refused(tmp_path):
    row = {"sentence": "He ran .", "target": "walked", "fes": ["He"]}
    (tmp_path / "x.json").write_text(json.dumps([row]))
    with pytest.raises(InputError, match='"walked" is not in'):
        read_list(tmp_path / "x.json")


def test_the_lists_travel_through_our_own_form(shared_data):
    """Links included, so that an uploaded list is scored as the file is."""
    from core.frames.rows import parse_sentences, write_sentences

    for name in ("framenet_473.json", "replication_23.json"):
        found = read_list(shared_data / "paper" / name).sentences
        again = parse_sentences(write_sentences(found))
        assert again.skipped == ()
        assert [links_of(one) for one in again.sentences] == [links_of(one) for one in found]
