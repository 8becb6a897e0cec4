"""Our own JSON lines: there and back, and what malformed lines are told."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.frames.records import AnnotatedSentence, Element, links_of
from core.frames.rows import parse_sentences, read_sentences, write_sentences
from core.studies.frames.frame_heads import Filter, why_dropped

GOOD = '{"text": "He ran home", "target": [[3, 6]], "elements": [{"name": "Self_mover", "spans": [0, 2]}]}'
TEXT = "abcdefghij"
cut = st.integers(1, 3).map(lambda k: ((0, k),))
element = st.builds(
    Element,
    st.sampled_from(["Agent", "Théme"]),
    cut,
    st.sampled_from([None, "Core", "Peripheral"]),
    st.sampled_from([None, True, False]),
)
sentence = st.builds(
    AnnotatedSentence,
    id=st.integers(0, 10**9).map(str),
    text=st.just(TEXT),
    target=st.just(((5, 7), (8, 9))),
    frame=st.sampled_from([None, "Motion"]),
    lexical_unit=st.sampled_from([None, "go.v"]),
    elements=st.lists(element, max_size=3).map(tuple),
    source=st.just("rows"),
)


@given(st.lists(sentence, min_size=1, max_size=4, unique_by=lambda one: one.id))
def test_what_is_written_reads_back_the_same(sentences):
    assert parse_sentences(write_sentences(sentences)).sentences == tuple(sentences)


def test_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path):
    (tmp_path / "a.jsonl").write_text("\ufeff" + GOOD + "\n\n" + GOOD.replace("home", "off") + "\n", encoding="utf-8")
    found = read_sentences(tmp_path / "a.jsonl")
    assert [one.id for one in found.sentences] == ["1", "3"]
    assert found.sentences[0].source == "a.jsonl"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "cannot be parsed"),
        ("[1]", 'field "text"'),
        ('{"text": "He ran"}', "Spans must be lists of character offsets"),
        ('{"text": "He ran", "target": [[3, 9]]}', "within its text of 6"),
        ('{"text": "He ran", "target": [[3, 6.0]]}', "Spans must be lists of character offsets"),
        ('{"text": "He ran", "target": [[3, 6]], "elements": [{"spans": [0, 2]}]}', "must have a name"),
        (
            '{"text": "He ran", "target": [[3, 6]], "elements": [{"name": "A", "spans": [0, 2], "core_set": 1}]}',
            "true, false",
        ),
        ('{"text": "He ran", "target": [[3, 6]], "elements": 3}', "must be a list"),
        ('{"text": "He ran", "target": [[3, 6]], "frame": 3}', '"frame" must be a string'),
    ],
)
def test_a_malformed_line_is_skipped_numbered_and_explained(line, said):
    found = parse_sentences(f"{GOOD}\n{line}\n")
    assert len(found.sentences) == 1
    assert found.skipped[0].where == "row 2"
    assert said in found.skipped[0].why


def test_the_same_id_twice_is_named():
    line = '{"id": "a", ' + GOOD[1:]
    assert '"a" occurs twice' in parse_sentences(f"{line}\n{line}").skipped[0].why


@pytest.mark.parametrize("text", ["", "{\n"])
def test_no_usable_line_is_an_error(text):
    with pytest.raises(InputError, match="at least one annotated sentence"):
        parse_sentences(text)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_sentences(tmp_path / "x.jsonl")


def test_an_element_on_the_target_is_read_counted_by_the_filter_and_no_link():
    line = (
        '{"text": "My old teacher of music smiled", "target": [[7, 14]], "elements": ['
        '{"name": "Teacher", "spans": [7, 14]}, {"name": "Subject", "spans": [18, 23]}]}'
    )
    (row,) = parse_sentences(line).sentences
    assert [one.name for one in row.elements] == ["Teacher", "Subject"]
    assert [one.name for one in links_of(row)] == ["Subject"]
    alone = replace(row, elements=row.elements[1:])
    rules = Filter(nearest=2, distance="places")
    assert why_dropped(row, rules) == "an element nearer than 2 tokens"
    assert why_dropped(alone, rules) is None, "the filter sees what is stored, so nothing may be left out of it"
    assert parse_sentences(write_sentences([row])).sentences == (row,)
