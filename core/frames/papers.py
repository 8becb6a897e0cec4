"""Sentence lists of the two papers: 473 by Kovaleva et al., and 23 of the GPT-2 replication.

Both have strings instead of positions. If a string occurs several times, the first occurrence is used, as in the
notebooks, and a note lists it.
"""

import json
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..reading import read_text
from .records import AnnotatedSentence, Element, FrameReading, Link, Skipped, Span, places, spaced_places


def read_list(file: str | Path) -> FrameReading:
    """Read a sentence list from Kovaleva et al. or from the GPT-2 replication. Raises InputError for other formats."""
    try:
        text = read_text(file, given=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{file} must be a readable JSON list of sentences; {error}. Check the file.") from error
    return parse_list(text, Path(file).name)


def parse_list(text: str, source: str) -> FrameReading:
    """Parse an uploaded list in one of the formats that `read_list` can read. Raises InputError for other formats."""
    rows = _checked(text, source, {"sentence"})
    if all("fes" in row for row in rows):
        return _kovaleva(_checked(text, source, {"sentence", "target", "fes"}), source)
    return _replication(_checked(text, source, {"id", "sentence", "links"}), source)


# ---------------------------------------------------------------- the two formats


def _kovaleva(rows: list[dict[str, Any]], source: str) -> FrameReading:
    sentences: list[AnnotatedSentence] = []
    notes: list[Skipped] = []
    for number, row in enumerate(rows, 1):
        text, where = row["sentence"], f"sentence {number}"
        target = _first(text, row["target"], where, "target", notes)
        elements = tuple(
            Element(f"element {k}", (_first(text, phrase, where, "element", notes),), in_core_set=True)
            for k, phrase in enumerate(row["fes"], 1)
        )
        sentences.append(AnnotatedSentence(f"k{number}", text, (target,), elements=elements, source=source))
    return FrameReading(tuple(sentences), notes=tuple(notes))


def _replication(rows: list[dict[str, Any]], source: str) -> FrameReading:
    sentences: list[AnnotatedSentence] = []
    notes: list[Skipped] = []
    for row in rows:
        text, where = row["sentence"], row["id"]
        links = tuple(
            Link(
                link["earlier"],
                (_near(text, link["earlier"], where, notes),),
                (_near(text, link["later"], where, notes),),
            )
            for link in row["links"]
        )
        targets = places(text.lower(), (row.get("target") or "").lower())
        target = (targets[0],) if targets else links[0].target
        sentences.append(AnnotatedSentence(row["id"], text, target, row.get("frame"), source=source, links=links))
    return FrameReading(tuple(sentences), notes=tuple(notes))


def _checked(text: str, source: str, needed: set[str]) -> list[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} must be a JSON list of sentences; {error}. Check the file.") from error
    rows = rows if isinstance(rows, list) else [rows]
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not needed <= row.keys():
            raise InputError(
                f"{source} must be a JSON list of objects with the fields {', '.join(sorted(needed))}; row {number} "
                "lacks a field or is no object. Correct this row."
            )
        _refuse_other_kinds(row, f"row {number} of {source}")
    return rows


def _refuse_other_kinds(row: dict[str, Any], where: str) -> None:
    links, elements = row.get("links", [{}]), row.get("fes", [])
    good = isinstance(links, list) and links and all(isinstance(link, dict) for link in links)
    texts = [row.get(name) or "" for name in ("id", "sentence", "frame", "target")]
    if good and "links" in row:
        texts += [link.get(name) for link in links for name in ("earlier", "later")]
    good = good and isinstance(elements, list) and all(isinstance(text, str) for text in [*texts, *elements])
    if not good:
        raise InputError(
            "Sentences, targets and elements must be strings, and links a list of at least one object with the strings "
            f"earlier and later; {where} has another value. Correct this row."
        )


def _first(text: str, phrase: str, where: str, role: str, notes: list[Skipped]) -> Span:
    spans = spaced_places(text, phrase)
    return _chosen(spans, text, phrase, where, role, notes)


def _near(text: str, phrase: str, where: str, notes: list[Skipped]) -> Span:
    """Match without word boundaries: the replication marks "Same" in "Sameer" words by their first token."""
    spans = places(text, phrase)
    if not spans and phrase in text:
        start = text.index(phrase)
        spans = [(start, start + len(phrase))]
    return _chosen(spans, text, phrase, where, "span", notes)


def _chosen(spans: list[Span], text: str, phrase: str, where: str, role: str, notes: list[Skipped]) -> Span:
    if not spans:
        is_not = "is not surrounded by spaces in" if phrase and phrase in text else "is not in"
        raise InputError(
            f'The {role} of {where} must occur in its sentence; "{phrase}" {is_not} "{text}". Correct the phrase.'
        )
    if len(spans) > 1:
        notes.append(
            Skipped(where, f'the {role} "{phrase}" occurs {len(spans)} times in "{text}"; the first occurrence is used')
        )
    return spans[0]
