"""FrameNet releases, read through NLTK: frames, lexical units, exemplar sentences, full texts.

The reader of NLTK refuses XML entities, huge files, and files that other accounts can write. Files that it rejects are
skipped and listed.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from .. import config
from ..errors import InputError
from .records import AnnotatedSentence, Element, FrameReading, Skipped, Span, Spans

_INDEX_FILES = ("frameIndex.xml", "luIndex.xml", "fulltextIndex.xml", "frRelation.xml", "semTypes.xml")
_REFUSED = (PermissionError, UnboundLocalError)  # NLTK raises the second while reporting the first


class LexicalUnit(NamedTuple):
    """A lexical unit of FrameNet with its ID, its name (such as "agitated.a") and its frame."""

    number: int
    name: str
    frame: str


class Document(NamedTuple):
    """A full text of FrameNet with its ID and its file name."""

    number: int
    name: str


@dataclass(frozen=True)
class Frame:
    """A FrameNet frame, with the coreness of each element and the core sets of the frame."""

    name: str
    elements: dict[str, str]
    core_sets: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def in_core_sets(self) -> frozenset[str]:
        return frozenset(name for core_set in self.core_sets for name in core_set)


class Release:
    """An open FrameNet release, whose files are read on demand."""

    def __init__(self, folder: Path, reader: Any) -> None:
        self.folder, self._reader = folder, reader
        self._frames: dict[str, Frame] = {}

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def lexical_units(self) -> tuple[LexicalUnit, ...]:
        """Return all lexical units of the release, in the order of its index."""
        entries = self._reader._lu_idx.values()
        return tuple(
            LexicalUnit(entry["ID"], entry["name"], entry["frameName"]) for entry in entries if "frameName" in entry
        )

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        return tuple(Document(number, document.filename) for number, document in self._reader._fulltext_idx.items())

    @cached_property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(sorted(entry["name"] for entry in self._reader._frame_idx.values()))

    def frame(self, name: str) -> Frame:
        """Return the frame with the given name. Raises InputError if the release does not have the frame."""
        if name not in self._frames:
            try:
                facts = self._reader.frame_by_name(name)
                sets = tuple(tuple(element.name for element in core_set) for core_set in facts.FEcoreSets)
                elements = {key: element.coreType for key, element in facts.FE.items()}
            except Exception as error:
                raise InputError(
                    f'A frame must be readable in the FrameNet release; "{name}" cannot be read from {self.name} '
                    f"({_said(error)}). Choose a frame that its frameIndex.xml lists, or unpack the release again."
                ) from error
            self._frames[name] = Frame(name, elements, sets)
        return self._frames[name]

    def exemplars(self, unit: LexicalUnit) -> FrameReading:
        """Return the exemplar sentences of a lexical unit, once for each annotation set that marks a target."""
        where = f"{unit.name} (lu{unit.number}.xml)"
        try:
            readings = [
                self._annotated(sentence, aset, unit.name, unit.frame, where)
                for sentence in self._reader.lu(unit.number).exemplars
                for aset in sentence.annotationSet
                if "Target" in aset and "FE" in aset
            ]
        except Exception as error:  # any error of NLTK's reader concerns this file only
            return FrameReading((), (Skipped(where, _said(error)),))
        self._forget(unit)
        return _reading(readings)

    def full_text(self, document: Document) -> FrameReading:
        """Return the annotated targets in a full text. If NLTK cannot read the document, it is listed as skipped."""
        try:
            readings = [
                self._annotated(sentence, aset, aset.get("luName"), aset.get("frameName"), document.name)
                for sentence in self._reader.doc(document.number).sentence
                for aset in sentence.annotationSet
                if "Target" in aset and "FE" in aset
            ]
        except Exception as error:  # for example "Unknown frame id" in two documents of release 1.5
            return FrameReading((), (Skipped(document.name, _said(error)),))
        return _reading(readings)

    def sentences(self) -> Iterator[FrameReading]:
        """Yield the annotated sentences of every lexical unit and of every full-text document in the release."""
        if (self.folder / "lu").is_dir():
            yield from (self.exemplars(unit) for unit in self.lexical_units)
        else:
            yield FrameReading((), (Skipped("lu", f"{self.name} has no folder lu with exemplar sentences"),))
        yield from (self.full_text(document) for document in self.documents)

    def _annotated(self, sentence: Any, aset: Any, unit: str, frame: str, where: str) -> "AnnotatedSentence | Skipped":
        try:
            facts = self.frame(frame)
        except InputError as error:
            return Skipped(f"{where}, annotation set {aset.ID}", str(error))
        text = sentence.text
        if stray := _stray((*((start, end) for start, end, _ in aset.FE[0]), *aset.Target), len(text)):
            return Skipped(f"{where}, annotation set {aset.ID}", f"{stray} is not a span of its text")
        spans: dict[str, list[Span]] = {}
        for start, end, name in aset.FE[0]:  # only the first layer of elements, as in the notebook
            spans.setdefault(name, []).append((start, min(end, len(text))))
        elements = tuple(
            Element(name, tuple(parts), facts.elements.get(name), name in facts.in_core_sets)
            for name, parts in spans.items()
        )
        target: Spans = tuple((start, min(end, len(text))) for start, end in aset.Target)
        return AnnotatedSentence(f"{self.name}:{aset.ID}", text, target, frame, unit, elements, source=where)

    def _forget(self, unit: LexicalUnit) -> None:
        """Free memory: NLTK stores the sentences of every unit that it read."""
        from nltk.corpus.reader.framenet import Future  # 1.3 s at start

        entry = self._reader._lu_idx[unit.number]
        entry["subCorpus"] = Future(lambda: self._reader._lu_file(entry).subCorpus)
        entry["exemplars"] = Future(lambda: self._reader._lu_file(entry).exemplars)


def _stray(spans: Iterable[tuple[Any, Any]], length: int) -> str:
    """Return the first invalid span of a text, or "". Ends may exceed the text, as in some releases."""
    for start, end in spans:
        if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= min(end, length)):
            return f"{str(start)[:20]} to {str(end)[:20]}"
    return ""


def open_release(folder: str | Path) -> Release:
    """Open a FrameNet release folder, such as fndata-1.7. Raises InputError if NLTK cannot read the folder."""
    root = _root(config.inside_whole(folder))
    _refuse_writable(root)
    import nltk.data  # 1.3 s at start
    from nltk.corpus.reader.framenet import FramenetCorpusReader  # 1.3 s at start

    if str(root) not in nltk.data.path:  # NLTK only reads below these folders
        nltk.data.path.append(str(root))
    try:
        reader = FramenetCorpusReader(str(root), [])
        reader.buildindexes()
        release = Release(root, reader)
        known = release.frame_names, release.lexical_units, release.documents  # an index without names is damaged
    except _REFUSED as error:
        raise InputError(_refusal(root, error)) from error
    except Exception as error:
        raise InputError(
            f"{root} must be a FrameNet release that NLTK can read; {_said(error)}. Unpack the release again."
        ) from error
    if not known[0]:
        raise InputError(
            f"A FrameNet release must have frames; frameIndex.xml of {root} has none. Unpack the release again."
        )
    return release


def _root(folder: Path) -> Path:
    """Return the folder with the indexes: the given one, or the only subfolder with them."""
    if not folder.is_dir():
        raise InputError(
            f"A FrameNet release must be a folder; {folder} is not a folder. Give a folder such as fndata-1.7."
        )
    inside = [index.parent for index in sorted(folder.glob("*/frameIndex.xml"))]
    root = inside[0] if len(inside) == 1 and not (folder / "frameIndex.xml").is_file() else folder
    missing = [name for name in _INDEX_FILES if not (root / name).is_file()]
    if missing or not (root / "frame").is_dir():
        raise InputError(
            f"A FrameNet release folder must have {', '.join(_INDEX_FILES)} and frame/; {folder} lacks "
            f"{', '.join(missing) or 'frame/'}. Give the unpacked folder of a release, such as fndata-1.7."
        )
    return root.resolve()


def _refuse_writable(root: Path) -> None:
    """Find a file that other accounts can write, which NLTK refuses with an obscure error."""
    if os.name != "posix":
        return
    for path in (root, root / "frame", root / "lu", root / "fulltext", *(root / name for name in _INDEX_FILES)):
        if path.exists():
            seen = path.stat()
            if seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or seen.st_uid not in (os.geteuid(), 0):
                raise InputError(_refusal(root, PermissionError(f"{path.name} is writable by another user account")))


def _refusal(root: Path, error: BaseException) -> str:
    cause = error.__context__ if isinstance(error, UnboundLocalError) and error.__context__ else error
    return (
        f"A FrameNet release must not be writable by other accounts; {_said(cause)}. Run chmod -R go-w {root} "
        "(and chown it if it belongs to another account)."
    )


def _said(error: BaseException) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return first.rstrip(".") or type(error).__name__


def _reading(readings: list[AnnotatedSentence | Skipped]) -> FrameReading:
    return FrameReading(
        tuple(reading for reading in readings if isinstance(reading, AnnotatedSentence)),
        tuple(reading for reading in readings if isinstance(reading, Skipped)),
    )
