"""Choices of the atlas and of the page of a head: checkpoint, task and scores."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core import config
from core.atlas import scores as atlas
from core.atlas.head import CLASS_SHARE, classes
from core.attention import Head
from core.config import settings
from core.models.present import present_weights
from core.store.database import Database
from core.store.runs import atlas_stamp
from core.studies.lookup import in_order, label_of, meaning_of
from core.tasks.glue import TASKS
from pages.parts.reports.stored_runs import rows_said
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import plain
from pages.parts.widgets import pickers

FIRST = ("statistics/previous", "statistics/normalised entropy", "statistics/separator")  # that a new page shows
CLASS, GROUP = "pattern class", "redundancy/group"  # by kind, not by size
HIDDEN = ("statistics/place x", "statistics/place y", "statistics/place stress")
COMPOSITION = "why/composition/"  # each of one head and one earlier head: no colour of all heads


def tasks_of(frame: pd.DataFrame) -> list[str]:
    return [task for task in dict.fromkeys(frame["task"]) if isinstance(task, str)]


def task_here(frame: pd.DataFrame) -> str | None:
    """Return the task of the context, or another one with a notice if these scores do not have it; None without
    tasks."""
    tasks, context_task = tasks_of(frame), context.now().rows
    if not tasks or context_task in tasks:
        return context_task if tasks else None
    usual = "sst2" if "sst2" in tasks else tasks[0]
    st.caption(
        plain(
            f"No scores on {pickers.rows_name(str(context_task))} are stored, so scores on "
            f"{rows_said(str(frame['checkpoint'].iloc[0]), usual)} are shown."
        )
    )
    return usual


def pick_task(frame: pd.DataFrame, key: str) -> str | None:
    """Ask for one of the tasks of these scores; None without tasks."""
    tasks = tasks_of(frame)
    if not tasks:
        return None
    context_task = context.now().rows
    usual = context_task if context_task in tasks else tasks[0]
    task_labels = {task: rows_said(str(frame["checkpoint"].iloc[0]), task) for task in tasks}
    return url.pick(st.selectbox, "Task", tasks, key=key, default=usual, format_func=task_labels.__getitem__)


def scores_of(checkpoint: str) -> pd.DataFrame:
    """Return every stored or bundled score of a checkpoint, without measuring any. Cached, so do not modify it."""
    return _scores(checkpoint, (*_mark(), present_weights(checkpoint)), resources.database())


def say_left_out(checkpoint: str) -> None:
    """State how many stored scores are hidden because they belong to other weights of this name."""
    if note := atlas.left_out(resources.database(), checkpoint):
        st.caption(plain(note))


def _mark() -> tuple[object, ...]:
    """Return a value that changes whenever stored or bundled scores change."""
    places = (settings().database, config.RECORD, atlas.FILE)
    return (*map(str, places), *atlas_stamp(resources.database()))


@st.cache_resource(show_spinner=False, max_entries=8)
def _scores(checkpoint: str, mark: tuple[object, ...], _db: Database) -> pd.DataFrame:
    return atlas.atlas(_db, checkpoint=checkpoint, measure=False)


def on_task(frame: pd.DataFrame, task: str | None) -> pd.DataFrame:
    """Return the scores on a task, and those without a task."""
    return frame[frame["task"].isna() | (frame["task"] == task)]


def of_head(frame: pd.DataFrame, head: Head) -> pd.DataFrame:
    """Return the scores of one head."""
    return frame[(frame["layer"] == head.layer) & (frame["head"] == head.head)]


def keys_of(frame: pd.DataFrame) -> list[str]:
    """Return the scores that can be chosen, in the order of lists."""
    keys = [key for key in dict.fromkeys(frame["score"]) if key not in HIDDEN and not key.startswith(COMPOSITION)]
    return in_order(keys)


def colours(keys: Sequence[str]) -> list[str]:
    """Return the scores, and the pattern class if maps were classified."""
    return [CLASS] * any(key.startswith(CLASS_SHARE) for key in keys) + list(keys)


def kinds(frame: pd.DataFrame, key: str) -> pd.DataFrame | None:
    """Return the pattern classes or groups of heads (layer, head, kind); None if `key` is another score."""
    if key == GROUP:
        grouped = frame[frame["score"] == GROUP]
        return grouped.assign(kind=[f"group {value:.0f}" for value in grouped["value"]])
    return classes(frame) if key == CLASS else None


def pick_score(label: str, keys: Sequence[str], usual: str, *, key: str) -> str:
    usual = usual if usual in keys else keys[0]
    return url.pick(st.selectbox, label, keys, key=key, default=usual, format_func=label_of_any)


def label_of_any(key: str) -> str:
    """Return the label of a score, or of the pattern class."""
    return CLASS if key == CLASS else label_of(key)


def meaning(key: str) -> str:
    """Return the formula and source of a score, for captions."""
    if key == CLASS:
        return "pattern class: the most frequent class among the maps of the head (Kovaleva et al. 2019)"
    return meaning_of(key)


def is_task(name: str | None) -> bool:
    """Return whether a name is a GLUE task, which has bundled samples."""
    return name in TASKS
