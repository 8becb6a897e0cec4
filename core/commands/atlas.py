"""`python -m core atlas CHECKPOINT [--task T]`: every score of every head."""

from typing import Annotated

import typer

from ..atlas.scores import atlas as scores_of
from ..atlas.scores import left_out
from ..config import settings
from ..store.database import Database
from ..store.recovery import LockedError
from .output import Checkpoint, Form, show_rows, tell
from .study_commands import with_form


@with_form
def atlas(
    checkpoint: Checkpoint,
    task: Annotated[
        str | None, typer.Option(help="only scores on this task; without it, on all that are stored")
    ] = None,
    score: Annotated[
        list[str] | None, typer.Option(help="only scores whose key begins so: roles, features/max ...")
    ] = None,
    *,
    form: Form,
) -> None:
    """Print every score of every head of a checkpoint: what is stored, what ships with it, or, where there is neither,
    a first set measured now on bundled rows."""
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
    """The database where there is one; or none, and a sentence on who holds it."""
    file = settings().database
    if not file.expanduser().exists():
        return None, None
    try:
        return Database(file), None
    except LockedError as error:
        return None, f"The database is held by {error.holder}, so what it has stored is not among these rows."
