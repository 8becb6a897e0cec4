"""Class sets of attention patterns, and the codebooks of the bundled class sets.

Class sets are never edited: `ClassSet.after` applies stored changes to the bundled set (or an empty one). Each bundled
set is a file in `core.codebook.sets`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError
from .measures import CodebookMeasures, Map

TOO_SMALL = 3  # tokens; such small maps have no pattern
GREY = "#8C8C8C"  # colour of a class that was stored without one
Value = Callable[[Map, Sequence[int], bool], float]  # function of a map, its separators, and whether it is causal
# Kind of maps that a set describes, as in stored changes
CAUSAL = {"causal": True, "bidirectional": False, "any": None}


@dataclass(frozen=True)
class PatternClass:
    """A class of attention patterns.

    Attributes:
        name: lower case, as stored; title: as shown.
        eye: one-line description of the pattern.
        colour: hex, distinguishable by colour-blind people.
        key: digit that selects it; "" for none.
    """

    name: str
    title: str
    eye: str
    colour: str
    key: str


@dataclass(frozen=True)
class Border:
    """The rule that separates two classes of attention patterns.

    Attributes:
        classes: with low and with high values of the measure.
        rule: for annotators.
        measure: function of a map, its separators and whether it is causal, 0 to 1.
        said: format of a value.
        threshold: None if the codebook has none.
        own_scale: whether maps are drawn on their own colour scale.
        two_sentences: only for inputs of two sentences.
    """

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
    def rule_text(self) -> str:
        """Return the text of the rule. A note is added if each map in the figure has its own colour scale."""
        scale = "In this figure, the colours of each map range from 0 to the largest weight of the map."
        return f"{self.rule} {scale}" if self.own_scale else self.rule

    def caption(self, value: float) -> str:
        """Return the caption of an example map. `value` is the measurement of this map that the rule is based on."""
        return self.said.format(value=value)


@dataclass(frozen=True)
class Codebook:
    """A codebook that describes how to label attention patterns with a bundled class set.

    Attributes:
        blank: class of nearly uniform maps.
        labelled: folders of bundled annotations; the first one has the bundled classifier.
        rows, counted: inputs of a task that the source counted, and further statistics in the source.
        disputes: function of class, measures and number of sentences; returns why the class is doubtful, or None.
        explains: function of measures and the name of the strongest column; returns the measures with thresholds.
        draw: returns a synthetic map of a class from generator, class and length.
        borders: between classes that are often confused.
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
    """A set of attention pattern classes. Every map belongs to exactly one class.

    Attributes:
        merged: (old class name, current class).
        causal: True for maps of decoders, False for those of encoders, None for both.
        codebook: of a bundled set.
        usual: whether it is the default.
    """

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
        """Return the current name of a class, following merges. Raises InputError if the set has no such class."""
        merged, visited = dict(self.merged), set()
        while name in merged and name not in visited:
            visited.add(name)
            name = merged[name]
        if name not in self.names:
            raise InputError(
                f'A label must be one of the classes of "{self.name}" ({", ".join(self.names)}); got '
                f'"{name[:60]}". Correct the label, or add the class first.'
            )
        return name

    def present(self, name: str) -> str | None:
        """Return the current name of a class, following merges, or None if the set does not contain the class."""
        try:
            return self.resolved(name)
        except InputError:
            return None

    def named(self, name: str) -> PatternClass:
        """Return the class with the given name, following merges. Raises the error of `resolved`."""
        return self.classes[self.names.index(self.resolved(name))]

    def after(self, events: Iterable[Mapping[str, Any]]) -> "ClassSet":
        """Apply changes, oldest first, to this set of classes and return the new set. Stored labels are not rewritten.

        kind: "set" (title, source, and kind of maps as `into`), "add", "rename" (title, description, colour or key),
        "merge" or "delete".
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
