"""`python -m core study index-frames FOLDER`: index a FrameNet release, so that the Frames page can search it."""

from dataclasses import replace
from typing import Any

import typer

from core.commands.declared import NoOptions, Ran, command
from core.commands.output import database
from core.studies.index_frames import STUDY


def _needs_the_database(_: Any, own: NoOptions) -> None:
    """An index is stored, not printed: HeldError where another process holds the database."""
    with database(beside=False):
        pass


def _show(ran: Ran) -> None:
    skipped = [one for row in ran.rows for one in row["skipped"]]
    counted: dict[str, int] = {}
    for row in ran.rows:
        counted[row["release"]] = counted.get(row["release"], 0) + row["annotations"]
    shown = [{"release": name, "annotations": count, "skipped": len(skipped)} for name, count in counted.items()]
    replace(ran, known=ran.known | {"skipped": skipped}).show(shown)
    for one in skipped[:20] if ran.form == "table" else []:
        typer.echo(f"skipped {one['where']}: {one['why']}", err=True)


index_frames = command(STUDY, show=_show, ready=_needs_the_database)
