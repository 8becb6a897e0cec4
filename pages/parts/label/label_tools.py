"""Tools around the labelling sheet: choosing and sampling maps, import, export and retraction of labels."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.errors import InputError
from core.labelling.assignment_service import retire
from core.patterns import agreement
from core.patterns.class_sets import class_set_names
from core.patterns.snapshot import known_class_set, retire_unknown, unknown_labels
from core.store import label_files, labels, projects
from core.store.database import Database
from core.store.label_checks import TOGETHER, say_alike
from core.studies.patterns import draw_maps as draw_maps_study
from core.tasks.tables import read_pasted
from pages.parts.shell import context, people, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets import pickers
from pages.parts.widgets.tables import show_table


def show_by_way(rows: pd.DataFrame) -> None:
    """Show speed and agreement of labels given together and one by one, once there are labels given together."""
    if not (rows["way"] == TOGETHER).any():
        return
    st.subheader("Speed and agreement of labels for groups of maps and for single maps")
    show_table(
        agreement.by_way(rows),
        column_config={
            "median_seconds": st.column_config.NumberColumn("median seconds per map", format="%.1f"),
            "per_hour": st.column_config.NumberColumn("labels per hour", format="%d"),
            "pairs": st.column_config.NumberColumn("pairs with another annotator"),
            "same": st.column_config.NumberColumn("same label in pairs", format="percent"),
        },
    )


def draw_maps() -> None:
    """Show a form that samples maps of a checkpoint on examples or pasted sentences and stores them."""
    name = pickers.pick_checkpoint("Sample from", key="draw_checkpoint", usual=context.chosen().checkpoint)
    tasks = pickers.pick_tasks("mrpc")
    pasted = st.text_area("Or your own sentences, one per line", height=68)
    left, middle, right, last = st.columns(4)
    count = left.number_input("Maps", 1, 5000, 96)
    per_input = middle.number_input("Most maps per input", 1, 400, 4)
    seed = right.number_input("Seed", 0, 10**6, 0)
    longest = last.number_input("Longest input", 4, 512, 64)
    folder = pickers.ask_folder(key="draw_folder", label="GLUE folder")
    if st.button("Sample", type="primary", disabled=name is None) and name:
        with clear_errors():
            pickers.named(tasks)  # says what is wrong with a file before anything is opened
            new = drawn(
                name,
                {
                    "tasks": tasks,
                    "texts": _sentences(pasted),
                    "count": count,
                    "per_input": per_input,
                    "seed": seed,
                    "longest": longest,
                    "data": folder,
                },
            )
            st.session_state.pop("queue", None)
            st.toast(f"{new} new maps to label")
            st.rerun()


def _sentences(pasted: str) -> list[str]:
    inputs = read_pasted(pasted) if pasted.strip() else []
    if any(pair is not None for _, pair in inputs):
        raise InputError(
            "Each line must contain one sentence; some lines contain a pair of sentences. To use pairs, paste them "
            "under “A list of rows”."
        )
    return [sentence for sentence, _ in inputs]


def drawn(name: str, options: dict[str, Any]) -> int:
    """Sample maps and store them; return how many are new."""
    with st.spinner("Sampling maps ..."):
        resources.wait_for_import()
        checkpoint = resources.checkpoint(name)
        complete = draw_maps_study.STUDY.read(options | {"checkpoint": name})
        (unit,) = draw_maps_study.STUDY.units(complete)
        maps = draw_maps_study.drawn(checkpoint, complete, unit.arguments.positions)
        return labels.store_maps(resources.database(), [planted.row() for planted in maps])


def files(db: Database, class_set: str) -> None:
    """Offer export of labels as JSONL or Parquet, and import with a list of refused rows."""
    ending = st.segmented_control("Form", ["jsonl", "parquet"], default="jsonl", required=True)
    weights = st.toggle("Include the attention weights of the maps in the export", value=True)

    def exported() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"labels.{ending}"
            label_files.export_labels(db, file, class_set, weights=weights)
            return file.read_bytes()

    st.download_button("Export labels", exported, file_name=f"labels-{class_set}.{ending}", on_click="ignore")
    say_names_alike(db, class_set)
    upload = people.ask_file("Import labels", ["jsonl", "parquet"])
    keep = st.toggle("Skip invalid rows and import the other rows", value=True)
    if upload and st.button("Import"):
        with clear_errors(), tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"upload{Path(upload.name).suffix.lower()}"
            file.write_bytes(upload.getvalue())
            report = label_files.import_labels(db, file, keep_rest=keep)
            st.session_state.pop("queue", None)
            say_imported(report)


def say_names_alike(db: Database, class_set: str) -> None:
    """Show a warning if annotator names look alike."""
    if sentence := say_alike(labels.annotators(db, class_set)):
        st.warning(plain(sentence), icon=":material/group:")


def say_imported(report: label_files.Imported) -> None:
    """Show how many labels were imported and what was refused."""
    st.success(
        f"The file has {counted(report.rows, 'rows')}: {report.new} new labels, {report.already} labels that are "
        f"already stored, and {counted(report.maps, 'new maps')}."
    )
    for note in report.notes:
        st.info(plain(note))
    if report.refused:
        show_table([{"row": number, "reason": reason} for number, reason in report.refused])


def pick_class_set(db: Database, *, bare: bool = False) -> str:
    """Ask for a class set by title; the URL has its name. `bare`: without a label, as in a bar."""
    in_bar: dict[str, Any] = {"label_visibility": "collapsed", "width": 190} if bare else {}
    return url.pick(
        st.selectbox,
        "Class set",
        class_set_names(db),
        key="class_set",
        **in_bar,
        format_func=lambda name: known_class_set(db, name).title,
    )


def pick_labels(db: Database, places: Sequence[DeltaGenerator] | None = None) -> tuple[str, str | None]:
    """Ask for the class set, and the project (None: all labels of the class set)."""
    open_projects = {project.project: project for project in projects.projects(db) if project.state != "archived"}
    left, right = places or st.columns(2)
    chosen = url.pick(
        left.selectbox,
        "Labels of",
        ["", *open_projects],
        key="project",
        format_func=lambda name: open_projects[name].title if name else "everybody",
    )
    if chosen:
        right.text_input("Class set", open_projects[chosen].class_set, disabled=True)
        return open_projects[chosen].class_set, chosen
    with right:
        return pick_class_set(db), None


# ---------------------------------------------------------------- retraction of labels by an admin


def say_unknown(db: Database, class_set: str) -> None:
    """Show how many labels have an unknown class, that they are not counted, and the two ways to fix them."""
    unknown = unknown_labels(db, class_set)
    for name, count in unknown.items():
        subject = "1 label is" if count == 1 else f"{count} labels are"
        st.warning(
            f"{subject} of the class “{plain(name)}”, which does not exist in this class set. Results ignore these "
            "labels. An admin can add the class on “Annotate > Class sets”, or retract the labels here.",
            icon=":material/rule:",
        )
    if unknown and db.person.may("admin") and st.button("Retract labels with unknown classes"):
        with clear_errors():
            st.toast(f"Labels retracted: {retire_unknown(db, class_set, annotator=_acting(db))}")
            st.session_state.pop("queue", None)
            st.rerun()


def retire_one(db: Database, standing: pd.DataFrame, maps: list[str]) -> None:
    """Let admins retract one label of these maps, whoever gave it."""
    rows = standing[standing["map_id"].isin(maps)]
    if rows.empty or not db.person.may("admin"):
        return
    event_labels = {
        row.event: f"{row.annotator}: {row.label}, {Head(row.layer, row.head)} of {row.row_id} (pass {row.passing})"
        for row in rows.rename(columns={"class": "label", "pass": "passing"}).itertuples()
    }
    with st.expander("Retract a label of any annotator"):
        event = st.selectbox("Label", list(event_labels), format_func=event_labels.__getitem__, key="retired_label")
        why = st.text_input(
            "Reason",
            key="retired_why",
            help="The reason is stored with your name. The retracted label is not deleted, but it no longer counts.",
        )
        if st.button("Retract label", disabled=not why.strip()):
            with clear_errors():
                retire(db, [str(event)], annotator=_acting(db), why=why.strip())
                st.rerun()


def _acting(db: Database) -> str:
    """Return the name of the acting admin: signed in, as typed on the Label page, or the role."""
    return db.person.name or st.session_state.get("annotator") or "admin"
