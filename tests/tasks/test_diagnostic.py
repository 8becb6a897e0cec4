"""Diagnostic sentences: rules agree where they should, part where they should, and labels are balanced."""

import pytest

from core.studies.probing import probe
from core.studies.probing.probe import AGREE, AUXILIARY, NUMBER, PART, SIZES, TRAIN, diagnostics, linear_rule


@pytest.mark.thorough
@pytest.mark.parametrize("task", [NUMBER, AUXILIARY])
def test_the_linear_rule_agrees_in_training_and_parts_in_the_last_split(task):
    texts = {}
    for split in SIZES:
        every = diagnostics(task, split)
        texts[split] = {one.sentence.text for one in every}
        assert len(texts[split]) == SIZES[split]
        pairs = [(place, label, one.sentence) for one in every for place, label in one.read]
        rule = [linear_rule(task, sentence, place) == label for place, label, sentence in pairs]
        assert all(rule) if split != PART else not any(rule)
        assert 0.4 < sum(label for _, label, _ in pairs) / len(pairs) < 0.6
        assert diagnostics(task, split) == every  # the same for the same seed
    assert not texts[TRAIN] & (texts[AGREE] | texts[PART])
    assert not texts[AGREE] & texts[PART]


def test_what_is_read_does_not_show_the_answer():
    for one in diagnostics(NUMBER, PART):
        ((place, label),) = one.read
        words = [word.text for word in one.sentence.words]
        assert words[place] in probe._PAST  # one form for both numbers
        assert words[1].endswith("s") == (label == 1) or words[1] == "boss"
    for one in diagnostics(AUXILIARY, PART):
        (inner, embedded), (main, yes) = one.read
        words = [word.text for word in one.sentence.words]
        assert (embedded, yes) == (0, 1)
        assert words[inner - 1] == "that"
        assert words.index("that") < inner < main


def test_words_stand_where_they_say():
    sentence = diagnostics(AUXILIARY, TRAIN)[0].sentence
    for word in sentence.words:
        assert sentence.text[word.start : word.end].lower() == word.text
    assert sentence.text.endswith(".")
    assert " ." not in sentence.text
