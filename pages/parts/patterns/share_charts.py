"""Class shares as charts: stacked bars a task (Fig 2) and the majority class of each head."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from core.attention import Head
from core.drawing.csv import csv_text
from core.patterns.classifier_registry import unfamiliar
from core.store.rows import Row
from core.studies.patterns.records import ClassNote, ClassRow, ClassShare, HeadClass
from pages.parts.charts.curves import stacked_bars
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import cell_of, head_picture, wrapped_title
from pages.parts.reports.provenance import present_runs, rows_said
from pages.parts.shell import url
from pages.parts.shell.messages import plain
from pages.parts.widgets.head_links import pick_and_link
from pages.parts.widgets.pickers import task_name
from pages.parts.widgets.tables import show_table

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
