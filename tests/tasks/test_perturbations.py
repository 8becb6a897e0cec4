"""Perturbations: each does what it says, the same for a seed, and says why where it cannot."""

import pytest

from core.errors import InputError
from core.tasks.perturbations import PERTURBATIONS, PerturbationChoice, Text, names, perturb, words

SENTENCE = "Karen said that Daniel was in the big garden"


def test_a_name_is_swapped_for_one_of_another_gender_or_origin_everywhere():
    for by, kept in (("gender", "origin"), ("origin", "gender")):
        for seed in range(10):
            made = perturb(f"name-{by}", SENTENCE, "Did Karen say so?", seed=seed).made
            new = names()[made.text.split()[0]]
            assert getattr(new, kept) == getattr(names()["Karen"], kept)
            assert getattr(new, by) != getattr(names()["Karen"], by)
            assert made.text == SENTENCE.replace("Karen", new.name)
            assert made.pair == f"Did {new.name} say so?"
            assert new.name != "Daniel"
    assert perturb("name-gender", SENTENCE, choice=PerturbationChoice("Daniel")).made.text.startswith("Karen")


def test_negation_comes_and_goes_on_the_claim():
    assert perturb("negate", "A dog is an animal").made == Text("A dog is not an animal")
    assert perturb("negate", "A dog is not a cat").made == Text("A dog is a cat")
    assert perturb("negate", "He didn't come").made == Text("He did come")
    assert perturb("negate", "It is late", "The shop was open").made == Text("It is late", "The shop was not open")


@pytest.mark.parametrize("kind", ["scramble", "scramble-pairs"])
def test_scrambling_keeps_the_words_and_pairs_of_them(kind):
    for seed in range(10):
        made = perturb(kind, SENTENCE, seed=seed).made.text
        assert made != SENTENCE
        assert sorted(made.split()) == sorted(SENTENCE.split())
        if kind == "scramble-pairs":
            before = SENTENCE.split()
            pairs = {tuple(before[k : k + 2]) for k in range(0, len(before), 2)}
            after, k = made.split(), 0
            while k < len(after):
                size = 2 if tuple(after[k : k + 2]) in pairs else 1
                assert tuple(after[k : k + size]) in pairs
                k += size
    assert perturb(kind, SENTENCE, seed=3) == perturb(kind, SENTENCE, seed=3)


def test_a_word_is_dropped_masked_or_replaced():
    assert perturb("drop", SENTENCE, choice=PerturbationChoice("big")).made.text == SENTENCE.replace("big ", "")
    assert perturb("mask", SENTENCE, choice=PerturbationChoice("big", "[MASK]")).made.text == SENTENCE.replace(
        "big", "[MASK]"
    )
    assert perturb("synonym", SENTENCE).made.text == SENTENCE.replace("big", "large")
    assert perturb("synonym", "Large dogs bark").made.text == "Big dogs bark"
    assert len(perturb("drop", SENTENCE, seed=5).made.text.split()) == len(SENTENCE.split()) - 1


def test_one_sentence_only_typed_and_the_same():
    assert perturb("first-only", "a b", "c d").made == Text("a b")
    assert perturb("second-only", "a b", "c d").made == Text("c d")
    assert perturb("typed", "a", choice=PerturbationChoice(typed=Text("b", "c"))).made == Text("b", "c")
    assert perturb("same", "a b", "c d").made == Text("a b", "c d")


@pytest.mark.parametrize(
    ("kind", "text", "choice", "said"),
    [
        ("name-gender", "the dog barks", PerturbationChoice(), r"must contain one of the \d+ first names"),
        (
            "name-gender",
            "Alex came home",
            PerturbationChoice(),
            "counterpart of another gender in the bundled lists; Alex has none",
        ),
        ("name-origin", "Karen came", PerturbationChoice("Daniel"), 'got "Daniel". Choose another name'),
        ("negate", "birds sing", PerturbationChoice(), "has none. Type the second input"),
        ("scramble", "one", PerturbationChoice(), "has too few"),
        ("scramble-pairs", "one two", PerturbationChoice(), "has too few"),
        ("drop", "one", PerturbationChoice(), "at least two words"),
        ("drop", "one two", PerturbationChoice("three"), 'does not contain "three"'),
        ("mask", "one two", PerturbationChoice(), "this checkpoint has none. Drop the word"),
        ("synonym", "qwerty", PerturbationChoice(), "contains none. Type"),
        ("second-only", "one two", PerturbationChoice(), "has no second sentence"),
        ("typed", "one", PerturbationChoice(typed=Text(" ")), "must not be empty"),
        ("upper", "one", PerturbationChoice(), "Choose one"),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(kind, text, choice, said):
    with pytest.raises(InputError, match=said):
        perturb(kind, text, choice=choice)


def test_the_lists_hold_no_word_twice():
    every = [name for genders in words()["names"].values() for some in genders.values() for name in some]
    assert len({*every, *words()["either"]}) == len(every) + len(words()["either"])
    synonyms = [word for pair in words()["synonyms"] for word in pair]
    assert len(synonyms) == len(set(synonyms))
    assert all(kind.meaning for kind in PERTURBATIONS.values())
