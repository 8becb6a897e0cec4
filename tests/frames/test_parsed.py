"""Elements from a parse: spans as FrameNet annotates them, on sentences parsed by hand."""

from core.frames.lexicon import Roles, bundled_lexicon, head_of, propose_elements
from core.tasks.features import TaggedSentence, TaggedWord


def parsed(text: str, *words: tuple[str, str, int]) -> TaggedSentence:
    """A sentence of words apart by one space, with (part of speech, relation, head) each."""
    spelled, at, tagged = text.split(), 0, []
    for word, (pos, dep, head) in zip(spelled, words, strict=True):
        tagged.append(TaggedWord(word, at, at + len(word), "", pos, dep, head))
        at += len(word) + 1
    return TaggedSentence(text, tuple(tagged))


def spans(sentence: TaggedSentence, target: int, roles: Roles | None = None) -> dict[str, str]:
    return {
        one.place: " ".join(sentence.words[k].text for k in one.words)
        for one in propose_elements(sentence, target, roles)
    }


def test_an_adjective_takes_its_noun_without_the_words_before_it():
    few = parsed(
        "the few people of Ghent",
        ("DET", "det", 2),
        ("ADJ", "amod", 2),
        ("NOUN", "root", 2),
        ("ADP", "case", 4),
        ("PROPN", "nmod", 2),
    )
    assert spans(few, 1) == {"noun": "people of Ghent"}


def test_a_noun_has_its_possessor_and_its_complement():
    plan = parsed(
        "her plan to leave", ("PRON", "nmod:poss", 1), ("NOUN", "root", 1), ("PART", "mark", 3), ("VERB", "acl", 1)
    )
    assert spans(plan, 1) == {"modifier": "her", "complement": "to leave"}


def test_a_preposition_has_an_object_and_what_it_hangs_on_without_its_own_preposition():
    keys = parsed(
        "for the keys in a box",
        ("ADP", "case", 2),
        ("DET", "det", 2),
        ("NOUN", "root", 2),
        ("ADP", "case", 5),
        ("DET", "det", 5),
        ("NOUN", "nmod", 2),
    )
    assert spans(keys, 3) == {"object": "a box", "subject": "the keys"}


def test_a_relative_pronoun_goes_with_its_noun_and_a_participle_borrows_one():
    man = parsed(
        "the man who sings", ("DET", "det", 1), ("NOUN", "root", 1), ("PRON", "nsubj", 3), ("VERB", "acl:relcl", 1)
    )
    assert spans(man, 3) == {"subject": "the man who"}
    book = parsed(
        "by a book written here",
        ("ADP", "case", 2),
        ("DET", "det", 2),
        ("NOUN", "root", 2),
        ("VERB", "acl", 2),
        ("ADV", "advmod", 3),
    )
    assert spans(book, 3) == {"subject": "a book"}


def test_a_phrase_behind_the_object_stays_with_it_unless_the_frame_has_an_element_there():
    sent = parsed(
        "she sent letters about fish",
        ("PRON", "nsubj", 1),
        ("VERB", "root", 1),
        ("NOUN", "obj", 1),
        ("ADP", "case", 4),
        ("NOUN", "obl", 1),
    )
    assert spans(sent, 1) == {"subject": "she", "object": "letters about fish"}
    about = Roles("F", ("Topic",), prepositions={"about": "Topic"})
    assert spans(sent, 1, about) == {"subject": "she", "object": "letters", "oblique about": "about fish"}


def test_somebody_told_to_do_it_is_the_one_who_does():
    told = parsed(
        "she told him to go",
        ("PRON", "nsubj", 1),
        ("VERB", "root", 1),
        ("PRON", "obj", 1),
        ("PART", "mark", 4),
        ("VERB", "xcomp", 1),
    )
    assert spans(told, 4)["subject"] == "him"


def test_the_head_of_a_unit_of_several_words_is_the_word_that_the_others_hang_on():
    gave = parsed("up she gave", ("ADP", "compound:prt", 2), ("PRON", "nsubj", 2), ("VERB", "root", 2))
    assert head_of(gave.words, [0, 2]) == 2
    assert head_of(gave.words, []) == -1


def test_the_bundled_facts_know_units_of_several_words_by_their_first():
    assert "set up.v" in bundled_lexicon().of_several_words["set"]
    assert {"give up.v"} <= set(bundled_lexicon().of_several_words["give"])
