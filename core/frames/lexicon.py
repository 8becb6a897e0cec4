"""Which frames a word may evoke, and how a frame's elements are usually placed: bundled facts, or a release's index."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from .. import config
from ..errors import InputError
from .records import Element, Spans
from .release import Release

BUNDLED = config.SAMPLES / "frames" / "lexicon.json"
_POS = {"VERB": "v", "AUX": "v", "NOUN": "n", "PROPN": "n", "ADJ": "a", "ADV": "adv", "ADP": "prep", "NUM": "num"}


@dataclass(frozen=True)
class Roles:
    """A frame's core elements, its FEcoreSets, and the element most often annotated in each place.

    subject: FrameNet's external argument. object: direct object. prepositions: after "about", "with", ...
    """

    frame: str
    core: tuple[str, ...]
    core_sets: tuple[tuple[str, ...], ...] = ()
    subject: str | None = None
    object: str | None = None
    prepositions: Mapping[str, str] = field(default_factory=dict)

    def at(self, place: str, preposition: str = "") -> str | None:
        """The usual element of a place ("subject", "object", "oblique"), or None."""
        if place == "oblique":
            return self.prepositions.get(preposition.lower())
        return {"subject": self.subject, "object": self.object}.get(place)

    def element(self, name: str, spans: Spans) -> Element:
        """An element with what the frame says about its coreness; an unknown name is taken as it is."""
        if name not in self.core:
            return Element(name, spans)
        return Element(name, spans, "Core", any(name in core_set for core_set in self.core_sets))


@dataclass(frozen=True)
class Lexicon:
    """Lexical units and their frames, the commonest first. source: where the facts are from, with the licence."""

    source: str
    units: Mapping[str, tuple[str, ...]]
    roles: Mapping[str, Roles]
    release: Release | None = None

    @cached_property
    def of_several_words(self) -> Mapping[str, tuple[str, ...]]:
        """Units of several words by the first of them: "set" gives "set up.v"."""
        units = defaultdict[str, list[str]](list)
        for unit in self.units:
            first, *rest = unit.rpartition(".")[0].split()
            if rest:
                units[first].append(unit)
        return {first: tuple(names) for first, names in units.items()}

    def frames(self, lemma: str, upos: str | None = None) -> tuple[tuple[str, str], ...]:
        """(lexical unit, frame) of a lemma, those of the part of speech first; upos as spaCy and UD write it."""
        lemma = lemma.lower()
        asked = f"{lemma}.{_POS.get(upos or '', '')}"
        names = sorted((name for name in self._named(lemma)), key=lambda name: (name != asked, name))
        return tuple((name, frame) for name in names for frame in self.units[name])

    def of(self, frame: str) -> Roles:
        """Facts of a frame; a frame of a release that the bundled facts lack has no usual places."""
        if frame in self.roles:
            return self.roles[frame]
        if self.release is None:
            raise InputError(
                f'A frame must be in the bundled facts; "{frame}" is not among these {len(self.roles)}: '
                "choose another, or set ATLAS_FRAMENET to a FrameNet release folder."
            )
        facts = self.release.frame(frame)
        core = tuple(name for name, kind in facts.elements.items() if kind.startswith("Core"))
        return Roles(frame, core, facts.core_sets)

    def _named(self, lemma: str) -> Iterable[str]:
        return (f"{lemma}.{end}" for end in _ENDINGS if f"{lemma}.{end}" in self.units)


_ENDINGS = ("v", "n", "a", "adv", "prep", "num", "art", "c", "intj", "scon")


@lru_cache(maxsize=1)
def bundled_lexicon() -> Lexicon:
    """The facts that come with the project: the lexical units that FrameNet 1.5 annotates most."""
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
    """A release's whole index; usual places come from the bundled facts where the frame is the same."""
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
    """In the order of the bundled facts, which know how often each is annotated; then the others."""
    known = bundled_lexicon().units.get(unit, ())
    return (*(frame for frame in known if frame in frames), *sorted(frames - set(known)))
