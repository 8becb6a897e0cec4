"""`python -m core study index-frames FOLDER`: index a FrameNet release, so that the Frames page can search it."""

from typing import Annotated

import typer

from core.commands.output import Cluster, Csv, Json, Latex, Workers, follow, form_of, place, show_rows
from core.commands.patterns import database
from core.jobs import running
from core.store import runs


def index_frames(
    folder: Annotated[str | None, typer.Argument(help="unpacked fndata-1.x; default: ATLAS_FRAMENET")] = None,
    as_json: Json = False,
    csv: Csv = False,
    latex: Latex = False,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Read all annotation sets of a FrameNet release once and store them, searchable by frame, unit and element."""
    from core.studies.index_frames import keep

    form = form_of(as_json, csv, latex)
    with database(beside=False) as db:
        running.runner(db, place(cluster, workers))
        run = follow(db, running.start(db, "index-frames", {"folder": folder}, "Index of FrameNet"))
        known, rows = runs.one_run(db, run), runs.run_rows(db, run)
        counted = keep(db, str(known["run"]))
    skipped = [one for row in rows for one in row["skipped"]]
    shown = [{"release": name, "annotations": count, "skipped": len(skipped)} for name, count in counted.items()]
    show_rows("index-frames", known | {"skipped": skipped}, shown, form)
    for one in skipped[:20] if form == "table" else []:
        typer.echo(f"skipped {one['where']}: {one['why']}", err=True)
