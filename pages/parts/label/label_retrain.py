"""Retraining on the Label page: number of new labels, training, and what it changed."""

from typing import Any

import streamlit as st

from core.codebook.registry import labelled_folders
from core.jobs import api
from core.patterns.classifier_registry import can_suggest, keep_best_known, training_options
from core.patterns.retraining import compared
from core.patterns.snapshot import ENOUGH_ALONE, OWN_COPIES, snapshot, with_bundled
from core.store import classifiers
from core.store.database import Database
from pages.parts.label.label_sheet import hints_of
from pages.parts.label.retraining_report import ChangedSuggestion, Report, let_suggest, offer
from pages.parts.shell import people, resources
from pages.parts.shell.messages import clear_errors, plain

STUDY = "train-patterns"
MOST_COMPARED = 300  # maps of the queue that both classifiers are asked about: some seconds
OFTEN, SELDOM = 1.5, 2.0  # seconds between two looks, while something trains and else


def offer_retraining(db: Database, class_set: str) -> None:
    """Show a button with the number of labels that are new to the newest classifier, and a line during and after
    training.

    The button is always shown, so that the sheet does not move when the first label is added.
    """
    st.fragment(_watch, run_every=OFTEN if st.session_state.get("_label_training") else SELDOM)(db, class_set)


def offer_only_mine(class_set: str, container: Any = st) -> bool:
    """Ask whether to train without the bundled labels, if there are any; return the answer."""
    return class_set not in labelled_folders() or container.toggle(
        "Train on my labels only",
        key="only_mine",
        help=f"If off, the classifier is trained on the bundled labels and yours, and each of your labels counts "
        f"{OWN_COPIES} times. Some of the maps that you labelled are held out to evaluate the classifier. "
        f"Training on your labels alone is useful from about {ENOUGH_ALONE} labels.",
    )


def _watch(db: Database, class_set: str) -> None:
    with clear_errors():
        job = st.session_state.get("_label_training")
        if job:
            _follow(db, class_set, job)
            return
        new = classifiers.labels_since_newest(db, class_set)
        report = st.session_state.get("_label_report")
        if report is not None and report.class_set == class_set:
            offer(db, report)
        elif st.session_state.get("_label_trained"):
            st.caption(st.session_state["_label_trained"])
        only_mine = offer_only_mine(class_set)
        if st.button(
            f"Retrain with {new} new label{'' if new == 1 else 's'}",
            icon=":material/model_training:",
            key="retrain",
            disabled=not new,
            help="Trains a new pattern classifier on your labels and the bundled labels. The new classifier "
            "suggests labels from then on, unless one of its scores is significantly worse than before.",
        ):
            mine = snapshot(db, class_set)
            labelled = mine if only_mine else with_bundled(mine)
            options = training_options(db, labelled, beside=False, curve=False, annotator=people.person().name)
            st.session_state.pop("_label_report", None)
            st.session_state["_label_before"] = keep_best_known(db, class_set) if can_suggest(db, class_set) else None
            st.session_state["_label_training"] = api.start(
                db, STUDY, options, f"Pattern classifier, {class_set}, trees"
            )
            st.rerun()


def _follow(db: Database, class_set: str, job: str) -> None:
    """Follow a running training; then compare it with the previous classifier and report the changes."""
    now = api.status(db, job)
    if now.active:
        st.progress(min(now.share, 1.0), text=f"Training on {len(snapshot(db, class_set).facts)} labelled maps ...")
        return
    del st.session_state["_label_training"]
    if now.state != "done" or not now.run:
        st.session_state["_label_trained"] = plain(
            f"The training of the classifier has stopped: {(now.error or now.state).rstrip('.')}."
        )
        st.rerun()
    before = st.session_state.pop("_label_before", None)
    st.session_state["_label_report"] = report_on(db, class_set, before, now.run[:12])
    st.session_state.pop("_label_trained", None)
    st.session_state.pop("label_payload", None)
    st.rerun()


def report_on(db: Database, class_set: str, before: str | None, after: str) -> Report:
    """Return what a training changed. The new classifier is used for suggestions unless a score is worse."""
    resources.wait_for_import()  # comparing asks a classifier, which needs torch
    figures = compared(db, before, after) if before else []
    changed, suggested = changed_suggestions(db, before, after)
    is_worse = any(figure.is_worse for figure in figures)
    is_suggesting = not is_worse and let_suggest(db, class_set, after)
    return Report(class_set, before, after, figures, changed, suggested, is_suggesting)


def changed_suggestions(db: Database, before: str | None, after: str) -> tuple[list[ChangedSuggestion], int]:
    """Return the maps of this queue whose suggested class has changed, and the number of compared maps."""
    names = st.session_state.get("queue", ("", []))[1][:MOST_COMPARED]
    if before is None or not names:
        return [], 0
    old, new = hints_of(db, before, names), hints_of(db, after, names)
    suggested_names = [name for name in names if name in old and name in new]  # not those too small to have a pattern
    return [
        ChangedSuggestion(name, old[name][0], old[name][1], new[name][0], new[name][1])
        for name in suggested_names
        if old[name][0] != new[name][0]
    ], len(suggested_names)
