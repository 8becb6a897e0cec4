"""Index of a FrameNet release. All annotations are read once, in a job, so that a search takes milliseconds."""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import pydantic.dataclasses

from ...config import settings
from ...errors import InputError
from ...frames.records import Skipped
from ...frames.release import Release, open_release
from ...frames.rows import write_sentences
from ...store import frames
from ...store.database import Database
from ...store.rows import Row
from ..contract import ChunkUnit, Done, Finished, Flag, Study, Unit
from .records import NAMED_LINES, IndexedSlice

UNITS_A_SLICE = 400  # lexical units; about a minute of NLTK's reader
DOCUMENTS_A_SLICE = 12


@pydantic.dataclasses.dataclass(frozen=True)
class IndexFramesOptions:
    """Options for indexing a FrameNet release."""

    data: Annotated[
        str | None,
        Flag(
            "folder of an unpacked FrameNet release, fndata-1.5 or fndata-1.7 (default: the folder in ATLAS_FRAMENET)",
            argument=True,
        ),
    ] = None


@dataclass(frozen=True)
class Indexed:
    """Some annotated sentences of a FrameNet release. `lines` contains them as compressed JSON lines in base64."""

    release: str
    folder: str
    annotations: int
    skipped: tuple[Skipped, ...]
    lines: str

    def sentences(self) -> Iterator[Row]:
        for line in zlib.decompress(base64.b64decode(self.lines)).decode().splitlines():
            yield json.loads(line)

    @property
    def skipped_lines(self) -> list[Row]:
        return [{"where": line.where, "why": line.why} for line in self.skipped]


@dataclass(frozen=True)
class Slices:
    """The indexed parts of a FrameNet release from one or more work units."""

    slices: tuple[Indexed, ...]


class IndexFramesStudy(Study[IndexFramesOptions, Slices]):
    """Index a FrameNet release, so that it can be searched by frame, lexical unit and element."""

    name, options, partial, arguments = "index-frames", IndexFramesOptions, Slices, ChunkUnit
    kinds = (IndexedSlice,)
    short_in = ("table", "json", "csv", "latex")
    called = "Index of FrameNet"
    counts = "lexical units"

    def units(self, options: IndexFramesOptions) -> list[Unit]:
        release = _release(options)
        count = len(release.lexical_units) if (release.folder / "lu").is_dir() else 0
        lexical = [
            Unit(
                f"lu-{start}", ChunkUnit("", "lu", start, start + UNITS_A_SLICE), size=min(UNITS_A_SLICE, count - start)
            )
            for start in range(0, count, UNITS_A_SLICE)
        ]
        return lexical + [
            Unit(f"text-{start}", ChunkUnit("", "text", start, start + DOCUMENTS_A_SLICE), size=10 * DOCUMENTS_A_SLICE)
            for start in range(0, len(release.documents), DOCUMENTS_A_SLICE)
        ]

    def run(self, options: IndexFramesOptions, unit: Unit) -> Done[Slices]:
        release = _release(options)
        some: ChunkUnit = unit.arguments
        if some.inputs == "lu":
            readings = [release.exemplars(one) for one in release.lexical_units[some.start : some.stop]]
        else:
            readings = [release.full_text(document) for document in release.documents[some.start : some.stop]]
        lines = "".join(write_sentences(reading.sentences) for reading in readings)
        indexed = Indexed(
            release.name,
            str(release.folder),
            sum(len(reading.sentences) for reading in readings),
            tuple(line for reading in readings for line in reading.skipped),
            base64.b64encode(zlib.compress(lines.encode(), 6)).decode(),
        )
        return Done(Slices((indexed,)))

    def results(self, options: IndexFramesOptions, merged: Slices) -> list[IndexedSlice]:
        return [
            IndexedSlice(
                release=piece.release, folder=piece.folder, annotations=piece.annotations, skipped=piece.skipped_lines
            )
            for piece in merged.slices
        ]

    def keep(self, db: Database, run: Finished[IndexFramesOptions, Slices]) -> None:
        slices = [piece for part in run.partials() for piece in part.slices]
        if not slices:
            raise InputError(
                "An index of FrameNet cannot be imported from a result file. Index the release again while no other "
                "process has the database open."
            )
        for release in dict.fromkeys(piece.release for piece in slices):
            pieces = [piece for piece in slices if piece.release == release]
            frames.replace_release(
                db,
                release,
                (sentence for piece in pieces for sentence in piece.sentences()),
                folder=pieces[0].folder,
                run=run.run,
                skipped=[line for piece in pieces for line in piece.skipped_lines],
            )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        slices = IndexedSlice.among(rows)
        skipped, counted = sum(len(indexed.skipped_lines) for indexed in slices), Counter[str]()
        for indexed in slices:
            counted[indexed.release] += indexed.annotations
        return [[{"release": name, "annotations": count, "skipped": skipped} for name, count in counted.items()]]

    def warnings(self, rows: Sequence[Row]) -> list[str]:
        skipped = [line for indexed in IndexedSlice.among(rows) for line in indexed.skipped_lines]
        return [f"The study skipped {line.where}: {line.why}" for line in skipped[:NAMED_LINES]]


STUDY = IndexFramesStudy()


def _release(options: IndexFramesOptions) -> Release:
    folder = options.data or settings().framenet
    if folder is None:
        raise InputError(
            "Indexing FrameNet needs the folder of a release; got none. Name a folder, or set the variable "
            "ATLAS_FRAMENET."
        )
    return open_release(folder)
