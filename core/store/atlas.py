"""The atlas as the store has it: every head's newest score of every kind, by the view `atlas` (docs/atlas.md)."""

import pandas as pd

from core.store.database import Database


def atlas_rows(db: Database, *, checkpoint: str | None = None, task: str | None = None) -> pd.DataFrame:
    """Which head scored what: one row a head, score, checkpoint and task, from the newest run that measured it.

    checkpoint, task: only these. Scores that belong to no task (frames, say) are given with any task.
    """
    return db.read(
        """SELECT * FROM atlas
           WHERE ($checkpoint IS NULL OR checkpoint = $checkpoint)
             AND ($task IS NULL OR task IS NULL OR task = $task)
           ORDER BY checkpoint, task, score, layer, head""",
        {"checkpoint": checkpoint, "task": task},
    )


def atlas_places(db: Database) -> pd.DataFrame:
    """Which checkpoints have scores, on which tasks: checkpoint, task, scores (how many kinds), newest (when)."""
    return db.read(
        """SELECT checkpoint, task, count(DISTINCT score) AS scores, max(created) AS newest FROM atlas
           GROUP BY checkpoint, task ORDER BY checkpoint, task"""
    )


def atlas_stamp(db: Database) -> tuple[int, ...]:
    """What is other once scores were stored or deleted: how many runs, the newest, how many scores."""
    counts = db.read("SELECT count(*), coalesce(max(ordinal), 0), (SELECT count(*) FROM head_score) FROM run")
    return tuple(int(value) for value in counts.iloc[0])
