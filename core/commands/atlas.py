"""`python -m core atlas CHECKPOINT [--task T]`: all scores of all heads."""

from typing import Annotated

import typer

from ..atlas.scores import atlas as scores_of
from ..atlas.scores import left_out
from ..config import settings
from ..store.database import Database
from ..store.recovery import LockedError
from .output import Checkpoint, Form, show_rows, tell
from .parameters import with_form


@with_form
def atlas(
    checkpoint: Checkpoint,
    task: Annotated[
        str | None,
        typer.Option(help="list only scores measured on this task, and scores without a task (default: all)"),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(help="list only scores whose name starts with this text, such as roles or features/max"),
    ] = None,
    *,
    form: Form,
) -> None:
    """Print all scores of all heads of a checkpoint.

    Uses stored and bundled scores; if there are none, measures a first set on bundled examples.
    """
    db, note = _database()
    try:
        frame = scores_of(db, checkpoint=checkpoint, task=task)
        note = note or left_out(db, checkpoint) or None
    finally:
        if db:
            db.close()
    if score:
        frame = frame[frame.score.str.startswith(tuple(score))]
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    provenance = {"checkpoint": checkpoint, "task": task, "heads": frame.groupby(["layer", "head"]).ngroups}
    show_rows("atlas", provenance | ({"note": note} if note else {}), rows, form)
    if note:
        tell(note, err=True)


def _database() -> tuple[Database | None, str | None]:
    """Return the database, or None and a message if it is held by another process; None if there is no file."""
    file = settings().database
    if not file.expanduser().exists():
        return None, None
    try:
        return Database(file), None
    except LockedError as error:
        return None, f"The database is held by {error.holder}, so its stored scores are not included."
