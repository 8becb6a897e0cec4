"""Class shares: how many of a checkpoint's maps look like each class, task by task (Fig 2)."""

from datetime import date

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.codebook.registry import codebook_of
from core.patterns.classifier_registry import about_best, classifying_options, keep_best_known
from core.patterns.snapshot import known_class_set
from core.studies.patterns.records import ClassNote, ClassShare, HeadClass
from pages.parts.label.label_tools import pick_class_set
from pages.parts.patterns.classifiers import KnownClassifier
from pages.parts.patterns.share_charts import bars, doubts, heads, stored_rows
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import context, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.shell.short_names import short_names
from pages.parts.widgets import job_progress, pickers

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
