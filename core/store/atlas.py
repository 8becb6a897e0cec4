"""The atlas as the store has it: every head's newest score of every kind, by the view `atlas` (docs/atlas.md)."""

import pandas as pd

from .database import Database


def atlas_rows(
    db: Database, *, checkpoint: str, weights: str | None, task: str | None = None, imported: bool = False
) -> pd.DataFrame:
    """Which head of these weights scored what: one row a head, score and task, from the newest run that measured it.

    Args:
        db: whose view `atlas` is read.
        weights: hash of those that the checkpoint's name leads to now; None where they are not at hand: the weights of
            the newest run then, so that scores of two never mix.
        task: only its scores and those that belong to no task (frames, say); None for all.
        imported: whether those that came in from files, in place of those measured here.

    Returns:
        The columns of the view, by task, score, layer and head.
    """
    return db.read(
        """SELECT * FROM atlas
           WHERE checkpoint = $checkpoint AND ($task IS NULL OR task IS NULL OR task = $task)
             AND (imported IS NOT NULL) = $imported
             AND CASE WHEN $weights IS NOT NULL THEN weights_hash = $weights
                 ELSE weights_hash IS NOT DISTINCT FROM
                      (SELECT weights_hash FROM atlas WHERE checkpoint = $checkpoint
                       AND (imported IS NOT NULL) = $imported ORDER BY created DESC LIMIT 1) END
           ORDER BY task, score, layer, head""",
        {"checkpoint": checkpoint, "task": task, "weights": weights, "imported": imported},
    )


def other_scores(db: Database, *, checkpoint: str, weights: str | None) -> int:
    """How many stored scores of heads of this name are of other weights than these, or do not say of which."""
    rows = db.read(
        """SELECT count(*) AS scores FROM atlas
           WHERE checkpoint = $checkpoint AND $weights IS NOT NULL AND weights_hash IS DISTINCT FROM $weights""",
        {"checkpoint": checkpoint, "weights": weights},
    )
    return int(rows["scores"].iloc[0])


def atlas_stamp(db: Database) -> tuple[int, ...]:
    """How many runs, the newest one's ordinal, how many scores: another triple once scores were stored or deleted."""
    counts = db.read("SELECT count(*), coalesce(max(ordinal), 0), (SELECT count(*) FROM head_score) FROM run")
    return tuple(int(value) for value in counts.iloc[0])
