"""Frames that a word can evoke, and usual positions of frame elements, from bundled data or a FrameNet release."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from .. import config
from ..errors import InputError
from .records import Element, Spans
from .release import Release

# ---------------------------------------------------------------- lemmas


# base form and irregular forms; general knowledge, written for this project
_IRREGULAR = """be am is are was were been being|arise arose arisen|awake awoke awoken|bear bore borne born|beat beaten|
become became|begin began begun|bend bent|bet betted|bind bound|bite bit bitten|bleed bled|blow blew blown|
break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|
cling clung|come came|creep crept|deal dealt|dig dug|do does did done|draw drew drawn|dream dreamt|drink drank drunk|
drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung|
fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|
get got gotten|give gave given|go goes went gone|grind ground|grow grew grown|hang hung|have has had|hear heard|
hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|leap leapt|learn learnt|leave left|
lend lent|lie lay lain|light lit|lose lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|
rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|
shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|
speak spoke spoken|speed sped|spell spelt|spend spent|spill spilt|spin spun|spoil spoilt|spring sprang sprung|
stand stood|steal stole stolen|stick stuck|sting stung|stride strode|strike struck|string strung|strive strove striven|
swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|
tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|
weep wept|win won|wind wound|withdraw withdrew withdrawn|write wrote written|man men|woman women|child children|
foot feet|tooth teeth|mouse mice|person people|wife wives|life lives|knife knives|leaf leaves|bad worse worst|
good better best|die dying|lie lying|tie tying"""
_INFLECTED_ENDINGS = (
    ("ies", ("y", "ie")),
    ("ied", ("y", "ie")),
    ("ing", ("", "e")),
    ("ed", ("", "e")),
    ("es", ("", "e")),
    ("s", ("",)),
    ("est", ("", "e")),
    ("er", ("", "e")),
    ("iest", ("y",)),
    ("ier", ("y",)),
)


@lru_cache(maxsize=1)
def _irregular() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for entry in _IRREGULAR.replace("\n", "").split("|"):
        base, *forms = entry.split()
        for form in forms:
            table.setdefault(form, []).append(base)
    return table


def lemmas(word: str) -> tuple[str, ...]:
    """Return every possible lemma of a word, such as run, runn and runne for "running". Some of them may not be
    words."""
    word = word.lower().replace("’", "'")
    forms = [word, *_irregular().get(word, ())]
    for ending, stems in _INFLECTED_ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)]
            forms += [stem + added for added in stems]
            if len(stem) > 2 and stem[-1] == stem[-2]:
                forms.append(stem[:-1])
    return tuple(dict.fromkeys(forms))


BUNDLED = config.SAMPLES / "frames" / "lexicon.json"
_POS = {"VERB": "v", "AUX": "v", "NOUN": "n", "PROPN": "n", "ADJ": "a", "ADV": "adv", "ADP": "prep", "NUM": "num"}


@dataclass(frozen=True)
class Roles:
    """The core elements of a FrameNet frame, and the most frequent core element at each grammatical position.

    subject: FrameNet's external argument; object: direct object; prepositions: after "about", "with", ...
    """

    frame: str
    core: tuple[str, ...]
    core_sets: tuple[tuple[str, ...], ...] = ()
    subject: str | None = None
    object: str | None = None
    prepositions: Mapping[str, str] = field(default_factory=dict)

    def at(self, place: str, preposition: str = "") -> str | None:
        """Return the most frequent core element at a position: "subject", "object" or "oblique"; None if unknown."""
        if place == "oblique":
            return self.prepositions.get(preposition.lower())
        return {"subject": self.subject, "object": self.object}.get(place)

    def element(self, name: str, spans: Spans) -> Element:
        """Create a frame element. Its coreness is "Core" if it is a core element of this frame, otherwise None."""
        if name not in self.core:
            return Element(name, spans)
        return Element(name, spans, "Core", any(name in core_set for core_set in self.core_sets))


@dataclass(frozen=True)
class Lexicon:
    """A lexicon of lexical units with the frames that they evoke, the most frequent frame first."""

    source: str
    units: Mapping[str, tuple[str, ...]]
    roles: Mapping[str, Roles]
    release: Release | None = None

    @cached_property
    def of_several_words(self) -> Mapping[str, tuple[str, ...]]:
        """Group the multi-word lexical units by their first word. For example, "set up.v" is in the group "set"."""
        units = defaultdict[str, list[str]](list)
        for unit in self.units:
            first, *rest = unit.rpartition(".")[0].split()
            if rest:
                units[first].append(unit)
        return {first: tuple(names) for first, names in units.items()}

    def frames(self, lemma: str, upos: str | None = None) -> tuple[tuple[str, str], ...]:
        """Return the (lexical unit, frame) pairs for a lemma. Units whose Universal POS tag is `upos` come first."""
        lemma = lemma.lower()
        asked = f"{lemma}.{_POS.get(upos or '', '')}"
        names = sorted((name for name in self._named(lemma)), key=lambda name: (name != asked, name))
        return tuple((name, frame) for name in names for frame in self.units[name])

    def of(self, frame: str) -> Roles:
        """Return the core elements of a frame and, if known, the most frequent one at each grammatical position.
        Raises InputError for an unknown frame."""
        if frame in self.roles:
            return self.roles[frame]
        if self.release is None:
            raise InputError(
                f'A frame must be in the bundled data ({len(self.roles)} frames); got "{frame}". Choose another '
                "frame, or set ATLAS_FRAMENET to a FrameNet release folder."
            )
        facts = self.release.frame(frame)
        core = tuple(name for name, kind in facts.elements.items() if kind.startswith("Core"))
        return Roles(frame, core, facts.core_sets)

    def _named(self, lemma: str) -> Iterable[str]:
        return (f"{lemma}.{end}" for end in _ENDINGS if f"{lemma}.{end}" in self.units)


_ENDINGS = ("v", "n", "a", "adv", "prep", "num", "art", "c", "intj", "scon")


@lru_cache(maxsize=1)
def bundled_lexicon() -> Lexicon:
    """Load the bundled lexicon, which contains the most frequently annotated lexical units in FrameNet 1.5."""
    facts = json.loads(BUNDLED.read_text(encoding="utf-8"))
    roles = {
        name: Roles(
            name,
            tuple(frame["core"]),
            tuple(map(tuple, frame["core_sets"])),
            frame.get("subject"),
            frame.get("object"),
            frame.get("prepositions", {}),
        )
        for name, frame in facts["frames"].items()
    }
    return Lexicon(facts["source"], {name: tuple(frames) for name, frames in facts["lexical_units"].items()}, roles)


def release_lexicon(release: Release) -> Lexicon:
    """Create the lexicon of a FrameNet release. Grammatical positions of frame elements come from the bundled data."""
    units = defaultdict(set)
    for unit in release.lexical_units:
        units[unit.name].add(unit.frame)
    names = set(release.frame_names)
    known = {name: roles for name, roles in bundled_lexicon().roles.items() if name in names}
    return Lexicon(
        f"{release.name}, {len(units):,} lexical units",
        {name: _commonest_first(name, frames) for name, frames in units.items()},
        known,
        release,
    )


def _commonest_first(unit: str, frames: set[str]) -> tuple[str, ...]:
    """Sort frames by frequency in the bundled data, others last."""
    known = bundled_lexicon().units.get(unit, ())
    return (*(frame for frame in known if frame in frames), *sorted(frames - set(known)))


# ---------------------------------------------------------------- frame elements of a parsed sentence


SUBJECTS = frozenset({"nsubj", "nsubjpass", "nsubj:pass", "csubj", "csubjpass", "csubj:pass", "nsubj:outer", "expl"})
OBJECTS = frozenset({"obj", "dobj", "iobj", "dative", "ccomp"})
OBLIQUES = frozenset({"obl", "obl:tmod", "obl:npmod", "obl:agent", "obl:arg", "prep", "agent", "nmod", "nmod:npmod"})
COMPLEMENTS = frozenset({"xcomp", "acomp", "oprd", "attr"})
BEFORE_NOUN = frozenset({"amod", "compound", "nmod:poss", "poss", "nummod"})  # elements of a noun that precede it
ATTRIBUTES = BEFORE_NOUN | {"det", "advmod", "det:predet"}  # of which the noun is an element
RAISED = frozenset({*COMPLEMENTS, "advcl", "acl", "conj", "pcomp"})  # their subject is that of their governor
RELATIVE = frozenset({"acl:relcl", "relcl"})
WEATHER = frozenset(
    {"rain", "snow", "hail", "drizzle", "pour", "thunder", "freeze", "sleet"}
)  # verbs whose "it" has no referent
PLACES = ("subject", "object", "complement", "oblique", "noun", "modifier")


class Proposal(NamedTuple):
    """A proposed frame element, with its name, words and grammatical position."""

    name: str | None
    words: tuple[int, ...]
    place: str


class Dependent(NamedTuple):
    """The words of a phrase that depends on a target word. `head` is the syntactic head of the phrase."""

    kind: str
    head: int
    words: tuple[int, ...]


def propose_elements(tagged: Any, target: int, roles: Roles | None) -> list[Proposal]:
    """Propose frame elements for a target word. Each phrase gets the most frequent core element at its
    grammatical position, if known."""
    words, proposals = tagged.words, list[Proposal]()
    taken: set[int] = set()
    # Dependents of a target in the order of PLACES; a target without a subject takes one from its context
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
    for place in _merged(words, sorted(own, key=lambda place: (PLACES.index(place.kind), place.head)), roles):
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
    """Return the index of the syntactic head of a target that has several words; -1 if the target is empty."""
    return next((k for k in chosen if words[k].head not in chosen or words[k].head == k), next(iter(chosen), -1))


def _named(roles: Roles | None, kind: str, head: Any, preposition: str) -> str | None:
    if roles is None:
        return None
    usual = "object" if "pass" in head.dep else kind  # FrameNet's data mostly count active sentences
    places = {"complement": "object", "noun": "subject"}
    return roles.at(places.get(usual, usual), preposition) or roles.at(kind, preposition)


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
    """Return the words of a dependent; for a relative pronoun also its antecedent."""
    phrase = subtree(words, k, without=target)
    about = words[target].head
    if words[target].dep in RELATIVE and words[k].text.lower() in {"who", "which", "that", "whom"}:
        return (*subtree(words, about, without=target), *phrase)
    return phrase


def _is_nobody(words: Sequence[Any], number: int, target: int) -> bool:
    """Return whether a subject has no referent: "there", and "it" of the weather."""
    it_rains = words[number].text.lower() == "it" and bool(WEATHER & set(lemmas(words[target].text)))
    return words[number].dep == "expl" or it_rains


def _borrowed(words: Sequence[Any], target: int) -> Iterator[Dependent]:
    """Yield the implicit subject of a target: that of its governor, or the noun that it describes."""
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
    """Return a noun phrase without the preposition before it."""
    phrase = subtree(words, noun, without=without)
    return tuple(k for k in phrase if not (words[k].dep in {"case", "mark"} and words[k].head == noun and k < noun))


def _of_an_attribute(words: Sequence[Any], target: int) -> Iterator[Dependent]:
    """Yield the noun after an adjective, number or participle, without the words before it."""
    above = words[target].head
    if words[target].dep in ATTRIBUTES and above > target and words[above].pos in {"NOUN", "PROPN"}:
        phrase = tuple(k for k in subtree(words, above, without=target) if k > target)
        yield Dependent("noun", above, phrase)


def _of_a_preposition(words: Sequence[Any], target: int) -> Iterator[Dependent]:
    """Yield the object of a preposition and the noun that it attaches to, or the clause of a conjunction."""
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
    """Join a phrase to the object before it, unless the frame has an element for its preposition."""
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
    """Return the words of the subtree at `root`. The subtree at `without` and punctuation at the ends are left out."""
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
