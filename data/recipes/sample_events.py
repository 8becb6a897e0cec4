"""Events told in several ways: who did what to whom, comparisons, numbers, quantifiers.

Each function draws one event and returns ways of telling it that mean the same, and ways that use (nearly) the
same words and mean something else. MRPC- and RTE-like rows are made of them, so counting words does not help.
"""

import random
from dataclasses import dataclass

from data.recipes.sample_words import one_of, say

TOWARDS = [  # past tense, participle, ways to say the same
    ("helped", "helped", "gave help to"),
    ("thanked", "thanked", "expressed thanks to"),
    ("followed", "followed", "walked after"),
    ("invited", "invited", "sent an invitation to"),
    ("visited", "visited", "paid a visit to"),
    ("called", "called", "made a call to"),
    ("warned", "warned", "gave a warning to"),
    ("praised", "praised", "was full of praise for"),
    ("defeated", "defeated", "won against"),
    ("taught", "taught", "gave lessons to"),
    ("saved", "saved", "came to the rescue of"),
    ("questioned", "questioned", "put questions to"),
    ("accused", "accused", "brought a charge against"),
    ("answered", "answered", "gave an answer to"),
]
COMPARED = [
    ("older", "younger"),
    ("taller", "shorter"),
    ("richer", "poorer"),
    ("faster", "slower"),
    ("stronger", "weaker"),
]
BUILDINGS = "the hall|the theater|the church|the school|the museum|the tower|the library|the station|the hotel|the bank"
COUNTED = "rooms|seats|windows|doors|visitors|workers|lamps|books"


@dataclass(frozen=True)
class Telling:
    """first: the event. same: tellings it implies. other: tellings it does not imply."""

    first: str
    same: tuple[str, ...]
    other: tuple[str, ...]


def deed(rng: random.Random) -> Telling:
    """Somebody does something to somebody: roles swapped, active and passive, negated."""
    bound: dict[str, str] = {}
    a, b = say("{a=anyone}", rng, bound), say("{b=anyone}", rng, bound)
    past, participle, paraphrase = rng.choice(TOWARDS)
    when = say("{when}" if rng.random() < 0.6 else "{where}", rng)
    first = rng.choice([f"{a} {past} {b} {when}", f"{when}, {a} {past} {b}", f"{b} was {participle} by {a} {when}"])
    same = (
        f"{b} was {participle} by {a}",
        f"{a} {past} {b}",
        f"{a} {paraphrase} {b} {when}",
        f"it was {a} who {past} {b}",
        f"{when}, {b} was {participle} by {a}",
    )
    other = (
        f"{a} was {participle} by {b}",
        f"{b} {past} {a}",
        f"{b} {paraphrase} {a} {when}",
        f"it was {b} who {past} {a}",
        f"{when}, {a} was {participle} by {b}",
    )
    return Telling(first, same, other)


def sale(rng: random.Random) -> Telling:
    """A thing changes hands."""
    bound: dict[str, str] = {}
    a, b, thing = say("{a=anyone}", rng, bound), say("{b=anyone}", rng, bound), say("{thing}", rng)
    when = say("{when}", rng)
    there, back = one_of("sold:bought|gave:got|lent:borrowed|handed:received", rng).split(":")
    first = rng.choice(
        [
            f"{a} {there} {thing} to {b} {when}",
            f"{b} {back} {thing} from {a} {when}",
            f"{when}, {a} {there} {thing} to {b}",
        ]
    )
    same = (f"{b} {back} {thing} from {a}", f"{a} {there} {thing} to {b}", f"{thing} went from {a} to {b} {when}")
    other = (f"{a} {back} {thing} from {b}", f"{b} {there} {thing} to {a}", f"{thing} went from {b} to {a} {when}")
    return Telling(first, same, other)


def comparison(rng: random.Random) -> Telling:
    """Two people on a scale."""
    bound: dict[str, str] = {}
    a, b = say("{a=anyone}", rng, bound), say("{b=anyone}", rng, bound)
    more, less = rng.choice(COMPARED)
    if rng.random() < 0.5:
        more, less = less, more
    much = one_of("a little|much||far|slightly", rng)
    first = rng.choice([f"{a} is {much} {more} than {b}", f"{b} is {much} {less} than {a}"])
    same = (f"{a} is {more} than {b}", f"{b} is {less} than {a}", f"of the two, {a} is the {more} one")
    other = (f"{b} is {more} than {a}", f"{a} is {less} than {b}", f"of the two, {b} is the {more} one")
    return Telling(first, same, other)


def count(rng: random.Random) -> Telling:
    """Two numbers, compared."""
    a, b = rng.sample(BUILDINGS.split("|"), 2)
    things, city = one_of(COUNTED, rng), say("{city}", rng)
    many, few = sorted(rng.sample(range(2, 100), 2), reverse=True)
    first = rng.choice(
        [f"{a} in {city} has {many} {things} and {b} has {few}", f"{b} in {city} has {few} {things}, {a} has {many}"]
    )
    same = (f"{a} has more {things} than {b}", f"{b} has fewer {things} than {a}", f"{b} in {city} has {few} {things}")
    other = (
        f"{b} has more {things} than {a}",
        f"{a} has fewer {things} than {b}",
        f"{b} in {city} has {many} {things}",
    )
    return Telling(first, same, other)


def quantity(rng: random.Random) -> Telling:
    """All, most, some, none."""
    who, did, when = say("{crowd}", rng), say("{did}", rng), say("{when}", rng)
    strong = rng.random() < 0.5
    first = f"{one_of('all', rng) if strong else one_of('only some|only a few', rng)} of the {who} {did} {when}"
    if strong:
        return Telling(
            first,
            (f"some of the {who} {did}", f"every one of the {who} {did} {when}", f"many {who} {did}"),
            (f"none of the {who} {did}", f"not all of the {who} {did} {when}", f"only a few {who} {did}"),
        )
    return Telling(
        first,
        (f"not all of the {who} {did}", f"at least one of the {who} {did} {when}", f"some {who} {did}"),
        (f"all of the {who} {did}", f"none of the {who} {did} {when}", f"every one of the {who} {did}"),
    )


EVENTS = (deed, deed, deed, sale, sale, comparison, count, quantity)
