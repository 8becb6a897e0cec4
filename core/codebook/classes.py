"""Classes that a person sorts attention maps into, and what a shipped set says besides: its codebook.

A class is described by what the eye sees, because that line stands on the labelling page and decides the labels.
Sets are never edited: what changes them is an event, replayed over the shipped set (or an empty one) by
`ClassSet.after`. The shipped ones are in `core.codebook.sets`, a file each.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError
from .measures import CodebookMeasures, Map

TOO_SMALL = 3  # tokens; a map of so few has no pattern: uniform ones look like columns, squares and diagonals alike
GREY = "#8C8C8C"  # of a class that was stored without a colour
Value = Callable[[Map, Sequence[int], bool], float]  # of a map, its separators, and whether it is causal
CAUSAL = {"causal": True, "bidirectional": False, "any": None}  # whose maps a set describes, as events say it


@dataclass(frozen=True)
class PatternClass:
    """One class. name: lower case, as stored. title: as shown. eye: one line saying what the eye sees.

    colour: hex, told apart by colour-blind eyes (Okabe and Ito). key: the digit that picks it, "" for none.
    """

    name: str
    title: str
    eye: str
    colour: str
    key: str


@dataclass(frozen=True)
class Border:
    """What tells two classes apart. classes: on the low side of the measurement, then on the high one. rule: for the
    eye. measure: of a map, its separators and whether it is causal, 0 to 1; said: how it is told. threshold: None where
    the codebook has none. own_scale: drawn on the map's own scale. two_sentences: only of such inputs."""

    name: str
    class_set: str
    classes: tuple[str, str]
    rule: str
    measure: Value
    said: str
    threshold: float | None = None
    own_scale: bool = False
    two_sentences: bool = False

    @property
    def told(self) -> str:
        """The rule, and how its maps are drawn."""
        return f"{self.rule} Each map is drawn on its own scale." if self.own_scale else self.rule

    def caption(self, value: float) -> str:
        """What stands under a map."""
        return self.said.format(value=value)


@dataclass(frozen=True)
class Codebook:
    """What a shipped set says beside its classes.

    blank: the class of nearly uniform maps. labelled: its folders of bundled annotations, the first with the classifier
    that ships. rows: inputs of a task that its source counted; counted: what else that source counts, as a sentence.
    disputes: why a class, given to a map of these measures and number of sentences, is disputed, or None. explains:
    these measures of a map beside the thresholds, in a line; its second argument names the strongest column. draw: a
    map of `length` tokens as a class's words say, by a generator. borders: between classes that people confuse.
    """

    blank: str
    labelled: tuple[str, ...]
    rows: int
    disputes: Callable[[str, CodebookMeasures, int], str | None]
    explains: Callable[[CodebookMeasures, str], str]
    draw: Callable[[np.random.Generator, str, int], Map]
    borders: tuple[Border, ...]
    counted: str = ""


@dataclass(frozen=True)
class ClassSet:
    """Classes that exclude each other and cover every map. merged: old class name -> the class it now is. causal: whose
    maps it describes, decoders' (True), encoders' (False), or both (None). source: where the classes come from.
    codebook: of a shipped set. usual: whether it is taken where nobody chooses one."""

    name: str
    title: str
    source: str
    classes: tuple[PatternClass, ...]
    merged: tuple[tuple[str, str], ...] = ()
    causal: bool | None = None
    codebook: Codebook | None = None
    usual: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(pattern.name for pattern in self.classes)

    def __len__(self) -> int:
        return len(self.classes)

    def resolved(self, name: str) -> str:
        """The present name of a class, merges followed; InputError when the set never had it."""
        merged, visited = dict(self.merged), set()
        while name in merged and name not in visited:
            visited.add(name)
            name = merged[name]
        if name not in self.names:
            raise InputError(
                f'A label must be one of the classes of "{self.name}" ({", ".join(self.names)}); '
                f'"{name[:60]}" is none of them: correct it or add the class first.'
            )
        return name

    def present(self, name: str) -> str | None:
        """The present name of a class, merges followed; None when the set has it no more, or never had."""
        try:
            return self.resolved(name)
        except InputError:
            return None

    def named(self, name: str) -> PatternClass:
        """The class a name stands for now."""
        return self.classes[self.names.index(self.resolved(name))]

    def after(self, events: Iterable[Mapping[str, Any]]) -> "ClassSet":
        """The set after events, oldest first; labels are not rewritten.

        kind: "set" (its title, where it comes from and, as `into`, whose maps it describes: causal, bidirectional or
        any), "add", "rename" (another title, line, colour or key), "merge" or "delete".
        """
        now = self
        for event in events:
            now = now._changed(event)
        return now

    def _changed(self, event: Mapping[str, Any]) -> "ClassSet":
        kind, name, classes = event["kind"], event["class"], list(self.classes)
        told = {what: event[what] for what in ("title", "eye", "colour", "key") if event.get(what)}
        if kind == "set":
            causal = CAUSAL.get(event.get("into") or "")
            return replace(self, title=event["title"], source=told.get("eye", self.source), causal=causal)
        if kind == "add" and name not in self.names:
            classes.append(PatternClass(name, **{"title": name, "eye": "", "colour": GREY, "key": ""} | told))
            return replace(self, classes=tuple(classes))
        if name not in self.names or (kind == "merge" and event["into"] not in self.names):
            return self
        at, merged = self.names.index(name), self.merged
        if kind == "rename":
            classes[at] = replace(classes[at], **told)
        elif kind in ("delete", "merge"):
            del classes[at]
            merged = (*merged, (name, event["into"])) if kind == "merge" else merged
        return replace(self, classes=tuple(classes), merged=merged)
