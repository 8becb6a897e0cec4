"""A second input made from the first: another name, a negation, words scrambled, dropped, masked or replaced, one
sentence only. The word lists are this project's own (data/perturbations/words.json).

Balasubramanian et al. 2020 (names), Ettinger 2020 (negation), Gururangan et al. 2018 and Poliak et al. 2018 (partial
input), Pham et al. 2021 (word order). Every rule is blind to meaning: a page shows what it made.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .. import config
from ..errors import InputError

WORDS_FILE = config.DATA / "perturbations" / "words.json"
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True)
class Text:
    """An input of a model: a sentence, or a pair."""

    text: str
    pair: str | None = None


@dataclass(frozen=True)
class Perturbed:
    """An input that a perturbation made, and in words what was done."""

    made: Text
    note: str


@dataclass(frozen=True)
class Kind:
    """A perturbation as pages and terminals offer it.

    Attributes:
        make: from an input, of chance and of what it was told.
        pairs: whether it is only for inputs of two sentences.
    """

    meaning: str
    make: Callable[[Text, np.random.Generator, "PerturbationChoice"], Perturbed]
    pairs: bool = False


@dataclass(frozen=True)
class PerturbationChoice:
    """What a perturbation may be told.

    Attributes:
        word: which word is dropped, masked or replaced; else one is drawn.
        mask: how the checkpoint spells a mask; None where it has none.
    """

    word: str = ""
    mask: str | None = None
    typed: Text | None = None


def perturb(
    kind: str, text: str, pair: str | None = None, *, seed: int = 0, choice: PerturbationChoice | None = None
) -> Perturbed:
    """The second input of a comparison: the first one, perturbed.

    Args:
        pair: the second sentence, or None.
        choice: what the perturbation is told; None draws everything.

    Raises:
        InputError: an unknown kind, or one that cannot be made of this input; the message says why.
    """
    if kind not in KINDS:
        raise InputError(f'A perturbation is one of {", ".join(KINDS)}; "{kind}" is none of them: choose one.')
    given, how = Text(text, pair or None), KINDS[kind]
    if how.pairs and given.pair is None:
        raise InputError(f'"{kind}" keeps one sentence of a pair; "{text[:40]}" has no second sentence: add one.')
    return how.make(given, np.random.default_rng(seed), choice or PerturbationChoice())


@lru_cache(maxsize=1)
def words() -> dict[str, Any]:
    """The word lists: names by origin and gender, either, synonyms, auxiliaries."""
    return json.loads(WORDS_FILE.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- names


@dataclass(frozen=True)
class Name:
    """A first name of the lists.

    Attributes:
        gender: "female", "male" or "either".
        origin: of the list that it is from; None for "either".
    """

    name: str
    gender: str
    origin: str | None


@lru_cache(maxsize=1)
def names() -> dict[str, Name]:
    """Every name of the lists."""
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
        own = _name_in(given, choice.word)
        present = {word for side in (given.text, given.pair or "") for word in _WORD.findall(side)}
        partners = [other for other in names().values() if _partner(own, other, by) and other.name not in present]
        if not partners:
            raise InputError(
                f"{own.name} has no partner by {by} in the lists of names (names of any gender have none by gender); "
                "choose another name, or another perturbation."
            )
        new = partners[int(chance.integers(len(partners)))].name
        return Perturbed(_everywhere(given, own.name, new), f"{own.name} becomes {new}")

    return make


def _name_in(given: Text, wanted: str) -> Name:
    known = [names()[word] for word in _WORD.findall(f"{given.text} {given.pair or ''}") if word in names()]
    chosen = [name for name in known if name.name == wanted] if wanted else known
    if not chosen:
        said = f'"{wanted[:40]}" is no such name in it' if wanted else "there is none"
        raise InputError(
            f'A name is swapped where the text holds one of the lists ({len(names())} first names); in "'
            f'{given.text[:40]}" {said}: type the second input instead.'
        )
    return chosen[0]


def _partner(own: Name, other: Name, by: str) -> bool:
    if "either" in (own.gender, other.gender):
        return False
    if by == "gender":
        return own.gender != other.gender and own.origin == other.origin
    return own.gender == other.gender and own.origin != other.origin


def _everywhere(given: Text, word: str, new: str) -> Text:
    pattern = re.compile(rf"\b{re.escape(word)}\b")
    return Text(pattern.sub(new, given.text), None if given.pair is None else pattern.sub(new, given.pair))


# ---------------------------------------------------------------- words


def _negated(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
    """Negate the second sentence where there is one (the claim), else the first."""
    own = given.text if given.pair is None else given.pair
    auxiliaries = "|".join(words()["auxiliaries"])
    if there := re.search(rf"\b({auxiliaries})( not|n't)\b", own, re.IGNORECASE):
        new, note = own[: there.end(1)] + own[there.end(2) :], f'"{there[0]}" loses its negation'
    elif place := re.search(rf"\b({auxiliaries})\b", own, re.IGNORECASE):
        new, note = f"{own[: place.end()]} not{own[place.end() :]}", f'"not" after "{place[0]}"'
    else:
        raise InputError(
            f'A sentence is negated after an auxiliary (is, has, can, did ...); "{own[:40]}" has none: type the '
            "second input instead."
        )
    return Perturbed(replace(given, text=new) if given.pair is None else replace(given, pair=new), note)


def _scrambled(run: int) -> Callable[[Text, np.random.Generator, PerturbationChoice], Perturbed]:
    def make(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
        sides = [None if side is None else _shuffled(side, run, chance) for side in (given.text, given.pair)]
        if sides == [given.text, given.pair]:
            raise InputError(
                f'Word order changes where there are more than {run} different words; "{given.text[:40]}" has too '
                "few: type more."
            )
        return Perturbed(Text(sides[0] or "", sides[1]), f"words in another order, {run} at a time")

    return make


def _shuffled(text: str, run: int, chance: np.random.Generator) -> str:
    """Runs of words in a random order, another one than before where there is one."""
    every = text.split()
    runs = [every[k : k + run] for k in range(0, len(every), run)]
    if len({tuple(words) for words in runs}) < 2:
        return text
    while (order := chance.permutation(len(runs))) is not None:
        made = " ".join(word for k in order for word in runs[k])
        if made != " ".join(every):
            return made
    return text


def _without_a_word(masked: bool) -> Callable[[Text, np.random.Generator, PerturbationChoice], Perturbed]:
    def make(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
        if masked and choice.mask is None:
            raise InputError("A word is masked for checkpoints with a mask token; this one has none: drop it instead.")
        spans = [match.span() for match in _WORD.finditer(given.text)]
        chosen = [span for span in spans if given.text[slice(*span)] == choice.word] if choice.word else spans
        if not chosen or len(spans) < 2:
            said = f'does not hold "{choice.word[:40]}"' if choice.word and not chosen else "is too short"
            raise InputError(
                f'A word is taken out of two or more; "{given.text[:40]}" has {len(spans)} and {said}: choose another.'
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
        raise InputError(
            f"A word is replaced by its partner in our list of {len(words()['synonyms'])} pairs; "
            f'"{choice.word[:40] or given.text[:40]}" holds none of them: type the second input instead.'
        )
    start, end = known[0] if choice.word else known[int(chance.integers(len(known)))]
    word = given.text[start:end]
    other = partners[word.lower()]
    other = other.capitalize() if word[0].isupper() else other
    return Perturbed(replace(given, text=f"{given.text[:start]}{other}{given.text[end:]}"), f"{word} becomes {other}")


def _typed(given: Text, chance: np.random.Generator, choice: PerturbationChoice) -> Perturbed:
    if choice.typed is None or not choice.typed.text.strip():
        raise InputError("The second input is yours to type; it is empty: type it, or choose a perturbation.")
    return Perturbed(choice.typed, "as typed")


KINDS = {
    "name-gender": Kind("a first name becomes one of another gender, of the same origin", _other_name("gender")),
    "name-origin": Kind("a first name becomes one of another origin, of the same gender", _other_name("origin")),
    "negate": Kind('"not" after the first auxiliary of the claim, or taken away', _negated),
    "scramble": Kind("words in a random order", _scrambled(1)),
    "scramble-pairs": Kind("word pairs in a random order, each pair kept together", _scrambled(2)),
    "drop": Kind("a word of the first sentence left out", _without_a_word(False)),
    "mask": Kind("a word of the first sentence masked", _without_a_word(True)),
    "synonym": Kind("a word replaced by its near-synonym of our list", _synonym),
    "first-only": Kind(
        "the first sentence alone", lambda given, _, __: Perturbed(Text(given.text), "first sentence only"), pairs=True
    ),
    "second-only": Kind(
        "the second sentence alone",
        lambda given, _, __: Perturbed(Text(given.pair or ""), "second sentence only"),
        pairs=True,
    ),
    "typed": Kind("the second input as you type it", _typed),
    "same": Kind("nothing: what stays when nothing changes", lambda given, _, __: Perturbed(given, "unchanged")),
}
