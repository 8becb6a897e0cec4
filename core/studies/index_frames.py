"""Index a FrameNet release: read all its annotations once, as a job, so that a search takes milliseconds.

Workers read slices of the lexical units and the full texts; their rows carry the sentences as compressed JSON lines,
which `keep` writes into the store when the job is done.
"""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterator

from core.config import settings
from core.errors import InputError, JobError
from core.frames.records import Reading
from core.frames.release import Release, open_release
from core.frames.rows import write_rows
from core.store import frames, runs
from core.store.database import Database
from core.store.rows import Row
from core.studies.study import Options, Study, Unit

UNITS_A_SLICE = 400  # lexical units; about a minute of NLTK's reader
DOCUMENTS_A_SLICE = 12
DEFAULTS: Options = {"folder": None}


def _release(options: Options) -> Release:
    folder = options["folder"] or settings().framenet
    if folder is None:
        raise InputError("An index needs a FrameNet release folder; none is given: name one, or set ATLAS_FRAMENET.")
    return open_release(folder)


def units(options: Options) -> list[Unit]:
    """Slices of the lexical units (where there is a folder lu) and of the full texts."""
    release = _release(options)
    count = len(release.lexical_units) if (release.folder / "lu").is_dir() else 0
    found = [
        Unit(f"lu-{start}", {"kind": "lu", "start": start}, size=min(UNITS_A_SLICE, count - start))
        for start in range(0, count, UNITS_A_SLICE)
    ]
    return found + [
        Unit(f"text-{start}", {"kind": "text", "start": start}, size=10 * DOCUMENTS_A_SLICE)
        for start in range(0, len(release.documents), DOCUMENTS_A_SLICE)
    ]


def run(options: Options, unit: Unit) -> list[Row]:
    """One row: the slice's sentences, what was skipped, and the release it belongs to."""
    release = _release(options)
    readings = list(_readings(release, unit))
    lines = "".join(write_rows(one.sentences) for one in readings)
    return [
        {
            "release": release.name,
            "folder": str(release.folder),
            "annotations": sum(len(one.sentences) for one in readings),
            "skipped": [{"where": one.where, "why": one.why} for reading in readings for one in reading.skipped],
            "lines": base64.b64encode(zlib.compress(lines.encode(), 6)).decode(),
        }
    ]


def _readings(release: Release, unit: Unit) -> Iterator[Reading]:
    start = unit.arguments["start"]
    if unit.arguments["kind"] == "lu":
        for one in release.lexical_units[start : start + UNITS_A_SLICE]:
            yield release.exemplars(one)
    else:
        for document in release.documents[start : start + DOCUMENTS_A_SLICE]:
            yield release.full_text(document)


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """The slices as they are (the store is filled from them); while the job runs a person sees their counts."""
    return rows


def sentences_of(row: Row) -> Iterator[Row]:
    """The sentences of a slice, in our own form."""
    for line in zlib.decompress(base64.b64decode(row["lines"])).decode().splitlines():
        yield json.loads(line)


def keep(db: Database, run: str) -> dict[str, int]:
    """Write the annotations of a finished run into the store; how many each release has now.

    A release that was indexed before is replaced; a run that is kept already is left alone. Errors: JobError when the
    run is of another study.
    """
    if runs.one_run(db, run)["study"] != STUDY.name:
        raise JobError(f"Only a run of {STUDY.name} can be indexed; {run} is of another study: choose one of those.")
    known = frames.indexed_releases(db)
    if run in set(known["run"]):
        return dict(zip(known["release"], known["annotations"], strict=True))
    rows = runs.run_rows(db, run)
    counted = Counter[str]()
    for release in dict.fromkeys(row["release"] for row in rows):
        own = [row for row in rows if row["release"] == release]
        counted[release] = frames.replace_release(
            db,
            release,
            (one for row in own for one in sentences_of(row)),
            folder=own[0]["folder"],
            run=run,
            skipped=[one for row in own for one in row["skipped"]],
        )
    return dict(counted)


STUDY = Study("index-frames", DEFAULTS, units, run, summarize)
"""A FrameNet folder -> annotations in the store."""
