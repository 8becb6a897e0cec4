"""Class shares: how many of a checkpoint's maps look like each class, task by task (Fig 2)."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.codebook.registry import codebook_of
from core.drawing.csv import csv_text
from core.patterns.classifier_registry import about_best, classifying_options, keep_best_known, unfamiliar
from core.patterns.snapshot import known_class_set
from core.store.rows import Row
from core.studies.patterns.records import ClassNote, ClassRow, ClassShare, HeadClass
from pages.parts.charts.curves import stacked_bars
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import cell_of, head_picture, wrapped_title
from pages.parts.label.label_tools import pick_class_set
from pages.parts.patterns.classifiers import KnownClassifier
from pages.parts.reports.provenance import present_runs, rows_said
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.shell.short_names import short_names
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.head_links import pick_and_link
from pages.parts.widgets.pickers import task_name
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- class shares as charts


COLUMNS = ["checkpoint", "task", "name", "share", "low", "high", "maps", "inputs", "classifier"]
MOST_RUNS = 40  # looked through for the newest of each task


def stored_rows(study: str, class_set: str) -> list[Row]:
    """Rows of the newest run of each task and checkpoint, of this class set."""
    newest: dict[tuple[str, str], str] = {}
    newest_rows = []
    for stored in present_runs(study)[:MOST_RUNS]:
        rows = stored.result_rows
        class_rows = ClassRow.among(rows)
        if not class_rows or class_rows[0].class_set != class_set:
            continue
        for row, about in zip(rows, class_rows, strict=True):
            if about.task and newest.setdefault((about.checkpoint, about.task), stored.run) == stored.run:
                newest_rows.append(row)
    return newest_rows


def shortened(checkpoint: str) -> str:
    """The name of a checkpoint or of its folder, whole: two fine-tuned ones differ in its middle."""
    return Path(checkpoint).name


def bars(class_shares: Sequence[ClassShare], part: str, title: str, names: list[str]) -> None:
    """Stacked bars, one a task and checkpoint, and their numbers."""
    shares = [share for share in class_shares if share.part == part]
    if not shares:
        st.caption("There is no held-out confusion to correct with.")
        return
    table = pd.DataFrame(shares, columns=COLUMNS).rename(columns={"name": "class"})
    place_titles = {
        checkpoint_task: rows_said(*checkpoint_task)
        for checkpoint_task in {(str(share.checkpoint), str(share.task)) for share in shares}
    }
    bars_named = [
        f"{place_titles[str(share.checkpoint), str(share.task)]} · {shortened(share.checkpoint)}" for share in shares
    ]
    beside = {"bar": bars_named, "percent": [100 * share.share for share in shares]}
    st.altair_chart(
        stacked_bars(
            table.assign(**beside).sort_values("task", kind="stable"),
            Axes(x="percent", y="bar", colour="class", x_title="percent of maps"),
            title=title,
            order=names,
            tooltip=["checkpoint", "low", "high", "maps"],
        )
    )
    with st.expander("Numbers, with 95 % intervals over inputs"):
        show_table(table.round(4))
        st.download_button("CSV", csv_text(table), f"shares-{part}.csv", on_click="ignore", key=f"csv_{part}")


def doubts(notes: Sequence[ClassNote]) -> None:
    """How much of each checkpoint the classifier was unsure of, and a warning where it never saw such maps."""
    scored_notes = [note for note in notes if note.outside is not None]
    for name in dict.fromkeys(note.checkpoint for note in scored_notes):
        checkpoint_notes = [note for note in scored_notes if note.checkpoint == name]
        maps = [note.maps for note in checkpoint_notes]
        unsure = float(np.average([float(note.unsure or 0) for note in checkpoint_notes], weights=maps))
        outside = float(np.average([float(note.outside or 0) for note in checkpoint_notes], weights=maps))
        if small := sum(note.small or 0 for note in checkpoint_notes):
            st.caption(plain(f"{shortened(str(name))}: {small} inputs are too small to have a pattern, and left out."))
        sentence = (
            f"{shortened(str(name))}: the classifier was unsure of {unsure:.1%} of its maps (no class has half of the "
            f"probability), and {outside:.1%} lie outside what it was trained on"
        )
        if not unfamiliar(unsure, outside):
            st.caption(plain(f"{sentence}."))
            continue
        st.warning(
            plain(
                f"{sentence}: do not trust these shares yet. Label 50 of this checkpoint's maps (about four minutes) "
                "on the Label page, then retrain (about a minute) on the Classifier page."
            ),
            icon=":material/help:",
        )


def heads(head_classes: Sequence[HeadClass], names: list[str]) -> None:
    """Each head's majority class, checkpoints side by side."""
    tasks = sorted({str(head.task) for head in head_classes})
    task = url.pick(st.selectbox, "Task of the head picture", tasks, key="task", format_func=task_name)
    beside = st.container(horizontal=True)  # wraps where there is no room for both
    shown = [head for head in head_classes if head.task == task]
    checkpoints = list(dict.fromkeys(head.checkpoint for head in shown))
    heads_of_a_layer = 1 + max((int(head.head or 0) for head in shown), default=0)
    lines_of = [
        len(wrapped_title(shortened(name), heads_of_a_layer, cell_of(heads_of_a_layer))) for name in checkpoints
    ]
    for number, name in enumerate(checkpoints):
        checkpoint_heads = [head for head in shown if head.checkpoint == name]
        lines = [
            {"layer": head.layer, "head": head.head, "class": head.name, "share": head.share,
             "counts": json.dumps(head.counts)}
            for head in checkpoint_heads
        ]  # fmt: skip
        container = beside.container(width="content")
        container.altair_chart(
            head_picture(
                pd.DataFrame(lines),
                Shade("class", categories=names),
                title=shortened(name),
                lines=max(lines_of),
                tooltip=["share", "counts"],
            ),
            width="content",
        )
        with container:
            head_names = [str(Head(head.layer, head.head)) for head in checkpoint_heads]
            pick_and_link(name, head_names, current_view="", key=f"go_on_{number}")


STUDY = "classify-maps"
BARS = 480  # pixels of one of two pictures side by side; their names take half of them


def start(db, class_set: str) -> None:
    """Choose checkpoints and tasks; one job a task."""
    checkpoint, other_checkpoint, codebook = context.now().checkpoint, context.now().beside, codebook_of(class_set)
    left, middle, right = st.columns([4, 1, 1], vertical_alignment="bottom")
    with left:
        tasks = pickers.pick_tasks("mrpc")
    limit = middle.number_input(
        "Rows a task", 1, 100_000, codebook.rows if codebook else 1000, key=f"limit_{class_set}", bind="query-params"
    )
    checkpoints = [name for name in (checkpoint, other_checkpoint) if name]
    if checkpoints and tasks:
        job_options = {
            "checkpoints": checkpoints,
            "tasks": tasks,
            "limit": limit,
            "data": pickers.data_folder(),
        }
        job_progress.say_time(STUDY, job_options)
    if right.button("Classify", type="primary", width="stretch", disabled=not (checkpoint and tasks)):
        with clear_errors():
            for task in tasks:
                options = classifying_options(
                    db,
                    keep_best_known(db, class_set),
                    checkpoints=checkpoints,
                    task=task,
                    limit=limit,
                    data=pickers.data_folder(),
                )
                job_progress.begin(STUDY, options, f"Class shares, {pickers.named([task], pickers.data_folder())}")
            st.rerun()


def show(tools: DeltaGenerator) -> None:
    """The view."""
    db = resources.database()
    class_set = pick_class_set(db)
    classes = known_class_set(db, class_set)
    about = None
    with clear_errors():
        about = KnownClassifier.of(about_best(db, class_set))
    if about is None:
        return
    st.caption(
        plain(
            f"Classifier: {about.title}, trained on {about.labels} labels, macro F1 "
            f"{about.held_out.macro_f1:.3f} on {about.held_out.on}."
        )
    )
    with drawer("Classify the maps of a checkpoint", STUDY):
        start(db, class_set)
    for job in job_progress.jobs_under_way(STUDY, states=("queued", "running")):
        job_progress.show_job(job, rows=False)

    rows = stored_rows(STUDY, class_set)
    if not rows:
        st.info(
            "Nothing has been classified with this class set yet: choose tasks above and press Classify.",
            icon=":material/bar_chart:",
        )
        return
    pick_run(STUDY, "", "shares_run", is_included=lambda stored: stored.settings.class_set == class_set)
    shares, majority, notes = ClassShare.among(rows), HeadClass.among(rows), ClassNote.among(rows)
    names = list(dict.fromkeys([*classes.names, *(share.name for share in shares), *(head.name for head in majority)]))
    doubts(notes)
    beside = st.container(horizontal=True)  # wraps in a narrow window
    with beside.container(width=BARS):
        bars(shares, "share", "As classified", names)
    with beside.container(width=BARS):
        bars(shares, "corrected", "Corrected for the classifier's confusions", names)
    heads(majority, names)
    checkpoints, tasks = dict.fromkeys(note.checkpoint for note in notes), {note.task for note in notes}
    inputs, cropped = sum(note.inputs for note in notes), sum(int(note.cropped or 0) for note in notes)
    checkpoint_names = ", ".join(short_names(list(checkpoints)).values())
    st.caption(
        plain(
            f"n = {inputs} inputs of {len(tasks)} tasks · {checkpoint_names} · {cropped} inputs were "
            f"longer than the classifier's maps and were cropped · {date.today():%d %B %Y}"
        )
    )
    if (codebook := codebook_of(class_set)) and codebook.counted:
        st.caption(codebook.counted)
