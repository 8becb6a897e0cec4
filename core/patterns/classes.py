"""The classes a person sorts attention maps into: the paper's five, the GPT-2 replication's four, and one's own.

A class is described by what the eye sees, because that line stands on the labelling page and decides the labels.
Sets are never edited: what changes them is an event, replayed over the shipped set (or an empty one) by
`ClassSet.after`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.errors import InputError

NEARLY_UNIFORM = 0.1  # maps whose largest weight stays below it are blank on the absolute scale
TOO_SMALL = 3  # tokens; a map of so few has no pattern: uniform ones look like columns, squares and diagonals alike
GREY = "#8C8C8C"  # of a class that was stored without a colour
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
class ClassSet:
    """Classes that exclude each other and cover every map. merged: old class name -> the class it now is. causal: whose
    maps it describes, decoders' (True), encoders' (False), or both (None). source: where the classes come from."""

    name: str
    title: str
    source: str
    classes: tuple[PatternClass, ...]
    merged: tuple[tuple[str, str], ...] = ()
    causal: bool | None = None

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


BERT = ClassSet(
    "bert",
    "BERT: five classes",
    "Kovaleva et al. 2019, section 4.1",
    (
        PatternClass(
            "vertical",
            "Vertical",
            "One or more dark columns: most queries look at the same few keys, mainly [CLS] and [SEP].",
            "#0072B2",
            "1",
        ),
        PatternClass(
            "diagonal",
            "Diagonal",
            "A dark line along the main diagonal or beside it: each token looks at itself, the previous or "
            "the next one.",
            "#E69F00",
            "2",
        ),
        PatternClass(
            "vertical+diagonal",
            "Vertical + Diagonal",
            "Both at once: dark columns and a diagonal line, each plain to see.",
            "#009E73",
            "3",
        ),
        PatternClass(
            "block",
            "Block",
            "Squares on the diagonal: tokens look at their own sentence of the two, evenly, and hardly at the other.",
            "#CC79A7",
            "4",
        ),
        PatternClass(
            "heterogeneous",
            "Heterogeneous",
            "None of the others: scattered spots, or nearly uniform (largest weight below "
            f"{NEARLY_UNIFORM}), which stays blank on the absolute scale.",
            "#999999",
            "5",
        ),
    ),
    causal=False,
)

GPT2 = ClassSet(
    "gpt2",
    "GPT-2: four classes",
    "Lalwani 2024, task 1",
    (
        PatternClass(
            "diagonal",
            "Diagonal",
            "A dark line along the diagonal or beside it: attention to the token itself or the few before it.",
            "#E69F00",
            "1",
        ),
        PatternClass("block", "Block", "Some heavy vertical blocks of attention in both sentences.", "#CC79A7", "2"),
        PatternClass(
            "majority",
            "Majority (M1)",
            "Most or all attention lies in sentence 1, its first token included; of a single sentence, in its "
            "first half.",
            "#0072B2",
            "3",
        ),
        PatternClass(
            "overall",
            "Overall",
            "Attention all over, whatever its darkness; nearly uniform maps and a clear line on the first and "
            "last token of sentence 1 besides other weight belong here.",
            "#999999",
            "4",
        ),
    ),
    causal=True,
)

SHIPPED = {one.name: one for one in (BERT, GPT2)}
COLOURS = {member.name: member.colour for shipped in SHIPPED.values() for member in shipped.classes}  # by class


def shipped_set(*, causal: bool) -> ClassSet:
    """The shipped set that describes the maps of decoders (causal) or of encoders."""
    return next(described for described in SHIPPED.values() if described.causal == causal)


def class_set(name: str, events: Iterable[Mapping[str, Any]] = ()) -> ClassSet:
    """A shipped or a person's own set by name, after its events; InputError when nobody made it."""
    class_events = [event for event in events if event["class_set"] == name]
    if name in SHIPPED:
        return SHIPPED[name].after(class_events)
    if not class_events:
        raise InputError(
            f'A class set must be one of {", ".join(SHIPPED)} or one you made; "{name[:60]}" is neither: '
            "choose another or add its classes first."
        )
    return ClassSet(name, name, "made by hand", ()).after(class_events)
