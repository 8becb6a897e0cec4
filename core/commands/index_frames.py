"""`python -m core study index-frames FOLDER`: index a FrameNet release, so that the Frames page can search it."""

from dataclasses import asdict, replace
from typing import Any

from core.commands.output import database, tell
from core.commands.study_commands import NoOptions, Ran, command
from core.studies.frames.index_frames import STUDY
from core.studies.frames.records import IndexedSlice


def _needs_the_database(_: Any, own_options: NoOptions) -> None:
    """An index is stored, not printed: LockedError where another process holds the database."""
    with database():
        pass


def _show(ran: Ran) -> None:
    slices = IndexedSlice.among(ran.rows)
    skipped = [line for indexed in slices for line in indexed.skipped_lines]
    counted: dict[str, int] = {}
    for indexed in slices:
        counted[indexed.release] = counted.get(indexed.release, 0) + indexed.annotations
    shown = [{"release": name, "annotations": count, "skipped": len(skipped)} for name, count in counted.items()]
    replace(ran, known=ran.known | {"skipped": [asdict(line) for line in skipped]}).show(shown)
    for line in skipped[:20] if ran.form == "table" else []:
        tell(f"skipped {line.where}: {line.why}", err=True)


index_frames = command(STUDY, show=_show, ready=_needs_the_database)
