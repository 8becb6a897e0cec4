"""Progress of a labelling project: labels by annotator, agreement over time, and the expected end."""

import weakref
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pandas as pd

from ..patterns.agreement import alpha_of_counts
from ..store import projects
from ..store.database import Database
from . import assignment_service

POINTS = 12  # points of the agreement curve
RECENT = timedelta(hours=1)
_READ: "weakref.WeakKeyDictionary[Database, tuple[tuple[str, int], pd.DataFrame]]" = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class ProjectProgress:
    """The progress of a labelling project, as shown on the dashboard of the project.

    Attributes:
        counted, needed: number of labels that fill a slot, and that are needed.
        by_labels: how many maps have 0, 1, ..., k labels.
        waiting: number of valid reservations without an answer.
        hourly: labels per hour, as `pace` returns them; 0 without labels.
        end: expected time of completion; None if unknown or complete.
        times: as `projects.label_times` returns them.
    """

    counted: int
    needed: int
    by_labels: tuple[int, ...]
    waiting: int
    surplus: int
    people: pd.DataFrame
    curve: pd.DataFrame
    hourly: float
    end: datetime | None
    times: pd.DataFrame


def progress(db: Database, project: str, now: datetime) -> ProjectProgress:
    """Compute the data for the dashboard of a labelling project. `now` is UTC without a time zone."""
    board = assignment_service.board_of(db, project)
    label_times = _label_times(db, project)
    counted = label_times[label_times.counted]
    hourly = pace(counted.stored, now)
    left = board.needed - board.counted
    end = now + timedelta(hours=left / hourly) if hourly and left else None
    groups = label_times.groupby("annotator")
    labels, last = groups.size(), groups.stored.max()
    today = label_times[label_times.stored > now - timedelta(days=1)].groupby("annotator").size()
    rows = []
    for name in board.people:
        status = board.status(name)
        unchanged, repeated = board.repeats(name)
        rows.append(
            {
                "person": name,
                "phase": status.phase,
                "labels": int(labels.get(name, 0)),
                "in 24 hours": int(today.get(name, 0)),
                "last label": last.get(name),
                "holds": len(board.claimed(name, assignment_service.seconds(now))),
                "gold right": f"{status.right} of {status.golds}" if status.golds else "",
                "same again": f"{unchanged} of {repeated}" if repeated else "",
            }
        )
    columns = ["person", "phase", "labels", "in 24 hours", "last label", "holds", "gold right", "same again"]
    return ProjectProgress(
        board.counted,
        board.needed,
        board.histogram(),
        board.waiting(assignment_service.seconds(now)),
        int((~label_times.counted).sum()),
        pd.DataFrame(rows, columns=columns).sort_values("labels", ascending=False),
        agreement_curve(counted),
        hourly,
        end,
        label_times,
    )


def _label_times(db: Database, project: str) -> pd.DataFrame:
    """As `projects.label_times`, read again only after something was written."""
    version = project, db.writes
    kept = _READ.get(db.shared)
    if kept is None or kept[0] != version:
        kept = _READ[db.shared] = version, projects.label_times(db, project)
    return kept[1]


def pace(stored: pd.Series, now: datetime) -> float:
    """Compute the labels per hour in the last hour. If there are none, average over all hours with labels."""
    if stored.empty:
        return 0.0
    recent = int((stored > now - RECENT).sum())
    if recent:
        return recent / min(1.0, max((now - stored[stored > now - RECENT].min()) / timedelta(hours=1), 1 / 60))
    return len(stored) / stored.dt.floor("h").nunique()


def agreement_curve(labels: pd.DataFrame, points: int = POINTS) -> pd.DataFrame:
    """Compute Krippendorff's alpha of the first n labels, for a series of increasing n."""
    if labels.empty:
        return pd.DataFrame(columns=["labels", "alpha", "time"])
    maps, classes = (pd.factorize(labels[name])[0] for name in ("map_id", "class"))
    size = int(classes.max()) + 1
    cells = maps.astype(np.int64) * size + classes
    counts = np.zeros((int(maps.max()) + 1) * size)
    rows, before = [], 0
    for until in np.unique(np.linspace(0, len(labels), points + 1).astype(int)[1:]):
        counts += np.bincount(cells[before:until], minlength=len(counts))
        before = int(until)
        alpha = alpha_of_counts(counts.reshape(-1, size))
        rows.append({"labels": before, "alpha": alpha, "time": labels.stored.iloc[before - 1]})
    return pd.DataFrame(rows)
