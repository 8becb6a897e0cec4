"""Perturbations of an input: another name, a negation, words shuffled, dropped, masked or replaced, or one sentence
only.

Sources: Balasubramanian et al. 2020 (names), Ettinger 2020 (negation), Gururangan et al. 2018 and Poliak et al. 2018
(partial input), Pham et al. 2021 (word order). The word lists are this project's own (data/perturbations/words.json).
The rules ignore meaning, so pages show the perturbed input.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .. import config
from ..errors import InputError, check_choice

WORDS_FILE = config.DATA / "perturbations" / "words.json"
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True)
class Text:
    """A sentence, or a pair of sentences, to be perturbed."""

    text: str
    pair: str | None = None


@dataclass(frozen=True)
class Perturbed:
    """A perturbed sentence or pair of sentences, with a description of the change."""

    made: Text
    note: str


@dataclass(frozen=True)
class Kind:
    """A kind of text perturbation, such as replacing one name by another.

    Attributes:
        make: function of an input, a random generator and a choice.
        pairs: whether it needs two sentences.
    """

    meaning: str
    make: Callable[[Text, np.random.Generator, "PerturbationChoice"], Perturbed]
    pairs: bool = False


@dataclass(frozen=True)
class PerturbationChoice:
    """The settings that a user has chosen for a perturbation.

    Attributes:
        word: word to drop, mask or replace; "" for a random word or the first name in the text.
        mask: mask token of the checkpoint, or None.
        typed: the second input as typed.
    """

    word: str = ""
    mask: str | None = None
    typed: Text | None = None


def perturb(
    kind: str, text: str, pair: str | None = None, *, seed: int = 0, choice: PerturbationChoice | None = None
) -> Perturbed:
    """Return a perturbed copy of a sentence or pair. Raises InputError if the perturbation cannot be applied to it."""
    check_choice("A perturbation", kind, PERTURBATIONS)
    given, how = Text(text, pair or None), PERTURBATIONS[kind]
    if how.pairs and given.pair is None:
        raise InputError(
            f'The perturbation "{kind}" needs a pair of sentences; "{text[:40]}" has no second sentence. Add '
            "a second sentence."
        )
    return how.make(given, np.random.default_rng(seed), choice or PerturbationChoice())


@lru_cache(maxsize=1)
def words() -> dict[str, Any]:
    """Return the word lists for perturbations: first names by origin and gender, synonyms, and auxiliary verbs."""
    return json.loads(WORDS_FILE.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- names


@dataclass(frozen=True)
class Name:
    """A first name with its gender ("female", "male" or "either"). `origin` is the origin of the name; None for
    "either"."""

    name: str
    gender: str
    origin: str | None


@lru_cache(maxsize=1)
def names() -> dict[str, Name]:
    """Return all first names in the word lists, as a dictionary by name."""
    lists = words()
    every = [
        Name(name, gender, origin)
        for origin, genders in lists["names"].items()
        for gender, some in genders.items()
        for name in some
    ]
    return {known.name: known for known in [*every, *(Name(name, "either", None) for name in lists["either"])]}


def _other_name(by: str) -> Callable[[Text, np.random.Generator, PerturbationChoice], Perturbed]:
    def make(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
        known = [names()[word] for word in _WORD.findall(f"{given.text} {given.pair or ''}") if word in names()]
        chosen = [name for name in known if name.name == choice.word] if choice.word else known
        if not chosen:
            if choice.word:
                raise InputError(
                    f"The name to replace must be in the text, and one of the {len(names())} first names in the "
                    f'bundled lists; got "{choice.word[:40]}". Choose another name, or type the second input.'
                )
            raise InputError(
                f"The text must contain one of the {len(names())} first names in the bundled lists; got "
                f'"{given.text[:40]}". Type the second input instead.'
            )
        own = chosen[0]
        present = {word for side in (given.text, given.pair or "") for word in _WORD.findall(side)}
        partners = [other for other in names().values() if _partner(own, other, by) and other.name not in present]
        if not partners:
            raise InputError(
                f"The name to swap must have a counterpart of another {by} in the bundled lists; {own.name} has none "
                "(unisex names never have one). Choose another name or perturbation."
            )
        new = partners[int(chance.integers(len(partners)))].name
        pattern = re.compile(rf"\b{re.escape(own.name)}\b")
        return Perturbed(
            Text(pattern.sub(new, given.text), None if given.pair is None else pattern.sub(new, given.pair)),
            f"{own.name} replaced by {new}",
        )

    return make


def _partner(own: Name, other: Name, by: str) -> bool:
    if "either" in (own.gender, other.gender):
        return False
    if by == "gender":
        return own.gender != other.gender and own.origin == other.origin
    return own.gender == other.gender and own.origin != other.origin


# ---------------------------------------------------------------- words


def _negated(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
    """Negate the second sentence of a pair (the claim), otherwise the first one."""
    own = given.text if given.pair is None else given.pair
    auxiliaries = "|".join(words()["auxiliaries"])
    if there := re.search(rf"\b({auxiliaries})( not|n't)\b", own, re.IGNORECASE):
        new, note = own[: there.end(1)] + own[there.end(2) :], f'"{there[0]}" without negation'
    elif place := re.search(rf"\b({auxiliaries})\b", own, re.IGNORECASE):
        new, note = f"{own[: place.end()]} not{own[place.end() :]}", f'"not" after "{place[0]}"'
    else:
        raise InputError(
            f'A sentence must have an auxiliary (is, has, can, did ...) to be negated; "{own[:40]}" has none. '
            "Type the second input instead."
        )
    return Perturbed(replace(given, text=new) if given.pair is None else replace(given, pair=new), note)


def _scrambled(run: int) -> Callable[[Text, np.random.Generator, PerturbationChoice], Perturbed]:
    def make(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
        sides = [None if side is None else _shuffled(side, run, chance) for side in (given.text, given.pair)]
        if sides == [given.text, given.pair]:
            raise InputError(
                f"A sentence must have at least two different {'words' if run == 1 else 'pairs of words'} to be "
                f'shuffled; "{given.text[:40]}" has too few. Type a longer sentence.'
            )
        return Perturbed(Text(sides[0] or "", sides[1]), f"words shuffled, {run} at a time")

    return make


def _shuffled(text: str, run: int, chance: np.random.Generator) -> str:
    """Shuffle runs of words, different from the original order if possible."""
    every = text.split()
    runs = [every[k : k + run] for k in range(0, len(every), run)]
    if len({tuple(words) for words in runs}) < 2:
        return text
    while True:
        made = " ".join(word for k in chance.permutation(len(runs)) for word in runs[k])
        if made != " ".join(every):
            return made


def _without_a_word(masked: bool) -> Callable[[Text, np.random.Generator, PerturbationChoice], Perturbed]:
    def make(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
        if masked and choice.mask is None:
            raise InputError(
                "Masking a word needs a checkpoint with a mask token; this checkpoint has none. Drop the word instead."
            )
        spans = [match.span() for match in _WORD.finditer(given.text)]
        chosen = [span for span in spans if given.text[slice(*span)] == choice.word] if choice.word else spans
        if choice.word and not chosen:
            raise InputError(
                f'The word to remove must be in the sentence; "{given.text[:40]}" does not contain '
                f'"{choice.word[:40]}". Choose another word or sentence.'
            )
        if len(spans) < 2:
            raise InputError(
                f'A sentence must have at least two words, so that one can be removed; "{given.text[:40]}" has only '
                f"{len(spans)}. Choose another sentence."
            )
        start, end = chosen[0] if choice.word else chosen[int(chance.integers(len(chosen)))]
        word = given.text[start:end]
        middle = choice.mask if masked else ""
        made = re.sub(r"\s{2,}", " ", f"{given.text[:start]}{middle}{given.text[end:]}").strip()
        return Perturbed(replace(given, text=made), f'"{word}" {"masked" if masked else "dropped"}')

    return make


def _synonym(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
    partners = {word: other for pair in words()["synonyms"] for word, other in (pair, pair[::-1])}
    spans = [match.span() for match in _WORD.finditer(given.text)]
    known = [span for span in spans if given.text[slice(*span)].lower() in partners]
    if choice.word:
        known = [span for span in known if given.text[slice(*span)] == choice.word]
    if not known:
        if choice.word:
            raise InputError(
                f"The word to replace must be in the sentence, and in one of the {len(words()['synonyms'])} bundled "
                f'synonym pairs; got "{choice.word[:40]}". Choose another word, or type the second input.'
            )
        raise InputError(
            f"A sentence must contain a word of the {len(words()['synonyms'])} bundled synonym pairs; "
            f'"{given.text[:40]}" contains none. Type the second input instead.'
        )
    start, end = known[0] if choice.word else known[int(chance.integers(len(known)))]
    word = given.text[start:end]
    other = partners[word.lower()]
    other = other.capitalize() if word[0].isupper() else other
    return Perturbed(
        replace(given, text=f"{given.text[:start]}{other}{given.text[end:]}"), f"{word} replaced by {other}"
    )


def _typed(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
    if choice.typed is None or not choice.typed.text.strip():
        raise InputError("The second input must not be empty; got no text. Type it, or choose a perturbation.")
    return Perturbed(choice.typed, "as typed")


PERTURBATIONS = {
    "name-gender": Kind("replace a first name by one of another gender and the same origin", _other_name("gender")),
    "name-origin": Kind("replace a first name by one of another origin and the same gender", _other_name("origin")),
    "negate": Kind('insert "not" after the first auxiliary of the claim, or remove it', _negated),
    "scramble": Kind("shuffle the words", _scrambled(1)),
    "scramble-pairs": Kind("shuffle pairs of words", _scrambled(2)),
    "drop": Kind("drop a word of the first sentence", _without_a_word(False)),
    "mask": Kind("mask a word of the first sentence", _without_a_word(True)),
    "synonym": Kind("replace a word by a near-synonym from a list", _synonym),
    "first-only": Kind(
        "the first sentence alone", lambda given, _, __: Perturbed(Text(given.text), "first sentence only"), pairs=True
    ),
    "second-only": Kind(
        "the second sentence alone",
        lambda given, _, __: Perturbed(Text(given.pair or ""), "second sentence only"),
        pairs=True,
    ),
    "typed": Kind("type the second input", _typed),
    "same": Kind("no change (shows the noise level)", lambda given, _, __: Perturbed(given, "unchanged")),
}
