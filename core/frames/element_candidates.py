"""Which words of a parsed sentence may be the elements of a target, and what the frame usually calls them.

Places follow a parser of Universal Dependencies (spaCy's older labels are taken too); spans follow FrameNet: a phrase
keeps its preposition, an adjective's noun is taken without the words before the adjective, a relative pronoun goes with
the noun that it stands for. All of it is a guess that can be changed by hand.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .forms import lemmas
from .lexicon import Roles

SUBJECTS = frozenset({"nsubj", "nsubjpass", "nsubj:pass", "csubj", "csubjpass", "csubj:pass", "nsubj:outer", "expl"})
OBJECTS = frozenset({"obj", "dobj", "iobj", "dative", "ccomp"})
OBLIQUES = frozenset({"obl", "obl:tmod", "obl:npmod", "obl:agent", "obl:arg", "prep", "agent", "nmod", "nmod:npmod"})
COMPLEMENTS = frozenset({"xcomp", "acomp", "oprd", "attr"})
BEFORE_NOUN = frozenset({"amod", "compound", "nmod:poss", "poss", "nummod"})  # elements of a noun that stand before it
ATTRIBUTES = BEFORE_NOUN | {"det", "advmod", "det:predet"}  # of which the noun is an element
RAISED = frozenset({*COMPLEMENTS, "advcl", "acl", "conj", "pcomp"})  # their subject is the head's
RELATIVE = frozenset({"acl:relcl", "relcl"})
WEATHER = frozenset({"rain", "snow", "hail", "drizzle", "pour", "thunder", "freeze", "sleet"})  # their "it" is nobody
PLACES = ("subject", "object", "complement", "oblique", "noun", "modifier")


class Proposal(NamedTuple):
    """A proposed element: its name (None where the frame does not say), its words, its place in the sentence."""

    name: str | None
    words: tuple[int, ...]
    place: str


class Dependent(NamedTuple):
    """Words that depend on a target. head: the word that the parser hangs on it."""

    kind: str
    head: int
    words: tuple[int, ...]


def propose_elements(tagged: Any, target: int, roles: Roles | None) -> list[Proposal]:
    """Elements of a target word by the parser, named as the frame's annotations usually are.

    tagged: a TaggedSentence. Subjects come first, then objects, complements, obliques, the noun and what modifies it.
    """
    words, proposals = tagged.words, list[Proposal]()
    taken: set[int] = set()
    for place in _merged(words, _places(words, target), roles):
        if set(place.words) & taken or target in place.words or not place.words:
            continue
        preposition = next((words[k].text for k in place.words if words[k].dep in {"case", "prep", "agent"}), "")
        said = preposition if place.kind == "oblique" else ""
        proposals.append(
            Proposal(
                _named(roles, place.kind, words[place.head], preposition), place.words, f"{place.kind} {said}".strip()
            )
        )
        taken.update(place.words)
    return proposals


def head_of(words: Sequence[Any], chosen: Sequence[int]) -> int:
    """The word of a target that the others hang on; -1 for no words."""
    return next((k for k in chosen if words[k].head not in chosen or words[k].head == k), next(iter(chosen), -1))


def _named(roles: Roles | None, kind: str, head: Any, preposition: str) -> str | None:
    if roles is None:
        return None
    usual = "object" if "pass" in head.dep else kind  # FrameNet's facts count active sentences first
    places = {"complement": "object", "noun": "subject"}
    return roles.at(places.get(usual, usual), preposition) or roles.at(kind, preposition)


def _places(words: Sequence[Any], target: int) -> list[Dependent]:
    """What depends on the target, in the order of PLACES; a target without a subject borrows one."""
    own = [
        Dependent(_kind(words, k, target), k, _phrase(words, k, target))
        for k, word in enumerate(words)
        if word.head == target and k != target and not _is_nobody(words, k, target)
    ]
    own = [place for place in own if place.kind]
    if not any(place.kind == "subject" for place in own):
        own += _borrowed(words, target)
    own += (
        _of_a_preposition(words, target) if words[target].pos in {"ADP", "SCONJ"} else _of_an_attribute(words, target)
    )
    return sorted(own, key=lambda place: (PLACES.index(place.kind), place.head))


def _kind(words: Sequence[Any], k: int, target: int) -> str:
    dep = words[k].dep
    if dep in SUBJECTS:
        return "subject"
    if dep in OBJECTS:
        return "object"
    if dep in COMPLEMENTS and words[target].pos in {"VERB", "AUX"}:
        return "complement"
    if dep == "acl" and words[target].pos == "NOUN":
        return "complement"  # "the ability to see"
    if dep in OBLIQUES:
        return "oblique"
    return "modifier" if dep in BEFORE_NOUN and words[target].pos in {"NOUN", "PROPN"} else ""


def _phrase(words: Sequence[Any], k: int, target: int) -> tuple[int, ...]:
    """The words of a dependent; a relative pronoun with the noun that its clause is about."""
    phrase = subtree(words, k, without=target)
    about = words[target].head
    if words[target].dep in RELATIVE and words[k].text.lower() in {"who", "which", "that", "whom"}:
        return (*subtree(words, about, without=target), *phrase)
    return phrase


def _is_nobody(words: Sequence[Any], number: int, target: int) -> bool:
    """Whether a subject stands for nobody: "there", and "it" of the weather."""
    it_rains = words[number].text.lower() == "it" and bool(WEATHER & set(lemmas(words[target].text)))
    return words[number].dep == "expl" or it_rains


def _borrowed(words: Sequence[Any], target: int) -> Iterator[Dependent]:
    """The subject of a target without one: the object or subject of what it complements, or the noun it describes."""
    climbed = target
    for _ in words:
        dep, above = words[climbed].dep, words[climbed].head
        if dep in {"acl", *RELATIVE} and above != climbed:
            yield Dependent("subject", above, _bare(words, above, climbed))
            return
        if dep not in RAISED and not (words[target].pos == "NOUN" and dep == "obj"):
            return
        beside = [k for k, word in enumerate(words) if word.head == above and k != climbed]
        deps = [{"obj", "dobj", "iobj"}] if dep == "xcomp" and words[target].pos == "VERB" else []
        for wanted in [*deps, SUBJECTS]:
            for k in beside:
                if words[k].dep in wanted and not _is_nobody(words, k, target):
                    yield Dependent("subject", k, _phrase(words, k, above))
                    return
        climbed = above


def _bare(words: Sequence[Any], noun: int, without: int) -> tuple[int, ...]:
    """A noun's phrase without the preposition before it, which belongs to another link."""
    phrase = subtree(words, noun, without=without)
    return tuple(k for k in phrase if not (words[k].dep in {"case", "mark"} and words[k].head == noun and k < noun))


def _of_an_attribute(words: Sequence[Any], target: int) -> Iterator[Dependent]:
    """The noun that an adjective, a number or a participle stands before, without the words that precede it."""
    above = words[target].head
    if words[target].dep in ATTRIBUTES and above > target and words[above].pos in {"NOUN", "PROPN"}:
        phrase = tuple(k for k in subtree(words, above, without=target) if k > target)
        yield Dependent("noun", above, phrase)


def _of_a_preposition(words: Sequence[Any], target: int) -> Iterator[Dependent]:
    """A preposition's object and the noun that it hangs on; a conjunction's clause."""
    inner = words[target].head
    if words[target].dep not in {"case", "mark"} or inner == target:
        return
    yield Dependent("object", inner, subtree(words, inner, without=target))
    outer = words[inner].head
    if outer == inner:
        return
    if words[outer].pos in {"NOUN", "PROPN", "PRON", "NUM"} and words[inner].dep != "advcl":
        yield Dependent("subject", outer, _bare(words, outer, inner))
        return
    for k, word in enumerate(words):
        if word.head == outer and word.dep in SUBJECTS and word.dep != "expl":
            yield Dependent("subject", k, subtree(words, k, without=inner))


def _merged(words: Sequence[Any], places: list[Dependent], roles: Roles | None) -> list[Dependent]:
    """A phrase right behind the object goes with it, unless the frame has an element after that preposition."""
    merged = list[Dependent]()
    for place in places:
        first = words[place.words[0]].text.lower() if place.words else ""
        known = roles is not None and first in roles.prepositions and first != "of"
        before = [k for k, earlier in enumerate(merged) if earlier.kind == "object" and _touch(earlier, place)]
        if place.kind == "oblique" and before and not known:
            merged[before[0]] = merged[before[0]]._replace(words=(*merged[before[0]].words, *place.words))
        else:
            merged.append(place)
    return merged


def _touch(first: Dependent, second: Dependent) -> bool:
    return bool(first.words and second.words) and first.words[-1] + 1 == second.words[0]


def subtree(words: Sequence[Any], root: int, *, without: int) -> tuple[int, ...]:
    """Words below `root`, itself included, not below `without`; punctuation and "and" at its ends are left out."""
    inside = {root}
    for _ in words:
        more = {k for k, word in enumerate(words) if word.head in inside and k != without}
        if more <= inside:
            break
        inside |= more
    lost = {k for k in range(min(inside), max(inside)) if k not in inside}
    phrase = sorted(inside) if without in lost else list(range(min(inside), max(inside) + 1))
    edge = {k for k in phrase if words[k].pos == "PUNCT" or words[k].dep == "cc"}
    while phrase and phrase[-1] in edge:
        phrase.pop()
    while phrase and phrase[0] in edge:
        phrase.pop(0)
    return tuple(phrase)
