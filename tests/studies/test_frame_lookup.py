"""Proposals for a sentence that was parsed, and the picture of its links."""

import numpy as np
import pytest

from core.attention import AttentionMaps, Head
from core.errors import InputError
from core.frames.lexicon import Lexicon, bundled_lexicon, lemmas, propose_elements
from core.frames.records import AnnotatedSentence, Element
from core.models.encoding import Encoding
from core.scoring.links import relation_score
from core.studies.frames.frame_lookup import (
    DistanceNull,
    LinkReading,
    headline,
    links_for,
    picture,
    propose_targets,
    spaced,
    spans_of,
    strips,
)
from core.tasks.features import TaggedSentence, TaggedWord


def tagged(text: str, *rows: tuple[str, str, int]) -> TaggedSentence:
    """(part of speech, dependency, head) of each white-space separated word."""
    found = spaced(text).words
    return TaggedSentence(
        text,
        tuple(
            TaggedWord(word.text, word.start, word.end, "", pos, dep, head)
            for word, (pos, dep, head) in zip(found, rows, strict=True)
        ),
    )


AGITATED = tagged(
    "He was becoming agitated about the noise",
    ("PRON", "nsubj", 2),
    ("AUX", "aux", 2),
    ("VERB", "root", 2),
    ("ADJ", "xcomp", 2),
    ("ADP", "case", 6),
    ("DET", "det", 6),
    ("NOUN", "obl", 3),
)
STOLEN = tagged(
    "The paintings were stolen from the museum .",
    ("DET", "det", 1),
    ("NOUN", "nsubj:pass", 3),
    ("AUX", "aux:pass", 3),
    ("VERB", "root", 3),
    ("ADP", "case", 6),
    ("DET", "det", 6),
    ("NOUN", "obl", 3),
    ("PUNCT", "punct", 3),
)


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("stolen", "steal"),
        ("running", "run"),
        ("taking", "take"),
        ("carries", "carry"),
        ("stopped", "stop"),
        ("was", "be"),
        ("Angry", "angry"),
        ("passes", "pass"),
        ("lying", "lie"),
        ("children", "child"),
    ],
)
def test_a_form_leads_to_its_lemma(word, lemma):
    assert lemma in lemmas(word)


def test_the_papers_example_is_proposed_whole():
    lexicon = bundled_lexicon()
    targets = propose_targets(AGITATED, lexicon)
    assert (AGITATED.words[targets[0].word].text, targets[0].frame) == ("agitated", "Emotion_directed")
    assert {one.frame for one in targets} >= {"Emotion_directed", "Becoming"}
    elements = propose_elements(AGITATED, 3, lexicon.of("Emotion_directed"))
    assert [(one.name, one.words, one.place) for one in elements] == [
        ("Experiencer", (0,), "subject"),
        ("Topic", (4, 5, 6), "oblique about"),
    ]


def test_units_of_several_words_are_targets_as_a_whole_also_apart():
    apart = tagged(
        "She set it up", ("PRON", "nsubj", 1), ("VERB", "root", 1), ("PRON", "obj", 1), ("ADP", "compound:prt", 1)
    )
    targets = propose_targets(apart, bundled_lexicon())
    assert (targets[0].unit, targets[0].words) == ("set up.v", (1, 3))
    far = tagged("She set the old and very heavy table up", *[("VERB", "root", 1)] * 9)
    assert not [target for target in propose_targets(far, bundled_lexicon()) if target.unit == "set up.v"]


def test_the_it_of_the_weather_is_nobody():
    rains = tagged(
        "It rained all night", ("PRON", "nsubj", 1), ("VERB", "root", 1), ("DET", "det", 3), ("NOUN", "obl:tmod", 1)
    )
    assert [one.place for one in propose_elements(rains, 1, None)] == ["oblique"]


def test_a_word_that_is_in_no_frame_proposes_nothing():
    assert propose_targets(tagged("Xyzzying", ("VERB", "root", 0)), bundled_lexicon()) == []


def test_the_subject_of_a_passive_is_named_as_the_object_usually_is():
    elements = propose_elements(STOLEN, 3, bundled_lexicon().of("Theft"))
    assert [(one.name, one.words) for one in elements] == [("Goods", (0, 1)), ("Source", (4, 5, 6))]


def test_without_a_parser_words_can_still_be_marked():
    found = spaced("He ran")
    assert found.spans == [(0, 2), (3, 6)]
    assert [one.unit for one in propose_targets(found, bundled_lexicon())] != []
    assert propose_elements(found, 1, None) == []


def test_neighbouring_words_make_one_span():
    assert spans_of([(0, 2), (3, 6), (7, 9), (10, 12)], [0, 1, 3]) == ((0, 6), (10, 12))


# ---------------------------------------------------------------- the picture


def encoding(text: str, words: int) -> Encoding:
    spans = spaced(text).spans
    places = (None, *spans, None)
    inside = tuple(0 if span else None for span in places)
    return Encoding(
        text,
        None,
        tuple(range(words + 2)),
        (0,) * (words + 2),
        tuple(f"t{k}" for k in range(words + 2)),
        places,
        inside,
        0,
        (words + 1,),
    )


def attention(length: int, causal: bool = False) -> AttentionMaps:
    raw = np.random.default_rng(1).random((2, 3, length, length))
    raw = np.tril(raw) if causal else raw
    weights = (raw / raw.sum(-1, keepdims=True)).astype("float32")
    return AttentionMaps(weights, tuple(f"t{k}" for k in range(length)), (0,) * length, causal)


TEXT = "the cook was getting angry about the soup"
SENTENCE = AnnotatedSentence("a", TEXT, ((21, 26),), elements=(Element("Experiencer", ((0, 8),)),))


def test_the_picture_is_the_relation_score_and_compares_with_every_other_place():
    made, maps = encoding(TEXT, 8), attention(10)
    links = links_for(made, SENTENCE)
    assert links == (((1, 2), (5,)),)
    found = picture(maps, made, links, LinkReading("element_to_target"))
    np.testing.assert_array_equal(found.score, relation_score(maps.weights, links))
    others = [np.maximum(maps.weights[:, :, 1 + k, 5 + k], maps.weights[:, :, 2 + k, 5 + k]) for k in (1, 2, 3)]
    np.testing.assert_allclose(found.others, np.mean(others, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(found.place_rank, 1 + sum((one > found.score).astype(int) for one in others))
    assert found.places == 4
    rows = found.rows()
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[0]["score"] == found.score.max()
    by_difference = found.rows("difference")
    assert by_difference[0]["difference"] == pytest.approx((found.score - np.mean(others, axis=0)).max())
    first = by_difference[0]
    later = picture(maps, made, links, LinkReading("later_to_earlier"))
    assert "between “cook” and “angry”, from the later to the earlier words" in headline(later, "cook", "angry")
    assert headline(found, "cook", "angry") == (
        f"Head {first['name']} attends from “cook” to “angry” (weight {first['score']:.2f}). "
        f"At the same distance elsewhere in the sentence, the mean weight is {first['same_distance']:.2f}."
    )


def test_without_another_place_heads_are_ranked_by_weight_and_the_headline_says_so():
    made, maps = encoding("cook angry", 2), attention(4)
    sentence = AnnotatedSentence("b", "cook angry", ((5, 10),), elements=(Element("Experiencer", ((0, 4),)),))
    found = picture(maps, made, links_for(made, sentence), LinkReading("element_to_target"))
    assert found.places == 1
    assert found.rows("difference")[0]["score"] == found.score.max()
    assert [row["rank"] for row in found.rows("difference")] == [1, 2, 3, 4, 5, 6]
    assert "no other pair of tokens at the same distance" in headline(found, "cook", "angry")


def test_without_another_place_the_bundled_sentences_stand_beside_it():
    made, maps = encoding("cook angry", 2), attention(4)
    sentence = AnnotatedSentence("b", "cook angry", ((5, 10),), elements=(Element("Experiencer", ((0, 4),)),))
    null = DistanceNull(((np.full((*maps.weights.shape[:2], 72, 72), 0.25, dtype=np.float32), tuple(range(1, 72))),))
    found = picture(maps, made, links_for(made, sentence), LinkReading("element_to_target"), null=lambda: null)
    first = found.rows("difference")[0]
    assert (found.places, found.borrowed, first["same_distance"]) == (1, 70, 0.25)
    assert first["difference"] == pytest.approx(found.score.max() - 0.25)
    assert (
        "The baseline is the mean weight at 70 positions with the same distance in the bundled sentences: 0.25."
        in headline(found, "cook", "angry")
    )


def test_a_decoder_cannot_look_from_an_earlier_element():
    made, maps = encoding(TEXT, 8), attention(10, causal=True)
    links = links_for(made, SENTENCE)
    assert not picture(maps, made, links, LinkReading("element_to_target")).visible
    assert picture(maps, made, links, LinkReading("target_to_element")).visible


def test_leaving_out_position_0_changes_the_weights_and_not_the_maps():
    made, maps = encoding(TEXT, 8), attention(10)
    before = maps.weights.copy()
    links = links_for(made, SENTENCE)
    usual = picture(maps, made, links, LinkReading("element_to_target"))
    without = picture(maps, made, links, LinkReading("element_to_target", without_first=True))
    assert (without.score > usual.score).all()
    np.testing.assert_array_equal(maps.weights, before)


def test_strips_are_rows_and_the_column_of_the_map():
    made, maps = encoding(TEXT, 8), attention(10)
    rows = strips(maps, made, links_for(made, SENTENCE), Head(1, 2))
    weights = maps.weights[1, 2]
    lines = {name: [row["weight"] for row in rows if row["line"] == name] for name in {row["line"] for row in rows}}
    np.testing.assert_allclose(lines["from the element"], weights[[1, 2]].mean(0), rtol=1e-6)
    np.testing.assert_allclose(lines["from the target"], weights[5], rtol=1e-6)
    np.testing.assert_allclose(lines["to the target"], weights[:, 5], rtol=1e-6)
    assert [row["mark"] for row in rows[:10]] == ["sink", "element", "element", "", "", "target", "", "", "", ""]


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        (AnnotatedSentence("a", TEXT, ((21, 26),)), "must have at least one element"),
        (AnnotatedSentence("a", TEXT, ((21, 26),), elements=(Element("x", ((9, 26),)),)), "must not overlap"),
        (AnnotatedSentence("a", TEXT, ((21, 99),), elements=(Element("x", ((0, 3),)),)), "within its text"),
    ],
)
def test_places_that_make_no_link_are_refused(sentence, said):
    with pytest.raises(InputError, match=said):
        links_for(encoding(TEXT, 8), sentence)


def test_a_place_that_was_cut_off_is_said():
    cut = encoding(TEXT, 8)
    short = Encoding(
        TEXT, None, cut.ids[:4], cut.segments[:4], cut.tokens[:4], cut.offsets[:4], cut.sentence[:4], 0, (), 5
    )
    with pytest.raises(InputError, match="was cut off because the text is longer"):
        links_for(short, SENTENCE)


def test_frames_of_a_word_are_those_of_its_lemma_and_part_of_speech():
    """The lexicon is asked for each lemma with the word's own tag; a unit that two lemmas share is proposed once."""
    asked = []

    class Asked(Lexicon):
        def frames(self, lemma, upos=None):
            asked.append((lemma, upos))
            known = {("dog", "NOUN"): (("dog.n", "Animals"),), ("dog", "VERB"): (("dog.v", "Following"),)}
            return known.get((lemma, upos), ())

    lexicon = Asked("made", {}, {})
    text = tagged("dogs dog", ("NOUN", "nsubj", 1), ("VERB", "root", 1))
    found = propose_targets(text, lexicon)
    assert sorted((one.word, one.unit, one.frame) for one in found) == [
        (0, "dog.n", "Animals"), (1, "dog.v", "Following"),
    ]  # fmt: skip
    assert set(asked) == {
        *((lemma, "NOUN") for lemma in lemmas("dogs")), *((lemma, "VERB") for lemma in lemmas("dog")),
    }  # fmt: skip


def test_targets_are_complements_then_predicates_then_content_words_then_function_words():
    rows = [(pos, "dep", 0) for pos in ("ADP", "AUX", "DET", "PART", "PRON", "NOUN", "VERB")]
    rows += [("ADJ", dep, 0) for dep in ("root", "xcomp", "acomp", "oprd")] + [("AUX", "root", 0), ("ADJ", "dep", 0)]
    text = tagged(" ".join("abcdefghijklm"), *rows)
    lexicon = Lexicon("made", {f"{letter}.n": ("Any",) for letter in "abcdefghijklm"}, {})
    order = list(dict.fromkeys(one.word for one in propose_targets(text, lexicon)))
    assert order == [8, 9, 10, 6, 7, 5, 12, 0, 1, 2, 3, 4, 11]
