"""This program's format for annotated sentences: one JSON object on each line, spans as characters [start, end).

{"id": "a1", "text": "...", "target": [[3, 9]], "frame": "Arriving", "lexical_unit": "arrive.v",
"elements": [{"name": "Theme", "spans": [[0, 2]], "coreness": "Core", "core_set": true}]}

Only text and target are required. "links" lists other pairs to measure as {"name", "element": spans, "target": spans}.
A single span may be written as [start, end].
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import config
from ..errors import InputError
from ..reading import json_line, lines_of, read_text
from .records import AnnotatedSentence, Element, FrameReading, Link, Skipped, Spans, check

BUNDLED_SENTENCES = config.SAMPLES / "frames" / "sentences.jsonl"


def read_sentences(file: str | Path) -> FrameReading:
    """Read annotated sentences from a JSONL file, skipping invalid lines. Raises InputError if no line is valid."""
    try:
        text = read_text(file, given=True)
    except OSError as error:
        raise InputError(f"{file} must be a readable UTF-8 text file; {error}. Check the file.") from error
    return parse_sentences(text, source=Path(file).name)


def parse_sentences(text: str, *, source: str = "rows") -> FrameReading:
    """Parse annotated sentences from pasted or uploaded JSONL. Invalid lines are skipped and listed with the reason."""
    sentences, skipped, seen = [], [], set()
    for number, line in enumerate(lines_of(text), 1):
        if not line.strip():
            continue
        try:
            sentence = _sentence(line, number, source)
            if sentence.id in seen:
                raise InputError(
                    f'Every sentence must have a unique ID; the ID "{sentence.id}" occurs twice. Change one of the '
                    "two IDs."
                )
        except InputError as error:
            skipped.append(Skipped(f"row {number}", str(error)))
        else:
            seen.add(sentence.id)
            sentences.append(sentence)
    if not sentences:
        problem = f"{skipped[0].where}: {skipped[0].why}" if skipped else "it is empty. Add a sentence."
        raise InputError(f"{source} must contain at least one annotated sentence in the JSON Lines format; {problem}")
    return FrameReading(tuple(sentences), tuple(skipped))


def write_sentences(sentences: Iterable[AnnotatedSentence]) -> str:
    """Write annotated sentences as JSONL that `parse_sentences` reads back unchanged, except for `source`."""
    return "".join(json.dumps(_row(sentence), ensure_ascii=False) + "\n" for sentence in sentences)


# ---------------------------------------------------------------- parsing a line


def _sentence(line: str, number: int, source: str) -> AnnotatedSentence:
    try:
        row = json_line(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"A row of annotations must be one JSON object; this row cannot be parsed ({error}). Correct the row."
        ) from error
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise InputError(
            'A row of annotations must be a JSON object with a string in the field "text"; this row has none. Add the '
            "text."
        )
    elements = row.get("elements", [])
    if not isinstance(elements, list) or not all(isinstance(element, dict) for element in elements):
        raise InputError(
            f'The field "elements" must be a list of objects with a name and spans; got {str(elements)[:40]}. Correct '
            "the list."
        )
    return check(
        AnnotatedSentence(
            id=str(number if row.get("id") is None else row["id"]),
            text=row["text"],
            target=_spans(row.get("target"), "target"),
            frame=_name(row, "frame"),
            lexical_unit=_name(row, "lexical_unit"),
            source=source,
            elements=tuple(_element(element) for element in elements),
            links=_links(row),
        )
    )


def _element(row: dict[str, Any]) -> Element:
    name, core_set = row.get("name"), row.get("core_set")
    if not isinstance(name, str) or not name:
        raise InputError(
            "Every frame element must have a name; one element has none. Add the name that FrameNet gives it."
        )
    if not isinstance(core_set, bool | None):
        raise InputError(
            f'The field "core_set" of an element must be true, false or absent; {name} has {core_set!r}. Correct '
            "the field."
        )
    return Element(name, _spans(row.get("spans"), name), _name(row, "coreness"), core_set)


def _links(row: dict[str, Any]) -> tuple[Link, ...] | None:
    """Return explicit links; None if the links are those between target and elements."""
    given = row.get("links")
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(link, dict) for link in given):
        raise InputError(
            f'The field "links" must be a list of objects with element and target spans; got {str(given)[:40]}. '
            "Correct the list."
        )
    return tuple(
        Link(str(link.get("name", "")), _spans(link.get("element"), "element"), _spans(link.get("target"), "target"))
        for link in given
    )


def _name(row: dict[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f'The field "{key}" must be a string or be left out; got {value!r}. Correct the field.')
    return value


def _spans(value: Any, name: str) -> Spans:
    """Return the spans in a field written as [[start, end], ...] or [start, end]."""
    listed = [value] if isinstance(value, list) and len(value) == 2 and not isinstance(value[0], list) else value
    good = isinstance(listed, list) and all(
        isinstance(span, list) and len(span) == 2 and all(type(x) is int for x in span) for span in listed
    )
    if not good:
        raise InputError(
            f'Spans must be lists of character offsets, [[start, end], ...]; "{name}" has {value!r}. Correct the spans.'
        )
    return tuple((span[0], span[1]) for span in listed)


def _row(sentence: AnnotatedSentence) -> dict[str, Any]:
    row: dict[str, Any] = {"id": sentence.id, "text": sentence.text, "target": [list(span) for span in sentence.target]}
    named = {"frame": sentence.frame, "lexical_unit": sentence.lexical_unit}
    row |= {key: value for key, value in named.items() if value is not None}
    row["elements"] = [_element_row(element) for element in sentence.elements]
    if sentence.links is not None:
        row["links"] = [
            {"name": link.name, "element": [list(x) for x in link.element], "target": [list(x) for x in link.target]}
            for link in sentence.links
        ]
    return row


def _element_row(element: Element) -> dict[str, Any]:
    row: dict[str, Any] = {"name": element.name, "spans": [list(span) for span in element.spans]}
    known = {"coreness": element.coreness, "core_set": element.in_core_set}
    return row | {key: value for key, value in known.items() if value is not None}
