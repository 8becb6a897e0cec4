"""Retraining from where one labels: how many labels are new, a training in place, and whether suggestions changed."""

from collections import Counter

import streamlit as st

from core.jobs import api
from core.patterns.classifier_registry import can_suggest, keep_best_known, training_options
from core.patterns.snapshot import snapshot
from core.store import classifiers
from core.store.database import Database
from core.store.people import RightsError
from pages.parts.label.label_sheet import hints_of
from pages.parts.shell import people
from pages.parts.shell.messages import clear_errors, plain

STUDY = "train-patterns"
MOST_COMPARED = 300  # maps of the queue that both classifiers are asked about: some seconds
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
            st.session_state["label_before"] = keep_best_known(db, class_set) if can_suggest(db, class_set) else None
            st.session_state["label_training"] = api.start(
                db, STUDY, options, f"Pattern classifier, {class_set}, trees"
            )
            st.rerun()


def _follow(db: Database, class_set: str, job: str) -> None:
    """A training that runs; when it is done its classifier suggests, and it is said what changed."""
    now = api.status(db, job)
    if now.active:
        st.progress(min(now.share, 1.0), text=f"Training on {len(snapshot(db, class_set).facts)} labelled maps ...")
        return
    del st.session_state["label_training"]
    if now.state != "done" or not now.run:
        st.session_state["label_trained"] = plain(f"The training stopped: {now.error or now.state}.")
        st.rerun()
    before, trained = st.session_state.pop("label_before", None), now.run[:12]
    try:
        classifiers.choose(db, class_set, trained, annotator=people.person().name)
        word = "A new classifier suggests"
    except RightsError:
        word = "A new classifier is there; an admin may let it suggest"
    st.session_state["label_trained"] = f"{word}{what_changed(db, before, trained)}."
    st.session_state.pop("label_payload", None)
    st.rerun()


def what_changed(db: Database, before: str | None, after: str) -> str:
    """How many suggestions for maps of this queue are others than the classifier's before, and which change is most
    frequent; "" where there is none to compare with."""
    names = st.session_state.get("queue", ("", []))[1][:MOST_COMPARED]
    if before is None or not names:
        return ""
    old, new = hints_of(db, before, names), hints_of(db, after, names)
    asked = [name for name in names if name in old and name in new]  # not those too small to have a pattern
    changes = Counter((old[name][0], new[name][0]) for name in asked if old[name][0] != new[name][0])
    told = f": {changes.total()} of {len(asked)} suggestions changed"
    if changes:
        (was, now), count = changes.most_common(1)[0]
        told += f", most often {was} to {now} ({count})"
    return told
