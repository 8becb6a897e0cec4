"""Pattern shares: how many maps of a checkpoint have each pattern (Kovaleva et al., Fig 2)."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.codebook.registry import codebook_of
from core.drawing.csv import csv_text
from core.patterns.class_shares import MISFIT_LEVEL
from core.patterns.classifier_registry import about_best, classifying_options, keep_best_known, unfamiliar
from core.patterns.snapshot import known_class_set
from core.studies.patterns.records import ClassNote, ClassShare, HeadClass, MovedShare
from pages.parts.charts.curves import stacked_bars
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import cell_of, head_picture, wrapped_title
from pages.parts.label.label_tools import pick_class_set
from pages.parts.label.retraining import KnownClassifier
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details, drawer, shown_result
from pages.parts.shell import context, resources
from pages.parts.shell.links import pick_and_link
from pages.parts.shell.messages import clear_errors, plain, short_names
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- class shares as charts


COLUMNS = ["checkpoint", "task", "name", "share", "low", "high", "maps", "inputs", "classifier"]


def shortened(checkpoint: str) -> str:
    """Return the name of a checkpoint or of its folder."""
    return Path(checkpoint).name


def bars(class_shares: Sequence[ClassShare], part: str, title: str, names: list[str]) -> None:
    """Show one stacked bar per checkpoint and task. `part` is "corrected" or "share" (as classified)."""
    shares = [share for share in class_shares if share.part == part]
    table = pd.DataFrame(shares, columns=COLUMNS).rename(columns={"name": "class"})
    short = short_names(list(dict.fromkeys(str(share.checkpoint) for share in shares)))
    table = table.assign(
        bar=[short[str(share.checkpoint)] for share in shares], percent=[100 * share.share for share in shares]
    )
    st.altair_chart(
        stacked_bars(
            table,
            Axes(x="percent", y="bar", colour="class", x_title="percent of maps"),
            title=title,
            order=names,
            tooltip=["checkpoint", "low", "high", "maps"],
            most=100,
        ),
        key=f"bars_{part}",
    )


def misfits(shares: Sequence[ClassShare]) -> list[str]:
    """Return a sentence about the checkpoints whose corrected shares do not explain the counts, if there are any."""
    found = {
        shortened(share.checkpoint): share.misfit
        for share in shares
        if share.misfit is not None and share.misfit < MISFIT_LEVEL
    }
    if not found:
        return []
    return [
        f"No intervals are shown for {' and '.join(found)}, because the classifier makes other errors on these maps "
        f"than on its labelled maps (p = {max(found.values()):.2g})."
    ]


def change_said(moved: Sequence[MovedShare], *, corrected: bool) -> list[str]:
    """Return sentences about the pattern that changes most from the first checkpoint to the second, if one does.

    corrected: whether the figure shows corrected shares. The change is always of shares as classified.
    """
    sure = [
        share
        for share in moved
        if share.change.low is not None and ((share.joint.low or 0) > 0 or (share.joint.high or 0) < 0)
    ]
    if not sure:
        return []
    most = max(sure, key=lambda share: abs(share.share))
    return [
        f"From the first model to the second, the share of {most.name} changes most: "
        f"{100 * most.share:+.1f} points (95 % CI {100 * (most.low or 0):+.1f} to {100 * (most.high or 0):+.1f}), "
        "which is significant." + " The test uses the shares as classified." * corrected
    ]


def trust(notes: Sequence[ClassNote], about: KnownClassifier) -> None:
    """Show one badge: whether the classifier was trained on such maps, and its scores."""
    score = f"classifier: macro F1 {about.held_out.macro_f1:.2f} on {about.held_out.on}"
    doubted = [sentence for sentence, unknown in doubts(notes) if unknown]
    if not doubted:
        st.badge(plain(f"The classifier knows maps like these · {score}"), icon=":material/verified:", color="green")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(plain(f"These shares are uncertain · {score}"), icon=":material/help:", color="orange")
        st.caption(
            "To improve the classifier, label 50 maps on “Annotate > Label” and retrain it.",
            width="content",
        )


def doubts(notes: Sequence[ClassNote]) -> list[tuple[str, bool]]:
    """Return a sentence on how uncertain the classifier is for each checkpoint."""
    found = []
    scored_notes = [note for note in notes if note.outside is not None]
    for name in dict.fromkeys(note.checkpoint for note in scored_notes):
        checkpoint_notes = [note for note in scored_notes if note.checkpoint == name]
        maps = [note.maps for note in checkpoint_notes]
        unsure = float(np.average([float(note.unsure or 0) for note in checkpoint_notes], weights=maps))
        outside = float(np.average([float(note.outside or 0) for note in checkpoint_notes], weights=maps))
        sentence = (
            f"{shortened(str(name))}: {outside:.1%} of the maps are unlike the training maps of the classifier, and "
            f"for {unsure:.1%} no class has a probability of one half"
        )
        found.append((sentence, unfamiliar(unsure, outside)))
    return found


def heads(head_classes: Sequence[HeadClass], names: list[str]) -> None:
    """Show the majority class of each head, with checkpoints side by side."""
    beside = st.container(horizontal=True)  # wraps where there is no room for both
    checkpoints = list(dict.fromkeys(head.checkpoint for head in head_classes))
    heads_of_a_layer = 1 + max((int(head.head or 0) for head in head_classes), default=0)
    lines_of = [
        len(wrapped_title(shortened(name), heads_of_a_layer, cell_of(heads_of_a_layer))) for name in checkpoints
    ]
    for number, name in enumerate(checkpoints):
        checkpoint_heads = [head for head in head_classes if head.checkpoint == name]
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
            key=f"heads_{number}",
        )
        with container:
            head_names = [str(Head(head.layer, head.head)) for head in checkpoint_heads]
            pick_and_link(name, head_names, current_view="", key=f"go_on_{number}")


STUDY = "pattern-shares"


def start(db, class_set: str) -> None:
    checkpoint, other_checkpoint, codebook = context.now().checkpoint, context.now().beside, codebook_of(class_set)
    left, middle, right = st.columns([4, 1, 1], vertical_alignment="bottom")
    with left:
        tasks = pickers.pick_tasks("sst2")
    limit = middle.number_input(
        "Examples per task",
        1,
        100_000,
        codebook.rows if codebook else 1000,
        key=f"limit_{class_set}",
        bind="query-params",
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
    db = resources.database()
    with tools:
        class_set = pick_class_set(db, bare=True)
    about = None
    with clear_errors():
        about = KnownClassifier.of(about_best(db, class_set))
    if about is None:
        return
    for job in job_progress.jobs_under_way(STUDY, states=("queued", "running")):
        job_progress.show_job(job, rows=False)
    with shown_result(
        STUDY,
        "No maps have been classified with this class set yet. Choose tasks and press “Classify”.",
        "shares_run",
        icon=":material/bar_chart:",
        is_included=lambda stored: stored.settings.class_set == class_set,
    ) as stored:
        if stored is None:
            held_out = about.held_out
            st.caption(plain(f"Classifier: macro F1 {held_out.macro_f1:.2f} on {held_out.on}."))
        else:
            _draw(stored, about, known_class_set(db, class_set).names)
    with drawer("Classify the maps of a checkpoint", STUDY):
        start(db, class_set)


def _draw(stored: StoredRun, about: KnownClassifier, known_names: Sequence[str]) -> None:
    rows = stored.result_rows
    shares, majority, notes = ClassShare.among(rows), HeadClass.among(rows), ClassNote.among(rows)
    names = list(dict.fromkeys([*known_names, *(share.name for share in shares), *(head.name for head in majority)]))
    trust(notes, about)
    part = "corrected" if any(share.part == "corrected" for share in shares) else "share"
    title = "Share of each pattern" + (", corrected" if part == "corrected" else "")
    bars(shares, part, title, names)
    if change := change_said(MovedShare.among(rows), corrected=part == "corrected"):
        st.markdown(plain(" ".join(change)))
    with details():
        st.markdown("**The most frequent attention pattern of each head**")
        heads(majority, names)
        if part == "corrected":
            bars(shares, "share", "Share of each pattern as classified, not corrected", names)
        for sentence in misfits(shares):
            st.caption(plain(sentence))
        table = pd.DataFrame(shares, columns=[*COLUMNS, "part"]).rename(columns={"name": "class"}).round(4)
        show_table(table)
        st.download_button("CSV", lambda: csv_text(table), "shares.csv", on_click="ignore", icon=":material/download:")
        for sentence, _ in doubts(notes):
            st.caption(plain(f"{sentence}."))
        cropped, small = (sum(int(getattr(note, name) or 0) for note in notes) for name in ("cropped", "small"))
        st.caption(
            "Confidence intervals of shares as classified cover the variation between inputs, but not errors of the "
            "classifier; those of corrected shares cover both. "
            f"{cropped} inputs were longer than the classifier allows and were cropped. "
            f"{small} inputs were too short to show a pattern and were left out."
        )
        if (codebook := codebook_of(stored.settings.class_set)) and codebook.counted:
            st.caption(codebook.counted)
