"""Indexed FrameNet releases, searchable by frame, lexical unit, frame element and words."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from ..errors import InputError
from .bodies import sound
from .database import Database
from .rows import Row, from_json, insert, now, to_json

MOST = 500  # sentences found by one search
_ANNOTATION = pa.schema(
    [(name, pa.string()) for name in ("release", "id", "frame", "unit")]
    + [("elements", pa.list_(pa.string())), ("text", pa.string()), ("words", pa.int32()), ("body", pa.string())]
)


def replace_release(
    db: Database, release: str, rows: Iterable[Row], *, folder: str, run: str, skipped: list[Row]
) -> int:
    """Replace all stored annotations of a FrameNet release, and return the number of new annotations."""
    with db.write() as cursor:
        cursor.execute("DELETE FROM frame_annotation WHERE release = ?", [release])
        cursor.execute("DELETE FROM frame_release WHERE release = ?", [release])
        count = insert(
            cursor,
            "frame_annotation",
            _ANNOTATION,
            (
                {
                    "release": release,
                    "id": row["id"],
                    "frame": row.get("frame") or "",
                    "unit": row.get("lexical_unit") or "",
                    "elements": sorted({element["name"] for element in row.get("elements", [])}),
                    "text": row["text"],
                    "words": len(row["text"].split()),
                    "body": to_json(row),
                }
                for row in rows
            ),
        )
        cursor.execute(
            "INSERT INTO frame_release VALUES (?, ?, ?, ?, ?, ?)",
            [release, folder, run, count, to_json(skipped), now()],
        )
    return count


def indexed_releases(db: Database) -> pd.DataFrame:
    """Return a data frame of the FrameNet releases with stored annotations, newest first."""
    return db.read("SELECT * FROM frame_release ORDER BY indexed DESC")


@dataclass(frozen=True)
class Search:
    """Search criteria for FrameNet annotations. `frame`, `unit` and `element` are case-insensitive prefixes of names,
    and `text` is any part of the sentence."""

    frame: str = ""
    unit: str = ""
    element: str = ""
    text: str = ""
    most_words: int | None = None


def find_annotations(db: Database, search: Search, *, release: str | None = None, limit: int = MOST) -> pd.DataFrame:
    """Return a data frame of at most `limit` FrameNet annotations that match search criteria, shortest sentences first.

    Raises InputError if all criteria except `most_words` are empty.
    """
    if not any(words.strip() for words in (search.frame, search.unit, search.element, search.text)):
        raise InputError(
            "A search needs a frame, a lexical unit, a frame element or words; all of these fields are empty. Fill in "
            "at least one."
        )
    hits = db.read(
        """SELECT release, id, frame, unit, elements, text, body FROM frame_annotation
           WHERE ($release IS NULL OR release = $release)
             AND starts_with(lower(frame), $frame) AND starts_with(lower(unit), $unit)
             AND ($element = '' OR len(list_filter(elements, lambda one: starts_with(lower(one), $element))) > 0)
             AND contains(lower(text), $text) AND ($words IS NULL OR words <= $words)
           ORDER BY words, text, id LIMIT $limit""",
        {
            "release": release,
            "frame": search.frame.strip().lower().replace(" ", "_"),
            "unit": search.unit.strip().lower(),
            "element": search.element.strip().lower().replace(" ", "_"),
            "text": search.text.strip().lower(),
            "words": search.most_words,
            "limit": max(1, min(limit, MOST)),
        },
    )
    named = zip(hits["id"], hits["body"], strict=True)
    fits = [sound("frame_annotation", f"the sentence {name}", {"body": body}) for name, body in named]
    return hits if all(fits) else hits[fits].reset_index(drop=True)


def skipped_of(db: Database, release: str) -> list[Row]:
    """Return the files and annotations of a FrameNet release that could not be read, with the reasons."""
    releases = db.read("SELECT skipped FROM frame_release WHERE release = ?", [release])
    texts = [
        text for text in releases["skipped"] if sound("frame_release", f"{release}'s skipped parts", {"skipped": text})
    ]
    return from_json(texts[0]) if texts else []
