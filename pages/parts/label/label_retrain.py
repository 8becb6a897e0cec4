"""Retraining from where one labels: how many labels are new, a training in place, and whether suggestions changed."""

import streamlit as st

from core.jobs import api
from core.patterns.classifier_registry import training_options
from core.patterns.snapshot import snapshot
from core.store import classifiers
from core.store.database import Database
from core.store.people import RightsError
from pages.parts.shell import people
from pages.parts.shell.messages import clear_errors, plain

STUDY = "train-patterns"
OFTEN, SELDOM = 1.5, 5.0  # seconds between two looks, while something trains and else


def offer_retraining(db: Database, class_set: str) -> None:
    """A button where labels are new since the newest classifier; a line while it trains and when it is done."""
    st.fragment(_watch, run_every=OFTEN if st.session_state.get("label_training") else SELDOM)(db, class_set)


def _watch(db: Database, class_set: str) -> None:
    with clear_errors():
        job = st.session_state.get("label_training")
        if job:
            _follow(db, class_set, job)
            return
        new = classifiers.labels_since_newest(db, class_set)
        if st.session_state.get("label_trained"):
            st.caption(st.session_state["label_trained"])
        if new and st.button(
            f"{new} new label{'s' if new > 1 else ''}: retrain",
            icon=":material/model_training:",
            help="Trains the pattern classifier on all labels; then it suggests.",
        ):
            options = training_options(
                db,
                snapshot(db, class_set),
                kind="trees",
                epochs=200,
                folds=5,
                seed=0,
                class_weights=False,
                beside=False,
                curve=False,
                annotator=people.person().name,
            )
            st.session_state["label_training"] = api.start(
                db, STUDY, options, f"Pattern classifier, {class_set}, trees"
            )
            st.rerun()


def _follow(db: Database, class_set: str, job: str) -> None:
    """A training that runs; when it is done its classifier suggests, and the queue is made with what it says."""
    now = api.status(db, job)
    if now.active:
        st.progress(min(now.share, 1.0), text=f"Training on {len(snapshot(db, class_set).facts)} labelled maps ...")
        return
    del st.session_state["label_training"]
    if now.state != "done" or not now.run:
        st.session_state["label_trained"] = plain(f"The training stopped: {now.error or now.state}.")
        st.rerun()
    try:
        classifiers.choose(db, class_set, now.run[:12], annotator=people.person().name)
        st.session_state["label_trained"] = "A new classifier suggests."
    except RightsError:
        st.session_state["label_trained"] = "A new classifier is there; an admin may let it suggest."
    st.session_state["hints_before"] = st.session_state.get("hints_shown")
    st.session_state.pop("label_payload", None)
    st.rerun()


def say_changes(hints: dict[str, tuple[str, float, float]]) -> None:
    """After a retraining: how many suggestions of this queue are others than before. hints: those that show now."""
    before = st.session_state.pop("hints_before", None)
    both = [name for name in hints if before and name in before]
    if both:
        changed = sum(hints[name][0] != before[name][0] for name in both)
        st.session_state["label_trained"] = f"A new classifier suggests: {changed} of {len(both)} suggestions changed."
    st.session_state["hints_shown"] = dict(hints)
